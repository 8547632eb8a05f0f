use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use fathom_model::batch::NULL_I32;
use fathom_model::meta::SessionMeta;
use fathom_model::tables::{ProcessRow, ProcessRows};
use fathom_model::{Batch, StringTable};
use fathom_redact::{Key, Rules};
use fathom_session::{SessionWriter, WriterOptions};
use fathom_testkit::files;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

const PIECE: usize = 1 << 20;

/// A session with versions of files, of which one replaces another.
fn session(dir: &FilePath, host: &str, versions: &[&[(i64, &str)]]) -> PathBuf {
    let path = dir.join("session.fathom");
    let mut meta = fathom_testkit::meta();
    meta.host.name = host.into();
    meta.labels = [("site".into(), "a".into())].into();
    meta.clock.start_realtime_ns = 86_400_000_000_000 + 7;
    meta.clock.start_monotonic_ns = 5;
    let writer = SessionWriter::create(&path, meta.clone(), WriterOptions::default()).unwrap();
    for versions in versions {
        writer.append(files(versions)).unwrap();
    }
    let end = SessionMeta {
        exit_status: Some(3),
        ..meta
    };
    writer.finish(end).unwrap();
    path
}

fn whole(path: &FilePath, force: bool) -> Shipment<'_> {
    Shipment {
        session: path,
        redaction: None,
        keep_secrets: false,
        findings: true,
        force,
    }
}

struct Lake {
    store: Arc<InMemory>,
    destination: Destination,
}

impl Lake {
    fn new(piece: usize) -> Self {
        let store = Arc::new(InMemory::new());
        let destination = Destination::of(store.clone(), "a/lake", piece);
        Self { store, destination }
    }

    fn ship(&self, shipment: &Shipment<'_>) -> Result<Shipped, ShipError> {
        let mut last = (0, 0);
        let shipped = shipment.ship(&self.destination, &mut |done, total| last = (done, total));
        if let Ok(shipped) = &shipped
            && shipped.uploaded_objects > 0
        {
            assert_eq!(last, (shipped.bytes, shipped.bytes));
        }
        shipped
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(work)
    }

    fn objects(&self) -> BTreeMap<String, Bytes> {
        Self::run(async {
            let mut objects = BTreeMap::new();
            let list: Vec<_> = self.store.list(None).try_collect().await.unwrap();
            for object in list {
                let bytes = self.store.get(&object.location).await.unwrap();
                let bytes = bytes.bytes().await.unwrap();
                objects.insert(object.location.to_string(), bytes);
            }
            objects
        })
    }

    fn put(&self, path: &str, bytes: &'static [u8]) {
        let path = Path::from(path);
        Self::run(self.store.put(&path, bytes.into())).unwrap();
    }
}

fn rows(bytes: &Bytes) -> Vec<arrow::array::RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

const PARTITION: &str = "date=1970-01-02/host=h%201/session=0123456789abcdef0123456789abcdef";

#[test]
fn a_marker_names_each_object_and_its_contents() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(
        dir.path(),
        "h 1",
        &[&[(1, "/a"), (2, "/b")], &[(1, "/moved")]],
    );
    let lake = Lake::new(PIECE);
    let shipped = lake.ship(&whole(&path, false)).unwrap();
    let objects = lake.objects();
    let bytes: usize = objects.values().map(Bytes::len).sum();
    let expected = Shipped {
        objects: objects.len() as u64,
        bytes: bytes as u64,
        uploaded_objects: objects.len() as u64,
        uploaded_bytes: bytes as u64,
        removed_objects: 0,
    };
    assert_eq!(shipped, expected);
    let marker = &objects[&format!("a/lake/_sessions/{PARTITION}/session.json")];
    let value: serde_json::Value = serde_json::from_slice(marker).unwrap();
    assert_eq!(value["metadata"]["exit_status"], 3);
    let marker: Marker = serde_json::from_slice(marker).unwrap();
    assert_eq!(marker.objects.len() + 1, objects.len());
    for object in &marker.objects {
        let there = &objects[&format!("a/lake/{}", object.path)];
        assert_eq!(object.bytes, there.len() as u64);
        assert_eq!(object.sha256, hex(&Sha256::digest(there)));
        assert!(
            object
                .path
                .starts_with(&format!("{}/{PARTITION}/part-", object.table))
        );
        assert!(object.path.contains(&object.sha256[..16]));
        let count: usize = rows(there).iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(object.rows, count as u64, "{}", object.path);
    }
    let of = |table: &str| {
        let objects = marker.objects.iter().filter(|object| object.table == table);
        objects.collect::<Vec<_>>()
    };
    for table in TABLES {
        assert!(!of(table.name).is_empty(), "{}", table.name);
    }
    // The latest version of each file.
    let files = of("files");
    assert_eq!((files.len(), files[0].rows), (1, 2));
    let files = &rows(&objects[&format!("a/lake/{}", files[0].path)])[0];
    let ids = files
        .column_by_name("file_id")
        .unwrap()
        .as_primitive::<Int64Type>();
    let paths = files.column_by_name("path").unwrap().as_string::<i32>();
    let files: BTreeMap<i64, &str> = (0..2).map(|i| (ids.value(i), paths.value(i))).collect();
    assert_eq!(files, BTreeMap::from([(1, "/moved"), (2, "/b")]));
    let row = &rows(&objects[&format!("a/lake/{}", of("sessions")[0].path)])[0];
    let number = |name: &str| {
        row.column_by_name(name)
            .unwrap()
            .as_primitive::<Int64Type>()
            .value(0)
    };
    assert_eq!(number("wall_offset_ns"), 86_400_000_000_002);
    assert_eq!(
        row.column_by_name("host_name")
            .unwrap()
            .as_string::<i32>()
            .value(0),
        "h 1"
    );
    // All other objects are in table `objects`.
    assert_eq!(of("objects")[0].rows as usize, marker.objects.len() - 2);
}

#[test]
fn a_second_time_changes_nothing_and_an_interrupted_attempt_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), "h 1", &[&[(1, "/a")]]);
    let lake = Lake::new(PIECE);
    let first = lake.ship(&whole(&path, false)).unwrap();
    let before = lake.objects();
    let again = lake.ship(&whole(&path, false)).unwrap();
    let nothing = Shipped {
        uploaded_objects: 0,
        uploaded_bytes: 0,
        ..first
    };
    assert_eq!(again, nothing);
    assert_eq!(lake.objects(), before);
    // An attempt that ended before the marker, and had begun with other contents.
    let paths: Vec<Path> = before
        .keys()
        .map(|path| Path::parse(path).unwrap())
        .collect();
    let find = |part: &str| {
        paths
            .iter()
            .find(|path| path.as_ref().contains(part))
            .unwrap()
    };
    for part in ["_sessions/", "lake/sessions/", "lake/files/"] {
        Lake::run(lake.store.delete(find(part))).unwrap();
    }
    let other = find("lake/syscalls/").to_string();
    let (folder, _) = other.rsplit_once('/').unwrap();
    let put = |name: &str| {
        let path = Path::parse(format!("{folder}/{name}")).unwrap();
        Lake::run(lake.store.put(&path, "other".into())).unwrap();
    };
    put("part-00000000.0000000000000000.parquet");
    let third = lake.ship(&whole(&path, false)).unwrap();
    assert_eq!((third.uploaded_objects, third.removed_objects), (3, 1));
    assert_eq!(lake.objects(), before);
    // Nothing that is not fathom's is removed, neither there nor in other partitions.
    put("notes.txt");
    lake.put(
        "a/lake/syscalls/part-00000000.0000000000000000.parquet",
        b"other",
    );
    Lake::run(lake.store.delete(find("_sessions/"))).unwrap();
    let fourth = lake.ship(&whole(&path, false)).unwrap();
    assert_eq!((fourth.uploaded_objects, fourth.removed_objects), (1, 0));
    assert_eq!(lake.objects().len(), before.len() + 2);
}

#[test]
fn another_state_of_a_session_replaces_it_with_force_only() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| {
        let dir = dir.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    });
    let old = session(&old, "h 1", &[&[(1, "/a")]]);
    let new = session(&new, "h 1", &[&[(1, "/b")]]);
    let lake = Lake::new(PIECE);
    lake.ship(&whole(&old, true)).unwrap();
    let before = lake.objects();
    let refused = lake.ship(&whole(&new, false)).unwrap_err();
    assert!(matches!(refused, ShipError::Changed { .. }), "{refused}");
    assert!(refused.to_string().contains("--force"));
    assert_eq!(lake.objects(), before);
    let replaced = lake.ship(&whole(&new, true)).unwrap();
    assert!(replaced.removed_objects > 0);
    let only = Lake::new(PIECE);
    only.ship(&whole(&new, false)).unwrap();
    assert_eq!(lake.objects(), only.objects());
    // A marker that is none.
    let marker = before
        .keys()
        .find(|path| path.contains("_sessions"))
        .unwrap();
    let path = Path::parse(marker).unwrap();
    Lake::run(lake.store.put(&path, "{}".into())).unwrap();
    assert!(matches!(
        lake.ship(&whole(&new, false)),
        Err(ShipError::Changed { .. })
    ));
    lake.ship(&whole(&new, true)).unwrap();
    assert_eq!(lake.objects(), only.objects());
}

#[test]
fn findings_are_left_out_if_asked_for_and_added_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), "h 1", &[&[(1, "/a")]]);
    let without = Shipment {
        findings: false,
        ..whole(&path, false)
    };
    let lake = Lake::new(PIECE);
    lake.ship(&without).unwrap();
    let number = |lake: &Lake| {
        let objects = lake.objects();
        let mut rows_of_sessions = objects
            .iter()
            .filter(|(name, _)| name.starts_with("a/lake/sessions/"));
        let (_, object) = rows_of_sessions.next().unwrap();
        assert!(rows_of_sessions.next().is_none());
        let row = &rows(object)[0];
        let numbers = row.column_by_name("findings").unwrap();
        let numbers = numbers.as_primitive::<Int64Type>();
        numbers.iter().next().unwrap()
    };
    let has = |lake: &Lake| {
        let mut names = lake.objects().into_keys();
        names.any(|name| name.starts_with("a/lake/findings/"))
    };
    assert_eq!((number(&lake), has(&lake)), (None, false));
    assert_eq!(lake.ship(&without).unwrap().uploaded_objects, 0);
    // The findings, table `objects`, the row of the session, and the marker.
    let added = lake.ship(&whole(&path, false)).unwrap();
    assert_eq!((added.uploaded_objects, added.removed_objects), (4, 2));
    assert_eq!((number(&lake), has(&lake)), (Some(0), true));
    let only = Lake::new(PIECE);
    only.ship(&whole(&path, false)).unwrap();
    assert_eq!(lake.objects(), only.objects());
    // They are there, so another shipment leaves them alone.
    assert_eq!(lake.ship(&without).unwrap().uploaded_objects, 0);
}

#[test]
fn large_objects_are_the_same_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let versions: Vec<(i64, String)> = (0..5000).map(|i| (i, format!("/{}", i * 7919))).collect();
    let versions: Vec<(i64, &str)> = versions.iter().map(|(i, path)| (*i, &**path)).collect();
    let path = session(dir.path(), "h 1", &[&versions]);
    let (whole_lake, pieces) = (Lake::new(PIECE), Lake::new(1000));
    whole_lake.ship(&whole(&path, false)).unwrap();
    pieces.ship(&whole(&path, false)).unwrap();
    let objects = whole_lake.objects();
    assert!(objects.values().any(|object| object.len() > 10_000));
    assert!(objects == pieces.objects());
}

#[test]
fn redaction_leaves_nothing_and_is_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), "secrethost", &[&[(1, "/home/secretuser/x")]]);
    let key = dir.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let redaction = Redaction {
        rules: Rules::default(),
        key: Key::read(&key).unwrap(),
    };
    let shipment = Shipment {
        session: &path,
        redaction: Some(&redaction),
        keep_secrets: false,
        findings: true,
        force: false,
    };
    let lake = Lake::new(PIECE);
    let first = lake.ship(&shipment).unwrap();
    assert!(first.uploaded_objects > 20);
    assert_eq!(lake.ship(&shipment).unwrap().uploaded_objects, 0);
    for (name, bytes) in lake.objects() {
        let has = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!name.contains("secret") && !has("secret"), "{name}");
    }
    assert!(!format!("{redaction:?}").contains("key:"));
}

/// A process as a recording sees it when it executes and when it ends.
fn process(pid: i32, cmdline: &str) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = ProcessRows::default();
    for exit_status in [NULL_I32, 0] {
        rows.push(ProcessRow {
            pid,
            tid: pid,
            cmdline: strings.intern(cmdline.as_bytes()),
            exit_status,
            ..ProcessRow::default()
        });
    }
    rows.into_batch(strings)
}

#[test]
fn secrets_in_command_lines_do_not_leave_the_host_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.fathom");
    let meta = SessionMeta {
        command: vec!["tool".into(), "--token".into(), "planted1".into()],
        ..fathom_testkit::meta()
    };
    let writer = SessionWriter::create(&path, meta.clone(), WriterOptions::default()).unwrap();
    let line = "tool --password=planted2 --jobs=3 'a b'";
    writer.append(process(7, line)).unwrap();
    writer.append(process(8, "mysql -pplanted3")).unwrap();
    writer.finish(meta).unwrap();
    let found = |lake: &Lake, text: &str| {
        let bytes = text.as_bytes();
        let has = |object: &[u8]| object.windows(bytes.len()).any(|part| part == bytes);
        lake.objects().values().any(|object| has(object))
    };
    let lake = Lake::new(PIECE);
    lake.ship(&whole(&path, false)).unwrap();
    for secret in ["planted1", "planted2", "planted3"] {
        assert!(!found(&lake, secret), "{secret}");
    }
    assert!(found(&lake, "--jobs=3"));
    for (name, object) in lake.objects() {
        if name.ends_with(".parquet") {
            let reader = ParquetRecordBatchReaderBuilder::try_new(object).unwrap();
            reader
                .build()
                .unwrap()
                .for_each(|batch| drop(batch.unwrap()));
        }
    }
    let all = Lake::new(PIECE);
    let shipment = Shipment {
        keep_secrets: true,
        ..whole(&path, false)
    };
    all.ship(&shipment).unwrap();
    for secret in ["planted1", "planted2", "planted3"] {
        assert!(found(&all, secret), "{secret}");
    }
}

#[test]
fn sessions_that_are_not_closed_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.fathom");
    let writer =
        SessionWriter::create(&path, fathom_testkit::meta(), WriterOptions::default()).unwrap();
    let lake = Lake::new(PIECE);
    let refused = lake.ship(&whole(&path, false)).unwrap_err();
    assert!(
        refused.to_string().contains("it is being recorded"),
        "{refused}"
    );
    drop(writer);
    assert!(lake.objects().is_empty());
    let missing = lake
        .ship(&whole(&dir.path().join("none"), false))
        .unwrap_err();
    assert!(missing.to_string().contains("does not exist"), "{missing}");
}

/// A copy without a part has no damaged part either: only its totals know of the rows.
#[test]
fn sessions_without_a_part_are_refused() {
    for table in ["files", "syscalls"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.fathom");
        let options = WriterOptions::default();
        let writer = SessionWriter::create(&path, fathom_testkit::meta(), options).unwrap();
        writer.append(files(&[(1, "/a")])).unwrap();
        writer
            .append(fathom_testkit::Workload::new(1).batch(7))
            .unwrap();
        writer.finish(fathom_testkit::meta()).unwrap();
        let lake = Lake::new(PIECE);
        lake.ship(&whole(&path, false)).unwrap();
        for part in Session::open(&path).unwrap().parts(table) {
            std::fs::remove_file(part).unwrap();
        }
        assert!(!Session::open(&path).unwrap().is_damaged());
        let lake = Lake::new(PIECE);
        let refused = lake.ship(&whole(&path, false)).unwrap_err().to_string();
        assert!(refused.contains("do not have the rows"), "{refused}");
        assert!(lake.objects().is_empty());
    }
}
