use crate::finding::Severity;
use crate::scenario::{Scenario, fires, silent};

fn deliver(s: &mut Scenario, from: &str, to: &str, sync: bool) {
    let fd = s.open(from, "O_WRONLY|O_CREAT|O_EXCL");
    s.write(fd, 3000);
    if sync {
        s.fsync(fd);
    }
    s.close(fd);
    s.rename(from, to);
}

#[test]
fn fires_on_messages_that_are_moved_where_others_look() {
    let mut s = Scenario::new();
    for i in 0..40 {
        deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), false);
    }
    let found = fires("publish-unsynced", s);
    assert_eq!((found.len(), found[0].severity), (1, Severity::Low));
    assert_eq!(
        found[0].title,
        "program publishes 40 files in /mail/new and makes none of them durable, before or after"
    );
    assert_eq!(found[0].evidence[0].value, 40.0);
}

#[test]
fn fires_on_links_to_what_is_removed_then() {
    let mut s = Scenario::new();
    for i in 0..10 {
        let (from, to) = (format!("/mail/tmp/{i}"), format!("/mail/new/{i}"));
        let fd = s.open(&from, "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.close(fd);
        s.link(&from, &to);
        s.unlink(&from);
    }
    fires("publish-unsynced", s);
}

/// Packs 30 files, as xz does.
fn packs(length: i64, read: i64, mut new: impl FnMut(&mut Scenario, i32)) -> Scenario {
    let mut s = Scenario::new();
    for i in 0..30 {
        let old = format!("/log/{i}.log");
        let from = s.open_existing(&old, "O_RDONLY", length);
        s.read(from, read);
        let to = s.open(&format!("{old}.xz"), "O_WRONLY|O_CREAT|O_EXCL");
        s.write(to, 10_000);
        new(&mut s, to);
        s.close(to);
        s.unlink(&old);
    }
    s
}

#[test]
fn fires_when_originals_are_gone_before_the_new_files_are_durable() {
    let found = fires("publish-unsynced", packs(50_000, 50_000, |_, _| {}));
    assert_eq!((found.len(), found[0].severity), (1, Severity::Medium));
    assert_eq!(
        found[0].title,
        "program removes 30 files as soon as it has written the new ones in /log, which it never makes durable: \
         after a crash both can be gone"
    );
    silent("publish-unsynced", packs(50_000, 50_000, |s, fd| s.fsync(fd)));
    // Only the beginning of the old file is known to it.
    silent("publish-unsynced", packs(50_000, 1000, |_, _| {}));
    // Results of numbered jobs.
    let mut s = Scenario::new();
    for i in 1..30 {
        let old = format!("/jobs/{i}");
        let from = s.open_existing(&old, "O_RDONLY", 50_000);
        s.read(from, 50_000);
        let to = s.open(&format!("{old}0"), "O_WRONLY|O_CREAT|O_EXCL");
        s.write(to, 10_000);
        s.close(to);
        s.unlink(&old);
    }
    silent("publish-unsynced", s);
    // Files that were never durable themselves.
    let mut s = Scenario::new();
    for i in 0..30 {
        let old = format!("/log/{i}.log");
        let fd = s.open(&old, "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 50_000);
        s.close(fd);
        let from = s.open_existing(&old, "O_RDONLY", 50_000);
        s.read(from, 50_000);
        let to = s.open(&format!("{old}.xz"), "O_WRONLY|O_CREAT|O_EXCL");
        s.write(to, 10_000);
        s.close(to);
        s.unlink(&old);
    }
    silent("publish-unsynced", s);
}

#[test]
fn silent_when_synced_before_or_after() {
    let mut s = Scenario::new();
    for i in 0..40 {
        deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), true);
    }
    silent("publish-unsynced", s);
    let mut s = Scenario::new();
    for i in 0..40 {
        deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), false);
    }
    s.sync();
    silent("publish-unsynced", s);
}

#[test]
fn temporary_names_count_for_programs_that_sync_others() {
    let save = |syncs: bool, target: &str| {
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("{target}/.{i}.Xb1"), &format!("{target}/{i}"), false);
        }
        if syncs {
            let fd = s.open("/data/journal", "O_WRONLY|O_CREAT");
            s.write(fd, 100);
            s.fsync(fd);
        }
        s
    };
    fires("publish-unsynced", save(true, "/data/parts"));
    silent("publish-unsynced", save(false, "/copy"));
    silent("publish-unsynced", save(true, "/data/cache"));
}

/// Tables that a list names, which is made durable with their directory.
fn tables(tables_too: bool, list: bool) -> Scenario {
    let mut s = Scenario::new();
    let dir = s.open_directory("/db");
    let manifest = s.open("/db/MANIFEST", "O_WRONLY|O_CREAT|O_APPEND");
    for i in 0..5 {
        let fd = s.open(&format!("/db/{i}.sst"), "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        if tables_too {
            s.fsync(fd);
        }
        s.close(fd);
        if list {
            s.write(manifest, 20);
            s.fsync(manifest);
            s.fsync(dir);
        }
    }
    if !list {
        s.write(manifest, 20);
        s.fsync(manifest);
        s.fsync(dir);
    }
    s
}

#[test]
fn a_directory_that_is_durable_publishes_its_files() {
    let found = fires("publish-unsynced", tables(false, true));
    // The first time may be for the list.
    assert_eq!(found[0].evidence[0].value, 4.0);
    silent("publish-unsynced", tables(true, true));
    // A journal that comes and goes is what the directory is made durable for.
    let mut s = Scenario::new();
    let dir = s.open_directory("/db");
    for i in 0..5 {
        let fd = s.open(&format!("/db/{i}.csv"), "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        s.close(fd);
        let journal = s.open("/db/db-journal", "O_RDWR|O_CREAT");
        s.write(journal, 512);
        s.fsync(journal);
        s.fsync(dir);
        s.close(journal);
        s.unlink("/db/db-journal");
    }
    silent("publish-unsynced", s);
    // Once may be for another file.
    silent("publish-unsynced", tables(false, false));
}

#[test]
fn few_files_count_in_one_directory_for_programs_that_sync_others() {
    let save = |syncs: bool, places: i32| {
        let mut s = Scenario::new();
        for i in 0..4 {
            let place = format!("/data/{}", i % places);
            deliver(&mut s, &format!("{place}/{i}.tmp"), &format!("{place}/{i}"), false);
        }
        let fd = s.open("/data/journal", "O_WRONLY|O_CREAT");
        s.write(fd, 100);
        if syncs {
            s.fsync(fd);
        }
        s
    };
    fires("publish-unsynced", save(true, 1));
    silent("publish-unsynced", save(true, 4));
    silent("publish-unsynced", save(false, 1));
}

#[test]
fn a_name_with_the_new_one_in_it_is_temporary() {
    let mut s = Scenario::new();
    for i in 0..40 {
        deliver(&mut s, &format!("/usr/{i}.txt.dpkg-new"), &format!("/usr/{i}.txt"), false);
    }
    let fd = s.open("/var/status", "O_WRONLY|O_CREAT");
    s.write(fd, 100);
    s.fsync(fd);
    fires("publish-unsynced", s);
}

#[test]
fn silent_on_rotated_logs_and_on_files_of_others() {
    let mut s = Scenario::new();
    for i in 0..20 {
        let fd = s.open("/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        s.write(fd, 3000);
        s.close(fd);
        s.rename("/log/app", &format!("/log/old/app.{i}"));
    }
    for i in 0..20 {
        let (from, to) = (format!("/build/tmp/{i}"), format!("/build/{i}"));
        let fd = s.open(&from, "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.close(fd);
        s.process(200);
        s.rename(&from, &to);
        s.process(100);
    }
    silent("publish-unsynced", s);
}

#[test]
fn silent_on_what_was_taken_out_again() {
    let mut s = Scenario::new();
    for i in 0..40 {
        deliver(&mut s, &format!("/spool/tmp/{i}"), &format!("/spool/new/{i}"), false);
    }
    for i in 0..40 {
        s.unlink(&format!("/spool/new/{i}"));
    }
    silent("publish-unsynced", s);
}

/// Checkpoints in directories of their own, and a file that says which is the latest.
fn checkpoints(shards_too: bool, times: i32, pointer: bool) -> Scenario {
    let mut s = Scenario::new();
    for step in 0..times {
        let folder = format!("/ckpt/step-{step}");
        s.mkdir(&folder, None);
        for i in 0..4 {
            let fd = s.open(&format!("{folder}/shard-{i}"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 300_000);
            if shards_too {
                s.fsync(fd);
            }
            s.close(fd);
        }
        let place = if pointer { "/ckpt" } else { "/elsewhere" };
        let fd = s.open(&format!("{place}/latest.tmp"), "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 10);
        s.fsync(fd);
        s.close(fd);
        s.rename(&format!("{place}/latest.tmp"), &format!("{place}/latest"));
    }
    s
}

#[test]
fn a_file_that_names_a_new_directory_publishes_what_is_in_it() {
    let found = fires("publish-unsynced", checkpoints(false, 3, true));
    assert_eq!(found[0].evidence[0].value, 12.0);
    silent("publish-unsynced", checkpoints(true, 3, true));
    // Once may be for another reason, and elsewhere is for another one.
    silent("publish-unsynced", checkpoints(false, 1, true));
    silent("publish-unsynced", checkpoints(false, 3, false));
}

#[test]
fn a_new_directory_that_is_renamed_publishes_what_is_in_it() {
    let run = |careful: bool| {
        let mut s = Scenario::new();
        s.mkdir("/ckpt/.step-1", None);
        s.mkdir("/ckpt/.step-1/model", None);
        for i in 0..4 {
            let fd = s.open(&format!("/ckpt/.step-1/model/shard-{i}"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 300_000);
            s.close(fd);
        }
        let fd = s.open("/ckpt/log", "O_WRONLY|O_CREAT");
        s.write(fd, 10);
        if careful {
            s.fsync(fd);
        }
        s.rename("/ckpt/.step-1", "/ckpt/step-1");
        s
    };
    fires("publish-unsynced", run(true));
    // Unpacked files can be unpacked again.
    silent("publish-unsynced", run(false));
}
