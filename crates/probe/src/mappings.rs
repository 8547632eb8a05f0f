//! The code that a process has mapped.

/// Range, offset and path of a line of `/proc/PID/maps` (proc(5)) if it has code.
pub(crate) fn code(line: &str) -> Option<(&str, u64, &str)> {
    let mut fields = line.splitn(6, ' ');
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let path = fields.nth(2).unwrap_or("").trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let offset = u64::from_str_radix(offset, 16).ok()?;
    rights.contains('x').then_some((range, offset, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_code() {
        let line =
            "7f00a000-7f00c000 r-xp 0002a000 fe:00 1234                       /usr/lib/a b.so";
        assert_eq!(
            code(line),
            Some(("7f00a000-7f00c000", 0x2a000, "/usr/lib/a b.so"))
        );
        assert_eq!(code("7f00a000-7f00c000 rw-p 00000000 00:00 0"), None);
        let gone = "400000-401000 r-xp 00000000 fe:00 7 /tmp/x (deleted)";
        assert_eq!(code(gone), Some(("400000-401000", 0, "/tmp/x")));
        assert_eq!(
            code("7ff0000-7ff1000 r-xp 00000000 00:00 0 [vdso]").map(|c| c.2),
            Some("[vdso]")
        );
    }
}
