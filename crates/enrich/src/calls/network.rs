//! Structs of sockets, and of calls that wait.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use fathom_model::abi::ARG_STRUCT_NULL;
use fathom_model::bytes::quote_like_strace;
use fathom_model::errno;

use super::call::Call;
use super::plan::{ArgText, Early, Plan, Struct};
use crate::text::named;
use crate::vocab::{self, Kind};

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const EPOLL_CTL_DEL: u64 = 2;

/// Whether the call takes the struct that is read at its entry.
pub(crate) fn takes_early(plan: &Plan, name: &str, call: &Call<'_>) -> bool {
    let operation = plan.args.iter().find_map(|arg| match arg {
        ArgText::Value(v) if v.kind == Kind::FutexOperation => call.value(v.place),
        _ => None,
    });
    // Of other operations of futex it is a number.
    name != "timeout" || operation.is_none_or(vocab::futex_waits)
}

/// Appends a struct as it was at the entry of the call; nothing if it could not be read.
pub(crate) fn early(name: &str, kind: Early, plan: &Plan, call: &Call<'_>, out: &mut String) {
    let Some(bytes) = call.structures(plan).0 else {
        return;
    };
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<i64> = words.iter().map(|w| i64::from_ne_bytes(*w)).collect();
    let mut text = String::new();
    let _ = match (kind, words.as_slice()) {
        (Early::Timespec, [s, n]) => write!(text, "{{tv_sec={s}, tv_nsec={}}}", *n as u64),
        (Early::Timeval, [s, u]) => write!(text, "{{tv_sec={s}, tv_usec={}}}", *u as u64),
        (Early::Itimerspec, [s0, n0, s1, n1]) => write!(
            text,
            "{{it_interval={{tv_sec={s0}, tv_nsec={}}}, it_value={{tv_sec={s1}, tv_nsec={}}}}}",
            *n0 as u64, *n1 as u64
        ),
        _ => return,
    };
    named(name, out);
    out.push_str(&text);
}

/// Appends a struct that is read at the return; false if another file writes it.
pub(crate) fn write(
    plan: &Plan,
    name: &str,
    kind: Struct,
    call: &Call<'_>,
    out: &mut String,
) -> bool {
    let bytes = call.structures(plan).1;
    let mut text = String::new();
    let known = match kind {
        Struct::Sockaddr => address(bytes, &mut text),
        Struct::Sockopt => option(bytes, &mut text),
        Struct::Pollfds => poll(plan, call, bytes, &mut text),
        Struct::Fds => descriptors(bytes, &mut text),
        Struct::Wstatus => status(bytes, &mut text),
        Struct::EpollEvent => event(plan, call, bytes, &mut text),
        _ => return false,
    };
    if known.is_some() && !call.passed(ARG_STRUCT_NULL) {
        named(name, out);
        out.push_str(&text);
    }
    true
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

/// An address of a socket: IP and port, or the path of a Unix socket as a quoted text, with `@` if
/// it is abstract.
fn address(bytes: &[u8], out: &mut String) -> Option<()> {
    let family = u16::from_ne_bytes(array(bytes, 0)?);
    let port = || Some(u16::from_be_bytes(array(bytes, 2)?));
    let _ = match family {
        AF_INET if bytes.len() >= 8 => {
            write!(out, "{}:{}", Ipv4Addr::from(array(bytes, 4)?), port()?)
        }
        AF_INET6 if bytes.len() >= 24 => {
            let scope = u32_at(bytes, 24).filter(|scope| *scope != 0);
            let ip = Ipv6Addr::from(array::<16>(bytes, 8)?);
            match scope {
                Some(scope) => write!(out, "[{ip}%{scope}]:{}", port()?),
                None => write!(out, "[{ip}]:{}", port()?),
            }
        }
        AF_UNIX if bytes.len() > 2 => {
            let name = bytes.get(2..)?;
            let name = match name.split_first() {
                Some((0, name)) => {
                    out.push('@');
                    name
                }
                _ => name.split(|byte| *byte == 0).next()?,
            };
            quote_like_strace(name, out);
            Ok(())
        }
        AF_NETLINK if bytes.len() >= 12 => write!(
            out,
            "{{sa_family=AF_NETLINK, nl_pid={}, nl_groups={:08x}}}",
            u32_at(bytes, 4)? as i32,
            u32_at(bytes, 8)?
        ),
        _ => {
            out.push_str("{sa_family=");
            vocab::write(Kind::Domain, family.into(), out);
            out.push_str(if bytes.len() > 2 { ", ...}" } else { "}" });
            Ok(())
        }
    };
    Some(())
}

/// The value of an option of a socket if it is one number.
fn option(bytes: &[u8], out: &mut String) -> Option<()> {
    let number = i32::from_ne_bytes(*bytes.first_chunk().filter(|_| bytes.len() == 4)?);
    let _ = write!(out, "[{number}]");
    Some(())
}

fn poll(plan: &Plan, call: &Call<'_>, bytes: &[u8], out: &mut String) -> Option<()> {
    let asked = plan
        .value("nfds")
        .and_then(|v| call.value(v.place))
        .unwrap_or(0);
    let (entries, _) = bytes.as_chunks::<8>();
    if entries.is_empty() && asked > 0 {
        return None;
    }
    let ended = call.record.ret > 0;
    out.push('[');
    for (i, entry) in entries.iter().enumerate() {
        let fd = i32::from_ne_bytes(array(entry, 0)?);
        let [events, returned] = [4, 6].map(|at| array(entry, at).map(u16::from_ne_bytes));
        let _ = write!(out, "{}{{fd={fd}", if i > 0 { ", " } else { "" });
        // Of a negative one the events do not count.
        if fd >= 0 {
            out.push_str(", events=");
            vocab::write_poll_events(events?, out);
            if let Some(returned) = returned.filter(|r| ended && *r != 0) {
                out.push_str(", revents=");
                vocab::write_poll_events(returned, out);
            }
        }
        out.push('}');
    }
    if (entries.len() as u64) < asked {
        out.push_str(", ...");
    }
    out.push(']');
    Some(())
}

/// Descriptors that the call has made.
fn descriptors(bytes: &[u8], out: &mut String) -> Option<()> {
    let (first, second) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?);
    let _ = write!(out, "[{}, {}]", first as i32, second as i32);
    Some(())
}

/// The status of a child: WIFEXITED and its like of wait(2).
fn status(bytes: &[u8], out: &mut String) -> Option<()> {
    const CONTINUED: u32 = 0xffff;
    const DUMPED: u32 = 0x80;
    let status = u32_at(bytes, 0)?;
    let code = status >> 8 & 0xff;
    out.push_str("[{");
    let _ = match status & 0x7f {
        _ if status == CONTINUED => write!(out, "WIFCONTINUED(s)"),
        0 => write!(out, "WIFEXITED(s) && WEXITSTATUS(s) == {code}"),
        0x7f => {
            out.push_str("WIFSTOPPED(s) && WSTOPSIG(s) == ");
            vocab::write_signal(code.into(), out);
            Ok(())
        }
        signal => {
            out.push_str("WIFSIGNALED(s) && WTERMSIG(s) == ");
            vocab::write_signal(signal.into(), out);
            if status & DUMPED != 0 {
                out.push_str(" && WCOREDUMP(s)");
            }
            Ok(())
        }
    };
    out.push_str("}]");
    Some(())
}

fn event(plan: &Plan, call: &Call<'_>, bytes: &[u8], out: &mut String) -> Option<()> {
    let operation = plan.value("op").and_then(|v| call.value(v.place))?;
    if operation == EPOLL_CTL_DEL || errno::of_return(call.record.ret) == Some(14) {
        return None;
    }
    // Packed on x86 only.
    let data = bytes.len().checked_sub(8)?;
    let data = u64::from_ne_bytes(array(bytes, data)?);
    out.push_str("{events=");
    vocab::write(Kind::EpollEvents, u32_at(bytes, 0)?.into(), out);
    let _ = write!(out, ", data={{u32={}, u64={data}}}}}", data as u32);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let text = |bytes: &[u8]| {
            let mut out = String::new();
            address(bytes, &mut out).map(|()| out)
        };
        let mut inet = [0; 16];
        inet[..8].copy_from_slice(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1]);
        assert_eq!(text(&inet).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(
            text(&inet[..7]).as_deref(),
            Some("{sa_family=AF_INET, ...}")
        );
        let mut inet6 = [0; 28];
        inet6[..4].copy_from_slice(&[10, 0, 0, 53]);
        inet6[23] = 1;
        assert_eq!(text(&inet6).as_deref(), Some("[::1]:53"));
        inet6[24..28].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(text(&inet6).as_deref(), Some("[::1%3]:53"));
        assert_eq!(
            text(b"\x01\0/run/a\"b\0rest").as_deref(),
            Some(r#""/run/a\"b""#)
        );
        assert_eq!(text(b"\x01\0\0name").as_deref(), Some(r#"@"name""#));
        assert_eq!(text(b"\x01\0").as_deref(), Some("{sa_family=AF_UNIX}"));
        assert_eq!(text(b"\x01"), None);
    }

    #[test]
    fn statuses_of_children() {
        let text = |status: u32| {
            let mut out = String::new();
            super::status(&status.to_ne_bytes(), &mut out);
            out
        };
        assert_eq!(text(0x300), "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]");
        assert_eq!(text(9), "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}]");
        assert_eq!(
            text(0x8b),
            "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}]"
        );
        assert_eq!(text(0x137f), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]");
        assert_eq!(text(0xffff), "[{WIFCONTINUED(s)}]");
    }
}
