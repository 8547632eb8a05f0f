//! Command lines, fixed-width names of the kernel, and lists of `name=value`.

use std::fmt::Write as _;

/// A command line (arguments, each followed by NUL) as a shell would take it.
/// Arguments with control characters or bytes that are not UTF-8 are written
/// as `$'...'`.
pub(crate) fn shell_command(cmdline: &[u8]) -> String {
    let cmdline = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    let mut out = String::with_capacity(cmdline.len() + 8);
    for (i, arg) in cmdline.split(|b| *b == 0).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        shell_word(arg, &mut out);
    }
    out
}

fn shell_word(word: &[u8], out: &mut String) {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => out.push_str(text),
        Ok(text) if !text.chars().any(char::is_control) => {
            out.push('\'');
            out.push_str(&text.replace('\'', "'\\''"));
            out.push('\'');
        }
        _ => {
            out.push_str("$'");
            for chunk in word.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '\n' => out.push_str("\\n"),
                        '\t' => out.push_str("\\t"),
                        '\r' => out.push_str("\\r"),
                        '\'' => out.push_str("\\'"),
                        '\\' => out.push_str("\\\\"),
                        c if c.is_control() => {
                            let _ = write!(out, "\\u{:04x}", u32::from(c));
                        }
                        c => out.push(c),
                    }
                }
                for byte in chunk.invalid() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
        }
    }
}

/// Begins a further `name=value`.
pub(crate) fn named(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push('=');
}

/// What stands before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        assert_eq!(shell_command(b"ls\0-l\0/tmp\0"), "ls -l /tmp");
        assert_eq!(
            shell_command(b"sh\0-c\0echo \"$x\"\0"),
            "sh -c 'echo \"$x\"'"
        );
        assert_eq!(shell_command(b"a\0\0it's\0"), r"a '' 'it'\''s'");
        assert_eq!(shell_command(b"a\0x\ny'\xff\0"), r"a $'x\ny\'\xff'");
        assert_eq!(shell_command(b"a\0\x1b[31m\0"), r"a $'\u001b[31m'");
        assert_eq!(shell_command(b""), "''");
    }
}
