//! Absolute forms of the paths that calls are given.

/// The absolute form of `arg`, as a call was given it, into `out`; false when
/// it is not known.
///
/// `base` is the path of the directory that the path starts from; it is real,
/// without symbolic links. Of a path that begins with `/` it is the task's root
/// directory, `None` for `/`. `..` at the beginning goes up from the base, but
/// not beyond the root; behind a name `..` stays, because the name may be a
/// symbolic link. Empty components and `.` go. An empty `arg` is the base
/// itself.
pub(crate) fn absolute(base: Option<&[u8]>, arg: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let from_root = arg.starts_with(b"/");
    if base.is_none() && !from_root {
        return false;
    }
    if let Some(base) = base {
        if arg.is_empty() {
            out.extend_from_slice(base);
            return true;
        }
        // What is neither absolute nor the end of a path that was cut is no
        // directory.
        if !base.starts_with(b"/") && !base.starts_with(CUT) {
            return false;
        }
        out.extend_from_slice(if base == b"/" { b"" } else { base });
    }
    let root = if from_root { out.len() } else { 0 };
    let mut named = false;
    for component in arg.split(|b| *b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if !named && out.len() == root && from_root => {}
            b".." if !named => match out.iter().rposition(|b| *b == b'/') {
                Some(slash) => out.truncate(slash),
                None if out.is_empty() => {}
                // Above the part that was cut off.
                None => {
                    out.clear();
                    return false;
                }
            },
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
    true
}

/// Stands for the beginning of a path that was cut off.
pub(crate) const CUT: &[u8] = b"...";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(base: Option<&str>, arg: &str) -> Option<String> {
        let mut out = b"left over".to_vec();
        absolute(base.map(str::as_bytes), arg.as_bytes(), &mut out)
            .then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn forms() {
        for (base, arg, expected) in [
            (None, "/a/b", Some("/a/b")),
            (None, "a", None),
            (None, "", None),
            (None, "//a///./b/.", Some("/a/b")),
            (None, "/", Some("/")),
            (None, "/../x", Some("/x")),
            (None, "/a/../b", Some("/a/../b")),
            (None, "/a/..", Some("/a/..")),
            (Some("/home/u"), "x", Some("/home/u/x")),
            (Some("/jail"), "/etc", Some("/jail/etc")),
            (Some("/jail"), "/", Some("/jail")),
            (Some("/jail"), "/../../x", Some("/jail/x")),
            (Some("/"), "/x", Some("/x")),
            (Some("/home/u"), "./x/", Some("/home/u/x")),
            (Some("/home/u"), "..", Some("/home")),
            (Some("/home/u"), "../../..", Some("/")),
            (Some("/home/u"), "../v/./../w", Some("/home/v/../w")),
            (Some("/home/u"), ".././../x", Some("/x")),
            (Some("/home/u"), ".", Some("/home/u")),
            (Some("/home/u"), "", Some("/home/u")),
            (Some("/"), "x", Some("/x")),
            (Some("/"), ".", Some("/")),
            (Some("/"), "..", Some("/")),
            (Some("pipe:[5]"), "", Some("pipe:[5]")),
            (Some("pipe:[5]"), "x", None),
            (Some(".../deep/dir"), "../x", Some(".../deep/x")),
            (Some(".../dir"), "../../x", None),
        ] {
            assert_eq!(text(base, arg).as_deref(), expected, "{base:?} {arg:?}");
        }
    }

    #[test]
    fn any_bytes_stay() {
        let mut out = Vec::new();
        assert!(absolute(Some(b"/\xff"), b"a\n\xfe/..x", &mut out));
        assert_eq!(out, b"/\xff/a\n\xfe/..x");
    }
}
