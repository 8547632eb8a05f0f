//! Imports: the same calls, recorded by fathom and told by strace, as rows; logs
//! of every form; and back again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::syscalls::{Arg, Class, Syscall};
use fathom_tests::environment::must_run;
use fathom_tests::session::{Row, meta, query, report};
use fathom_tests::tools::{self, export, import};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};

/// A recording in which strace traces a command, and the session made of what
/// strace wrote.
fn both(scratch: &Scratch, options: &[&str], command: &[PathBuf]) -> (Recording, PathBuf) {
    let log = scratch.root().join("strace.log");
    let recording = Record::new(scratch)
        .options(["--syscalls", "all"])
        .command(["strace"])
        .command(options)
        .command(["-o".as_ref(), log.as_os_str()])
        .command(command)
        .run()
        .must_exit(0);
    recording.complete();
    let imported = scratch.session("imported");
    import(&[&log], &imported);
    (recording, imported)
}

/// Columns that both must have alike. `hash` and what strace cannot tell are not
/// among them.
const COLUMNS: &str = "syscall, class, ret, errno, fd, file_offset, size, bytes, flags, path_arg, \
                       path_arg2, path, path2, args, comm";

fn rows(session: &Path, condition: &str) -> BTreeMap<i64, Vec<Row>> {
    let sql = format!(
        "SELECT tid, pid, {COLUMNS} FROM syscalls WHERE api = 'syscall' AND {condition}
         ORDER BY tid, ts_ns, rid"
    );
    let mut threads: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for row in query(session, &sql) {
        threads
            .entry(row.int("tid").unwrap())
            .or_default()
            .push(row);
    }
    threads
}

/// What two rows differ in; `may_lack`: columns that an import may leave out.
fn difference(recorded: &Row, imported: &Row, may_lack: &[&str]) -> Option<String> {
    let names = [
        "syscall",
        "class",
        "ret",
        "errno",
        "fd",
        "file_offset",
        "size",
        "bytes",
        "flags",
        "path_arg",
        "path_arg2",
        "path",
        "path2",
        "args",
        "comm",
    ];
    for name in names {
        let (a, b) = (recorded.value(name), imported.value(name));
        // A log does not have all of what stat() returned.
        let without_status = a.as_str().map(without_results);
        // strace shows this one without a sign.
        if name == "args" && a == "length=-1" && b == "length=18446744073709551615" {
            continue;
        }
        if name == "args"
            && (without_status.as_deref() == b.as_str() || without_status.as_deref() == Some(""))
        {
            continue;
        }
        // A path that could not be read: strace shows its address.
        let partial = a
            .as_str()
            .and_then(|a| a.strip_suffix(", path_arg=partial"));
        if name == "args" && partial.is_some() && partial == b.as_str() {
            continue;
        }
        // A log does not show the position in a stream that a transfer wrote to.
        let place = |a: &str| Some(a.strip_prefix(b.as_str()?)?.starts_with(", off_out="));
        if name == "args" && may_lack.contains(&name) && a.as_str().and_then(place) == Some(true) {
            continue;
        }
        // strace knows this call by its number only, and so not which argument is a descriptor.
        if name == "args"
            && recorded.text("syscall") == Some("fchmodat2")
            && a.as_str().map(without_directory).as_deref() == b.as_str()
        {
            continue;
        }
        // Nor whether a path that stands for the descriptor was empty or null.
        if name == "path_arg" && a.is_null() && b == "" {
            continue;
        }
        if a == b || (b.is_null() && may_lack.contains(&name)) {
            continue;
        }
        // strace says "not known" and 0 alike.
        return Some(format!("{name}: recorded {a}, imported {b}"));
    }
    None
}

/// Arguments without the structs that the call has filled in.
fn without_results(args: &str) -> String {
    let mut left = args.to_owned();
    for name in ["stat={", "statx={", "buf={f_type", "timeout={"] {
        let Some(at) = left.find(name) else { continue };
        let mut depth = 0;
        let end = left[at..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == '}' && depth == 0
        });
        if let Some(end) = end {
            left.replace_range(at..=at + end, "");
        }
    }
    // Nor null pointers, and the size of a struct.
    let known = [
        "iovcnt=",
        "offset_ptr=",
        "off_out_ptr=",
        "size=",
        "times=NULL",
        "timeout=NULL",
    ];
    let words = left
        .split(", ")
        .filter(|word| !word.is_empty() && !known.iter().any(|k| word.starts_with(k)));
    words.collect::<Vec<_>>().join(", ")
}

/// `dirfd=AT_FDCWD</tmp>, mode=0644` without the directory.
fn without_directory(args: &str) -> String {
    match (args.split_once('<'), args.split_once('>')) {
        (Some((before, _)), Some((_, behind))) => format!("{before}{behind}"),
        _ => args.to_owned(),
    }
}

/// Columns in which the two may differ, for a reason each.
fn excused(row: &Row) -> Vec<&'static str> {
    let name = row.text("syscall").unwrap();
    let call = &fathom_model::syscalls::SYSCALLS[Syscall::index_of(name).unwrap()];
    let mut lacks = Vec::new();
    // Nobody names the file behind an address, or reads a call that strace knows
    // by its number only.
    if matches!(
        name,
        "msync" | "madvise" | "mprotect" | "mincore" | "mlock" | "mlock2" | "munlock"
    ) || call.name == "fchmodat2"
    {
        lacks.extend(["path", "file_offset", "path_arg", "flags", "args"]);
    }
    // Addresses, times and descriptors in structs are not imported.
    if matches!(call.class, Class::Socket | Class::Wait) {
        lacks.push("args");
    }
    // A log does not show the positions in streams.
    let on_stream = |column: &str| {
        let path = row.text(column).unwrap_or_default();
        path.starts_with("pipe:[") || path.starts_with("socket:[")
    };
    if on_stream("path") {
        lacks.push("file_offset");
    }
    if on_stream("path2") {
        lacks.push("args");
    }
    if call.position(Arg::Ring).is_some() || name == "io_uring_setup" {
        lacks.push("path");
    }
    lacks
}

fn compare(recorded: &Path, imported: &Path, skip: &[&str]) -> usize {
    let want = rows(recorded, "comm <> 'strace'");
    let got = rows(imported, "true");
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (tid, want) in &want {
        let Some(got) = got.get(tid) else {
            wrong.push(format!("{tid}: no rows"));
            continue;
        };
        let want: Vec<&Row> = want
            .iter()
            .filter(|r| !skip.contains(&r.text("syscall").unwrap()))
            .collect();
        let got: Vec<&Row> = got
            .iter()
            .filter(|r| !skip.contains(&r.text("syscall").unwrap()))
            .collect();
        for (i, (a, b)) in want.iter().zip(&got).enumerate() {
            compared += 1;
            if let Some(difference) = difference(a, b, &excused(a)) {
                wrong.push(format!(
                    "{tid} call {i}: {difference}\n    {a:?}\n    {b:?}"
                ));
            }
        }
        if want.len() != got.len() {
            wrong.push(format!(
                "{tid}: {} recorded, {} imported",
                want.len(),
                got.len()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ, the first:\n{}",
        wrong.len(),
        wrong
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    compared
}

/// Calls of every kind, field by field.
#[test]
fn every_call_like_recorded() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let (recording, imported) = both(
        &scratch,
        &["-f", "-ttt", "-T", "-y", "-s", "4096"],
        &[workload("calls"), scratch.work()],
    );
    let compared = compare(&recording.session, &imported, &[]);
    assert!(compared > 180, "{compared}");
    let rows = query(
        &imported,
        "SELECT count(*) AS n FROM syscalls WHERE dur_ns IS NULL",
    );
    assert_eq!(rows[0].int("n"), Some(0));
}

/// Threads and processes: shared descriptors, positions, names.
#[test]
fn processes_like_recorded() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let (recording, imported) = both(
        &scratch,
        &["-f", "-ttt", "-T", "-y"],
        &[workload("processes"), "tree".into(), scratch.work()],
    );
    let want = rows(&recording.session, "comm <> 'strace'");
    let got = rows(&imported, "true");
    let calls = |rows: &BTreeMap<i64, Vec<Row>>| -> BTreeMap<i64, Vec<String>> {
        rows.iter()
            .map(|(tid, rows)| {
                let names = rows.iter().map(|r| r.text("syscall").unwrap().to_owned());
                (*tid, names.collect())
            })
            .collect()
    };
    assert_eq!(calls(&got), calls(&want));
    // Which thread belongs to which process, and who made it.
    let sql = "SELECT DISTINCT tid, pid, ppid FROM processes WHERE comm <> 'strace' ORDER BY tid";
    let mut wrong = Vec::new();
    let theirs: BTreeMap<i64, (Option<i64>, Option<i64>)> = query(&recording.session, sql)
        .iter()
        .map(|r| (r.int("tid").unwrap(), (r.int("pid"), r.int("ppid"))))
        .collect();
    for row in query(&imported, sql) {
        let tid = row.int("tid").unwrap();
        let (pid, ppid) = theirs[&tid];
        // The log does not tell who started the first.
        let parent = row.int("ppid").is_none() || row.int("ppid") == ppid;
        if row.int("pid").is_some() && row.int("pid") != pid || !parent {
            wrong.push(format!("{row:?}: recorded {pid:?}, {ppid:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // An offset that an import tells is the one that was recorded.
    let mut told = 0;
    for (tid, rows) in &want {
        for (a, b) in rows.iter().zip(&got[tid]) {
            if let Some(offset) = b.int("file_offset") {
                told += 1;
                assert_eq!(a.int("file_offset"), Some(offset), "{a:?}\n{b:?}");
            }
        }
    }
    assert!(told > 0, "no offset was told");
}

/// The same program under strace with other options: what they leave out is null
/// and named, the rest is the same.
#[test]
fn logs_of_other_forms() {
    need_root!();
    need_program!("strace");
    let forms: [(&[&str], &str); 7] = [
        (&["-f", "-ttt", "-T", "-y"], ""),
        (&["-f", "-ttt", "-T", "-yy"], ""),
        (&["-f", "-tt", "-T", "-y"], "the date"),
        (&["-f", "-t", "-y"], "durations of calls"),
        (&["-f", "-r", "-T"], "the time of day"),
        (&["-ttt", "-T"], "targets of symbolic links"),
        (&["-ff", "-ttt", "-T", "-y"], ""),
    ];
    for (options, missing) in forms {
        let scratch = Scratch::new();
        let log = scratch.root().join("log");
        let mut args: Vec<std::ffi::OsString> = options.iter().map(|o| o.into()).collect();
        args.extend(["-o".into(), log.clone().into(), "sh".into(), "-c".into()]);
        let data = scratch.work().join("data");
        args.push(
            format!(
                "printf 12345 > {0}; head -c 2 {0} > {0}.2; cat {0} {0}.2 > /dev/null; rm {0}",
                data.display()
            )
            .into(),
        );
        must_run("strace", args);
        let session = scratch.session("imported");
        let said = import(&[&log], &session);
        assert!(said.contains(missing), "{options:?}: {said}");
        let meta = meta(&session);
        assert_eq!(meta["source"]["bad_lines"], 0, "{options:?}: {said}");
        assert_eq!(meta["totals"]["seen"], meta["totals"]["stored"]);
        let writes = query(
            &session,
            &format!(
                "SELECT bytes, size, ret FROM syscalls WHERE syscall = 'write' AND ret = 5
                 AND (path = '{}' OR path IS NULL)",
                data.display()
            ),
        );
        if options.contains(&"-f") || options.contains(&"-ff") || options.contains(&"-ttt") {
            assert!(!writes.is_empty(), "{options:?}");
            assert_eq!(writes[0].int("bytes"), Some(5), "{options:?}");
        }
        let durations = query(
            &session,
            "SELECT count(dur_ns) AS n, count(*) AS calls FROM syscalls",
        );
        let with = durations[0].int("n").unwrap();
        assert_eq!(with > 0, options.contains(&"-T"), "{options:?}");
        // What is stored can be reported, shown and exported like a recording.
        let report = report(&session);
        assert_eq!(report["loss"]["stored"], meta["totals"]["stored"]);
        let text = must_run(
            fathom_tests::environment::fathom(),
            ["report".as_ref(), session.as_os_str(), "--full".as_ref()],
        );
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("not observable in a log of strace"), "{text}");
        for format in ["strace", "dio", "chrome", "perfetto", "csv", "iolog"] {
            export(&session, format, &[]);
        }
    }
}

/// What a recording exports as strace's text comes back as the same rows.
#[test]
fn a_session_through_strace_and_back() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("threads").into_os_string(), "own".into()])
        .command([scratch.work().into_os_string(), "3".into(), "60".into()])
        .run()
        .must_exit(0);
    recording.complete();
    let log = scratch.root().join("exported.strace");
    fs::write(&log, export(&recording.session, "strace", &[]).0).unwrap();
    let imported = scratch.session("imported");
    import(&[&log], &imported);
    assert_eq!(meta(&imported)["source"]["bad_lines"], 0);
    let want = rows(&recording.session, "true");
    let got = rows(&imported, "true");
    let mut compared = 0;
    for (tid, want) in &want {
        for (a, b) in want.iter().zip(&got[tid]) {
            compared += 1;
            // A position that was moved before the first line is not known, nor a
            // name of a thread that no line tells.
            let difference = difference(a, b, &["file_offset", "comm", "size", "args", "path"]);
            assert_eq!(difference, None, "{a:?}\n{b:?}");
        }
        assert_eq!(want.len(), got[tid].len());
    }
    assert!(compared > 300, "{compared}");
    let times = |session: &Path, base: &str| {
        let sql = format!(
            "SELECT ts_ns - {base} AS t, dur_ns FROM syscalls ORDER BY ts_ns, rid LIMIT 50"
        );
        query(session, &sql)
            .iter()
            .map(|r| (r.int("t"), r.int("dur_ns")))
            .collect::<Vec<_>>()
    };
    let base = "(SELECT min(ts_ns) FROM syscalls)";
    assert_eq!(times(&imported, base), times(&recording.session, base));
}

/// DIO's documents and back.
#[test]
fn a_session_through_dio_and_back() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("threads").into_os_string(), "own".into()])
        .command([scratch.work().into_os_string(), "3".into(), "60".into()])
        .run()
        .must_exit(0);
    recording.complete();
    let (text, _) = export(&recording.session, "dio", &["--where", "api = 'syscall'"]);
    let lines = scratch.root().join("events.ndjson");
    fs::write(&lines, &text).unwrap();
    // DIO's tracer itself writes one array.
    let array = scratch.root().join("events.json");
    let joined = String::from_utf8(text).unwrap();
    fs::write(
        &array,
        format!("[{}]", joined.trim_end().replace('\n', ",")),
    )
    .unwrap();
    let columns = "pid, tid, comm, cpu, syscall, class, ret, errno, fd, file_offset, bytes, \
                   dur_ns, wall_time(ts_ns)::VARCHAR AS at";
    let sql = format!("SELECT {columns} FROM syscalls WHERE api = 'syscall' ORDER BY ts_ns, rid");
    let texts = |session: &Path| -> Vec<String> {
        let rows = query(session, &sql);
        rows.iter().map(|r| format!("{r:?}")).collect()
    };
    let want = texts(&recording.session);
    for (log, name) in [(&lines, "lines"), (&array, "array")] {
        let imported = scratch.session(name);
        import(&[log], &imported);
        assert_eq!(meta(&imported)["source"]["bad_lines"], 0, "{name}");
        let got = texts(&imported);
        assert_eq!(got.len(), want.len(), "{name}");
        for (a, b) in want.iter().zip(&got) {
            let strip = |t: &str| t.replace("\"file_offset\":null,", "");
            assert_eq!(strip(a), strip(b), "{name}");
        }
        let files =
            "SELECT count(*) AS n FROM files WHERE path LIKE '%/work/%' AND dev IS NOT NULL";
        assert!(query(&imported, files)[0].int("n").unwrap() > 0, "{name}");
    }
}

/// Hashes and bytes that calls moved, text and not, through DIO's documents and back.
#[test]
fn content_through_dio_and_back() {
    need_root!();
    let scratch = Scratch::new();
    let columns = "syscall, hash, hex(content) AS content, content_bytes";
    let sql = format!("SELECT {columns} FROM syscalls WHERE api = 'syscall' ORDER BY ts_ns, rid");
    for mode in ["hash", "plain"] {
        let recording = Record::named(&scratch, mode)
            .options(["--content", mode])
            .command([workload("content").into_os_string(), "calls".into()])
            .command([scratch.work().into_os_string(), "1".into(), "20".into()])
            .run()
            .must_exit(0);
        recording.complete();
        let (text, _) = export(&recording.session, "dio", &["--where", "api = 'syscall'"]);
        let log = scratch.root().join("events.ndjson");
        fs::write(&log, &text).unwrap();
        let imported = scratch.session(&format!("{mode}-imported"));
        import(&[&log], &imported);
        let want = query(&recording.session, &sql);
        let got = query(&imported, &sql);
        let column = if mode == "hash" { "hash" } else { "content" };
        let with = want.iter().filter(|r| !r.value(column).is_null()).count();
        assert!(with > 3, "{mode}: {with}");
        assert_eq!(want.len(), got.len());
        for (want, got) in want.iter().zip(&got) {
            assert_eq!(format!("{want:?}"), format!("{got:?}"), "{mode}");
        }
        let meta = meta(&imported);
        assert_eq!(meta["content"]["mode"], mode);
        let said = meta["source"]["not_observable"].to_string();
        assert_eq!(
            said.contains("made the signatures"),
            mode == "hash",
            "{said}"
        );
    }
}

/// Damage is counted and shown, and everything else is there.
#[test]
fn damaged_lines_are_counted() {
    let scratch = Scratch::new();
    let log = scratch.root().join("log");
    let text = concat!(
        "7 1700000000.000000 brk(NULL) = 0x1000 <0.000001>\n",
        "7 1700000000.000001 openat(AT_FDCWD</>, \"/a\", O_RDONLY) = 3</a> <0.000002>\n",
        "\x1b[2Jgarbage\n",
        "7 1700000000.000003 read(3</a>, \"x\", 10 = 1 <0.000002>\n",
        "7 1700000000.000004 read(3</a>, \"x\", 10) = 1 <0.000002>\n",
        "7 1700000000.000005 <... write resumed>) = 1 <0.000002>\n",
        "7 1700000000.000006 read(3</a>, <unfinished ...>\n",
        "7 1700000000.000009 +++ killed by SIGKILL +++\n",
    );
    fs::write(&log, text).unwrap();
    let session = scratch.session("imported");
    let said = import(&[&log], &session);
    assert!(said.contains("3 lines could not be parsed"), "{said}");
    assert!(
        said.contains("\\x1b[2Jgarbage") && !said.contains('\x1b'),
        "{said}"
    );
    let rows = query(
        &session,
        "SELECT syscall, ret, file_offset, dur_ns FROM syscalls ORDER BY rid",
    );
    assert_eq!(rows.len(), 3);
    // The damaged read may have moved the position.
    assert_eq!(
        (rows[1].text("syscall"), rows[1].int("ret")),
        (Some("read"), Some(1))
    );
    assert_eq!(
        (rows[2].int("ret"), rows[2].int("dur_ns")),
        (None, Some(3000))
    );
    let ends = query(&session, "SELECT exit_status FROM processes");
    assert_eq!(ends[0].int("exit_status"), Some(137));
    let report = report(&session);
    let problems = report["problems"].to_string();
    assert!(
        problems.contains("3 of 8 lines of the log were not understood"),
        "{problems}"
    );

    for (text, words) in [
        ("read(3, \"\", 4) = 0\n", "no times"),
        ("hello\nworld\n", "neither a log of strace nor JSON of DIO"),
        ("", "neither a log of strace nor JSON of DIO"),
    ] {
        fs::write(&log, text).unwrap();
        let target = scratch.session("none");
        let output = tools::run([
            "import".as_ref(),
            log.as_os_str(),
            "-o".as_ref(),
            target.as_os_str(),
        ]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!target.exists());
    }
}
