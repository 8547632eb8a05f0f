//! Sessions whose names mean something to a shell, to DuckDB or to the page.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use fathom_tests::Scratch;
use fathom_tests::page::Page;

use crate::ownership::{LOG, ended, errors, imported, must, plain};

/// DuckDB takes paths as patterns of text.
#[test]
#[ignore = "long"]
fn sessions_have_any_name() {
    let scratch = Scratch::new();
    let root = scratch.root().join("sessions");
    fs::create_dir(&root).unwrap();
    // What the patterns would find.
    let other = root.join("z.fathom");
    let longer = format!(
        "{LOG}{}",
        LOG.replace("+++ exited with 0 +++\n", "close(9) = 0\n")
    );
    let others = scratch.root().join("other.log");
    fs::write(&others, longer).unwrap();
    must(ended(
        plain().arg("import").arg(&others).arg("-o").arg(&other),
    ));
    let names: [&[u8]; 9] = [
        b"[z].fathom",
        b"?.fathom",
        b"*.fathom",
        b"[a-z]*.fathom",
        b"a\\b.fathom",
        b"\xff\xfe.fathom",
        b"~.fathom",
        b"12:00.fathom",
        b"it's \"new\"\n.fathom",
    ];
    for name in names {
        let name = OsStr::from_bytes(name);
        let session = root.join(name);
        imported(&scratch, plain(), &session);
        // By its name alone, too, as a user in that directory gives it.
        for named in [session.as_os_str(), name] {
            let count = ended(plain().current_dir(&root).arg("query").arg(named).args([
                "SELECT count(*) AS n FROM syscalls",
                "--format",
                "csv",
            ]));
            assert_eq!(must(count), "n\n3\n", "{name:?}");
        }
        for arguments in [
            &["report"][..],
            &["diagnose"],
            &["zoom", "--rebuild"],
            &["zoom", "--events"],
            &["zoom", "--by", "layer"],
            &["repair"],
            &["export", "--format", "csv"],
            &["report", "--sizes"],
        ] {
            let mut command = plain();
            command
                .current_dir(&root)
                .arg(arguments[0])
                .arg(name)
                .args(&arguments[1..]);
            let output = ended(&mut command);
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{name:?} {arguments:?}: {}",
                errors(&output)
            );
        }
        let diff = ended(plain().current_dir(&root).arg("diff").arg(name).arg(name));
        assert_eq!(diff.status.code(), Some(0), "{name:?}: {}", errors(&diff));
    }
    let page = Page::serve(&root);
    let list = page.json("/sessions");
    let listed = list.as_array().unwrap();
    assert_eq!(listed.len(), names.len() + 1, "{list}");
    for session in listed {
        let id = session["id"].as_str().unwrap();
        let escaped: String = id.bytes().map(|b| format!("%{b:02X}")).collect();
        let described = page.json(&format!("/sessions/{escaped}"));
        let stored = if id == "z.fathom" { 7 } else { 3 };
        assert_eq!(described["stored"], stored, "{id}");
    }
}
