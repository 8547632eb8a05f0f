//! `python -m fathom.otf2`: traces that OTF2's own reader reads, against the rows of their sessions.

use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Scratch, need_program, need_python, need_root, skip, tools, workload};

use crate::kernel::release;

/// Names with characters that terminals and formats give a meaning, several threads, and a child.
const HOSTILE: &str = r#"
import os, sys, threading
os.chdir(sys.argv[1])
names = [b"a\x1b[31mred\nline", b"quote'\"`$(x)", "\u00fc \U0001f600".encode(), b"bad\xff\xfe", b"<b>&amp;", b"x" * 250]
def work(thread):
    for name in names:
        fd = os.open(name + b"%d" % thread, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        os.write(fd, b"z" * (100 + thread)); os.pwrite(fd, b"y" * 10, 5000); os.fsync(fd)
        copy = os.dup(fd); os.pread(fd, 50, 0); os.close(fd); os.close(copy)
        try: os.open(b"/nonexistent/" + name, 0)
        except OSError: pass
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
child = os.fork()
work(9)
if child: os.wait()
"#;

#[test]
fn traces_have_the_rows_of_their_sessions() {
    need_root!();
    need_program!("otf2-print");
    let python = need_python!();
    if release() < (5, 17) {
        skip("this kernel gives programs no cookies");
        return;
    }
    let found = Command::new("/usr/bin/python3")
        .args(["-c", "import otf2"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        skip("python3-otf2 is not installed");
        return;
    }
    let scratch = Scratch::new();
    let (budget, streams) = (workload("budget"), workload("library"));
    let library = ["--library", "stdio", "--library-budget"];
    let record = |name, options: &[&str]| Record::named(&scratch, name).options(options);
    let with = |limit| [&library[..], &[limit]].concat();
    let sessions = [
        record("counted", &with("1000")).command([budget.as_os_str(), scratch.work().as_os_str()]),
        record("whole", &with("off")).command([streams.as_os_str(), scratch.work().as_os_str()]),
        record("hostile", &[]).command([
            "/usr/bin/python3".as_ref(),
            "-c".as_ref(),
            HOSTILE.as_ref(),
            scratch.work().as_os_str(),
        ]),
        record("aio", &[]).command([workload("aio").as_os_str(), scratch.work().as_os_str()]),
    ]
    .map(|record| record.run().must_exit(0).session);
    let traces = scratch.root().join("traces");
    std::fs::create_dir(&traces).unwrap();
    let project = tools::project();
    let output = Command::new(python)
        .arg(project.join("tests/python/otf2_check.py"))
        .arg(&traces)
        .args(&sessions)
        .env("PYTHONPATH", project.join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FATHOM", fathom())
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(
        text.matches(" operations agree").count(),
        sessions.len(),
        "{text}"
    );
    assert!(errors.contains("library calls counted"), "{errors}");
}
