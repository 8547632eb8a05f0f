//! Arguments and results as strace writes them.

use std::borrow::Cow;

use fathom_model::errno;

use super::line::duration;

/// Behind the path of a working directory that was removed.
const DELETED: &[u8] = b" (deleted)";

/// The return value of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The value, negative errno for an error; `None` when the call did not
    /// return.
    pub ret: Option<i64>,
    /// The file behind the returned descriptor.
    pub path: Option<Vec<u8>>,
    pub dur_ns: Option<i64>,
}

/// Splits what follows a call's opening bracket into arguments and result;
/// `None` when it is damaged.
pub fn split(text: &[u8]) -> Option<(Vec<&[u8]>, Answer)> {
    let (args, rest) = arguments(text)?;
    Some((args, answer(rest)?))
}

/// The arguments of a call that did not come to its end.
pub fn split_unfinished(text: &[u8]) -> Vec<&[u8]> {
    let mut whole = Scanner::new(text);
    let mut args = Vec::new();
    while let Some((arg, _)) = whole.next_part() {
        args.push(trim(arg));
    }
    let rest = trim(whole.rest());
    if !rest.is_empty() {
        args.push(rest);
    }
    args
}

/// Splits the inside of `{a, b}` or `[a, b]`.
pub fn inside(text: &[u8]) -> Option<Vec<&[u8]>> {
    let inner = text
        .strip_prefix(b"{")
        .and_then(|t| t.strip_suffix(b"}"))
        .or_else(|| text.strip_prefix(b"[").and_then(|t| t.strip_suffix(b"]")))?;
    Some(split_unfinished(inner))
}

fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut scanner = Scanner::new(text);
    let mut args = Vec::new();
    loop {
        let (arg, end) = scanner.next_part()?;
        let arg = trim(arg);
        if !arg.is_empty() || end == b',' {
            args.push(arg);
        }
        if end == b')' {
            return Some((args, scanner.rest()));
        }
    }
}

/// Walks over text and stops at commas and at the bracket that ends it.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next part, and what ended it: a comma or a closing bracket that
    /// belongs to none inside. `None` at the end of the text, with the position
    /// where it was.
    fn next_part(&mut self) -> Option<(&'a [u8], u8)> {
        let start = self.at;
        let mut at = self.at;
        let mut depth = 0usize;
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b'"' => at = self.quoted(at)?,
                b'<' if self.is_descriptor(start, at) => at = self.angled(at)?,
                b'/' if self.text.get(at + 1) == Some(&b'*') => at = self.comment(at)?,
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth > 0 => depth -= 1,
                b',' | b')' if depth == 0 => {
                    self.at = at + 1;
                    return Some((self.text.get(start..at)?, byte));
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// The last byte of the quoted text that begins at `at`.
    fn quoted(&self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            match self.text.get(at)? {
                b'\\' => at += 2,
                b'"' => return Some(at),
                _ => at += 1,
            }
        }
    }

    /// The last byte of the text after a descriptor. In paths, `<` and `>` are escaped; the
    /// additions of -yy for devices are in their own brackets, and addresses of sockets, which may
    /// contain `->`, in square ones.
    fn angled(&self, at: usize) -> Option<usize> {
        let inner = self.text.get(at + 1..)?;
        let is_path = inner.starts_with(b"/");
        let (mut depth, mut square) = (1usize, 0usize);
        for (i, byte) in inner.iter().enumerate() {
            match byte {
                b'[' if !is_path => square += 1,
                b']' if !is_path => square = square.saturating_sub(1),
                b'<' if square == 0 => depth += 1,
                b'>' if square == 0 => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1 + i);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn comment(&self, at: usize) -> Option<usize> {
        let end = super::line::find(self.text.get(at..)?, b"*/")?;
        Some(at + end + 1)
    }

    /// Whether the `<` at `at` follows a descriptor, and is no sign of a shift.
    fn is_descriptor(&self, start: usize, at: usize) -> bool {
        let before = self.text.get(start..at).unwrap_or_default();
        let shift = self.text.get(at + 1) == Some(&b'<');
        !shift && (before.last().is_some_and(u8::is_ascii_digit) || before.ends_with(b"CWD"))
    }
}

fn answer(text: &[u8]) -> Option<Answer> {
    let text = trim(trim(text).strip_prefix(b"=")?);
    let (text, dur_ns) = match text.strip_suffix(b">").and_then(|t| {
        let at = t.iter().rposition(|b| *b == b'<')?;
        Some((t.get(..at)?, duration(t.get(at + 1..)?)?))
    }) {
        Some((text, dur)) => (trim(text), Some(dur)),
        None => (text, None),
    };
    let end = text
        .iter()
        .position(|b| matches!(b, b' ' | b'<'))
        .unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end)?;
    let mut answer = Answer {
        dur_ns,
        ..Answer::default()
    };
    let word = trim(rest)
        .split(|b| *b == b' ')
        .next()
        .filter(|w| w.first() == Some(&b'E'))
        .and_then(|w| std::str::from_utf8(w).ok());
    match value {
        b"?" => {
            answer.ret = word.and_then(errno_number).map(|n| -n);
            return Some(answer);
        }
        b"-1" if word.is_some() => {
            answer.ret = Some(-word.and_then(errno_number)?);
            return Some(answer);
        }
        _ => {}
    }
    // `-1 (errno 530)`, for numbers without a name.
    if value == b"-1"
        && let Some(number) = trim(rest).strip_prefix(b"(errno ")
    {
        answer.ret = integer(number.strip_suffix(b")")?).map(|n| -n);
        return Some(answer);
    }
    answer.ret = Some(integer(value)?);
    if rest.first() == Some(&b'<') {
        let scanner = Scanner::new(text);
        let last = scanner.angled(end)?;
        answer.path = Some(path_of(text.get(end + 1..last)?));
    }
    Some(answer)
}

fn errno_number(name: &str) -> Option<i64> {
    (1..600).find(|n| errno::name(*n) == Some(name))
}

/// A number, decimal, `0x` or octal.
pub fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(without_comment(text)).ok()?;
    let octal = text
        .strip_prefix('0')
        .and_then(|digits| i64::from_str_radix(digits, 8).ok());
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None if octal.is_some() => octal,
        None => match text.parse::<i64>() {
            Ok(n) => Some(n),
            // Numbers without a sign.
            Err(_) => text.parse::<u64>().ok().map(|n| n as i64),
        },
    }
}

/// Without a comment behind it, as in `0x7f /* 7 entries */`.
pub fn without_comment(text: &[u8]) -> &[u8] {
    match super::line::find(text, b" /* ") {
        Some(at) if !text.starts_with(b"\"") => text.get(..at).unwrap_or(text),
        _ => text,
    }
}

/// A descriptor and the text after it: `3</etc/passwd>`; AT_FDCWD is -100.
pub fn descriptor(text: &[u8]) -> Option<(i32, Option<Vec<u8>>)> {
    let end = text.iter().position(|b| *b == b'<').unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    let fd = match number {
        b"AT_FDCWD" => -100,
        _ => {
            let number = integer(number)?;
            // As unsigned, when the program passed it so.
            i32::try_from(number).unwrap_or(number as i32)
        }
    };
    let mut path = match Scanner::new(text).angled(end) {
        Some(last) if !rest.is_empty() => Some(path_of(text.get(end + 1..last)?)),
        _ => None,
    };
    // Behind a descriptor strace puts this behind the bracket.
    if let (-100, Some(path)) = (fd, &mut path)
        && path.ends_with(DELETED)
    {
        path.truncate(path.len() - DELETED.len());
    }
    Some((fd, path))
}

/// The text in angle brackets, without strace's escapes and without the additions of -yy.
fn path_of(text: &[u8]) -> Vec<u8> {
    let text = match text.iter().position(|b| *b == b'<') {
        Some(at) if text.starts_with(b"/") => text.get(..at).unwrap_or(text),
        _ => text,
    };
    unescape(text).into_owned()
}

/// A quoted text, `None` when it is none (an address) or when strace cut it.
pub fn string(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(unescape(inner).into_owned())
}

/// Without C's escapes.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&escape) = text.get(at) else {
            out.push(byte);
            break;
        };
        at += 1;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'v' => out.push(0x0b),
            b'f' => out.push(0x0c),
            b'x' => {
                let digits = text.get(at..at + 2).unwrap_or_default();
                let value = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|d| u8::from_str_radix(d, 16).ok());
                match value {
                    Some(value) => {
                        out.push(value);
                        at += 2;
                    }
                    None => out.push(b'x'),
                }
            }
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    match text.get(at) {
                        Some(digit @ b'0'..=b'7') => value = value * 8 + u32::from(digit - b'0'),
                        _ => break,
                    }
                    at += 1;
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
    out.into()
}

pub fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> (Vec<String>, Answer) {
        let (args, answer) = split(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        let args = args
            .iter()
            .map(|a| String::from_utf8_lossy(a).into_owned())
            .collect();
        (args, answer)
    }

    #[test]
    fn calls_and_results() {
        let (args, answer) =
            ok(r#"AT_FDCWD</tmp>, "a, b)\"\n", O_RDONLY|O_CLOEXEC) = 3</tmp/a, b)\76> <0.000012>"#);
        assert_eq!(args.len(), 3);
        assert_eq!(answer.ret, Some(3));
        assert_eq!(answer.path.as_deref(), Some(&b"/tmp/a, b)>"[..]));
        assert_eq!(answer.dur_ns, Some(12_000));
        let (args, answer) = ok("99)                    = -1 EBADF (Bad file descriptor)");
        assert_eq!((args.len(), answer.ret), (1, Some(-9)));
        let (args, answer) = ok(") = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.5>");
        assert!(args.is_empty());
        assert_eq!(answer.ret, Some(-512));
        assert_eq!(answer.dur_ns, Some(1_500_000_000));
        let (_, answer) = ok("0) = ?");
        assert_eq!(answer.ret, None);
        let (_, answer) = ok("NULL, 8192) = 0x7f1200000000");
        assert_eq!(answer.ret, Some(0x7f12_0000_0000));
        let (_, answer) = ok("3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)");
        assert_eq!(answer.ret, Some(0x8002));
        let (_, answer) = ok("077) = 022");
        assert_eq!(answer.ret, Some(0o22));
        let (_, answer) = ok("3) = -1 (errno 531)");
        assert_eq!(answer.ret, Some(-531));
        let (args, _) = ok("3<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"x\", 1) = 1");
        assert_eq!(args.len(), 3);
        let (args, _) = ok("3</dev/null<char 1:3>>, \"x\", 1) = 1");
        assert_eq!(
            descriptor(args[0].as_bytes()).unwrap().1.unwrap(),
            b"/dev/null"
        );
        let (args, _) = ok(r#"AT_FDCWD</a (deleted)>, 4</b>(deleted), 5</c (deleted)>) = 0"#);
        let names: Vec<_> = args
            .iter()
            .map(|arg| descriptor(arg.as_bytes()).unwrap().1.unwrap())
            .collect();
        assert_eq!(names, [&b"/a"[..], b"/b", b"/c (deleted)"]);
        let (args, _) = ok("3<pipe:[7]>, 0x7f /* 7 entries, or more) */, 1) = 1");
        assert_eq!(args.len(), 3);
        assert_eq!(integer(args[1].as_bytes()), Some(0x7f));
        let (args, _) = ok("21<<MAP_HUGE_SHIFT, 4) = 0");
        assert_eq!(args.len(), 2);
    }

    #[test]
    fn damaged_text_is_none() {
        for text in [
            "3",
            "3) 4",
            "3) = x",
            "\"3) = 4",
            "3) = -1 EWHAT (x)",
            "3</a) = 1",
        ] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(
            string(br#""a\33[0m\377\0018\\\x41""#).unwrap(),
            b"a\x1b[0m\xff\x018\\A"
        );
        assert_eq!(string(b"\"cut\"..."), None);
        assert_eq!(string(b"0x7f"), None);
        assert_eq!(string(b"\""), None);
    }

    #[test]
    fn insides() {
        let parts = inside(b"[{iov_base=\"a,b\", iov_len=3}, {iov_base=\"\", iov_len=4}]").unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(inside(b"0x7f"), None);
    }
}
