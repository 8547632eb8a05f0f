//! Values that are names and no patterns: the kernel side compares hashes of whole names, which
//! patterns have none of.

/// The meaning of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Literal {
    /// These bytes.
    Name(Vec<u8>),
    /// Nothing: it has a character of a pattern that is not escaped.
    Pattern(char),
}

/// Reads `value`, in which a backslash takes its meaning from the `*`, `?`, `[`, `]` or backslash
/// behind it. Before anything else it stands for itself. Of `special` (some of `*`, `?`, `[`) the
/// first that is not escaped makes a pattern; `[` only with a `]` behind it.
pub(super) fn read(value: &[u8], special: &[u8]) -> Literal {
    let mut name = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.split_first()) {
            (b'\\', Some((&escaped, behind))) if b"*?[]\\".contains(&escaped) => {
                name.push(escaped);
                rest = behind;
            }
            (b'[', _) if special.contains(&b'[') && behind.contains(&b']') => {
                return Literal::Pattern('[');
            }
            (b'*' | b'?', _) if special.contains(&byte) => {
                return Literal::Pattern(char::from(byte));
            }
            _ => name.push(byte),
        }
    }
    Literal::Name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(value: &str) -> Option<String> {
        match read(value.as_bytes(), b"*?[") {
            Literal::Name(name) => Some(String::from_utf8(name).unwrap()),
            Literal::Pattern(_) => None,
        }
    }

    #[test]
    fn patterns_are_told_from_names() {
        for pattern in ["*", "*.bin", "/data/**", "a?c", "/x[ab]", r"\**", r"\\*"] {
            assert_eq!(name(pattern), None, "{pattern}");
        }
        for (value, means) in [
            ("/data/x", "/data/x"),
            (r"/a\*b", "/a*b"),
            (r"/a\?\[x\]", "/a?[x]"),
            (r"/a\\b", r"/a\b"),
            (r"/a\b", r"/a\b"),
            ("/odd[", "/odd["),
            ("/odd]x[", "/odd]x["),
            (r"/end\", r"/end\"),
        ] {
            assert_eq!(name(value).as_deref(), Some(means), "{value}");
        }
    }
}
