#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

const RULE: &str = "-- Why it matters.\n--\n-- title: {comm} opens {path} {opens} times\n\
                    -- severity: low\n-- advice: Keep it open.\n\
                    SELECT comm, path, count(*) AS opens FROM syscalls GROUP BY ALL;\n";

/// A directory with these files, that only the user can write.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["rules", "views"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        mode(&dir.path().join(folder), 0o755);
    }
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
        mode(&dir.path().join(name), 0o644);
    }
    dir
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The message with which a directory is refused.
fn refusal(dir: &Path) -> String {
    Extensions::load(dir).unwrap_err().to_string()
}

fn of(files: &[(&str, &str)]) -> Result<Extensions, ExtensionError> {
    Extensions::load(directory(files).path())
}

#[test]
fn rules_and_views_are_loaded() {
    let loaded = of(&[
        ("views/b_calls.sql", "SELECT * FROM syscalls"),
        (
            "views/a_files.sql",
            "-- of b_calls\nSELECT path FROM b_calls",
        ),
        ("rules/my-rule.sql", RULE),
        ("rules/.my-rule.sql.swp", "unfinished"),
        ("rules/README.md", "A list of these rules."),
    ])
    .unwrap();
    let names: Vec<_> = loaded.views().iter().map(|view| &*view.name).collect();
    assert_eq!(
        names,
        ["b_calls", "a_files"],
        "a view comes after those it uses"
    );
    let [rule] = &loaded.rules[..] else {
        panic!("{:?}", loaded.rules);
    };
    assert_eq!(rule.rule.id, "my-rule");
    assert!(
        rule.sql.starts_with("SELECT comm") && rule.sql.ends_with("ALL"),
        "{}",
        rule.sql
    );
    assert_eq!(rule.severity, Some(fathom_diagnose::Severity::Low));
}

#[test]
fn a_directory_without_folders_has_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Extensions::load(dir.path()).unwrap().views().is_empty());
    let missing = refusal(&dir.path().join("nowhere"));
    assert!(
        missing.contains("nowhere") && missing.contains("No such file"),
        "{missing}"
    );
}

#[test]
fn what_others_can_write_is_refused() {
    for name in ["", "rules", "rules/my-rule.sql", "views", "views/mine.sql"] {
        let dir = directory(&[("rules/my-rule.sql", RULE), ("views/mine.sql", "SELECT 1")]);
        assert!(Extensions::load(dir.path()).is_ok());
        let path = dir.path().join(name);
        for writable in [0o020, 0o002] {
            mode(&path, 0o755 | writable);
            let text = refusal(dir.path());
            assert!(text.contains("other users can write it"), "{name}: {text}");
            assert!(text.contains("chmod go-w"), "{name}: {text}");
        }
    }
    // Another user could put another directory in its place.
    let dir = directory(&[]);
    let inner = dir.path().join("rules");
    mode(dir.path(), 0o777);
    assert!(refusal(&inner).contains("other users can write it"));
    mode(dir.path(), 0o1777);
    assert!(Extensions::load(&inner).is_ok());
}

#[test]
fn links_are_followed_to_the_directory_and_not_in_it() {
    let real = directory(&[("rules/my-rule.sql", RULE)]);
    let outside = tempfile::tempdir().unwrap();
    let link = outside.path().join("link");
    symlink(real.path(), &link).unwrap();
    assert_eq!(Extensions::load(&link).unwrap().rules.len(), 1);

    let dir = directory(&[]);
    let file = dir.path().join("rules/other.sql");
    symlink(real.path().join("rules/my-rule.sql"), &file).unwrap();
    assert!(refusal(dir.path()).contains("symbolic link"));
    fs::remove_file(&file).unwrap();
    fs::remove_dir(dir.path().join("rules")).unwrap();
    symlink(real.path().join("rules"), dir.path().join("rules")).unwrap();
    assert!(refusal(dir.path()).contains("symbolic link"));
}

#[test]
fn only_files_are_read_and_none_is_waited_for() {
    let dir = directory(&[]);
    let pipe = dir.path().join("rules/pipe.sql");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o644.into()).unwrap();
    assert!(refusal(dir.path()).contains("not a regular file"));
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, "x".repeat(300 << 10)).unwrap();
    mode(&pipe, 0o644);
    assert!(refusal(dir.path()).contains("more than 256 KiB"));
}

#[test]
fn names_of_fathom_are_refused() {
    for (file, says) in [
        (
            "views/by_file.sql",
            "view by_file has the name of fathom's own by_file",
        ),
        ("views/syscalls.sql", "view syscalls has the name"),
        ("views/My View.sql", "the name of a view"),
        ("views/1st.sql", "the name of a view"),
        (
            "rules/sync-storm.sql",
            "rule sync-storm has the name of fathom's own",
        ),
        ("rules/reopen.sql", "rule reopen has the name"),
        ("rules/My.sql", "the name of a rule"),
    ] {
        let text = of(&[(file, RULE)]).unwrap_err().to_string();
        assert!(text.contains(file) && text.contains(says), "{file}: {text}");
    }
}

#[test]
fn views_in_a_circle_are_refused() {
    let circle = [
        ("views/one.sql", "SELECT * FROM two"),
        ("views/two.sql", "SELECT * FROM one"),
    ];
    let text = of(&circle).unwrap_err().to_string();
    assert!(text.contains("in a circle: one, two"), "{text}");
}

#[test]
fn findings_are_read_by_views_and_not_by_rules() {
    let worst = ("views/worst.sql", "SELECT title FROM findings");
    let of_worst = ("views/of_worst.sql", "FROM worst");
    let loaded = of(&[
        worst,
        of_worst,
        ("views/mine.sql", "-- of findings\nSELECT 1"),
    ])
    .unwrap();
    for (sql, reads) in [
        ("FROM findings", true),
        ("FROM worst", true),
        ("FROM OF_WORST", true),
        ("FROM mine", false),
    ] {
        assert_eq!(loaded.names_findings(sql), reads, "{sql}");
    }
    for table in ["findings", "worst", "of_worst"] {
        let rule = format!("-- title: a\n-- advice: findings\nSELECT 1 FROM {table}");
        let text = of(&[worst, of_worst, ("rules/my-rule.sql", &rule)]).unwrap_err();
        assert!(
            text.to_string().contains("cannot read table findings"),
            "{text}"
        );
    }
}

#[test]
fn heads_say_what_is_wrong() {
    let sql = "SELECT 1 AS a";
    for (head, says) in [
        ("", "no advice"),
        ("-- advice: a\n", "no title"),
        (
            "-- title: a\n-- advice: a\n-- severety: low\n",
            "severety is not known",
        ),
        (
            "-- title: a\n-- advice: a\n-- severity: worst\n",
            "severity worst is not known",
        ),
        (
            "-- title: a\n-- advice: a\n-- group: other\n",
            "group other is not known",
        ),
        ("-- title: a\n-- title: b\n-- advice: a\n", "title twice"),
        ("-- title: {\n-- advice: a\n", "no placeholder"),
        ("-- title: {a b}\n-- advice: a\n", "no placeholder"),
        ("-- title: a}\n-- advice: a\n", "a single }"),
    ] {
        let text = of(&[("rules/r.sql", &format!("{head}{sql}"))]).unwrap_err();
        assert!(text.to_string().contains(says), "{head}: {text}");
    }
    let empty = of(&[("rules/r.sql", "-- title: a\n-- advice: a\n")]).unwrap_err();
    assert!(empty.to_string().contains("no SQL"), "{empty}");
}

/// The files of examples/extensions.
#[test]
fn the_examples_are_loaded() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions");
    let read = |folder: &str| {
        let entries = fs::read_dir(examples.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<SqlFile> = paths
            .map(|path| SqlFile {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                text: fs::read_to_string(&path).unwrap(),
                path,
            })
            .collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files
    };
    let loaded = Extensions::of(read("views"), read("rules")).unwrap();
    assert!(!loaded.views.is_empty() && loaded.rules.len() > 1);
}
