//! What fathom makes of the kernel that it runs on, and the programs that it has
//! for other ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::session::meta;
use fathom_tests::truth::{Selection, compare, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

/// Whether the kernel has a function, by its own list.
fn has_symbol(name: &str) -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    symbols
        .lines()
        .any(|line| line.split_whitespace().nth(2) == Some(name))
}

/// Whether the kernel has a tracepoint of that name for BTF programs, by its own lists: before
/// 5.11 it has no types of modules.
fn has_event(name: &str) -> bool {
    let events = fs::read_to_string("/sys/kernel/tracing/available_events").unwrap();
    let found = events.lines().filter_map(|line| line.split_once(':'));
    let system = found
        .filter(|(_, event)| *event == name)
        .map(|f| f.0)
        .next();
    system.is_some_and(|system| {
        let is_module = Path::new("/sys/module")
            .join(system)
            .join("initstate")
            .exists();
        !is_module || Path::new("/sys/kernel/btf").join(system).exists()
    })
}

/// Version of the running kernel: major and minor.
pub(crate) fn release() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = text.split(['.', '-', '+', '~']).map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Whether the kernel can load the programs for Linux 5.8 only, which do not read the
/// content of calls, operations and page faults, and filter by no path. Says so.
pub(crate) fn skips_for_oldest_programs() -> bool {
    let oldest = expected_programs() == "5.8";
    if oldest {
        fathom_tests::skip("this kernel can load the programs for Linux 5.8 only");
    }
    oldest
}

/// The build of the programs that this kernel can load, told by other means than
/// fathom's.
fn expected_programs() -> &'static str {
    // Some later versions of Linux 6.12 have private stacks, too.
    let stacks = has_symbol("bpf_jit_supports_private_stack");
    match (has_symbol("bpf_loop"), has_symbol("bpf_rdonly_cast")) {
        (true, true) if stacks => "6.13",
        (true, true) => "6.2",
        (true, false) => "5.17",
        (false, _) => "5.8",
    }
}

#[test]
fn doctor_says_what_a_recording_does() {
    need_root!();
    let output = Command::new(fathom()).arg("doctor").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let oldest = expected_programs() == "5.8";
    let missing: Vec<_> = text.lines().filter(|l| l.starts_with("MISSING")).collect();
    // The oldest programs cannot read content or attach to libraries; other things are places that
    // this kernel does not have.
    let known = |line: &&str| match line.split_once("tp_btf/") {
        Some((_, rest)) => !has_event(rest.split_whitespace().next().unwrap()),
        None => {
            oldest && (line.contains("content of calls") || line.contains("calls of libraries"))
        }
    };
    assert!(missing.iter().all(known), "{text}");
    let status = i32::from(!missing.is_empty());
    assert_eq!(output.status.code(), Some(status), "{text}");
    let line = |wanted: &str| {
        let found = text.lines().find(|line| line.contains(wanted));
        found.unwrap_or_else(|| panic!("no line on {wanted}:\n{text}"))
    };
    let programs = format!("programs for Linux {} and newer", expected_programs());
    let fast = ["6.2", "6.13"].contains(&expected_programs());
    let mark = if fast { "ok" } else { "limited" };
    assert!(line(&programs).starts_with(mark), "{text}");
    // Since 7.0 programs of BTF tracepoints can be preempted, and are left out.
    let classic = release() >= (7, 0);
    for place in ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"] {
        let (_, name) = place.split_once('/').unwrap();
        let (hook, mark) = if classic {
            (format!("hook tracepoint/{place} "), "limited")
        } else {
            (format!("hook tp_btf/{name} "), "ok")
        };
        assert!(line(&hook).starts_with(mark), "{text}");
        assert!(line(&hook).ends_with(" attached"), "{text}");
    }
    path_lookup(&text);
    // The session names the same choice.
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let hooks = meta(&recording.session)["hooks"].clone();
    let hooks = hooks.as_array().unwrap();
    assert_eq!(hooks[0]["name"], programs.as_str(), "{hooks:?}");
    for hook in hooks {
        let name = hook["name"].as_str().unwrap();
        assert!(hook["attached"] == true || known(&name), "{hook}");
        assert_eq!(hook["skipped"], 0, "{hook}");
        assert!(text.contains(name), "{name} is not in:\n{text}");
    }
}

/// The function that looks up paths has another name in newer kernels: doctor names the one
/// that is there, and so do the slices.
fn path_lookup(doctor: &str) {
    let hooks_functions = !doctor.lines().any(|line| line.contains("layer vfs "));
    let there: Vec<_> = ["do_filp_open", "do_file_open"]
        .into_iter()
        .filter(|name| has_symbol(name))
        .collect();
    let named = |name: &str| {
        let begins = format!("hook fentry/{name} ");
        doctor.lines().find(|line| line.contains(&begins))
    };
    if !hooks_functions {
        assert_eq!(named("do_filp_open").or(named("do_file_open")), None);
        return;
    }
    let Some(taken) = there.first() else {
        let line = named("do_filp_open").unwrap();
        assert!(line.starts_with("limited"), "{line}");
        return;
    };
    let line = named(taken).unwrap_or_else(|| panic!("no {taken} in:\n{doctor}"));
    assert!(line.starts_with("ok") && line.ends_with(" attached"));
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--layers", "syscall,vfs"])
        .command(["cat", "/etc/passwd"])
        .run()
        .must_exit(0);
    let rows = recording.rows(
        "SELECT name, count(*) AS n FROM slices JOIN syscalls USING (rid)
         WHERE syscall = 'openat' AND path = '/etc/passwd' AND layer = 'vfs' GROUP BY name",
    );
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].text("name"), Some(*taken), "{rows:?}");
}

fn record_with(programs: &str, call: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .env("FATHOM_PROGRAMS", programs)
        .command([workload(call).as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    let hooks = meta(&recording.session)["hooks"].clone();
    let chosen = format!("programs for Linux {programs} and newer");
    assert_eq!(hooks[0]["name"], chosen.as_str());
    recording.complete();
    (scratch, recording)
}

/// The builds for older kernels run on every newer one that does not preempt
/// programs.
#[test]
fn programs_for_older_kernels_record_the_same_calls() {
    need_root!();
    if skips_for_oldest_programs() {
        return;
    }
    if release() >= (7, 0) {
        fathom_tests::skip("this kernel leaves out runs of the programs for older ones");
        return;
    }
    for programs in ["5.17", "6.2"] {
        if programs == "6.2" && expected_programs() == "5.17" {
            continue;
        }
        let (scratch, recording) = record_with(programs, "calls");
        compare(&recording, &logs(&scratch.truth()), Selection::Storage);
    }
}
