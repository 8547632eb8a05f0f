//! Column `args`: `name=value, name=value`, values in strace's words.

pub(crate) fn value<'a>(args: Option<&'a str>, name: &str) -> Option<&'a str> {
    Parts(args?)
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The parts of a list between the commas that stand outside of quotes, of brackets and
/// of the angle brackets behind a descriptor, in which angle brackets are escaped.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        if text.is_empty() {
            return None;
        }
        let (mut depth, mut quoted, mut escaped, mut behind) = (0usize, false, false, false);
        let bytes = text.as_bytes();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if behind => behind = byte != b'>',
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'<' => behind = is_descriptor(bytes.get(..at), bytes.get(at + 1)),
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

/// Whether a `<` between the two follows a descriptor instead of starting a shift.
fn is_descriptor(before: Option<&[u8]>, next: Option<&u8>) -> bool {
    let before = before.unwrap_or_default();
    (before.last().is_some_and(u8::is_ascii_digit) || before.ends_with(b"=AT_FDCWD"))
        && next != Some(&b'<')
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
        let args = Some(r#"dirfd=AT_FDCWD</a, mode=1"{>, dirfd2=3</b\>, flags=21<<X, mode=0644"#);
        assert_eq!(value(args, "dirfd"), Some(r#"AT_FDCWD</a, mode=1"{>"#));
        assert_eq!(value(args, "dirfd2"), Some(r"3</b\>"));
        assert_eq!(value(args, "flags"), Some("21<<X"));
        assert_eq!(value(args, "mode"), Some("0644"));
        assert_eq!(value(None, "b"), None);
    }
}
