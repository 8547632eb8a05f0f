//! What strace prints, as by `strace -f -y -s 0 --timestamps=unix,ns
//! --syscall-times=ns -o`: one line a call, two where a line of another thread
//! comes in between.
//!
//! A session does not have everything that strace reads from the program's
//! memory. What is not recorded stands as `?`; the contents of structures as
//! `{...}`, of vectors as `[...]`, of buffers as `""...`, with the bytes of
//! `--content plain` in them.

use std::fmt::Write as _;
use std::io::Write;

use fathom_model::bytes::{self, quote_like_strace};
use fathom_model::errno;
use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::{Arg, Returns, SYSCALLS, Syscall};

use crate::args::value;
use crate::error::Result;
use crate::lanes::Ends;
use crate::row::{Layer, Row};
use crate::{Exporter, counted};

/// Column at which strace begins a result.
const RESULT_COLUMN: usize = 40;
/// Bytes of a buffer that are shown, as strace does without -s.
const SHOWN_BYTES: usize = 32;

/// The end of a call that has begun.
struct Rest {
    tid: i32,
    name: String,
    /// Arguments that only the return tells, `)`.
    text: String,
    result: String,
}

pub(crate) struct Strace {
    wall_ns: i64,
    ends: Ends<Rest>,
    /// The thread whose line is not finished, and its length.
    open: Option<(i32, usize)>,
    operations: u64,
}

impl Strace {
    pub fn new(meta: &SessionMeta) -> Self {
        Strace {
            wall_ns: meta
                .clock
                .start_realtime_ns
                .wrapping_sub(meta.clock.start_monotonic_ns),
            ends: Ends::default(),
            open: None,
            operations: 0,
        }
    }

    fn leader(&self, tid: i32, ns: i64) -> String {
        let ns = ns.wrapping_add(self.wall_ns);
        format!(
            "{tid:<5} {}.{:09} ",
            ns.div_euclid(1_000_000_000),
            ns.rem_euclid(1_000_000_000)
        )
    }

    /// Ends the line that another thread's event interrupts.
    fn interrupt(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.open.take().is_some() {
            out.write_all(b" <unfinished ...>\n")?;
        }
        Ok(())
    }

    fn finish(&mut self, end_ns: i64, rest: &Rest, out: &mut dyn Write) -> Result<()> {
        let mut line = String::new();
        let before = match self.open {
            Some((tid, length)) if tid == rest.tid => {
                self.open = None;
                length
            }
            _ => {
                self.interrupt(out)?;
                line = self.leader(rest.tid, end_ns);
                let _ = write!(line, "<... {} resumed>", rest.name);
                0
            }
        };
        line.push_str(&rest.text);
        // Without a result the call never returned.
        if rest.result.is_empty() {
            line.push_str(" <unfinished ...>\n");
        } else {
            for _ in before + line.len()..RESULT_COLUMN - 1 {
                line.push(' ');
            }
            let _ = writeln!(line, " = {}", rest.result);
        }
        out.write_all(line.as_bytes())?;
        Ok(())
    }

    fn finish_until(&mut self, time: i64, out: &mut dyn Write) -> Result<()> {
        while let Some((end, rest)) = self.ends.pop_until(time) {
            self.finish(end, &rest, out)?;
        }
        Ok(())
    }
}

impl Exporter for Strace {
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        if row.layer() != Layer::Call {
            self.operations += 1;
            return Ok(());
        }
        self.finish_until(row.start_ns(), out)?;
        self.interrupt(out)?;
        let name = row.name.unwrap_or("?");
        let call = Syscall::index_of(name).and_then(|index| SYSCALLS.get(index));
        let tid = row.tid.unwrap_or(0);
        let mut line = self.leader(tid, row.start_ns());
        let _ = write!(line, "{name}(");
        let (at_entry, at_return) = arguments(row, call);
        line.push_str(&at_entry.join(", "));
        if !at_entry.is_empty() && !at_return.is_empty() {
            line.push_str(", ");
        }
        out.write_all(line.as_bytes())?;
        self.open = Some((tid, line.len()));
        let rest = Rest {
            tid,
            name: name.to_string(),
            text: match row.ret {
                Some(_) => at_return.join(", ") + ")",
                None => String::new(),
            },
            result: result(row, call),
        };
        self.ends.push(row.end_ns(), rest);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.finish_until(i64::MAX, out)?;
        self.interrupt(out)
    }

    fn notes(&self) -> Vec<String> {
        if self.operations == 0 {
            return Vec::new();
        }
        vec![format!(
            "{} of io_uring and AIO left out: strace shows the calls that submit them only",
            counted(self.operations, "operation", "operations")
        )]
    }
}

/// The arguments that strace prints as the call begins, and those that it prints
/// as it returns.
fn arguments(row: &Row<'_>, call: Option<&'static Syscall>) -> (Vec<String>, Vec<String>) {
    let Some(call) = call else {
        return (vec!["?".into()], Vec::new());
    };
    let mut all = Vec::new();
    let mut first_result = None;
    for (at, role) in call.args.iter().enumerate() {
        // The upper half of an offset, which strace does not show.
        if *role == Arg::Ignored && matches!(call.name, "preadv2" | "pwritev2") {
            continue;
        }
        let from_kernel = match role {
            Arg::Buf | Arg::Iov => !call.writes(),
            Arg::Stat | Arg::Statx | Arg::Stat64 => true,
            Arg::Ignored => !call.name.starts_with("set") && !call.name.contains("setxattr"),
            _ => false,
        };
        if from_kernel && first_result.is_none() {
            first_result = Some(all.len());
        }
        match argument(row, call, *role) {
            Some(text) => all.push(text),
            // Values at the end that the call has no use for.
            None if call
                .args
                .iter()
                .skip(at)
                .all(|a| matches!(a, Arg::Value { .. })) =>
            {
                break;
            }
            None => all.push("?".into()),
        }
    }
    // Arguments that are not recorded at all.
    let unrecorded = match call.name {
        "ioctl" => 1,
        "io_uring_enter" => 2,
        _ => 0,
    };
    all.extend(std::iter::repeat_n("?".to_string(), unrecorded));
    let rest = match first_result {
        Some(at) if at <= all.len() => all.split_off(at),
        _ => Vec::new(),
    };
    (all, rest)
}

fn argument(row: &Row<'_>, call: &Syscall, role: Arg) -> Option<String> {
    let failed = row.ret.is_none_or(|r| (-4095..0).contains(&r));
    let number = |n: Option<i64>| n.map(|n| n.to_string());
    let named = |name: &str| value(row.args, name).map(str::to_string);
    match role {
        Arg::Fd => Some(descriptor(i64::from(row.fd?), row.path)),
        Arg::Fd2 => {
            let text = value(row.args, "fd_out")?;
            Some(match text.parse() {
                Ok(fd) => descriptor(fd, row.path2),
                Err(_) => text.to_string(),
            })
        }
        Arg::Ring => number(row.fd.map(i64::from)),
        Arg::Dirfd => named("dirfd"),
        Arg::Dirfd2 if call.position(Arg::Target).is_some() => named("dirfd"),
        Arg::Dirfd2 => named("dirfd2"),
        // The file behind the descriptor itself.
        Arg::Path
            if matches!(call.name, "utimensat" | "futimesat")
                && row.path_arg == Some("")
                && row.ret != Some(-2) =>
        {
            Some("NULL".into())
        }
        Arg::Path | Arg::Target => row.path_arg.map(quoted),
        Arg::Path2 => row.path_arg2.map(quoted),
        Arg::Name => named("name"),
        // Of openat2 the size of its structure.
        Arg::Size if call.position(Arg::How).is_some() => None,
        Arg::Size => number(row.size),
        Arg::Buf if failed && !call.writes() => None,
        Arg::Buf => Some(buffer(row)),
        Arg::Iov => Some("[...]".into()),
        Arg::Offset | Arg::Pages if call.name == "mmap" => row.offset.map(|offset| match offset {
            0 => "0".into(),
            offset => format!("{offset:#x}"),
        }),
        Arg::Offset | Arg::Pages => number(row.offset),
        Arg::OffsetPtr => Some(match row.offset {
            Some(offset) => format!("[{offset}]"),
            None => "?".into(),
        }),
        Arg::OffsetPtr2 => Some(match value(row.args, "off_out") {
            Some(offset) => format!("[{offset}]"),
            None => "?".into(),
        }),
        Arg::Seek => named("offset"),
        Arg::Length => named("length"),
        Arg::Utimbuf | Arg::Timevals | Arg::Timespecs => named("times"),
        Arg::How => {
            let mut text = format!("{{flags={}", row.flags.unwrap_or("?"));
            for name in ["mode", "resolve"] {
                if let Some(value) = value(row.args, name) {
                    let _ = write!(text, ", {name}={value}");
                }
            }
            Some(text + "}")
        }
        Arg::Stat | Arg::Statx | Arg::Stat64 if !failed => Some("{...}".into()),
        Arg::Value { name: "flags", .. } => row.flags.map(str::to_string),
        Arg::Value { name, .. } => named(name),
        _ => None,
    }
}

fn descriptor(fd: i64, path: Option<&str>) -> String {
    let mut text = fd.to_string();
    if let Some(path) = path.filter(|_| fd >= 0) {
        bytes::angle_like_strace(&bytes::of_text(path), &mut text);
    }
    text
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote_like_strace(&bytes::of_text(text), &mut out);
    out
}

fn buffer(row: &Row<'_>) -> String {
    let mut out = String::new();
    let content = row.content.unwrap_or_default();
    let shown = content.get(..SHOWN_BYTES).unwrap_or(content);
    quote_like_strace(shown, &mut out);
    let all = row.bytes.unwrap_or(0) <= shown.len() as i64;
    // A write that failed had bytes to write.
    if !all || (row.bytes.is_none() && row.size.unwrap_or(0) > 0) {
        out.push_str("...");
    }
    out
}

/// What stands behind ` = `; empty for a call that has not returned.
fn result(row: &Row<'_>, call: Option<&'static Syscall>) -> String {
    let Some(ret) = row.ret else {
        return String::new();
    };
    let mut text = match errno::of_return(ret) {
        Some(number) => failure(number),
        None => {
            let path = row.path;
            match call.map(|c| (c.returns, c.position(Arg::Fd).is_some())) {
                Some((Returns::Fd, _)) => descriptor(ret, path),
                Some((Returns::Addr, _)) => format!("{ret:#x}"),
                _ => ret.to_string(),
            }
        }
    };
    let dur = row.dur_ns.unwrap_or(0).max(0);
    if row.dur_ns.is_some() {
        let _ = write!(
            text,
            " <{}.{:09}>",
            dur / 1_000_000_000,
            dur % 1_000_000_000
        );
    }
    text
}

fn failure(number: i64) -> String {
    let restarted = match number {
        512 => "? ERESTARTSYS (To be restarted if SA_RESTART is set)",
        513 => "? ERESTARTNOINTR (To be restarted)",
        514 => "? ERESTARTNOHAND (To be restarted if no handler)",
        516 => "? ERESTART_RESTARTBLOCK (Interrupted by signal)",
        _ => "",
    };
    if !restarted.is_empty() {
        return restarted.to_string();
    }
    let Some(name) = errno::name(number) else {
        return format!("-1 (errno {number})");
    };
    let text = i32::try_from(number).map_or_else(
        |_| String::new(),
        |number| std::io::Error::from_raw_os_error(number).to_string(),
    );
    // Without what Rust adds.
    let text = text.split(" (os error").next().unwrap_or("");
    format!("-1 {name} ({text})")
}
