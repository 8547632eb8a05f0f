//! One line of strace's output: who, when, what.

/// The time at the head of a line, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `-ttt`: since 1970.
    Unix(i64),
    /// `-t`, `-tt`: since midnight.
    OfDay(i64),
    /// `-r`: since the line before.
    Relative(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A call: name, what follows its opening bracket.
    Call(&'a [u8], &'a [u8]),
    /// The beginning of a call that another line interrupts.
    Unfinished(&'a [u8], &'a [u8]),
    /// The end of it: name, what follows `resumed>`.
    Resumed(&'a [u8], &'a [u8]),
    /// `+++ exited with 1 +++`, its status.
    Exited(i32),
    /// `+++ killed by SIGTERM +++`, 128 and the signal if that is known.
    Killed(Option<i32>),
    /// `+++ superseded by execve in pid 7 +++`.
    Superseded(i32),
    /// A signal, or a note of strace's: no call.
    Note(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Thread, where the line names it.
    pub tid: Option<i32>,
    /// Name of the thread, with `--decode-pids=comm`.
    pub comm: Option<&'a [u8]>,
    /// When.
    pub time: Option<Time>,
    pub what: What<'a>,
}

/// The parts of a line; `None` when it is none of strace's.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"strace: ") || line.starts_with(b" > ") {
        return Some(Line {
            tid: None,
            comm: None,
            time: None,
            what: What::Note(line),
        });
    }
    let (tid, comm, rest) = thread(line);
    let (time, rest) = time(rest);
    let rest = skip_brackets(trim(rest));
    let what = what(rest)?;
    Some(Line {
        tid,
        comm,
        time,
        what,
    })
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|b| **b == b' ').count();
    text.get(start..).unwrap_or_default()
}

/// A number and what follows it.
fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((value, rest))
}

/// Highest thread id that a kernel gives.
const MAX_TID: i64 = 1 << 22;

/// `[pid 12] `, `12 ` or `12<name> ` at the head.
fn thread(line: &[u8]) -> (Option<i32>, Option<&[u8]>, &[u8]) {
    let none = (None, None, line);
    let inside = line.strip_prefix(b"[pid ").map(trim);
    let text = inside.unwrap_or(line);
    let Some((tid, rest)) = number(text) else {
        return none;
    };
    let (comm, rest) = match rest.strip_prefix(b"<") {
        // A name can hold anything, so its end is where a time or a call follows.
        Some(name) => {
            let end: &[u8] = if inside.is_some() { b">]" } else { b"> " };
            let at = name
                .windows(end.len())
                .enumerate()
                .filter(|(_, window)| *window == end)
                .map(|(at, _)| at)
                .find(|at| begins(trim(name.get(at + end.len()..).unwrap_or_default())));
            match at {
                Some(at) => (name.get(..at), name.get(at + 1..).unwrap_or_default()),
                None => return none,
            }
        }
        None => (None, rest),
    };
    let rest = match inside {
        Some(_) => rest.strip_prefix(b"]"),
        None => rest.starts_with(b" ").then_some(rest),
    };
    match (rest, i32::try_from(tid)) {
        (Some(rest), Ok(id)) if tid <= MAX_TID => (Some(id), comm, trim(rest)),
        _ => none,
    }
}

/// Whether text begins like a time, a call or a note.
fn begins(text: &[u8]) -> bool {
    let name = text
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    text.first()
        .is_some_and(|b| b.is_ascii_digit() || b"+-<[".contains(b))
        || (name > 0 && text.get(name) == Some(&b'('))
}

/// `1700000000.123456`, `12:34:56.123456`, `0.000123`, with less or more digits,
/// and the `(+ 0.000123)` that `-r` adds.
fn time(text: &[u8]) -> (Option<Time>, &[u8]) {
    let text = trim(text);
    let Some((first, rest)) = number(text) else {
        return (None, text);
    };
    let (time, rest) = match rest.first() {
        Some(b':') => match of_day(first, rest) {
            Some((ns, rest)) => (Time::OfDay(ns), rest),
            None => return (None, text),
        },
        Some(b'.' | b' ') => {
            let (fraction, rest) = fraction(rest);
            let ns = first
                .checked_mul(1_000_000_000)
                .and_then(|ns| ns.checked_add(fraction));
            match ns {
                // Before 1973 no strace ran.
                Some(ns) if first >= 100_000_000 => (Time::Unix(ns), rest),
                Some(ns) => (Time::Relative(ns), rest),
                None => return (None, text),
            }
        }
        _ => return (None, text),
    };
    if !rest.starts_with(b" ") {
        return (None, text);
    }
    let rest = trim(rest);
    if let Some(after) = rest.strip_prefix(b"(+")
        && let Some(end) = find(after, b")")
    {
        return (Some(time), trim(after.get(end + 1..).unwrap_or_default()));
    }
    (Some(time), rest)
}

fn of_day(hours: i64, rest: &[u8]) -> Option<(i64, &[u8])> {
    let (minutes, rest) = number(rest.strip_prefix(b":")?)?;
    let (seconds, rest) = number(rest.strip_prefix(b":")?)?;
    if hours > 24 || minutes > 60 || seconds > 61 {
        return None;
    }
    let (fraction, rest) = fraction(rest);
    let ns = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction;
    Some((ns, rest))
}

/// `.123456` as nanoseconds; 0 when there is none.
fn fraction(text: &[u8]) -> (i64, &[u8]) {
    let Some(digits) = text.strip_prefix(b".") else {
        return (0, text);
    };
    let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut ns = 0;
    for place in 0..9 {
        let digit = digits.get(place).filter(|_| place < count);
        ns = ns * 10 + digit.map_or(0, |d| i64::from(d - b'0'));
    }
    (ns, digits.get(count..).unwrap_or_default())
}

/// A duration as `-T` writes it, `0.000123`.
pub fn duration(text: &[u8]) -> Option<i64> {
    let (seconds, rest) = number(text)?;
    let (fraction, rest) = fraction(rest);
    if !rest.is_empty() {
        return None;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// `[00007f...]` of `-i` and `[ 257]` of `-n`.
fn skip_brackets(mut text: &[u8]) -> &[u8] {
    while let Some(inside) = text.strip_prefix(b"[") {
        let end = inside
            .iter()
            .position(|b| !(b.is_ascii_hexdigit() || *b == b' ' || *b == b'?'));
        match end {
            Some(end) if inside.get(end) == Some(&b']') => {
                text = trim(inside.get(end + 1..).unwrap_or_default());
            }
            _ => break,
        }
    }
    text
}

fn what(text: &[u8]) -> Option<What<'_>> {
    if let Some(inside) = text.strip_prefix(b"+++ ") {
        let inside = inside.strip_suffix(b" +++")?;
        if let Some(status) = inside.strip_prefix(b"exited with ") {
            let (status, _) = number(status)?;
            return Some(What::Exited(i32::try_from(status).ok()?));
        }
        if let Some(signal) = inside.strip_prefix(b"killed by ") {
            let name = signal.split(|b| *b == b' ').next().unwrap_or_default();
            return Some(What::Killed(signal_number(name).map(|n| 128 + n)));
        }
        if let Some(by) = inside.strip_prefix(b"superseded by execve in pid ") {
            let (tid, _) = number(by)?;
            return Some(What::Superseded(i32::try_from(tid).ok()?));
        }
        return Some(What::Note(text));
    }
    if text.starts_with(b"--- ") && text.ends_with(b" ---") {
        return Some(What::Note(text));
    }
    if let Some(resumed) = text.strip_prefix(b"<... ") {
        let at = find(resumed, b" resumed>")?;
        let (name, rest) = resumed.split_at_checked(at)?;
        return Some(What::Resumed(name, rest.get(9..)?));
    }
    let length = text
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    let (name, rest) = text.split_at_checked(length)?;
    let rest = rest.strip_prefix(b"(")?;
    if name.is_empty() {
        return None;
    }
    match rest.strip_suffix(b"<unfinished ...>") {
        Some(start) => Some(What::Unfinished(name, start)),
        None => Some(What::Call(name, rest)),
    }
}

/// Where `what` begins in `text`.
pub fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len().max(1)).position(|w| w == what)
}

/// Numbers of signals as on x86 and ARM.
fn signal_number(name: &[u8]) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = std::str::from_utf8(name.strip_prefix(b"SIG")?).ok()?;
    let at = NAMES.iter().position(|n| *n == name)?;
    i32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Line<'_> {
        parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn heads_of_all_kinds() {
        let second = 1_000_000_000;
        for (text, tid, time) in [
            ("read(3", None, None),
            ("12 read(3", Some(12), None),
            ("[pid    12] read(3", Some(12), None),
            (
                "1700000000.250000 read(3",
                None,
                Some(Time::Unix(1_700_000_000 * second + second / 4)),
            ),
            (
                "12    1700000000.000000001 read(3",
                Some(12),
                Some(Time::Unix(1_700_000_000 * second + 1)),
            ),
            (
                "1700000000 read(3",
                None,
                Some(Time::Unix(1_700_000_000 * second)),
            ),
            ("01:00:01 read(3", None, Some(Time::OfDay(3601 * second))),
            (
                "7 00:00:01.5 read(3",
                Some(7),
                Some(Time::OfDay(3 * second / 2)),
            ),
            ("     0.000123 read(3", None, Some(Time::Relative(123_000))),
            (
                "7      0.000123 read(3",
                Some(7),
                Some(Time::Relative(123_000)),
            ),
            (
                "7 1700000000.5 (+     0.000123) read(3",
                Some(7),
                Some(Time::Unix(1_700_000_000 * second + second / 2)),
            ),
            (
                "7<a> b> 1700000000.5 [00007f0011223344] [ 257] read(3",
                Some(7),
                Some(Time::Unix(1_700_000_000 * second + second / 2)),
            ),
        ] {
            let line = ok(text);
            assert_eq!((line.tid, line.time), (tid, time), "{text}");
            assert_eq!(line.what, What::Call(b"read", b"3"), "{text}");
        }
        assert_eq!(ok("7<a b> read(").comm, Some(&b"a b"[..]));
    }

    #[test]
    fn lines_of_all_kinds() {
        for (text, what) in [
            ("7 +++ exited with 3 +++", What::Exited(3)),
            ("7 +++ killed by SIGKILL +++", What::Killed(Some(137))),
            (
                "7 +++ killed by SIGSEGV (core dumped) +++",
                What::Killed(Some(139)),
            ),
            (
                "7 +++ superseded by execve in pid 9 +++",
                What::Superseded(9),
            ),
            (
                "7 <... read resumed>\"x\", 1) = 1",
                What::Resumed(b"read", b"\"x\", 1) = 1"),
            ),
            (
                "7 read(3,  <unfinished ...>",
                What::Unfinished(b"read", b"3,  "),
            ),
            (
                "7 --- SIGCHLD {si_signo=SIGCHLD} ---",
                What::Note(b"--- SIGCHLD {si_signo=SIGCHLD} ---"),
            ),
            (
                "strace: Process 9 attached",
                What::Note(b"strace: Process 9 attached"),
            ),
        ] {
            assert_eq!(ok(text).what, what, "{text}");
        }
        for text in ["", "hello", "7 hello world", "(", "7 = 3", "<... x"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
