//! Absolute forms of the paths that calls are given.

/// The absolute form of `arg`, as a call was given it, into `out`; false when
/// it is not known.
///
/// `root` is the path of the directory above which no path leads, the task's root
/// as a rule, `None` for `/`: a path that begins with `/` starts there. `base` is
/// the path of the directory that any other one starts from. Both are real, without
/// symbolic links. `..` at the beginning goes up from the base, but not beyond the
/// root; behind a name `..` stays, because the name may be a symbolic link, unless
/// it leads beyond the root by the names alone: in a jail it would read as a way
/// out. Empty components and `.` go. An empty `arg` is the base itself.
pub(crate) fn absolute(
    root: Option<&[u8]>,
    base: Option<&[u8]>,
    arg: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    let root = root.unwrap_or(b"/");
    let from_root = arg.starts_with(b"/");
    let Some(base) = (if from_root { Some(root) } else { base }) else {
        return false;
    };
    if arg.is_empty() {
        out.extend_from_slice(base);
        return true;
    }
    // A path that is neither absolute nor the end of a cut path is not a directory.
    if !base.starts_with(b"/") && !base.starts_with(CUT) {
        return false;
    }
    out.extend_from_slice(without_slash(base));
    // `..` leads out of a directory that is not below the root as of any other.
    let floor = without_slash(root);
    let below = out.strip_prefix(floor);
    let floor = match below {
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => floor.len(),
        _ => 0,
    };
    // Names from the root down, and how many of them stay before a `..`.
    let below = out.get(floor..).unwrap_or_default();
    let mut depth = below.iter().filter(|b| **b == b'/').count();
    let mut named = false;
    for component in arg.split(|b| *b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if depth == 0 && !out.starts_with(CUT) => {}
            b".." if !named => match out.iter().rposition(|b| *b == b'/') {
                Some(slash) => {
                    out.truncate(slash);
                    depth = depth.saturating_sub(1);
                }
                None if out.is_empty() => {}
                // Above the part that was cut off.
                None => {
                    out.clear();
                    return false;
                }
            },
            b".." => {
                out.extend_from_slice(b"/..");
                depth = depth.saturating_sub(1);
            }
            name => {
                named = true;
                out.push(b'/');
                out.extend_from_slice(name);
                depth += 1;
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    true
}

/// The path that names in a directory go behind.
pub(super) fn without_slash(directory: &[u8]) -> &[u8] {
    match directory {
        b"/" => b"",
        other => other,
    }
}

/// Stands for the beginning of a path that was cut off.
pub(crate) const CUT: &[u8] = b"...";

#[cfg(test)]
mod tests {
    use super::*;

    fn below(root: Option<&str>, base: Option<&str>, arg: &str) -> Option<String> {
        let mut out = b"left over".to_vec();
        let (root, base) = (root.map(str::as_bytes), base.map(str::as_bytes));
        absolute(root, base, arg.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    fn text(base: Option<&str>, arg: &str) -> Option<String> {
        below(base.filter(|_| arg.starts_with('/')), base, arg)
    }

    #[test]
    fn no_path_leads_out_of_a_jail() {
        for (base, arg, expected) in [
            ("/a/jail", "../outside", "/a/jail/outside"),
            ("/a/jail", "../../outside", "/a/jail/outside"),
            ("/a/jail", "..", "/a/jail"),
            ("/a/jail", "x", "/a/jail/x"),
            ("/a/jail/sub", "../../outside", "/a/jail/outside"),
            ("/a/jail/sub", "../y", "/a/jail/y"),
            ("/a/jail", "sub/../../outside", "/a/jail/sub/../outside"),
            ("/a/jail", "/sub/../../outside", "/a/jail/sub/../outside"),
            ("/a/jail", "/../outside", "/a/jail/outside"),
            ("/a/jail", "s/t/../../../../u", "/a/jail/s/t/../../u"),
            // Outside of it, or only beginning like it.
            ("/a", "../x", "/x"),
            ("/a/jailer", "../x", "/a/x"),
            (
                "/a/jailer/b",
                "c/../../../../x",
                "/a/jailer/b/c/../../../../x",
            ),
            ("/b", "jail/../../..", "/b/jail/../.."),
        ] {
            let found = below(Some("/a/jail"), Some(base), arg);
            assert_eq!(found.as_deref(), Some(expected), "{base} {arg}");
        }
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
            (None, "/a/../../b", Some("/a/../b")),
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
        assert!(absolute(None, Some(b"/\xff"), b"a\n\xfe/..x", &mut out));
        assert_eq!(out, b"/\xff/a\n\xfe/..x");
    }
}
