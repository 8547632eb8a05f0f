//! A disk that fills up: the recording goes on, and what is lost is counted.
//! Needs root, for mounts of limited size.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_model::meta::{State, Totals};
use fathom_model::tables::LOSSES;
use fathom_session::{Session, SessionWriter, WriterOptions};

/// A mounted file system, unmounted whatever happens.
struct Mount {
    at: PathBuf,
    _temp: tempfile::TempDir,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{program}: {said}"))
    }
}

fn mount(kind: &str) -> Result<Mount, String> {
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let at = temp.path().join("mnt");
    fs::create_dir(&at).map_err(|e| e.to_string())?;
    let to = at.to_str().ok_or("path")?;
    if kind == "tmpfs" {
        run("mount", &["-t", "tmpfs", "-o", "size=6m", "tmpfs", to])?;
    } else {
        let image = temp.path().join("image");
        let image = image.to_str().ok_or("path")?;
        run("truncate", &["-s", "8M", image])?;
        run("mkfs.ext4", &["-q", "-m", "0", image])?;
        run("mount", &["-o", "loop", image, to])?;
    }
    Ok(Mount { at, _temp: temp })
}

fn number(row: &read::Row, column: usize) -> i64 {
    match row[column] {
        read::Value::Int(n) => n,
        ref other => panic!("{other:?}"),
    }
}

fn losses_are_exact(dir: &Path) {
    // Parts that other things than the compactor hold on to stay small.
    let options = WriterOptions {
        part_rows: 20_000,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(12);
    let (mut rows, mut bytes, mut dur_ns, mut errors) = (0, 0, 0, 0);
    let mut add = |batch: &fathom_model::Batch| {
        for row in read::expected(batch) {
            rows += 1;
            dur_ns += number(&row, 2);
            errors += i64::from(row[10] != read::Value::Null);
            bytes += if row[15] == read::Value::Null {
                0
            } else {
                number(&row, 15)
            };
        }
    };
    let filler = dir.with_extension("filler");
    for i in 0..60 {
        let batch = workload.batch(20_000);
        add(&batch);
        writer.append(batch).unwrap();
        if i == 20 {
            // Nothing is left, also for small parts.
            while writer.stats().queue_bytes > 0 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let _ = fs::write(&filler, vec![1; 16 << 20]);
        }
        if i == 50 {
            // Room comes back: so do the rows.
            while writer.stats().queue_bytes > 0 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            fs::remove_file(&filler).unwrap();
        }
    }
    let mut meta = fathom_testkit::meta();
    meta.totals = Totals {
        seen: 1_200_000,
        ..Totals::default()
    };
    let done = writer.finish(meta).unwrap();
    assert!(done.last_error.is_some());
    let session = Session::open(dir).unwrap();
    assert_eq!(session.meta().state, State::Complete);
    let totals = session.meta().totals.clone();
    assert!(
        totals.lost >= 20_000 && totals.stored >= 20_000,
        "{totals:?}"
    );
    assert_eq!(totals.seen, totals.stored + totals.lost);
    assert_eq!(session.rows("syscalls"), totals.stored);
    assert_eq!(session.problems(), &[] as &[String]);

    let stored = read::table(&session, "syscalls");
    // Where there was no room to merge parts, the last row with a key counts.
    let key = |row: &read::Row| {
        let columns = LOSSES.columns.iter().enumerate();
        let values = columns.filter(|(_, c)| LOSSES.key.contains(&c.name));
        let values: Vec<_> = values.map(|(i, _)| format!("{:?}", row[i])).collect();
        values
    };
    let versions = read::table(&session, "losses");
    let latest: HashMap<_, _> = versions.into_iter().map(|row| (key(&row), row)).collect();
    let lost: Vec<read::Row> = latest.into_values().collect();
    let sum = |column: usize| lost.iter().map(|row| number(row, column)).sum::<i64>();
    assert_eq!(sum(4) as u64, totals.lost);
    let stored_bytes: i64 = stored
        .iter()
        .filter(|row| row[15] != read::Value::Null)
        .map(|row| number(row, 15))
        .sum();
    let stored_dur: i64 = stored.iter().map(|row| number(row, 2)).sum();
    let stored_errors = stored
        .iter()
        .filter(|row| row[10] != read::Value::Null)
        .count() as i64;
    assert_eq!(stored.len() as i64 + sum(4), rows);
    assert_eq!(stored_bytes + sum(5), bytes);
    assert_eq!(stored_errors + sum(10), errors);
    assert_eq!(stored_dur + sum(11), dur_ns);
    for row in &lost {
        assert_eq!(row[0], read::Value::Text("write".into()));
        let read::Value::List(hist) = &row[13] else {
            panic!("{row:?}")
        };
        assert_eq!(hist.iter().sum::<i64>(), number(row, 4));
        assert!(number(row, 6) <= number(row, 7) && number(row, 12) <= number(row, 11));
    }
}

#[test]
fn losses_on_a_full_tmpfs_are_exact() {
    match mount("tmpfs") {
        Ok(mount) => losses_are_exact(&mount.at.join("s.fathom")),
        Err(reason) => eprintln!("skipped: {reason}"),
    }
}

#[test]
fn losses_on_a_full_ext4_are_exact() {
    match mount("ext4") {
        Ok(mount) => losses_are_exact(&mount.at.join("s.fathom")),
        Err(reason) => eprintln!("skipped: {reason}"),
    }
}
