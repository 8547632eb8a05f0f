//! Paths where they are hard: overlays, bind mounts, other roots and mount
//! namespaces, files without a name, subvolumes.

use fathom_tests::environment::must_run;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};

/// Runs the recorder in a mount namespace of its own, which takes what a test
/// mounts with it when it ends.
const APART: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

fn record_places(scratch: &Scratch) -> Recording {
    let recording = Record::new(scratch)
        .by(APART)
        .command([workload("places").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

#[test]
fn paths_are_those_of_the_program_and_of_the_host() {
    need_root!();
    need_program!("unshare");
    let scratch = Scratch::new();
    let recording = record_places(&scratch);
    let dir = scratch.work().display().to_string();
    let reads = recording.rows(
        "SELECT s.size, s.path, f.host_path, f.path_complete
         FROM syscalls s JOIN files f USING (file_id) WHERE syscall = 'pread64' AND s.size < 100
         ORDER BY s.rid",
    );
    let found: Vec<String> = reads
        .iter()
        .map(|r| {
            format!(
                "{} {} {} {}",
                r.int("size").unwrap(),
                r.text("path").unwrap().replace(&dir, "DIR"),
                r.text("host_path").unwrap_or("-").replace(&dir, "DIR"),
                r.value("path_complete")
            )
        })
        .collect();
    let memory = &found[5];
    assert!(memory.starts_with("6 /memfd:in memory - true"), "{memory}");
    let unnamed = &found[6];
    assert!(unnamed.starts_with("7 DIR/tmp/#"), "{unnamed}");
    let expected = [
        // Files that were read in another namespace later on: where they lie
        // in the recorder's is the latest known of a file, path that of the
        // call.
        "1 DIR/overlay/lower DIR/overlay/lower true",
        "2 DIR/overlay/described - true",
        "3 DIR/bind/bound DIR/source/bound true",
        "4 DIR/source/bound DIR/source/bound true",
        "5 DIR/tmp/file - true",
        memory,
        unnamed,
        "8 DIR/tmp/gone - true",
        "9 DIR/tmp/linked - true",
        "10 DIR/jail/inside/file - true",
        "11 DIR/jail/inside/file - true",
        "20 DIR/bind2/bound DIR/source/bound true",
        "21 DIR/bind2/private - true",
        "22 /lower DIR/overlay/lower true",
        "23 .../new - false",
    ];
    assert_eq!(found.join("\n"), expected.join("\n"));
    // The number of a namespace that is gone may be given to another one.
    let left = recording.number(
        "SELECT count(*) FROM processes
         WHERE mount_namespace <> (SELECT mount_namespace FROM processes ORDER BY started_at_ns LIMIT 1)",
    );
    assert_eq!(left, 2, "children that went to a namespace of their own");
}

/// stat's paths and devices lead to the file that was opened.
#[test]
fn what_stat_describes_is_the_file_that_was_opened() {
    need_root!();
    need_program!("unshare");
    let scratch = Scratch::new();
    let recording = record_places(&scratch);
    let dir = scratch.work().display().to_string();
    let stats = recording.rows(
        "SELECT s.path_arg, s.path, f.path AS file, f.generation IS NOT NULL AS opened
         FROM syscalls s LEFT JOIN files f USING (file_id)
         WHERE s.syscall = 'newfstatat' AND s.path_arg <> '' AND s.errno IS NULL
           AND (s.path_arg LIKE '%/inside/%' OR s.path_arg LIKE '%overlay/%'
                OR s.path_arg = '/lower')
         ORDER BY s.rid",
    );
    let found: Vec<String> = stats
        .iter()
        .map(|r| {
            format!(
                "{} {} {} {}",
                r.text("path_arg").unwrap(),
                r.text("path").unwrap(),
                r.text("file").unwrap_or("-"),
                r.value("opened")
            )
            .replace(&dir, "DIR")
        })
        .collect();
    let expected = [
        // The last name under which the file was opened: in its container.
        "DIR/overlay/lower DIR/overlay/lower /lower true",
        "DIR/overlay/described DIR/overlay/described DIR/overlay/described true",
        "/inside/file DIR/jail/inside/file DIR/jail/inside/file true",
        "/../inside/file DIR/jail/inside/file DIR/jail/inside/file true",
        "/lower /lower /lower true",
    ];
    assert_eq!(found.join("\n"), expected.join("\n"));
    let renamed =
        recording.rows("SELECT path, path2 FROM syscalls WHERE path_arg2 = '/inside/renamed'");
    assert_eq!(renamed.len(), 1);
    assert_eq!(
        renamed[0].text("path2").unwrap(),
        format!("{dir}/jail/inside/renamed")
    );
}

/// Inode numbers are unique in a subvolume only.
#[test]
fn files_of_two_subvolumes_stay_apart() {
    need_root!();
    need_program!("unshare", "mkfs.btrfs", "btrfs");
    let scratch = Scratch::new();
    let image = scratch.root().join("image");
    must_run(
        "truncate",
        ["-s".as_ref(), "200M".as_ref(), image.as_os_str()],
    );
    must_run("mkfs.btrfs", ["-q".as_ref(), image.as_os_str()]);
    let supported = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !supported.contains("btrfs") {
        skip("this kernel has no btrfs");
        return;
    }
    let script = format!(
        "set -e; cd {}; mkdir mnt; mount -o loop {} mnt
         btrfs -q subvolume create mnt/a; btrfs -q subvolume create mnt/b
         echo one > mnt/a/file; echo two > mnt/b/file
         test $(stat -c %i mnt/a/file) = $(stat -c %i mnt/b/file)
         cat mnt/a/file mnt/b/file > /dev/null; stat mnt/a/file mnt/b/file > /dev/null
         stat -c %d mnt/a/file mnt/b/file",
        scratch.work().display(),
        image.display()
    );
    let recording = Record::new(&scratch)
        .by(APART)
        .command(["sh", "-c", &script])
        .run()
        .must_exit(0);
    recording.complete();
    let files = recording.rows(
        "SELECT DISTINCT f.file_id, f.dev, f.path FROM syscalls s JOIN files f USING (file_id)
         WHERE f.path LIKE '%/mnt/_/file' ORDER BY f.path",
    );
    let devices: Vec<String> = files
        .iter()
        .map(|r| r.int("dev").unwrap().to_string())
        .collect();
    let text = recording.text();
    let by_stat: Vec<&str> = text.lines().collect();
    assert_eq!(devices, by_stat, "{files:?}");
}
