//! Fixed-width names of the kernel, and lists of `name=value`.

/// Begins a further `name=value`.
pub(crate) fn named(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push('=');
}

/// The bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}
