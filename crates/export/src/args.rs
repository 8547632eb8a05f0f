//! Column `args`: `name=value, name=value`, values in strace's words.

/// The value of argument `name`.
pub(crate) fn value<'a>(args: Option<&'a str>, name: &str) -> Option<&'a str> {
    Parts(args?)
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The parts of a list between the commas that stand outside of quotes and
/// brackets.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        if text.is_empty() {
            return None;
        }
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    let (part, rest) = text.split_at(at);
                    self.0 = rest.get(1..).unwrap_or("");
                    return Some(part);
                }
                _ => {}
            }
        }
        self.0 = "";
        Some(text)
    }
}

/// The bytes behind a text of a session: `\xHH` stands for a byte that is not
/// UTF-8, and then `\\` for a backslash. A text in which the bytes so written
/// would be valid UTF-8 is meant as it stands.
pub(crate) fn bytes_of(text: &str) -> std::borrow::Cow<'_, [u8]> {
    if !text.contains("\\x") {
        return text.as_bytes().into();
    }
    let source = text.as_bytes();
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while let Some(&byte) = source.get(at) {
        let rest = source.get(at..).unwrap_or_default();
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        match rest {
            [b'\\', b'\\', ..] => {
                out.push(b'\\');
                at += 2;
            }
            [b'\\', b'x', high, low, ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 4;
                }
                _ => return source.into(),
            },
            [b'\\', ..] => return source.into(),
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    if std::str::from_utf8(&out).is_ok() {
        source.into()
    } else {
        out.into()
    }
}

/// Appends `bytes` in double quotes as strace writes strings.
pub(crate) fn quote(bytes: &[u8], out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    escape(bytes, b'"', out);
    out.push('"');
    fn escape(bytes: &[u8], end: u8, out: &mut String) {
        for (i, &byte) in bytes.iter().enumerate() {
            match byte {
                _ if byte == end || byte == b'\\' => {
                    out.push('\\');
                    out.push(char::from(byte));
                }
                b'\n' => out.push_str("\\n"),
                b'\t' => out.push_str("\\t"),
                b'\r' => out.push_str("\\r"),
                0x0b => out.push_str("\\v"),
                0x0c => out.push_str("\\f"),
                b' '..=b'~' => out.push(char::from(byte)),
                _ => {
                    // A digit behind would be read as part of the number.
                    let digit = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
                    let _ = if digit {
                        write!(out, "\\{byte:03o}")
                    } else {
                        write!(out, "\\{byte:o}")
                    };
                }
            }
        }
    }
}

/// Appends a path behind a descriptor, `</etc/passwd>`: strace escapes what ends
/// it, and everything that is not printable ASCII, as octal numbers.
pub(crate) fn angled(path: &[u8], out: &mut String) {
    use std::fmt::Write as _;
    out.push('<');
    for (i, &byte) in path.iter().enumerate() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b'<' | b'>' => {
                let _ = write!(out, "\\{byte:o}");
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let digit = path.get(i + 1).is_some_and(u8::is_ascii_digit);
                let _ = if digit {
                    write!(out, "\\{byte:03o}")
                } else {
                    write!(out, "\\{byte:o}")
                };
            }
        }
    }
    out.push('>');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_name() {
        let args = Some(r#"dirfd=3, name="a, mode=1\"", times=[{a=1, b=2}, UTIME_NOW], mode=0644"#);
        assert_eq!(value(args, "dirfd"), Some("3"));
        assert_eq!(value(args, "name"), Some(r#""a, mode=1\"""#));
        assert_eq!(value(args, "times"), Some("[{a=1, b=2}, UTIME_NOW]"));
        assert_eq!(value(args, "mode"), Some("0644"));
        assert_eq!(value(args, "b"), None);
        assert_eq!(value(None, "b"), None);
    }

    #[test]
    fn bytes_that_were_no_text() {
        assert_eq!(&*bytes_of("a\\xff\\\\b"), b"a\xff\\b");
        assert_eq!(&*bytes_of("a\\x41"), b"a\\x41");
        assert_eq!(&*bytes_of("a\\b\\xff"), b"a\\b\\xff");
        assert_eq!(&*bytes_of("\\x"), b"\\x");
    }

    #[test]
    fn quotes() {
        let mut out = String::new();
        quote(b"a\"\\\n\x1b[\x001\xff", &mut out);
        assert_eq!(out, r#""a\"\\\n\33[\0001\377""#);
        out.clear();
        angled(b"/a>b\n", &mut out);
        assert_eq!(out, r"</a\76b\n>");
    }
}
