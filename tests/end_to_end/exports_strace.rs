//! strace's text, compared with what strace itself wrote, and read by the tests'
//! own reader of it.

use std::fs;

use fathom_tests::tools::export;
use fathom_tests::{Record, Scratch, need_program, need_root, strace, workload};

use super::recorded;

/// What strace printed of the same calls, line by line. What a session does not
/// have stands as `?` in ours, and is taken out of strace's.
#[test]
fn the_same_lines_as_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let log = scratch.root().join("strace");
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all"])
        .command(["strace", "-f", "-y", "-s", "0", "-o"])
        .command([log.as_os_str()])
        .command([workload("calls").into_os_string(), scratch.work().into()])
        .run()
        .must_exit(0);
    recording.complete();
    let text = fs::read_to_string(&log).unwrap();
    let tid: i64 = text.split_whitespace().next().unwrap().parse().unwrap();
    let condition = format!("tid = {tid} AND comm <> 'strace'");
    let (ours, notes) = export(&recording.session, "strace", &["--where", &condition]);
    let ours = String::from_utf8(ours).unwrap();
    assert!(
        notes.contains("operations of io_uring and AIO left out"),
        "{notes}"
    );

    let declared = |line: &&str| {
        let call = line.split_once(' ').unwrap().1.trim_start();
        let name = call.split('(').next().unwrap();
        fathom_model::syscalls::Syscall::index_of(name).is_some()
    };
    let theirs: Vec<&str> = text
        .lines()
        .filter(|l| !l.contains("+++") && !l.contains("---"))
        .filter(declared)
        .collect();
    let ours: Vec<String> = ours.lines().map(without_time).collect();
    let ours: Vec<&str> = ours
        .iter()
        .map(String::as_str)
        // strace 6.1 knows some calls by their numbers only.
        .filter(|l| !l.contains("fchmodat2("))
        .collect();
    assert!(theirs.len() > 200, "{}", theirs.len());
    let mut wrong = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if let Err(e) = same_line(ours, theirs) {
            wrong.push(format!("{e}\n  ours   {ours}\n  strace {theirs}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(ours.len(), theirs.len());
}

/// Without the time behind the thread and the duration at the end.
pub(super) fn without_time(line: &str) -> String {
    let (tid, rest) = line.split_once(' ').unwrap();
    let (_, call) = rest.trim_start().split_once(' ').unwrap();
    let call = match call.rsplit_once(" <") {
        Some((before, end))
            if end.ends_with('>') && end.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            before
        }
        _ => call,
    };
    format!("{tid} {call}")
}

fn same_line(ours: &str, theirs: &str) -> Result<(), String> {
    let (a, b) = (
        strace::parse(&format!("{ours}\n"))?,
        strace::parse(&format!("{theirs}\n"))?,
    );
    let ([a], [b]) = (a.as_slice(), b.as_slice()) else {
        return Err("not one call each".into());
    };
    if (a.tid, &a.name, a.ret, &a.errno) != (b.tid, &b.name, b.ret, &b.errno) {
        return Err("another call or result".into());
    }
    // The words of the error, the path of a descriptor that was made, the names of flags.
    let result = |line: &str| line.rsplit_once(" = ").map(|(_, r)| r.to_owned());
    let (mine, yours) = (result(ours), result(theirs));
    if mine != yours {
        return Err(format!("result {mine:?}, strace {yours:?}"));
    }
    for (at, mine) in a.args.iter().enumerate() {
        let Some(yours) = b.args.get(at) else {
            // What the call has no use for.
            if mine == "?" {
                continue;
            }
            return Err(format!("argument {at} too many: {mine}"));
        };
        // What newfd stood for is not recorded.
        let replaced = matches!(a.name.as_str(), "dup2" | "dup3") && at == 1;
        let yours = match yours.split_once('<') {
            Some((number, _)) if replaced => number.to_owned(),
            _ => comparable(yours, mine),
        };
        if *mine != "?" && *mine != yours {
            return Err(format!("argument {at}: {mine}, strace {yours}"));
        }
    }
    if a.args.len() < b.args.len() {
        return Err("arguments are missing".into());
    }
    Ok(())
}

/// strace's argument without what a session does not have.
fn comparable(theirs: &str, ours: &str) -> String {
    match ours {
        "{...}" if theirs.starts_with('{') => return ours.into(),
        _ if theirs == "[...]" && ours.starts_with('[') => return ours.into(),
        "[...]" if theirs.starts_with('[') || theirs.starts_with("0x") => return ours.into(),
        // With -s 0 every text but a path is cut.
        _ if theirs == "\"\"..." && ours.starts_with('"') => return ours.into(),
        _ => {}
    }
    // Where it took place, when the program asked for the descriptor's position.
    let position = |text: &str| text.parse::<u64>().is_ok();
    if (ours.starts_with('[') && theirs == "NULL") || (position(ours) && theirs == "-1") {
        return ours.into();
    }
    let mut text = theirs.to_owned();
    if let Some((before, _)) = text
        .clone()
        .split_once(" => ")
        .filter(|_| !ours.contains(" => "))
    {
        text = before.to_owned();
    }
    // strace shows the file system's number with -v only.
    if let (Some(_), Some(number)) = (
        text.find("f_fsid={val=[...]}"),
        between(ours, "f_fsid={val=[", "]}"),
    ) {
        text = text.replace("f_fsid={val=[...]}", &format!("f_fsid={{val=[{number}]}}"));
    }
    while let Some((before, rest)) = text.clone().split_once(" /* ") {
        if ours.contains(" /* ") {
            break;
        }
        let Some((_, after)) = rest.split_once(" */") else {
            break;
        };
        text = format!("{before}{after}");
    }
    // Numbers of 64 bits with a sign, and without.
    match (text.parse::<i64>(), ours.parse::<i64>()) {
        (Ok(number), _) if (number as u64).to_string() == ours => ours.to_owned(),
        (_, Ok(number)) if (number as u64).to_string() == text => ours.to_owned(),
        _ => text,
    }
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(behind)?.0)
}

/// Threads whose calls overlap: halves of lines, which strace's reader puts
/// together again.
#[test]
fn interrupted_lines_belong_together() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["threads", "own", "WORK", "4", "200"]);
    let (text, _) = export(&recording.session, "strace", &[]);
    let text = String::from_utf8(text).unwrap();
    let plain: Vec<String> = text.lines().map(without_time).collect();
    let calls = strace::parse(&(plain.join("\n") + "\n")).unwrap();
    let stored = recording.number("SELECT count(*) FROM syscalls WHERE api = 'syscall'");
    assert_eq!(calls.len() as i64, stored);
    assert!(text.contains("resumed>"), "no calls overlap");
    // Lines are in order of time.
    let times: Vec<&str> = text
        .lines()
        .map(|l| l.split_whitespace().nth(1).unwrap())
        .collect();
    assert!(times.is_sorted(), "lines are not in order of time");
}
