//! Paths from a log, and its lines for a terminal.

/// The absolute form of `arg` from directory `base`, as recordings have it:
/// empty components and `.` go, `..` at the beginning goes up from the base, one
/// behind a name stays, as that name may be a link. `None` when the base is not
/// known.
pub(crate) fn absolute(base: Option<&[u8]>, arg: &[u8]) -> Option<Vec<u8>> {
    let from_root = arg.starts_with(b"/");
    let mut out = match base {
        _ if from_root => Vec::new(),
        Some(base) if arg.is_empty() => return Some(base.to_vec()),
        Some(b"/") => Vec::new(),
        Some(base) if base.starts_with(b"/") => base.to_vec(),
        _ => return None,
    };
    let mut named = false;
    for component in arg.split(|b| *b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if !named => {
                let slash = out.iter().rposition(|b| *b == b'/').unwrap_or(0);
                out.truncate(slash);
            }
            name => {
                named |= name != b"..";
                out.push(b'/');
                out.extend_from_slice(name);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    Some(out)
}

/// A line for a terminal: at most 200 bytes, what it could act on written out.
pub(crate) fn shown(line: &[u8]) -> String {
    fathom_model::escape::bytes(line.get(..200).unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_forms() {
        let text = |base: Option<&str>, arg: &str| {
            absolute(base.map(str::as_bytes), arg.as_bytes()).map(|p| String::from_utf8(p).unwrap())
        };
        assert_eq!(text(None, "//a/./b/"), Some("/a/b".into()));
        assert_eq!(text(None, "a"), None);
        assert_eq!(text(Some("/h/u"), "../v/../w"), Some("/h/v/../w".into()));
        assert_eq!(text(Some("/"), ".."), Some("/".into()));
        assert_eq!(text(Some("/h"), ""), Some("/h".into()));
        assert_eq!(text(Some("pipe:[3]"), "x"), None);
    }

    #[test]
    fn lines_are_safe_to_print() {
        assert_eq!(shown(b"a\x1b[2J\xff"), "a\\x1b[2J\\xff");
        assert_eq!(shown(&[b'x'; 300]).len(), 200);
    }
}
