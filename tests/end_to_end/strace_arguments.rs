//! Column args against strace's arguments, one by one.

use std::collections::BTreeMap;

use fathom_model::syscalls::{Arg, Syscall};
use fathom_tests::session::Row;
use fathom_tests::strace::{self, Call};

/// Checks what column args says of each argument, and that it says nothing else.
pub fn compare(known: &Syscall, call: &Call, row: &Row) -> Result<(), String> {
    if is_unknown(call) {
        return Ok(());
    }
    let text = row.text("args").unwrap_or("");
    let mut said = named(text).ok_or(format!("args cannot be split: {text}"))?;
    for (at, role) in known.args.iter().enumerate() {
        let Some(arg) = call.args.get(at) else {
            continue;
        };
        let name = match role {
            Arg::Struct {
                name,
                kind: "sockaddr" | "taken_sockaddr",
            } => {
                address(arg, said.remove(*name))?;
                continue;
            }
            Arg::Struct {
                name,
                kind: "fds" | "pollfds",
            } => {
                descriptors(arg, said.remove(*name))?;
                continue;
            }
            // Of other operations it is a number.
            Arg::Early { name, .. }
                if call.name == "futex" && !said.contains_key(*name) && !arg.starts_with('{') =>
            {
                continue;
            }
            Arg::Dirfd => "dirfd",
            Arg::Dirfd2 if known.position(Arg::Target).is_some() => "dirfd",
            Arg::Dirfd2 => "dirfd2",
            Arg::Fd2 => "fd_out",
            Arg::Seek => "offset",
            Arg::Length => "length",
            Arg::Name => "name",
            Arg::Text(name) | Arg::Struct { name, .. } => name,
            Arg::Iovcnt => "iovcnt",
            // What no column holds.
            Arg::Size if said.contains_key("size") => "size",
            Arg::Fd if said.contains_key("fd") => "fd",
            Arg::Offset if said.contains_key("offset") => "offset",
            Arg::OffsetPtr => {
                let said = said.remove("offset_ptr");
                if said.is_some() != (arg == "NULL") {
                    return Err(format!("offset_ptr: {said:?}, strace {arg}"));
                }
                continue;
            }
            Arg::Stat | Arg::Statx => {
                let name = if *role == Arg::Stat { "stat" } else { "statx" };
                status(arg, said.remove(name))?;
                continue;
            }
            Arg::Utimbuf | Arg::Timevals | Arg::Timespecs => "times",
            Arg::Early { name, .. } => name,
            Arg::How => {
                how(arg, &mut said)?;
                said.remove("tail");
                continue;
            }
            // strace shows where it stood before the call.
            Arg::OffsetPtr2 => {
                said.remove("off_out");
                let said = said.remove("off_out_ptr");
                if said.is_some() != (arg == "NULL") {
                    return Err(format!("off_out_ptr: {said:?}, strace {arg}"));
                }
                continue;
            }
            Arg::Value { name: "flags", .. } => continue,
            Arg::Value { name, .. } => name,
            _ => continue,
        };
        let want = match role {
            // Where the mount was before it moved; a recording looks afterwards.
            Arg::Dirfd if call.name == "move_mount" && call.ret == Some(0) => {
                said.remove(name);
                continue;
            }
            Arg::Dirfd | Arg::Dirfd2 => alive(arg),
            _ => normal(arg),
        };
        match said.remove(name) {
            Some(found) if equal(role, &want, &found) => {}
            // Nothing is read through a bad pointer or a null one.
            None if want.starts_with("0x")
                && matches!(
                    role,
                    Arg::Struct { .. } | Arg::Utimbuf | Arg::Timevals | Arg::Timespecs
                ) => {}
            // Of a command that it does not know strace shows numbers.
            Some(_)
                if matches!(
                    role,
                    Arg::Value {
                        kind: "F" | "lock",
                        ..
                    }
                ) && call.args.iter().any(|a| a.contains("F_???")) => {}
            // strace shows more of some, and an address of what the call did not fill in.
            Some(found) if matches!(role, Arg::Struct { .. }) && same_struct(&want, &found) => {}
            Some(found) if found == "partial" && want.starts_with("0x") => {}
            found => return Err(format!("{name}: {found:?}, strace {want:?}")),
        }
    }
    said.remove("path_arg");
    said.remove("path_arg2");
    match said.is_empty() {
        true => Ok(()),
        false => Err(format!("strace has no {said:?}")),
    }
}

/// Whether it is a call that strace does not know: it shows six numbers.
pub fn is_unknown(call: &Call) -> bool {
    let number = |a: &String| a.starts_with("0x") || a == "0";
    call.args.len() == 6 && call.args.iter().all(number)
}

/// The parts of `name=value, name=value`.
fn named(text: &str) -> Option<BTreeMap<String, String>> {
    strace::split(text)?
        .into_iter()
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = match name {
                "dirfd" | "dirfd2" => value.to_owned(),
                _ => normal(value),
            };
            Some((name.to_owned(), value))
        })
        .collect()
}

/// Without comments and without what lies behind a descriptor.
fn normal(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some((before, rest)) = out.split_once(" /* ") {
        let Some((_, after)) = rest.split_once(" */") else {
            break;
        };
        out = format!("{before}{after}");
    }
    let out = alive(&out);
    match out.split_once('<') {
        Some((number, _)) if !out.starts_with('"') && out.ends_with('>') => number.to_owned(),
        _ => out,
    }
}

/// Without the mark of a name that was removed: table file_paths has that.
fn alive(text: &str) -> String {
    text.strip_suffix("(deleted)").unwrap_or(text).to_owned()
}

fn equal(role: &Arg, want: &str, found: &str) -> bool {
    if want == found {
        return true;
    }
    // Bytes of names are compared, not how they are written.
    if let (Some(want), Some(found)) = (strace::unquote(want), strace::unquote(found)) {
        return want == found;
    }
    // A length has a sign, which strace does not show.
    if *role == Arg::Length {
        return want.parse::<u64>().ok().map(|n| n as i64) == found.parse().ok();
    }
    matches!(role, Arg::Value { kind: "hex", .. })
        && matches!((want, found), ("0", "NULL") | ("NULL", "0"))
}

/// Descriptors that a call makes or waits for. strace shows events that occurred elsewhere.
fn descriptors(arg: &str, said: Option<String>) -> Result<(), String> {
    let without = |text: &str, from: &str, to: &[char]| {
        let mut parts = text.split(from);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
        }
        out
    };
    let want = without(arg, "<", &['>']);
    let found = said.as_deref().unwrap_or_default();
    let mut shown = String::new();
    for (i, part) in found.split(", revents=").enumerate() {
        shown.push_str(match i {
            0 => part,
            _ => part.find('}').map_or("", |end| &part[end..]),
        });
    }
    // An address: the call did not fill it in, or it could not be read.
    if shown == want || (said.is_none() && want.starts_with("0x")) {
        return Ok(());
    }
    Err(format!("descriptors: {said:?}, strace {arg}"))
}

/// The address of a socket.
fn address(arg: &str, said: Option<String>) -> Result<(), String> {
    let inside = arg.strip_prefix('{').and_then(|a| a.strip_suffix('}'));
    let members = inside.and_then(strace::split).unwrap_or_default();
    let member = |name: &str| {
        let mut pairs = members.iter().filter_map(|member| member.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let call_of = |text: Option<&str>| {
        let (_, inside) = text?.split_once('(')?;
        let inside = inside.strip_suffix(')')?;
        Some(inside.rsplit(", ").next()?.trim_matches('"').to_owned())
    };
    let want = match member("sa_family") {
        Some("AF_INET") => {
            let ip = call_of(member("sin_addr"));
            ip.zip(call_of(member("sin_port")))
                .map(|(ip, port)| format!("{ip}:{port}"))
        }
        Some("AF_INET6") => {
            let port = call_of(member("sin6_port"));
            let ip = inside
                .and_then(|i| i.split_once("inet_pton(AF_INET6, \"")?.1.split_once('"'))
                .map(|(ip, _)| ip.to_owned());
            ip.zip(port).map(|(ip, port)| format!("[{ip}]:{port}"))
        }
        Some("AF_UNIX") => member("sun_path").map(str::to_owned),
        // An address that was not filled in, or could not be read.
        None if arg != "NULL" => None,
        None => Some("NULL".to_owned()),
        Some(_) => return Ok(()),
    };
    match (want, said) {
        (want, said) if want == said => Ok(()),
        // Without a name, or cut.
        (None, Some(said)) if inside.is_some() && said.starts_with("{sa_family=") => Ok(()),
        (want, said) => Err(format!("addr: {said:?}, strace {want:?} of {arg}")),
    }
}

/// What strace shows of struct stat.
fn status(arg: &str, said: Option<String>) -> Result<(), String> {
    let members = |text: &str| named(text.strip_prefix('{')?.strip_suffix(", ...}")?);
    let Some(want) = members(arg) else {
        // An address: nothing was filled in.
        return match said.as_deref() {
            None | Some("NULL") => Ok(()),
            said => Err(format!("stat: {said:?}, strace {arg}")),
        };
    };
    let found = said.as_deref().and_then(members).unwrap_or_default();
    for (name, value) in want {
        if found.get(&name) != Some(&value) {
            return Err(format!("{name}: {:?}, strace {value}", found.get(&name)));
        }
    }
    Ok(())
}

/// Whether the members that both show are the same.
fn same_struct(want: &str, found: &str) -> bool {
    let members = |text: &str| {
        let inside = text.strip_prefix('{')?.strip_suffix('}')?;
        named(inside.strip_suffix(", ...").unwrap_or(inside))
    };
    match (members(want), members(found)) {
        (Some(want), Some(found)) => {
            let both = || found.iter().filter(|(name, _)| want.contains_key(*name));
            // strace shows what a call has changed, too.
            let last = |value: &String| value.rsplit(" => ").next().map(str::to_owned);
            both().count() > 0
                && both().all(|(name, value)| want.get(name).and_then(last).as_ref() == Some(value))
        }
        _ => false,
    }
}

/// Mode and resolve of `{flags=..., mode=..., resolve=...}`.
fn how(arg: &str, said: &mut BTreeMap<String, String>) -> Result<(), String> {
    let Some(inside) = arg.strip_prefix('{').and_then(|a| a.strip_suffix('}')) else {
        return Ok(());
    };
    let want = named(inside).ok_or(format!("how: {arg}"))?;
    for name in ["mode", "resolve"] {
        let (want, found) = (want.get(name).cloned(), said.remove(name));
        if want != found {
            return Err(format!("{name}: {found:?}, strace {want:?}"));
        }
    }
    Ok(())
}
