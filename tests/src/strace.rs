//! The output of `strace -f -y -o FILE`.

use std::collections::HashMap;

use fathom_model::syscalls::SYSCALLS;

/// One call as strace saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Thread that made it.
    pub tid: i64,
    /// Name.
    pub name: String,
    /// Arguments as written, `0x7f..., 3</etc/passwd>, "text"...`.
    pub args: Vec<String>,
    /// Return value, negative errno for an error; `None` when the call did not
    /// return. Codes for restarted calls are below -511.
    pub ret: Option<i64>,
    /// Name of the error.
    pub errno: Option<String>,
}

/// Parses a whole output, calls in the order in which each thread made them.
///
/// # Errors
/// Names the first line that is neither a call nor one of strace's notes.
pub fn parse(text: &str) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    // The first halves of calls that other threads' lines interrupt.
    let mut unfinished: HashMap<i64, String> = HashMap::new();
    for line in text.lines() {
        let (tid, rest) = line
            .split_once(' ')
            .and_then(|(tid, rest)| Some((tid.parse().ok()?, rest.trim_start())))
            .ok_or_else(|| format!("no thread id: {line}"))?;
        if rest.starts_with("---") || rest.starts_with("+++") {
            continue;
        }
        let whole = if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(tid, start.trim_end().to_owned());
            continue;
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed
                .split_once(" resumed>")
                .ok_or_else(|| format!("not resumed: {line}"))?;
            let start = unfinished
                .remove(&tid)
                .ok_or_else(|| format!("no start: {line}"))?;
            // strace separates arguments by ", ", and the cut is after the comma.
            let gap = if start.ends_with(',') { " " } else { "" };
            format!("{start}{gap}{}", end.trim_start())
        } else {
            rest.to_owned()
        };
        calls.push(call(tid, &whole).ok_or_else(|| format!("not a call: {line}"))?);
    }
    // Those that never returned.
    for (tid, start) in unfinished {
        let whole = format!("{start}) = ?");
        calls.push(call(tid, &whole).ok_or_else(|| format!("not a call: {whole}"))?);
    }
    Ok(calls)
}

fn call(tid: i64, line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let name = name_of(name);
    let (args, rest) = arguments(rest)?;
    let result = rest.trim_start().strip_prefix('=')?.trim_start();
    let mut words = result.split_whitespace();
    let value = words.next()?;
    let error = words
        .next()
        .filter(|w| w.starts_with('E'))
        .map(str::to_owned);
    let number = value.split('<').next()?;
    let ret = match number {
        "?" => match error.as_deref() {
            Some("ERESTARTSYS") => Some(-512),
            Some("ERESTARTNOINTR") => Some(-513),
            Some("ERESTARTNOHAND") => Some(-514),
            Some("ERESTART_RESTARTBLOCK") => Some(-516),
            _ => None,
        },
        _ => {
            let number = match number.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16).ok()?,
                None if number.len() > 1 && number.starts_with('0') => {
                    i64::from_str_radix(number, 8).ok()?
                }
                None => number.parse().ok()?,
            };
            match &error {
                Some(name) => Some(-errno_number(name)?),
                None => Some(number),
            }
        }
    };
    Some(Call {
        tid,
        name: name.to_owned(),
        args,
        ret,
        errno: error,
    })
}

/// A call that this strace does not know is written as `syscall_0x1c4`.
fn name_of(written: &str) -> &str {
    let number = written
        .strip_prefix("syscall_0x")
        .and_then(|n| u16::from_str_radix(n, 16).ok());
    let known = number.and_then(|n| SYSCALLS.iter().find(|s| s.number() == Some(n)));
    known.map_or(written, |s| s.name)
}

fn errno_number(name: &str) -> Option<i64> {
    (1..530).find(|n| fathom_model::errno::name(*n) == Some(name))
}

/// Splits `a, [b, c], "d, e"` into its parts; `None` when it is damaged.
pub fn split(text: &str) -> Option<Vec<String>> {
    let whole = format!("{text})");
    match arguments(&whole)? {
        (parts, "") => Some(parts),
        _ => None,
    }
}

/// Splits `a, [b, c], "d, e") = ...` into its arguments and what follows.
fn arguments(text: &str) -> Option<(Vec<String>, &str)> {
    let mut args = Vec::new();
    let mut current = String::new();
    let mut depth = 0;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                current.push(c);
                quoted(&mut chars, &mut current, '"')?;
                continue;
            }
            // The path behind a descriptor; its own '>' are escaped.
            // Not the sign of a shift, `21<<MAP_HUGE_SHIFT`.
            '<' if (current.ends_with(|p: char| p.is_ascii_digit())
                || current.ends_with("CWD"))
                && !text.get(at + 1..)?.starts_with('<') =>
            {
                current.push(c);
                quoted(&mut chars, &mut current, '>')?;
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                if !current.trim().is_empty() {
                    args.push(current.trim().to_owned());
                }
                return Some((args, text.get(at + 1..)?));
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                args.push(current.trim().to_owned());
                current.clear();
                continue;
            }
            _ => {}
        }
        current.push(c);
    }
    None
}

fn quoted(chars: &mut std::str::CharIndices<'_>, into: &mut String, end: char) -> Option<()> {
    while let Some((_, c)) = chars.next() {
        into.push(c);
        if c == '\\' {
            into.push(chars.next()?.1);
        } else if c == end {
            return Some(());
        }
    }
    None
}

/// The number of a descriptor argument, `3</etc/passwd>`; AT_FDCWD is -100.
pub fn descriptor(arg: &str) -> Option<i64> {
    let number = arg.split('<').next()?;
    if number == "AT_FDCWD" {
        Some(-100)
    } else {
        number.parse().ok()
    }
}

/// What lies behind a descriptor argument: `/etc/passwd`, `pipe:[1]`.
pub fn behind(arg: &str) -> Option<&str> {
    arg.split_once('<')?.1.strip_suffix('>')
}

/// The bytes of a quoted argument; `None` when it is none or was cut.
pub fn unquote(arg: &str) -> Option<Vec<u8>> {
    let inner = arg.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let escape = *inner.get(at)?;
        at += 1;
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    match inner.get(at) {
                        Some(digit @ b'0'..=b'7') => value = value * 8 + u32::from(digit - b'0'),
                        _ => break,
                    }
                    at += 1;
                }
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let text = concat!(
            "10 openat(AT_FDCWD</tmp>, \"a, b)\\\"\\n\", O_RDONLY|O_CLOEXEC) = 3</tmp/a, b)>\n",
            "11 read(4<pipe:[7]>,  <unfinished ...>\n",
            "10 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</x>, 0) = 0x7f12\n",
            "11 <... read resumed>\"x\", 10)  = 1\n",
            "10 close(99)                    = -1 EBADF (Bad file descriptor)\n",
            "10 read(5, 0x7ff, 3)            = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n",
            "10 --- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---\n",
            "10 fstat(3, {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
            "10 sync()                       = 0\n",
            "12 flock(3</x>, LOCK_EX <unfinished ...>\n",
            "10 +++ exited with 0 +++\n",
            "12 +++ killed by SIGKILL +++\n",
        );
        let calls = parse(text).unwrap();
        let names: Vec<_> = calls
            .iter()
            .map(|c| (c.tid, c.name.as_str(), c.ret))
            .collect();
        assert_eq!(
            names,
            [
                (10, "openat", Some(3)),
                (10, "mmap", Some(0x7f12)),
                (11, "read", Some(1)),
                (10, "close", Some(-9)),
                (10, "read", Some(-512)),
                (10, "fstat", Some(0)),
                (10, "sync", Some(0)),
                (12, "flock", None),
            ]
        );
        assert_eq!(calls[0].args.len(), 3);
        assert_eq!(unquote(&calls[0].args[1]).unwrap(), b"a, b)\"\n");
        assert_eq!(calls[2].args, ["4<pipe:[7]>", "\"x\"", "10"]);
        assert_eq!(behind(&calls[2].args[0]), Some("pipe:[7]"));
        assert_eq!(descriptor(&calls[0].args[0]), Some(-100));
        assert_eq!(calls[3].errno.as_deref(), Some("EBADF"));
        assert!(calls[6].args.is_empty());
    }

    #[test]
    fn calls_that_strace_does_not_know() {
        let known = SYSCALLS.iter().find(|s| s.name == "fchmodat2").unwrap();
        let number = known.number().unwrap();
        let line = format!("10 syscall_{number:#x}(0xffffff9c, 0x7ffc, 0x1a4, 0, 0, 0) = 0\n");
        let calls = parse(&line).unwrap();
        assert_eq!(
            (calls[0].name.as_str(), calls[0].args.len()),
            ("fchmodat2", 6)
        );
        assert_eq!(
            parse("10 syscall_0xfff(0) = 0\n").unwrap()[0].name,
            "syscall_0xfff"
        );
    }

    #[test]
    fn damaged_output_is_an_error() {
        for line in [
            "read(3, 4) = 1",
            "10 read(3",
            "10 read(3) ? 1",
            "10 <... read resumed>) = 1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(
            unquote(r#""a\33[0m\377\08\\""#).unwrap(),
            b"a\x1b[0m\xff\x008\\"
        );
        assert_eq!(unquote("\"cut\"..."), None);
        assert_eq!(unquote("0x7f"), None);
    }
}
