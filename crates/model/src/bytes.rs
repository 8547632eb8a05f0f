//! Bytes that a traced program controls, as text of a session and in strace's
//! notation.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `bytes` as text. Valid UTF-8 stays as it is; otherwise each byte that is not part of valid UTF-8
/// becomes `\xHH` and each backslash is doubled, so that the bytes can be recovered from the text.
pub fn escape_invalid_utf8(bytes: &[u8]) -> Cow<'_, str> {
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

/// The bytes behind a text that [`escape_invalid_utf8`] made: `\xHH` stands for a byte that is not
/// UTF-8, and then `\\` for a backslash. If the resulting bytes would be valid UTF-8, the text was
/// not escaped.
pub fn of_text(text: &str) -> Cow<'_, [u8]> {
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

/// Appends `bytes` in double quotes as strace writes strings: everything that
/// is not printable ASCII escaped as in C, octal where there is no letter.
pub fn quote_like_strace(bytes: &[u8], out: &mut String) {
    out.push('"');
    escape_like_strace(bytes, b"", out);
    out.push('"');
}

/// Appends a path behind a descriptor as strace does, `</etc/passwd>`: the angle
/// brackets in it are escaped, as numbers.
pub fn angle_like_strace(path: &[u8], out: &mut String) {
    out.push('<');
    escape_like_strace(path, b"<>", out);
    out.push('>');
}

/// Appends `bytes` escaped; bytes in `numbers` become octal numbers.
fn escape_like_strace(bytes: &[u8], numbers: &[u8], out: &mut String) {
    for (i, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\\""),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b' '..=b'~' if !numbers.contains(&byte) => out.push(char::from(byte)),
            _ => {
                // An octal digit behind would be read as part of the number.
                let digit_follows = matches!(bytes.get(i + 1), Some(b'0'..=b'7'));
                let _ = if digit_follows {
                    write!(out, "\\{byte:03o}")
                } else {
                    write!(out, "\\{byte:o}")
                };
            }
        }
    }
}

/// Bytes of a program as text, without characters that control terminals.
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let replace = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_can_be_told_from_text() {
        assert_eq!(escape_invalid_utf8(b"/a\n\\x\xc3\xa4"), "/a\n\\x\u{e4}");
        assert_eq!(
            escape_invalid_utf8(b"/a\\x\xff\xc3\xa4\xc3"),
            "/a\\\\x\\xff\u{e4}\\xc3"
        );
    }

    #[test]
    fn bytes_that_were_no_text() {
        assert_eq!(&*of_text("a\\xff\\\\b"), b"a\xff\\b");
        assert_eq!(&*of_text("a\\x41"), b"a\\x41");
        assert_eq!(&*of_text("a\\b\\xff"), b"a\\b\\xff");
        assert_eq!(&*of_text("\\x"), b"\\x");
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
        assert_eq!(quoted(b"\"\"<"), r#""\"\"<""#);
    }

    #[test]
    fn paths_as_strace_brackets_them() {
        let mut out = String::new();
        angle_like_strace(b"/a>b\n<1\"<8", &mut out);
        assert_eq!(out, r#"</a\76b\n\0741\"\748>"#);
    }
}
