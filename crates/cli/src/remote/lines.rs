//! Output of other hosts, line by line, with the name of the host in front. Bytes that a terminal
//! would act on are escaped.

use std::io::{Read, Write};

use fathom_model::escape;

/// A longer line is broken.
const MAX_LINE: usize = 8 << 10;

/// Gathers the bytes of a stream.
#[derive(Debug)]
pub struct Lines {
    prefix: String,
    rest: Vec<u8>,
}

impl Lines {
    /// `host`: where the lines come from.
    pub fn of(host: &str) -> Self {
        Self {
            prefix: escape::text(host).into_owned(),
            rest: Vec::new(),
        }
    }

    /// Prints the lines that `bytes` complete.
    pub fn push(&mut self, bytes: &[u8], to: &mut impl Write) {
        for byte in bytes {
            match byte {
                b'\n' => self.end(to),
                _ if self.rest.len() >= MAX_LINE => {
                    self.end(to);
                    self.rest.push(*byte);
                }
                _ => self.rest.push(*byte),
            }
        }
    }

    /// Prints a line without an end.
    pub fn finish(&mut self, to: &mut impl Write) {
        if !self.rest.is_empty() {
            self.end(to);
        }
    }

    fn end(&mut self, to: &mut impl Write) {
        let line = std::mem::take(&mut self.rest);
        // ssh ends its lines for terminals.
        let line = escape::bytes(line.strip_suffix(b"\r").unwrap_or(&line));
        // If the terminal has gone, the recording goes on.
        let _ = writeln!(to, "{}: {line}", self.prefix);
    }
}

/// Prints a stream to its end on standard error.
pub fn print(host: &str, mut from: impl Read) {
    let mut lines = Lines::of(host);
    let mut block = vec![0; 4096];
    while let Ok(n) = from.read(&mut block) {
        let Some(bytes) = block.get(..n).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        lines.push(bytes, &mut std::io::stderr());
    }
    lines.finish(&mut std::io::stderr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_and_escaped() {
        let mut out = Vec::new();
        let mut lines = Lines::of("we\x1bb");
        lines.push(b"one\ntw", &mut out);
        lines.push(b"o\x1b[2J\r\xff\r\n\n", &mut out);
        lines.push(&vec![b'x'; MAX_LINE + 1], &mut out);
        lines.finish(&mut out);
        lines.finish(&mut out);
        let long = "x".repeat(MAX_LINE);
        let expected = format!(
            "we\\x1bb: one\nwe\\x1bb: two\\x1b[2J\\r\\xff\nwe\\x1bb: \nwe\\x1bb: {long}\nwe\\x1bb: x\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
