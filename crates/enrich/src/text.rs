//! Bytes that a traced program controls, as text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `bytes` as text. Valid UTF-8 stays as it is; otherwise each byte that is
/// not part of valid UTF-8 becomes `\xHH` and each backslash is doubled, so
/// that the bytes can be told from the text.
pub(crate) fn lossless(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::with_capacity(bytes.len() + 8);
            for chunk in bytes.utf8_chunks() {
                for c in chunk.valid().chars() {
                    out.push(c);
                    if c == '\\' {
                        out.push(c);
                    }
                }
                for byte in chunk.invalid() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            Cow::Owned(out)
        }
    }
}

/// Appends `bytes` in double quotes as strace writes strings: everything that
/// is not printable ASCII escaped as in C, octal where there is no letter.
pub(crate) fn quote_like_strace(bytes: &[u8], out: &mut String) {
    out.push('"');
    for (i, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                // A digit behind would be read as part of the number.
                let digit_follows = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
                let _ = if digit_follows {
                    write!(out, "\\{byte:03o}")
                } else {
                    write!(out, "\\{byte:o}")
                };
            }
        }
    }
    out.push('"');
}

/// A command line (arguments, each followed by NUL) as a shell would take it.
/// Arguments with control characters or bytes that are not UTF-8 are written
/// as `$'...'`.
pub(crate) fn shell_command(cmdline: &[u8]) -> String {
    let cmdline = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    let mut out = String::with_capacity(cmdline.len() + 8);
    for (i, arg) in cmdline.split(|b| *b == 0).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        shell_word(arg, &mut out);
    }
    out
}

fn shell_word(word: &[u8], out: &mut String) {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => out.push_str(text),
        Ok(text) if !text.chars().any(char::is_control) => {
            out.push('\'');
            out.push_str(&text.replace('\'', "'\\''"));
            out.push('\'');
        }
        _ => {
            out.push_str("$'");
            for chunk in word.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '\n' => out.push_str("\\n"),
                        '\t' => out.push_str("\\t"),
                        '\r' => out.push_str("\\r"),
                        '\'' => out.push_str("\\'"),
                        '\\' => out.push_str("\\\\"),
                        c if c.is_control() => {
                            let _ = write!(out, "\\u{:04x}", u32::from(c));
                        }
                        c => out.push(c),
                    }
                }
                for byte in chunk.invalid() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
        }
    }
}

/// What stands before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_can_be_told_from_text() {
        assert_eq!(lossless(b"/a\n\\x\xc3\xa4"), "/a\n\\x\u{e4}");
        assert_eq!(
            lossless(b"/a\\x\xff\xc3\xa4\xc3"),
            "/a\\\\x\\xff\u{e4}\\xc3"
        );
    }

    #[test]
    fn strings_as_strace_quotes_them() {
        let quoted = |bytes: &[u8]| {
            let mut out = String::new();
            quote_like_strace(bytes, &mut out);
            out
        };
        assert_eq!(quoted(b"user.x"), "\"user.x\"");
        assert_eq!(
            quoted(b"user.x\n\"\\\xff\x011"),
            r#""user.x\n\"\\\377\0011""#
        );
        assert_eq!(quoted(b"u\x01y\tz\xc3\xa4"), r#""u\1y\tz\303\244""#);
    }

    #[test]
    fn command_lines() {
        assert_eq!(shell_command(b"ls\0-l\0/tmp\0"), "ls -l /tmp");
        assert_eq!(
            shell_command(b"sh\0-c\0echo \"$x\"\0"),
            "sh -c 'echo \"$x\"'"
        );
        assert_eq!(shell_command(b"a\0\0it's\0"), r"a '' 'it'\''s'");
        assert_eq!(shell_command(b"a\0x\ny'\xff\0"), r"a $'x\ny\'\xff'");
        assert_eq!(shell_command(b"a\0\x1b[31m\0"), r"a $'\u001b[31m'");
        assert_eq!(shell_command(b""), "''");
    }
}
