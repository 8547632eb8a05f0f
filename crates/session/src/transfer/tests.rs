//! Streams to their end, and streams that no fathom writes.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use fathom_model::meta::{SessionMeta, State as Recording, Totals};
use fathom_testkit::Workload;
use twox_hash::XxHash64;

use super::{
    Frame, FrameReader, FrameWriter, Message, Pass, Received, Receiver, State, TransferError, send,
};
use crate::{OwnAddition, Session, SessionError, SessionWriter, WriterOptions};

const ROWS: u64 = 50;
const NO_LIMIT: u64 = u64::MAX;

/// A recorder that writes and merges parts at once.
fn writer(dir: &Path) -> SessionWriter {
    let options = WriterOptions {
        part_rows: 1,
        part_interval: Duration::from_millis(1),
        compact_interval: Duration::from_millis(1),
        ..WriterOptions::default()
    };
    SessionWriter::create(dir, fathom_testkit::meta(), options).unwrap()
}

fn append(writer: &SessionWriter, workload: &mut Workload, batches: u64) {
    for _ in 0..batches {
        writer.append(workload.batch(ROWS as usize)).unwrap();
    }
}

fn finish(writer: SessionWriter, rows: u64) {
    let totals = Totals {
        seen: rows,
        ..Totals::default()
    };
    let meta = SessionMeta {
        totals,
        ..fathom_testkit::meta()
    };
    writer.finish(meta).unwrap();
}

/// Waits until `rows` calls are in parts.
fn stored(writer: &SessionWriter, rows: u64) {
    while writer.stats().tables[0].rows < rows {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn json(session: &Session) -> Vec<u8> {
    crate::format::meta::to_json(session.meta()).unwrap()
}

fn stream(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    send(dir, None, &mut FrameWriter::begin(&mut bytes).unwrap()).unwrap();
    bytes
}

fn receive(bytes: &[u8], to: &Path, max_bytes: u64) -> Result<Received, TransferError> {
    let mut copy = Receiver::begin(FrameReader::begin(bytes)?, to, false, max_bytes)?;
    while copy.pass()? != Pass::Last {}
    copy.finish()
}

#[test]
fn a_closed_session_arrives_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("a"), root.path().join("b"));
    let recorder = writer(&from);
    append(&recorder, &mut Workload::new(1), 20);
    finish(recorder, 20 * ROWS);
    let own = OwnAddition::begin(&from, "orders", false).unwrap();
    own.file().write_all(b"rows").unwrap();
    own.finish(1, Path::new("orders.csv")).unwrap();
    let bytes = stream(&from);
    let received = receive(&bytes, &to, NO_LIMIT).unwrap();
    assert!(!received.live && received.session.problems().is_empty());
    let [own] = received.session.own_tables() else {
        panic!("{:?}", received.session.own_tables());
    };
    assert_eq!(fs::read(to.join(&own.file)).unwrap(), b"rows");
    let before = Session::open(&from).unwrap();
    assert_eq!(json(&received.session), json(&before));
    let mut compared = 0;
    for table in fs::read_dir(&from).unwrap() {
        let table = table.unwrap();
        let (there, name) = (table.path(), table.file_name());
        if there.is_file() {
            let known = fs::read(to.join(&name)).ok();
            let own = name == ".lock";
            assert!(own || known == Some(fs::read(&there).unwrap()), "{name:?}");
            continue;
        }
        for part in fs::read_dir(&there).unwrap() {
            let part = part.unwrap();
            let copy = to.join(&name).join(part.file_name());
            assert_eq!(fs::read(part.path()).unwrap(), fs::read(copy).unwrap());
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared}");

    // It does not replace what is there, unless it is asked to, and only a session.
    let again = receive(&bytes, &to, NO_LIMIT).unwrap_err();
    assert!(matches!(
        again,
        TransferError::Session(SessionError::Exists(_))
    ));
    let replace = |to: &Path| {
        let frames = FrameReader::begin(&bytes[..]).unwrap();
        let mut copy = Receiver::begin(frames, to, true, NO_LIMIT)?;
        while copy.pass()? != Pass::Last {}
        copy.finish()
    };
    replace(&to).unwrap();
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("kept"), "").unwrap();
    assert!(replace(&other).is_err() && other.join("kept").exists());
    // Cut anywhere, or limited, it leaves nothing.
    let to = root.path().join("c");
    for cut in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        let error = receive(&bytes[..cut], &to, NO_LIMIT).unwrap_err();
        let known = matches!(error, TransferError::Cut | TransferError::NoStream(_));
        assert!(
            known || matches!(error, TransferError::OtherVersion { .. }),
            "{cut}: {error}"
        );
    }
    let error = receive(&bytes, &to, 2000).unwrap_err();
    assert!(matches!(error, TransferError::Refused(_)), "{error}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
}

#[test]
fn a_damaged_session_arrives_damaged() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().join("a");
    let recorder = writer(&from);
    append(&recorder, &mut Workload::new(1), 20);
    finish(recorder, 20 * ROWS);
    let part = Session::open(&from).unwrap().parts("syscalls").remove(0);
    let bytes = fs::read(&part).unwrap();
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    // The footer is cut off, a row has changed, and nothing is left.
    let damages = [
        bytes[..bytes.len() / 2].to_vec(),
        flipped(bytes.len() / 4),
        Vec::new(),
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        fs::write(&part, &damage).unwrap();
        let to = root.path().join(format!("copy{n}"));
        let received = receive(&stream(&from), &to, NO_LIMIT).unwrap();
        let before = Session::open(&from).unwrap();
        assert!(before.is_damaged() && received.session.is_damaged(), "{n}");
        assert_eq!(received.session.problems(), before.problems());
        let copied = to.join("syscalls").join(part.file_name().unwrap());
        assert_eq!(fs::read(copied).unwrap(), damage);
    }
}

#[test]
fn a_copy_of_a_recording_is_closed() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("a"), root.path().join("b"));
    let recorder = writer(&from);
    append(&recorder, &mut Workload::new(2), 10);
    stored(&recorder, 10 * ROWS);
    let received = receive(&stream(&from), &to, NO_LIMIT).unwrap();
    assert!(received.live);
    let meta = received.session.meta();
    assert_eq!(
        (meta.state, meta.history.saved_because.as_str()),
        (Recording::Complete, "pull")
    );
    assert_eq!(
        (meta.totals.seen, meta.totals.stored),
        (10 * ROWS, 10 * ROWS)
    );
    assert!(!received.session.is_live());
    let problems = received.session.problems();
    assert!(problems.is_empty(), "{problems:?}");
    finish(recorder, 10 * ROWS);
}

#[test]
fn a_recording_is_followed_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("a"), root.path().join("b"));
    let recorder = writer(&from);
    let mut workload = Workload::new(3);
    append(&recorder, &mut workload, 5);
    stored(&recorder, 5 * ROWS);
    let (there, here) = UnixStream::pair().unwrap();
    let sent = from.clone();
    let sender = std::thread::spawn(move || {
        let mut frames = FrameWriter::begin(there).unwrap();
        send(&sent, Some(Duration::from_millis(1)), &mut frames)
    });
    let mut copy = Receiver::begin(
        FrameReader::begin(BufReader::new(here)).unwrap(),
        &to,
        false,
        NO_LIMIT,
    )
    .unwrap();
    assert!(!to.exists());
    assert_eq!(copy.pass().unwrap(), Pass::Whole);
    copy.publish().unwrap();
    let mut session = Session::open(&to).unwrap();
    assert!(session.is_live() && session.rows("syscalls") >= 5 * ROWS);
    // As parts come and are merged, each state has every row once.
    let mut passes = 0;
    for turn in 6..40 {
        append(&recorder, &mut workload, 1);
        stored(&recorder, turn * ROWS);
        while session.rows("syscalls") < turn * ROWS {
            assert_eq!(copy.pass().unwrap(), Pass::Whole);
            session.refresh().unwrap();
            passes += 1;
        }
        assert_eq!(session.rows("syscalls"), turn * ROWS);
        assert!(session.problems().is_empty(), "{:?}", session.problems());
    }
    assert!(passes > 5, "{passes}");
    finish(recorder, 39 * ROWS);
    while copy.pass().unwrap() != Pass::Last {}
    let received = copy.finish().unwrap();
    sender.join().unwrap().unwrap();
    assert!(!received.live && !received.session.is_live());
    assert_eq!(
        json(&received.session),
        json(&Session::open(&from).unwrap())
    );
    assert!(received.session.problems().is_empty());
}

#[test]
fn a_recording_whose_connection_is_cut_is_closed() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("a"), root.path().join("b"));
    let recorder = writer(&from);
    append(&recorder, &mut Workload::new(4), 5);
    stored(&recorder, 5 * ROWS);
    let mut bytes = stream(&from);
    // The end is missing.
    bytes.truncate(bytes.len() - 10);
    let frames = FrameReader::begin(&bytes[..]).unwrap();
    let mut copy = Receiver::begin(frames, &to, false, NO_LIMIT).unwrap();
    assert_eq!(copy.pass().unwrap(), Pass::Whole);
    copy.publish().unwrap();
    assert!(matches!(copy.pass(), Err(TransferError::Cut)));
    let received = copy.finish().unwrap();
    assert!(received.live && received.session.problems().is_empty());
    assert_eq!(received.session.rows("syscalls"), 5 * ROWS);
    finish(recorder, 5 * ROWS);
}

/// A stream of `messages` about session `id`, each followed by `data`.
fn hostile(id: &str, messages: &[Message], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut frames = FrameWriter::begin(&mut bytes).unwrap();
    let state = Message::State(State {
        id: id.to_owned(),
        live: false,
        monotonic_ns: 0,
        realtime_ns: 0,
    });
    frames.message(&state).unwrap();
    for message in messages {
        frames.message(message).unwrap();
        if !data.is_empty() && matches!(message, Message::File { .. }) {
            frames.frame(&Frame::Data(data.to_vec())).unwrap();
        }
    }
    bytes
}

fn whole(data: &[u8]) -> Message {
    Message::Whole {
        xxh64: XxHash64::oneshot(0, data),
    }
}

#[test]
fn files_that_no_session_has_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("in/copy");
    fs::create_dir(root.path().join("in")).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let error = receive(bytes, &to, NO_LIMIT).unwrap_err();
        assert!(
            matches!(error, TransferError::Refused(_)),
            "{what}: {error}"
        );
        // Neither the copy nor anything outside of it is left.
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "{what}");
        assert_eq!(
            fs::read_dir(root.path().join("in")).unwrap().count(),
            0,
            "{what}"
        );
        error.to_string()
    };
    let data = b"data";
    let file = |name: &str, bytes| Message::File {
        name: name.to_owned(),
        bytes,
    };
    for name in [
        "../x",
        "../../x",
        "/tmp/fathom-hostile",
        "syscalls/../../x",
        "syscalls",
        "syscalls/",
        "syscalls/part-00000000.parquet.tmp",
        "syscalls/part-00000000.parquet/x",
        "nosuch/part-00000000.parquet",
        "own/orders.parquet",
        "own/../x-0000000000000000.parquet",
        ".lock",
        "session.json.tmp",
        "session.json/x",
        "",
        ".",
        "a\0b",
        "findings.json",
        "syscalls\\part-00000000.parquet",
        "./session.json",
    ] {
        let messages = [file(name, 4), whole(data), Message::Pass];
        let said = refused(&hostile("a", &messages, data), name);
        assert!(said.contains("is no file of a session"), "{name}: {said}");
        let removed = Message::Removed {
            name: name.to_owned(),
        };
        refused(&hostile("a", &[removed], b""), name);
    }
    let part = "syscalls/part-00000000.parquet";
    let cases: [(&str, Vec<Message>); 9] = [
        (
            "larger than the disk",
            vec![file(part, u64::MAX), whole(data)],
        ),
        ("longer than it says", vec![file(part, 3), whole(data)]),
        ("shorter than it says", vec![file(part, 5), whole(data)]),
        ("another checksum", vec![file(part, 4), whole(b"dat")]),
        ("no end", vec![file(part, 4), file(part, 4)]),
        ("an end of no file", vec![whole(data)]),
        (
            "other counts",
            vec![
                file(part, 4),
                whole(data),
                Message::End { files: 1, bytes: 5 },
            ],
        ),
        (
            "another session",
            vec![Message::State(State {
                id: "b".to_owned(),
                live: false,
                monotonic_ns: 0,
                realtime_ns: 0,
            })],
        ),
        ("data of no file", vec![]),
    ];
    for (what, messages) in cases {
        let mut bytes = hostile("a", &messages, data);
        if messages.is_empty() {
            bytes.extend_from_slice(b"D\x04\0\0\0data");
        }
        refused(&bytes, what);
    }
    refused(&hostile("", &[], b""), "no id");
    // A frame of 4 GiB, of no kind, and one that is no message.
    for (what, frame) in [
        ("long", &b"D\xff\xff\xff\xff"[..]),
        ("kind", b"Z\0\0\0\0"),
        ("text", b"T\x02\0\0\0{}"),
    ] {
        let mut bytes = hostile("a", &[], b"");
        bytes.extend_from_slice(frame);
        refused(&bytes, what);
    }
    // A session.json that is none, and one of another session.
    let none = [
        file("session.json", 4),
        whole(data),
        Message::End { files: 1, bytes: 4 },
    ];
    let error = receive(&hostile("a", &none, data), &to, NO_LIMIT).unwrap_err();
    assert!(
        matches!(error, TransferError::Session(SessionError::Damaged { .. })),
        "{error}"
    );
    let meta = SessionMeta {
        state: Recording::Complete,
        ..fathom_testkit::meta()
    };
    let json = crate::format::meta::to_json(&meta).unwrap();
    let bytes = json.len() as u64;
    let other = [
        file("session.json", bytes),
        whole(&json),
        Message::End { files: 1, bytes },
    ];
    let said = refused(&hostile("a", &other, &json), "id");
    assert!(said.contains("of another session"), "{said}");
    // Totals that do not add up.
    let mut meta = meta;
    meta.totals.seen = 1;
    let json = crate::format::meta::to_json(&meta).unwrap();
    let bytes = json.len() as u64;
    let more = [
        file("session.json", bytes),
        whole(&json),
        Message::End { files: 1, bytes },
    ];
    let said = refused(&hostile(&meta.id, &more, &json), "totals");
    assert!(said.contains("do not add up"), "{said}");
}

#[test]
fn other_programs_and_versions_are_named() {
    let error = |bytes: &[u8]| FrameReader::begin(bytes).unwrap_err().to_string();
    assert!(error(b"Welcome to db!\nfathom-stream").contains("\"Welcome to db!\""));
    assert!(error(b"\x1b[2J\n").contains("\\u{1b}"));
    assert!(error(&[b'x'; 10_000]).len() < 400);
    let said = error(b"fathom-stream 99 6 9.9.9\n");
    assert!(said.contains("fathom 9.9.9 there"), "{said}");
    assert!(matches!(
        FrameReader::begin(&b""[..]),
        Err(TransferError::Cut)
    ));
}
