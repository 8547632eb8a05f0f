//! Operations of io_uring and AIO obey the filters, measured against what the
//! workloads logged.

use std::collections::BTreeMap;

use fathom_tests::truth::{Call, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

/// Name and result, and how often.
type Counted = BTreeMap<(String, i64), usize>;

/// Records a workload; returns the operations that it logged, too.
fn record(program: &str, options: &[&str]) -> (Scratch, Recording, Vec<Call>) {
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    let options: Vec<String> = options.iter().map(|o| o.replace("WORK", &work)).collect();
    let recording = Record::new(&scratch)
        .options(&options)
        .command([workload(program).as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    assert_eq!(recording.balanced().lost, 0);
    let logged = logs(&scratch.truth())
        .into_iter()
        .flat_map(|log| log.calls)
        .filter(|call| call.syscall.starts_with("IO"))
        .collect();
    (scratch, recording, logged)
}

fn stored(recording: &Recording, condition: &str) -> Counted {
    let sql = format!(
        "SELECT syscall, ret, count(*) AS n FROM syscalls
         WHERE api IN ('io_uring', 'aio') AND ret IS NOT NULL AND {condition} GROUP BY ALL"
    );
    let rows = recording.rows(&sql);
    rows.iter()
        .map(|row| {
            let name = row.text("syscall").unwrap().to_owned();
            let key = (name, row.int("ret").unwrap());
            (key, row.int("n").unwrap() as usize)
        })
        .collect()
}

fn counted<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Counted {
    let mut counted = Counted::new();
    for call in calls {
        *counted.entry((call.syscall.clone(), call.ret)).or_default() += 1;
    }
    counted
}

/// Every operation of `logged` is stored; the workloads make some without a log.
fn holds(stored: &Counted, logged: &Counted) {
    for (key, n) in logged {
        assert!(stored.get(key) >= Some(n), "{key:?}: {n} in {stored:?}");
    }
}

fn path(call: &Call) -> Option<String> {
    let (_, path) = call.texts.iter().find(|(name, _)| *name == "path")?;
    Some(String::from_utf8_lossy(path).into_owned())
}

#[test]
fn only_operations_that_fail() {
    need_root!();
    for program in ["uring", "aio"] {
        let options = ["--syscalls", "all", "--errors-only"];
        let (_scratch, recording, logged) = record(program, &options);
        let failed = counted(logged.iter().filter(|call| call.ret < 0));
        assert!(!failed.is_empty());
        assert_eq!(stored(&recording, "true"), failed, "{program}");
    }
}

#[test]
fn only_slow_operations() {
    need_root!();
    for program in ["uring", "aio"] {
        let options = ["--syscalls", "all", "--min-duration", "3600s"];
        let (_scratch, recording, _) = record(program, &options);
        assert_eq!(stored(&recording, "true"), Counted::new(), "{program}");
        let options = ["--syscalls", "all", "--min-duration", "1ns"];
        let (_scratch, recording, logged) = record(program, &options);
        holds(&stored(&recording, "true"), &counted(&logged));
    }
}

/// Of one file that many operations use, and of all others.
#[test]
fn operations_on_one_file() {
    need_root!();
    for program in ["uring", "aio"] {
        let (scratch, _, logged) = record(program, &[]);
        let work = scratch.work().display().to_string();
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        for path in logged.iter().filter_map(path) {
            if let Some(name) = path.strip_prefix(&format!("{work}/")) {
                *uses.entry(name.to_owned()).or_default() += 1;
            }
        }
        let (name, _) = uses.into_iter().max_by_key(|(_, n)| *n).unwrap();
        let with = format!("WORK/{name}");
        let without = format!("!WORK/{name}");

        let (scratch, recording, logged) = record(program, &["--path", &with]);
        let wanted = format!("{}/{name}", scratch.work().display());
        let on_it = counted(
            logged
                .iter()
                .filter(|call| path(call).as_deref() == Some(&wanted)),
        );
        assert!(!on_it.is_empty());
        holds(&stored(&recording, &format!("path = '{wanted}'")), &on_it);
        // What has another path was given this one, or has it as a second file.
        let others = format!(
            "path <> '{wanted}' AND path2 IS DISTINCT FROM '{wanted}' AND path NOT LIKE '{wanted}/%'"
        );
        assert_eq!(stored(&recording, &others), Counted::new(), "{program}");

        let (scratch, recording, logged) = record(program, &["--path", &without]);
        let left = format!("{}/{name}", scratch.work().display());
        let on_it = format!("path = '{left}' AND path2 IS NULL");
        assert_eq!(stored(&recording, &on_it), Counted::new(), "{program}");
        let elsewhere = logged.iter().filter(|call| {
            path(call).is_some_and(|path| path.starts_with('/') && !path.starts_with(&left))
        });
        holds(
            &stored(&recording, "path IS NOT NULL"),
            &counted(elsewhere.filter(|call| call.storage)),
        );
    }
}

/// Tasks that do not pass make no operations.
#[test]
fn operations_of_other_tasks() {
    need_root!();
    for program in ["uring", "aio"] {
        let (_scratch, recording, logged) = record(program, &["--comm", "nobody"]);
        assert!(!logged.is_empty());
        assert_eq!(stored(&recording, "true"), Counted::new(), "{program}");
    }
}

#[test]
fn operations_on_types_of_files() {
    need_root!();
    for program in ["uring", "aio"] {
        let (_scratch, recording, _) = record(program, &["--file-type", "!regular"]);
        let regular = "file_id IN (SELECT file_id FROM files WHERE file_type = 'regular')
             AND path2 IS NULL";
        assert_eq!(stored(&recording, regular), Counted::new(), "{program}");
        let (_scratch, recording, logged) = record(program, &["--file-type", "regular"]);
        let other = "file_id IN (SELECT file_id FROM files WHERE file_type <> 'regular')
             AND path2 IS NULL AND syscall NOT LIKE '%STATX' AND syscall NOT LIKE '%SPLICE'";
        assert_eq!(stored(&recording, other), Counted::new(), "{program}");
        assert!(!stored(&recording, "true").is_empty() && !logged.is_empty());
    }
}
