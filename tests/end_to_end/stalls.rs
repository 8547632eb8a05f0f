//! Calls that hang: told, and saved because of, while they hang.

use std::fs;
use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::session::{Row, meta, query};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root};

/// Nothing opens a file for writing on a file system that is frozen.
const FROZEN: &str = r#"
    set -e
    truncate -s 64m image
    mkfs.ext4 -q image
    mkdir mounted
    mount -o loop image mounted
    fsfreeze -f mounted
    (sleep 3; fsfreeze -u mounted) &
    echo text > mounted/file
    wait
    umount mounted
"#;

#[test]
fn a_frozen_file_system() {
    need_root!();
    need_program!("mkfs.ext4", "unshare", "mount", "fsfreeze");
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--keep", "1h", "--save-when", "in_flight > 1s"])
        .options(["--save-pause", "1ms"])
        .command(["unshare", "-m", "sh", "-c"])
        .command([format!("cd {}; {FROZEN}", scratch.work().display())])
        .run()
        .must_exit(0);
    recording.complete();
    let told = recording.stderr.lines();
    let told: Vec<&str> = told.filter(|line| line.contains("in flight: ")).collect();
    let [hung] = told
        .iter()
        .filter(|line| line.contains("openat on mounted/file by sh "))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{told:?}");
    };
    if fs::exists("/proc/self/stack").unwrap() {
        assert!(hung.contains("; in the kernel: "), "{hung}");
    }
    let call = &recording.rows(
        "SELECT ts_ns, ts_ns + dur_ns AS end_ns FROM syscalls
         WHERE path LIKE '%/mounted/file' AND syscall = 'openat'",
    )[0];
    let (began, returned) = (call.int("ts_ns").unwrap(), call.int("end_ns").unwrap());
    assert!(returned - began > 2_000_000_000, "{call:?}");
    saved_while_it_hung(&recording, "openat on mounted/file by sh", call);
}

/// The one copy that was saved because of `call` was made while the call hung, of which `row` has
/// the begin and the end.
pub(crate) fn saved_while_it_hung(recording: &Recording, call: &str, row: &Row) {
    let (began, returned) = (row.int("ts_ns").unwrap(), row.int("end_ns").unwrap());
    let copies = fs::read_dir(recording.session.parent().unwrap()).unwrap();
    let copies = copies.map(|entry| entry.unwrap().path());
    let name = recording.session.file_name().unwrap();
    let because = format!("in_flight > 1s: {call}");
    let copies: Vec<_> = copies
        .filter(|path| path.extension().is_some_and(|e| e == "fathom"))
        .filter(|path| path.file_name() != Some(name))
        .filter(|path| {
            let reason = &meta(path)["history"]["saved_because"];
            reason.as_str().unwrap().starts_with(&because)
        })
        .collect();
    let [copy] = &copies[..] else {
        panic!("{copies:?}");
    };
    let last = query(copy, "SELECT max(ts_ns + dur_ns) AS last FROM syscalls")[0]
        .int("last")
        .unwrap();
    assert!(last < returned, "{last} {row:?}");
    let saved = meta(copy)["clock"]["end_monotonic_ns"].as_i64().unwrap();
    assert!(
        began + 1_000_000_000 <= saved && saved < returned,
        "{saved} {row:?}"
    );
}

/// Writes that wait in a ring while their file system is frozen; fio itself goes on.
const FROZEN_RING: &str = r#"
    set -e
    truncate -s 64m image
    mkfs.ext4 -q image
    mkdir mounted
    mount -o loop image mounted
    ring="--name=ring --filename=mounted/data --size=8m --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=4 --rate_iops=200 --time_based --runtime=4 --output=/dev/null"
    fio $ring --create_only=1
    touch laid-out
    fio $ring &
    # On a busy machine it takes a while to begin.
    until [ mounted/data -nt laid-out ]; do sleep 0.1; done
    sleep 0.3
    fsfreeze -f mounted
    sleep 2
    fsfreeze -u mounted
    wait $!
    umount mounted
"#;

#[test]
fn operations_of_io_uring() {
    need_root!();
    need_program!("mkfs.ext4", "unshare", "mount", "fsfreeze", "fio");
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--keep", "1h", "--save-when", "in_flight > 1s"])
        .command(["unshare", "-m", "sh", "-c"])
        .command([format!("cd {}; {FROZEN_RING}", scratch.work().display())])
        .run()
        .must_exit(0);
    recording.complete();
    let told = recording.stderr.lines();
    let told: Vec<&str> = told.filter(|line| line.contains("in flight: ")).collect();
    let writes = told.iter().filter(|line| {
        line.contains("IORING_OP_WRITE on ") && line.contains("/mounted/data by fio ")
    });
    let writes: Vec<_> = writes.collect();
    assert!(!writes.is_empty(), "{told:?}");
    for line in &writes {
        assert!(line.contains(" has not completed for "), "{line}");
    }
    // As many as hung, each once.
    let hung = recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall LIKE 'IORING_OP_WRITE%' AND dur_ns > 1300000000",
    );
    let all = recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall LIKE 'IORING_OP_WRITE%' AND dur_ns > 1000000000",
    );
    let told = writes.len() as i64;
    assert!((hung..=all).contains(&told), "{hung} {told} {all}");
}

/// Mounts a file system at `argv[1]` whose server does not answer for three seconds, and looks a
/// file up in it.
const SILENT: &str = r#"
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40755,user_id=0,group_id=0"
if libc.mount(b"silent", sys.argv[1].encode(), b"fuse", 0, options.encode()):
    raise OSError(ctypes.get_errno(), "mount")
client = os.fork()
if not client:
    os.close(fuse)
    try:
        os.stat(sys.argv[1] + "/file")
    except OSError:
        pass
    os._exit(0)
unique = struct.unpack_from("<IIQ", os.read(fuse, 1 << 20))[2]
answer = struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 65536, 1, 16, 0, 0, *[0] * 7)
os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
time.sleep(3)
os.close(fuse)
os.waitpid(client, 0)
"#;

#[test]
fn a_fuse_server_that_does_not_answer() {
    need_root!();
    need_program!("unshare", "python3");
    if !fs::exists("/dev/fuse").unwrap() {
        return fathom_tests::skip("this kernel has no FUSE");
    }
    let scratch = Scratch::new();
    let mounted = scratch.root().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let recording = Record::new(&scratch)
        .options(["--keep", "1h", "--save-when", "in_flight > 500ms"])
        .by(["unshare", "-m"])
        .command(["python3", "-c", SILENT])
        .command([&mounted])
        .spawn();
    // Every program of the machine, of which some may hang, too.
    let shown = Command::new(fathom())
        .args(["top", "--format", "json", "--interval", "0.4", "-n", "12"])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let recording = recording.wait().must_exit(0);
    recording.complete();
    let of_file = format!("on {}/file by python3 ", mounted.display());
    let mut told = recording.stderr.lines();
    assert!(told.any(|line| line.contains(&of_file)), "{told:?}");
    let call = &recording.rows(
        "SELECT pid, tid, syscall, dur_ns FROM syscalls
         WHERE path LIKE '%/mounted/file' AND dur_ns > 1e9",
    )[0];
    let frames = String::from_utf8(shown.stdout).unwrap();
    let frames = frames.lines().map(|line| {
        let frame: serde_json::Value = serde_json::from_str(line).unwrap();
        let stalled = frame["stalled"].as_array().unwrap().clone();
        let text = |stall: &serde_json::Value| stall["text"].as_str().unwrap().to_owned();
        stalled
            .into_iter()
            .find(|stall| text(stall).contains(&of_file))
    });
    let frames: Vec<_> = frames.collect();
    let stalls: Vec<_> = frames.iter().flatten().collect();
    // Shown while it hangs, from its second second on, and not afterwards.
    assert!(!stalls.is_empty(), "{frames:?}");
    assert!(frames.last().is_some_and(Option::is_none), "{frames:?}");
    for stall in &stalls {
        assert_eq!(stall["pid"], call.int("pid").unwrap());
        assert_eq!(stall["tid"], call.int("tid").unwrap());
        assert_eq!(stall["call"], call.text("syscall").unwrap());
    }
    let times: Vec<_> = stalls
        .iter()
        .map(|stall| stall["elapsed_ns"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let in_range = |time: &i64| (1_000_000_000..call.int("dur_ns").unwrap()).contains(time);
    assert!(times.iter().all(in_range), "{times:?} {call:?}");
}
