//! Column args against strace's arguments, one by one.

use std::collections::BTreeMap;

use fathom_model::syscalls::{Arg, Syscall};
use fathom_tests::session::Row;
use fathom_tests::strace::{self, Call};

/// Checks what column args says of each argument, and that it says nothing else.
pub fn compare(known: &Syscall, call: &Call, row: &Row) -> Result<(), String> {
    // Of a call that it does not know, strace shows six numbers.
    let unknown = |a: &String| a.starts_with("0x") || a == "0";
    if call.args.len() == 6 && call.args.iter().all(unknown) {
        return Ok(());
    }
    let text = row.text("args").unwrap_or("");
    let mut said = named(text).ok_or(format!("args cannot be split: {text}"))?;
    for (at, role) in known.args.iter().enumerate() {
        let Some(arg) = call.args.get(at) else {
            continue;
        };
        let name = match role {
            Arg::Dirfd => "dirfd",
            Arg::Dirfd2 if known.position(Arg::Target).is_some() => "dirfd",
            Arg::Dirfd2 => "dirfd2",
            Arg::Fd2 => "fd_out",
            Arg::Seek => "offset",
            Arg::Length => "length",
            Arg::Name => "name",
            Arg::Utimbuf | Arg::Timevals | Arg::Timespecs => "times",
            Arg::How => {
                how(arg, &mut said)?;
                continue;
            }
            // strace shows where it stood before the call.
            Arg::OffsetPtr2 => {
                said.remove("off_out");
                continue;
            }
            Arg::Value { name: "flags", .. } => continue,
            Arg::Value { name, .. } => name,
            _ => continue,
        };
        let want = normal(arg);
        match said.remove(name) {
            Some(found) if equal(role, &want, &found) => {}
            // Nothing is read through a bad pointer or a null one.
            None if matches!(name, "times" | "name")
                && (want == "NULL" || want.starts_with("0x")) => {}
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

/// The parts of `name=value, name=value`.
fn named(text: &str) -> Option<BTreeMap<String, String>> {
    strace::split(text)?
        .into_iter()
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.to_owned(), normal(value)))
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
    let out = out
        .strip_suffix("(deleted)")
        .map_or(out.clone(), str::to_owned);
    match out.split_once('<') {
        Some((number, _)) if !out.starts_with('"') && out.ends_with('>') => number.to_owned(),
        _ => out,
    }
}

fn equal(role: &Arg, want: &str, found: &str) -> bool {
    if want == found {
        return true;
    }
    // Bytes of names are compared, not how they are written.
    if let (Some(want), Some(found)) = (strace::unquote(want), strace::unquote(found)) {
        return want == found;
    }
    matches!(role, Arg::Value { kind: "hex", .. })
        && matches!((want, found), ("0", "NULL") | ("NULL", "0"))
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
