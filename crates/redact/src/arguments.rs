//! Arguments of calls: `name=value`, as strace writes them.
//!
//! Texts of programs are in quotes or angle brackets. A word outside that is neither a number, a name
//! of the kernel, nor of a field is hashed, too: a log that was imported may contain anything there.

use std::net::SocketAddr;

use crate::rules::Action;
use crate::text::Redactor;

/// Values without quotes that fathom writes.
const VALUES: [&str; 4] = ["partial", "s", "val", "inf"];

impl Redactor {
    /// Arguments of which texts are hashed.
    pub(crate) fn arguments(&self, args: &str) -> String {
        let mut out = String::with_capacity(args.len());
        let mut name = "";
        let mut rest = args;
        while let Some(c) = rest.chars().next() {
            if let Some(address) = self.socket_address(rest) {
                let (address, length) = address;
                out.push_str(&address);
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            let length = match c {
                '"' => self.quoted(name, rest, &mut out),
                '<' => self.bracketed(rest, &mut out),
                c if is_word(c) => {
                    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                    let (word, behind) = rest.split_at(end);
                    if behind.starts_with('=') && is_field(word) {
                        name = word;
                        out.push_str(word);
                    } else if behind.starts_with('(') && is_field(word) || is_value(word) {
                        out.push_str(word);
                    } else {
                        out.push_str(&self.key.word(word));
                    }
                    end
                }
                c if c.is_ascii() && !c.is_ascii_control() => {
                    out.push(c);
                    1
                }
                c => {
                    out.push('?');
                    c.len_utf8()
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        out
    }

    /// A text in quotes; returns how long it was.
    fn quoted(&self, name: &str, rest: &str, out: &mut String) -> usize {
        let (text, length) = inside(rest, '"');
        out.push('"');
        match name {
            // Of an extended attribute, which is content.
            "value" if self.rules.content == Action::Drop => {}
            // Names that the kernel knows.
            _ if is_kernel_attribute(text) => out.push_str(text),
            _ if text.contains('/') => out.push_str(&self.path(text)),
            _ if text.is_empty() => {}
            _ => out.push_str(&self.key.word(text)),
        }
        out.push('"');
        length
    }

    /// The path of a descriptor; returns how long it was.
    fn bracketed(&self, rest: &str, out: &mut String) -> usize {
        let (path, length) = inside(rest, '>');
        out.push('<');
        out.push_str(&self.path(path));
        out.push('>');
        length
    }

    /// An address at the start of `rest`, and how long it was.
    fn socket_address(&self, rest: &str) -> Option<(String, usize)> {
        if !rest.starts_with(|c: char| c == '[' || c.is_ascii_hexdigit()) {
            return None;
        }
        let end = rest.find([',', ' ', ')', '}']).unwrap_or(rest.len());
        let text = rest.get(..end)?;
        let address: SocketAddr = text.parse().ok()?;
        let ip = self.address(&address.ip().to_string());
        Some((format!("{ip}:{}", address.port()), end))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_.:/-+?*%#".contains(c)
}

/// Whether it can be the name of a field or a function.
fn is_field(word: &str) -> bool {
    word.len() <= 24 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether it is a number or a name of the kernel.
fn is_value(word: &str) -> bool {
    let capitals = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let constant = word.len() <= 40
        && word.bytes().all(capitals)
        && word.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let hexadecimal = unsigned.strip_prefix("0x");
    let number = !unsigned.is_empty() && digits(unsigned)
        || hexadecimal.is_some_and(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
    let dots = word.bytes().all(|b| b".?*-+".contains(&b));
    constant || number || dots || VALUES.contains(&word)
}

fn is_kernel_attribute(text: &str) -> bool {
    let name = ["security.", "system."]
        .into_iter()
        .find_map(|space| text.strip_prefix(space));
    let known = [
        "capability",
        "ima",
        "evm",
        "selinux",
        "posix_acl_access",
        "posix_acl_default",
    ];
    name.is_some_and(|name| known.contains(&name))
}

/// The text between the first character and `end`, and the length of both with it. A backslash
/// escapes what is behind it.
fn inside(rest: &str, end: char) -> (&str, usize) {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == end && !escaped {
            return (rest.get(1..at).unwrap_or_default(), at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    (rest.get(1..).unwrap_or_default(), rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Key, Rules};

    #[test]
    fn texts_are_hashed_and_the_rest_stays() {
        let redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        let word = |text: &str| redactor.key.word(text);
        for (args, redacted) in [
            (
                "dirfd=3</etc/x\\76y>, mode=0644",
                format!("dirfd=3</etc/{}>, mode=0644", word("x\\76y")),
            ),
            (
                "name=\"user.a\\\"b\", value=\"pw\"",
                format!("name=\"{}\", value=\"\"", word("user.a\\\"b")),
            ),
            (
                "addr=10.1.2.3:80, addrlen=16",
                format!("addr={}:80, addrlen=16", word("10.1.2.3")),
            ),
            (
                "addr=[2001:db8::1]:53",
                format!("addr={}:53", word("2001:db8::1")),
            ),
            ("addr=@\"secret\"", format!("addr=@\"{}\"", word("secret"))),
            ("whence=secret", format!("whence={}", word("secret"))),
            (
                "x=\"unfinished secret",
                format!("x=\"{}\"", word("unfinished secret")),
            ),
        ] {
            assert_eq!(redactor.arguments(args), redacted, "{args}");
        }
        for args in [
            "addr=127.0.0.1:80",
            "fd_out=4, off_out=12, iovcnt=2",
            "statbuf={st_ino=7, st_mode=S_IFREG|0644, st_size=-1, ...}",
            "wstatus=[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]",
            "path_arg=NULL, request=_IOC(_IOC_READ, 0x54, 0x1, 0)",
            "name=\"security.capability\"",
            "fds=[{fd=3, events=POLLIN, revents=POLLIN}]",
        ] {
            assert_eq!(redactor.arguments(args), args);
        }
    }
}
