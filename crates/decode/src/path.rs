//! Paths as the kernel side sends them: components from the leaf up.

/// The absolute path of `components`, which come leaf first, each followed by
/// `/`: `log.txt/dir/home/` is `/home/dir/log.txt`, nothing is `/`.
pub fn absolute_path(components: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(components.len() + 1);
    append_absolute_path(components, &mut path);
    path
}

/// Appends what [`absolute_path`] returns to `path`.
///
/// Empty components, which no path has, are left out; a last component without
/// its `/` counts.
pub fn append_absolute_path(components: &[u8], path: &mut Vec<u8>) {
    let before = path.len();
    for component in components.rsplit(|b| *b == b'/').filter(|c| !c.is_empty()) {
        path.push(b'/');
        path.extend_from_slice(component);
    }
    if path.len() == before {
        path.push(b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_turn_round() {
        assert_eq!(absolute_path(b"log.txt/dir/home/"), b"/home/dir/log.txt");
        assert_eq!(absolute_path(b""), b"/");
        assert_eq!(absolute_path(b"/"), b"/");
        assert_eq!(absolute_path(b"a/"), b"/a");
        assert_eq!(absolute_path(b"a//b"), b"/b/a");
        assert_eq!(absolute_path(b"\xff\n/tmp/"), b"/tmp/\xff\n");
    }

    #[test]
    fn appends() {
        let mut path = b"x".to_vec();
        append_absolute_path(b"", &mut path);
        assert_eq!(path, b"x/");
    }
}
