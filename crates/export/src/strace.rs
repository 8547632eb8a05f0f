//! strace's text, as printed by `strace -f -y -s 0 --timestamps=unix,ns --syscall-times=ns -o`: one
//! line per call, two if a line of another thread comes in between.
//!
//! A session does not have everything that strace reads from the program's memory. Missing values
//! are `?`; contents of structures are `{...}`, of vectors `[...]`, and of buffers `""...`, with
//! the bytes of `--content plain` in them.

use std::fmt::Write as _;
use std::io::Write;

use fathom_enrich::fcntl_result;
use fathom_model::bytes::{self, quote_like_strace};
use fathom_model::errno;
use fathom_model::kind::Kind;
use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::{Arg, Returns, SYSCALLS, Syscall};
use fathom_query::Db;

use crate::args::value;
use crate::error::Result;
use crate::lanes::Ends;
use crate::removed::Removed;
use crate::row::{Layer, Row};
use crate::{Exporter, counted};

/// Column at which strace begins a result.
const RESULT_COLUMN: usize = 40;
/// Bytes of a buffer that are shown, as strace does without -s.
const SHOWN_BYTES: usize = 32;
/// Follows a name that was removed.
const DELETED: &str = "(deleted)";

/// The end of a call that has begun.
struct Rest {
    tid: i32,
    name: String,
    /// Arguments that are known only at the return, `)`.
    text: String,
    result: String,
}

pub(crate) struct Strace {
    wall_ns: i64,
    ends: Ends<Rest>,
    /// The thread whose line is not finished, and its length.
    open: Option<(i32, usize)>,
    operations: u64,
    removed: Removed,
}

impl Strace {
    pub fn new(db: &Db, meta: &SessionMeta) -> Result<Self> {
        Ok(Strace {
            wall_ns: meta
                .clock
                .start_realtime_ns
                .wrapping_sub(meta.clock.start_monotonic_ns),
            ends: Ends::default(),
            open: None,
            operations: 0,
            removed: Removed::new(db)?,
        })
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

    fn finish(&mut self, ended_at_ns: i64, rest: &Rest, out: &mut dyn Write) -> Result<()> {
        let mut line = String::new();
        let before = match self.open {
            Some((tid, length)) if tid == rest.tid => {
                self.open = None;
                length
            }
            _ => {
                self.interrupt(out)?;
                line = self.leader(rest.tid, ended_at_ns);
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
        self.finish_until(row.started_at_ns(), out)?;
        self.interrupt(out)?;
        let name = row.name.unwrap_or("?");
        let call = Syscall::index_of(name).and_then(|index| SYSCALLS.get(index));
        let tid = row.tid.unwrap_or(0);
        let mut line = self.leader(tid, row.started_at_ns());
        let _ = write!(line, "{name}(");
        let (at_entry, at_return) = arguments(row, call, &self.removed);
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
            result: result(row, call, &self.removed),
        };
        self.ends.push(row.ended_at_ns(), rest);
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
            "{} of io_uring and AIO left out: strace shows only the calls that submit them",
            counted(self.operations, "operation", "operations")
        )]
    }
}

/// The arguments that strace prints at the start of the call, and the ones that it prints at its
/// return.
fn arguments(
    row: &Row<'_>,
    call: Option<&'static Syscall>,
    removed: &Removed,
) -> (Vec<String>, Vec<String>) {
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
            Arg::Struct { kind, .. } => matches!(
                *kind,
                "statfs" | "taken_sockaddr" | "taken_sockopt" | "fds" | "wstatus"
            ),
            Arg::Message | Arg::Messages => call.kind == Kind::Receive,
            Arg::AttrValue => !call.name.contains("setxattr"),
            Arg::Ignored => !call.name.starts_with("set") && !call.name.contains("setxattr"),
            _ => false,
        };
        if from_kernel && first_result.is_none() {
            first_result = Some(all.len());
        }
        match argument(row, call, *role, removed) {
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
        "ioctl" => usize::from(takes_argument(value(row.args, "cmd"))),
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

fn argument(row: &Row<'_>, call: &Syscall, role: Arg, removed: &Removed) -> Option<String> {
    let failed = row.ret.is_none_or(|r| (-4095..0).contains(&r));
    let number = |n: Option<i64>| n.map(|n| n.to_string());
    let named = |name: &str| value(row.args, name).map(str::to_string);
    let descriptor = |fd: i64, path: Option<&str>, file_id: Option<i64>| {
        let mut text = fd.to_string();
        if let Some(path) = path.filter(|_| fd >= 0) {
            behind(
                path,
                removed.is(path, file_id, row.ended_at_ns()),
                &mut text,
            );
        }
        text
    };
    // Column args has the path of a descriptor before a path argument.
    let directory = |name: &str| {
        let text = value(row.args, name)?;
        let Some((number, path)) = text.strip_suffix('>').and_then(|t| t.split_once('<')) else {
            return Some(text.to_string());
        };
        Some(match removed.is_escaped(path, row.ended_at_ns()) {
            // strace takes this from another place.
            true if number == "AT_FDCWD" => format!("{number}<{path} {DELETED}>"),
            true => format!("{text}{DELETED}"),
            false => text.to_string(),
        })
    };
    match role {
        Arg::Fd | Arg::Ring if row.fd.is_none() => named("fd"),
        Arg::Fd | Arg::Ring => Some(descriptor(i64::from(row.fd?), row.path, row.file_id)),
        Arg::Fd2 => {
            let text = value(row.args, "fd_out")?;
            Some(match text.parse() {
                Ok(fd) => descriptor(fd, row.path2, None),
                Err(_) => text.to_string(),
            })
        }
        Arg::Dirfd => directory("dirfd").map(|fd| match (call.name, fd.as_str()) {
            ("fanotify_mark", "-1") => "FAN_NOFD".into(),
            _ => fd,
        }),
        Arg::Dirfd2 if call.position(Arg::Target).is_some() => directory("dirfd"),
        Arg::Dirfd2 => directory("dirfd2"),
        Arg::Path | Arg::Target => path(row.path_arg, value(row.args, "path_arg")),
        Arg::Path2 => path(row.path_arg2, value(row.args, "path_arg2")),
        Arg::Name => named("name"),
        Arg::Struct {
            name,
            kind: "sockaddr" | "taken_sockaddr",
        } => named(name).map(|text| address(&text)),
        Arg::Text(name) | Arg::Struct { name, .. } | Arg::Early { name, .. } => named(name),
        Arg::Size => number(row.size).or_else(|| named("size")),
        Arg::Iovcnt => named("iovcnt"),
        Arg::AttrValue => named("value"),
        Arg::Buf if failed && !call.writes() => None,
        Arg::Buf => Some(buffer(row)),
        Arg::Iov => Some("[...]".into()),
        Arg::Offset | Arg::Pages if call.name == "mmap" => match row.file_offset {
            Some(0) => Some("0".into()),
            Some(offset) => Some(format!("{offset:#x}")),
            None => named("offset"),
        },
        Arg::Offset | Arg::Pages => number(row.file_offset).or_else(|| named("offset")),
        Arg::OffsetPtr if named("offset_ptr").is_some() => named("offset_ptr"),
        Arg::OffsetPtr2 if named("off_out_ptr").is_some() => named("off_out_ptr"),
        // The position afterwards.
        Arg::OffsetPtr if call.name == "sendfile" && row.ret > Some(0) => {
            Some(match row.file_offset {
                Some(offset) => {
                    let after = offset.saturating_add(row.ret.unwrap_or(0));
                    format!("[{offset}] => [{after}]")
                }
                None => "?".into(),
            })
        }
        Arg::OffsetPtr => Some(match row.file_offset {
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
        Arg::Stat | Arg::Statx | Arg::Stat64 if !failed => Some(status(row.args)),
        Arg::Stat => named("stat"),
        Arg::Statx => named("statx"),
        Arg::Value { name: "flags", .. } => row.flags.map(str::to_string),
        Arg::Value { name, .. } => named(name),
        _ => None,
    }
}

/// A path argument, of which `note` says what is odd.
fn path(text: Option<&str>, note: Option<&str>) -> Option<String> {
    match (text, note) {
        (_, Some("NULL")) => Some("NULL".into()),
        (Some(text), Some(_)) => Some(quoted(text) + "..."),
        (text, _) => text.map(quoted),
    }
}

/// The struct that an address of a socket stands for.
fn address(text: &str) -> String {
    let inside = match (text.chars().next(), text.rsplit_once(':')) {
        (Some('"' | '@'), _) => format!("AF_UNIX, sun_path={text}"),
        (Some('['), Some((ip, port))) => {
            let ip = ip.trim_matches(['[', ']']);
            let (ip, scope) = ip.split_once('%').unwrap_or((ip, "0"));
            format!(
                "AF_INET6, sin6_port=htons({port}), sin6_flowinfo=?, \
                 inet_pton(AF_INET6, \"{ip}\", &sin6_addr), sin6_scope_id={scope}"
            )
        }
        (Some('0'..='9'), Some((ip, port))) => {
            format!("AF_INET, sin_port=htons({port}), sin_addr=inet_addr(\"{ip}\")")
        }
        _ => return text.to_string(),
    };
    format!("{{sa_family={inside}}}")
}

/// The fields of stat(2) or statx(2) that strace shows without -v.
fn status(args: Option<&str>) -> String {
    let shown = [
        "st_mode",
        "st_rdev",
        "st_size",
        "stx_mask",
        "stx_attributes",
        "stx_mode",
        "stx_size",
    ];
    let said = value(args, "stat").or_else(|| value(args, "statx"));
    let inside = said.and_then(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let mut text = "{".to_string();
    for name in shown {
        if let Some(value) = value(inside, name) {
            let _ = write!(text, "{name}={value}, ");
        }
    }
    text + "...}"
}

/// Appends the path behind a descriptor.
fn behind(path: &str, removed: bool, out: &mut String) {
    bytes::angle_like_strace(&bytes::of_text(path), out);
    if removed {
        out.push_str(DELETED);
    }
}

/// Whether a request of ioctl has an argument.
fn takes_argument(request: Option<&str>) -> bool {
    !matches!(
        request,
        Some(
            "BLKRRPART"
                | "BLKFLSBUF"
                | "BLKTRACESTART"
                | "BLKTRACESTOP"
                | "BLKTRACETEARDOWN"
                | "FIFREEZE"
                | "FITHAW"
                | "FIOCLEX"
                | "FIONCLEX"
                | "LOOP_CLR_FD"
                | "LOOP_SET_CAPACITY"
                | "LOOP_CTL_GET_FREE"
                | "NBD_CLEAR_QUE"
                | "NBD_CLEAR_SOCK"
                | "NBD_DISCONNECT"
                | "NBD_DO_IT"
                | "NBD_PRINT_DEBUG"
                | "SG_GET_TIMEOUT"
                | "TIOCNOTTY"
                | "UBI_IOCVOLCRBLK"
                | "UBI_IOCVOLRMBLK"
        )
    )
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

/// The text after ` = `; empty for a call that has not returned.
fn result(row: &Row<'_>, call: Option<&'static Syscall>, removed: &Removed) -> String {
    let Some(ret) = row.ret else {
        return String::new();
    };
    let mut text = match errno::of_return(ret) {
        Some(number) => failure(number),
        None => match call {
            Some(call) => success(row, call, ret, removed),
            None => ret.to_string(),
        },
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

/// The return value of a call that did not fail.
fn success(row: &Row<'_>, call: &Syscall, ret: i64, removed: &Removed) -> String {
    let mut text = match call.returns {
        Returns::Addr => return format!("{ret:#x}"),
        Returns::Mode if ret < 0o100 => return format!("{ret:03o}"),
        Returns::Mode => return format!("0{ret:o}"),
        _ => ret.to_string(),
    };
    let command = match call.name {
        "fcntl" => value(row.args, "cmd"),
        _ => None,
    };
    match command {
        Some("F_DUPFD" | "F_DUPFD_CLOEXEC") => {}
        Some(command) => return fcntl_result(command, ret as u64).unwrap_or(text),
        None if call.returns == Returns::Fd => {}
        None => return text,
    }
    if let Some(path) = row.path {
        behind(
            path,
            removed.is(path, row.file_id, row.ended_at_ns()),
            &mut text,
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
