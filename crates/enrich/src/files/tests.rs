use fathom_model::StrId;
use fathom_model::abi::MOUNT_FIRST;

use super::*;

struct Announce {
    handle: u32,
    ino: u64,
    generation: u32,
    path: &'static [u8],
}

const A: Announce = Announce {
    handle: 1,
    ino: 100,
    generation: 7,
    path: b"a/tmp/",
};

fn record(a: &Announce, ts_ns: u64) -> FileRecord {
    FileRecord {
        handle: a.handle,
        ino: a.ino,
        generation: a.generation,
        dev: 8 << 20 | 1,
        ts_ns,
        mode: 0o100644,
        fs_magic: 0xef53,
        size: 4096,
        ..FileRecord::parse(&[0; FileRecord::SIZE]).unwrap()
    }
}

fn announce(files: &mut Files, a: &Announce, ts_ns: u64) -> i64 {
    files.event(&record(a, ts_ns), a.path, b"");
    files.by_handle(a.handle, ts_ns).id
}

fn path(files: &mut Files, handle: u32) -> Option<String> {
    let path = files.by_handle(handle, 0).path?;
    Some(String::from_utf8(path.to_vec()).unwrap())
}

/// Id, generation, path of the rows in tables files and file_paths.
type Rows = Vec<(i64, i64, String)>;

fn take(files: &mut Files) -> (Rows, Vec<(i64, String)>) {
    let ((rows, strings), (paths, path_strings)) = files.take();
    let text = |t: &StringTable, id| String::from_utf8(t.get(id).to_vec()).unwrap();
    (
        (0..rows.file_id.len())
            .map(|i| {
                (
                    rows.file_id[i],
                    rows.generation[i],
                    text(&strings, rows.path[i]),
                )
            })
            .collect(),
        (0..paths.file_id.len())
            .map(|i| (paths.file_id[i], text(&path_strings, paths.path[i])))
            .collect(),
    )
}

fn limit(files: usize) -> Limit {
    Limit {
        files,
        bytes: usize::MAX,
    }
}

#[test]
fn stat_says_the_type() {
    let mut files = Files::new(limit(8));
    files.by_stat((1, 2), Some(0o100644), Some(b"/a"), 3);
    let ((rows, strings), _) = files.take();
    let file_type = strings.get(rows.file_type[0]);
    assert_eq!(file_type, b"regular");
}

#[test]
fn identity_makes_the_file() {
    let mut files = Files::new(limit(100));
    let a = announce(&mut files, &A, 1);
    // A hard link, and the same entry under a new handle.
    let link = announce(
        &mut files,
        &Announce {
            handle: 2,
            path: b"link/tmp/",
            ..A
        },
        2,
    );
    let again = announce(&mut files, &Announce { handle: 3, ..A }, 3);
    assert_eq!((a, link, again), (1, 1, 1));
    assert_eq!(path(&mut files, 1).as_deref(), Some("/tmp/a"));
    assert_eq!(path(&mut files, 2).as_deref(), Some("/tmp/link"));
    // A recycled inode.
    let new = announce(
        &mut files,
        &Announce {
            handle: 4,
            generation: 8,
            ..A
        },
        4,
    );
    assert_eq!(new, 2);
    let ((rows, strings), _) = files.take();
    assert_eq!(rows.file_id, [1, 2], "one row a file");
    assert_eq!(strings.get(rows.file_tag[0]), b"2049|100|1");
    assert_eq!(strings.get(rows.fs_type[0]), b"ext4");
    assert_eq!((rows.dev[0], rows.ino[0], rows.size[0]), (2049, 100, 4096));
}

#[test]
fn renames_are_rows() {
    let mut files = Files::new(limit(100));
    announce(&mut files, &A, 1);
    announce(
        &mut files,
        &Announce {
            path: b"b/tmp/",
            ..A
        },
        2,
    );
    announce(&mut files, &A, 3);
    assert_eq!(path(&mut files, 1).as_deref(), Some("/tmp/a"));
    let (rows, paths) = take(&mut files);
    assert_eq!(rows, [(1, 7, "/tmp/a".to_string())]);
    assert_eq!(
        paths,
        [(1, "/tmp/a".to_string()), (1, "/tmp/b".to_string())]
    );
    assert!(take(&mut files).0.is_empty());
}

#[test]
fn a_record_that_comes_late_fills_the_placeholder() {
    let mut files = Files::new(limit(100));
    let early = files.by_handle(1, 5).id;
    assert_eq!(path(&mut files, 1), None);
    assert_eq!(take(&mut files).0, [(early, NULL_I64, String::new())]);
    assert_eq!(announce(&mut files, &A, 6), early);
    assert_eq!(take(&mut files).0, [(early, 7, "/tmp/a".to_string())]);
    // The same file by a handle whose record came late as well: a second id.
    let second = files.by_handle(2, 7).id;
    assert_eq!(announce(&mut files, &Announce { handle: 2, ..A }, 8), early);
    let rows = take(&mut files).0;
    assert!(
        rows.contains(&(second, 7, "/tmp/a".to_string())),
        "{rows:?}"
    );
}

#[test]
fn names_that_are_removed_are_rows() {
    let mut files = Files::new(limit(100)).refreshed_after(Some(1000));
    let mut see = |handle, ts_ns, removed: bool| {
        let a = Announce { handle, ..A };
        let flags = if removed { FILE_DELETED as u8 } else { 0 };
        let record = FileRecord {
            flags,
            ..record(&a, ts_ns)
        };
        files.event(&record, a.path, b"");
    };
    see(1, 10, false);
    see(1, 20, true);
    see(1, 30, true);
    // Found under the same name again, and under a new handle.
    see(1, 40, false);
    see(2, 50, true);
    see(2, 60, true);
    files.by_handle(2, 5000);
    let (_, (rows, _)) = files.take();
    assert_eq!(rows.ts_ns, [10, 20, 40, 5000]);
    assert_eq!(rows.deleted, [false, true, false, true]);
}

#[test]
fn a_file_that_stat_described_is_adopted() {
    let mut files = Files::new(limit(100));
    let id = files.by_stat((0x801, 100), None, Some(b"/tmp/link-to-a"), 1);
    assert_eq!(files.by_stat((0x801, 100), None, None, 2), id);
    assert_ne!(files.by_stat((0x801, 101), None, None, 2), id);
    assert_eq!(
        take(&mut files).0[0],
        (id, NULL_I64, "/tmp/link-to-a".to_string())
    );
    assert_eq!(announce(&mut files, &A, 3), id);
    assert_eq!(take(&mut files).0, [(id, 7, "/tmp/a".to_string())]);
    // Then the latest generation.
    let new = announce(
        &mut files,
        &Announce {
            handle: 2,
            generation: 8,
            ..A
        },
        4,
    );
    assert_eq!(files.by_stat((0x801, 100), None, None, 5), new);
}

#[test]
fn files_without_a_name() {
    let named = |fs_magic, mode, components: &[u8]| {
        let record = FileRecord {
            fs_magic,
            mode,
            ino: 55,
            ..record(&A, 0)
        };
        String::from_utf8(display_path(&record, components)).unwrap()
    };
    assert_eq!(named(PIPE_FS, 0o010600, b""), "pipe:[55]");
    assert_eq!(named(SOCK_FS, 0o140777, b"TCP/"), "socket:[55]");
    assert_eq!(
        named(ANON_INODE_FS, 0o600, b"[eventfd]/"),
        "anon_inode:[eventfd]"
    );
    assert_eq!(named(0x01021994, 0o100777, b"memfd:x/"), "/memfd:x");
    let cut = FileRecord {
        flags: FILE_PATH_PARTIAL as u8,
        ..record(&A, 0)
    };
    assert_eq!(display_path(&cut, b"x/deep/"), b".../deep/x");
}

#[test]
fn paths_keep_their_bytes() {
    let mut files = Files::new(limit(100));
    announce(
        &mut files,
        &Announce {
            path: b"\xff\\/tmp/",
            ..A
        },
        1,
    );
    let ((rows, strings), _) = files.take();
    assert_eq!(strings.get(rows.path[0]), b"/tmp/\\xff\\\\");
    assert_eq!(strings.get(rows.path_raw[0]), b"/tmp/\xff\\");
}

#[test]
fn memory_is_bounded_and_what_is_used_stays() {
    let mut files = Files::new(limit(10));
    let kept = announce(&mut files, &A, 1);
    for i in 0..1000 {
        let other = Announce {
            handle: 100 + i,
            ino: 1000 + u64::from(i),
            ..A
        };
        files.event(&record(&other, 2), other.path, b"");
        files.by_stat((1, u64::from(i)), None, None, 3);
        files.by_handle(50_000 + i, 4);
        assert_eq!(files.by_handle(1, 5).id, kept);
    }
    assert!(files.slots.len() <= 10);
    assert!(files.handles.len() <= 20);
    assert!(files.identities.len() <= 10 && files.inodes.len() <= 10);
    assert!(files.order.len() <= 10);
    // One that was forgotten gets a new id.
    let back = announce(
        &mut files,
        &Announce {
            handle: 100,
            ino: 1000,
            ..A
        },
        6,
    );
    assert!(back > 1000);
    let ((rows, _), _) = files.take();
    assert_eq!(rows.file_id.len(), rows.path_complete.len());
}

#[test]
fn hostile_records() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut files = Files::new(limit(6));
        for _ in 0..200 {
            match rng.u32(0..4) {
                0 => drop(files.by_handle(rng.u32(0..12), rng.u64(..))),
                1 => drop(files.by_stat((rng.u64(0..2), rng.u64(0..6)), None, None, 0)),
                2 => drop(files.take()),
                _ => {
                    let bytes: Vec<u8> = (0..FileRecord::SIZE).map(|_| rng.u8(0..4)).collect();
                    let mut record = FileRecord::parse(&bytes).unwrap();
                    (record.handle, record.ino) = (rng.u32(0..12), rng.u64(0..6));
                    (record.dev, record.generation) = (rng.u32(0..2), rng.u32(0..3));
                    files.event(&record, &bytes, b"");
                }
            }
            let used = files.slots.iter().filter(|s| s.is_some()).count();
            assert!(used <= 6 && used + files.free.len() == files.slots.len());
        }
        let ((rows, _), _) = files.take();
        assert_eq!(rows.file_id.len(), rows.size.len());
    }
}

/// A mount of the recorder's, which lives in namespace 1.
fn mount(files: &mut Files, flags: u32, fs_dev: u32, root: &str, point: &str) {
    let record = MountRecord {
        flags: flags as u8,
        fs_dev,
        mnt_ns: 1,
        ..MountRecord::parse(&[0; MountRecord::SIZE]).unwrap()
    };
    files.mount(&record, root.as_bytes(), point.as_bytes());
}

fn host_paths(files: &mut Files) -> Vec<String> {
    let ((rows, strings), _) = files.take();
    let text = |id| match id {
        StrId::NULL => "-".into(),
        id => String::from_utf8(strings.get(id).to_vec()).unwrap(),
    };
    rows.host_path.into_iter().map(text).collect()
}

#[test]
fn files_of_a_container_are_found_on_the_host() {
    let mut files = Files::new(limit(100));
    mount(&mut files, MOUNT_FIRST, 5, "/", "/");
    let contained = FileRecord {
        mnt_ns: 2,
        fs_dev: 7,
        ..record(&A, 1)
    };
    files.event(&contained, b"data/", b"data/volume/");
    assert_eq!(host_paths(&mut files), ["-"]);
    // The host's mount is seen later than the container's file.
    mount(&mut files, MOUNT_FIRST, 5, "/", "/");
    mount(&mut files, 0, 7, "/", "/var/lib/x");
    assert_eq!(host_paths(&mut files), ["/var/lib/x/volume/data"]);
    // The container is gone, its mount with it: what was found stays.
    mount(&mut files, MOUNT_FIRST, 5, "/", "/");
    files.event(&contained, b"data/", b"data/volume/");
    assert_eq!(host_paths(&mut files), ["/var/lib/x/volume/data"]);
    // Opened by the host itself.
    files.event(
        &FileRecord {
            mnt_ns: 1,
            ..contained
        },
        b"data/volume/x/lib/var/",
        b"",
    );
    assert_eq!(host_paths(&mut files), ["-"]);
}

#[test]
fn overlays_stat_another_device() {
    const OVERLAY: u32 = 0x794c_7630;
    let on_overlay = FileRecord {
        fs_magic: OVERLAY,
        ..record(&A, 1)
    };
    let layer = 99;
    // Opened, then described.
    let mut files = Files::new(limit(2));
    files.event(&on_overlay, A.path, b"");
    let id = files.by_handle(A.handle, 1).id;
    assert_eq!(files.by_stat((layer, A.ino), None, Some(b"/tmp/a"), 2), id);
    assert_eq!(files.by_stat((layer, A.ino), None, None, 3), id);
    assert_ne!(
        files.by_stat((layer + 1, A.ino), None, Some(b"/tmp/other"), 4),
        id
    );
    // The alias goes with its file.
    for ino in 1..10 {
        files.by_stat((1, ino), None, None, 5);
    }
    assert_ne!(files.by_stat((layer, A.ino), None, Some(b"/tmp/a"), 6), id);

    // Described, then opened.
    let mut files = Files::new(limit(100));
    let id = files.by_stat((layer, A.ino), None, Some(b"/tmp/a"), 1);
    files.event(&on_overlay, A.path, b"");
    assert_eq!(files.by_handle(A.handle, 1).id, id);
    assert_eq!(files.by_stat((layer, A.ino), None, Some(b"/tmp/a"), 2), id);
    // On other file systems another device is another file.
    let id = files.by_stat((layer, 200), None, Some(b"/tmp/b"), 1);
    let b = Announce {
        handle: 2,
        ino: 200,
        generation: 1,
        path: b"b/tmp/",
    };
    assert_ne!(announce(&mut files, &b, 3), id);
}

/// For paths of any length, and any number of names per file.
#[test]
fn memory_is_bounded() {
    const BYTES: usize = 1 << 20;
    let mut files = Files::new(Limit {
        files: 1 << 20,
        bytes: BYTES,
    });
    let mut all = 0;
    for i in 0..3000u32 {
        let name = format!("{:0>4000}/", i);
        // Every third is one more name of the same file.
        let named = Announce {
            handle: i + 1,
            ino: u64::from(i / 3),
            ..A
        };
        files.event(&record(&named, 1), name.as_bytes(), b"");
        all += name.len();
        let held: usize = files.slots.iter().flatten().map(File::memory).sum();
        assert_eq!(held, files.file_bytes);
        assert!(files.file_bytes + files.handle_bytes <= BYTES + 20_000);
        files.take();
    }
    assert!(all > 10 * BYTES);
    // The most recent one is known.
    assert!(files.path_of(3000).is_some());
    assert!(files.path_of(1).is_none());
}
