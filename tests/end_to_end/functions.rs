//! Functions of the kernel that become parts of calls (`--function`).

use fathom_tests::{Record, Recording, Scratch, need_root, skip};

/// 50 writes and one fsync.
const WORK: &str = r#"cd "$1" && dd if=/dev/zero of=data bs=1000 count=50 conv=fsync status=none"#;

fn record(scratch: &Scratch, functions: &str) -> Recording {
    let work = scratch.work().display().to_string();
    Record::new(scratch)
        .options(["--function", functions])
        .command(["sh", "-c", WORK, "sh", &work])
        .run()
}

/// Why the functions of a recording are not there; `None` if they are.
fn missing(recording: &Recording) -> Option<String> {
    let meta = fathom_tests::session::meta(&recording.session);
    let hooks = meta["hooks"].as_array().unwrap();
    let of = |name: &str| hooks.iter().find(|hook| hook["name"] == name);
    let hook = of("functions")
        .or_else(|| of("function ksys_write"))
        .unwrap();
    (hook["attached"] == false).then(|| hook["note"].as_str().unwrap().to_owned())
}

#[test]
fn each_visit_of_a_named_function_is_a_slice() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "ksys_write,ksys_read:block").must_exit(0);
    recording.complete();
    let slices = "SELECT count(*) FROM slices WHERE name IN ('ksys_write', 'ksys_read')";
    if let Some(why) = missing(&recording) {
        let said = format!("fathom: --function: function ksys_write: {why}");
        assert!(recording.stderr.contains(&said), "{}", recording.stderr);
        assert_eq!(recording.number(slices), 0);
        skip(&why);
        return;
    }
    let rows = recording.rows(
        "SELECT syscall, layer, name, count(*) AS visits, count(DISTINCT rid) AS calls,
             count(*) FILTER (slices.ts_ns >= syscalls.ts_ns
                 AND slices.dur_ns <= syscalls.dur_ns AND depth = 1) AS inside
         FROM slices JOIN syscalls USING (rid)
         WHERE name IN ('ksys_write', 'ksys_read') GROUP BY ALL ORDER BY syscall",
    );
    let found: Vec<String> = rows
        .iter()
        .map(|row| {
            let texts = ["syscall", "layer", "name"].map(|name| row.text(name).unwrap());
            let numbers = ["visits", "calls", "inside"].map(|name| row.int(name).unwrap());
            format!("{texts:?} {numbers:?}")
        })
        .collect();
    let writes = "SELECT count(*) FROM syscalls WHERE syscall = 'write'";
    let writes = recording.number(writes);
    assert!(writes >= 50);
    let reads = "SELECT count(*) FROM syscalls WHERE syscall = 'read'";
    let reads = recording.number(reads);
    assert_eq!(
        found,
        [
            format!(r#"["read", "block", "ksys_read"] [{reads}, {reads}, {reads}]"#),
            format!(r#"["write", "fs", "ksys_write"] [{writes}, {writes}, {writes}]"#),
        ]
    );
    // The parts of each call still add up to its duration.
    let wrong = recording.number(
        "SELECT count(*) FROM (SELECT rid, sum(self_ns) AS parts FROM slices GROUP BY rid)
         JOIN syscalls USING (rid) WHERE parts <> dur_ns",
    );
    assert_eq!(wrong, 0);
}

#[test]
fn functions_that_do_not_exist_are_refused() {
    need_root!();
    let scratch = Scratch::new();
    for (functions, said) in [
        ("a b", "is no name of a function"),
        ("vfs_read:sched", "is no layer of the kernel"),
        ("vfs_read:vfs", "layer vfs is not recorded"),
        ("x,x", "named twice"),
    ] {
        let recording = record(&scratch, functions).must_exit(2);
        assert!(recording.stderr.contains(said), "{}", recording.stderr);
    }
    let recording = record(&scratch, "no_such_function_of_the_kernel");
    match recording
        .stderr
        .contains("does not allow programs to attach")
    {
        true => skip("this kernel does not allow programs to attach to functions"),
        false => {
            let recording = recording.must_exit(2);
            let said = "neither the kernel nor a loaded module has function no_such_function";
            assert!(recording.stderr.contains(said), "{}", recording.stderr);
        }
    }
}
