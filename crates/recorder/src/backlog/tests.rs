use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::*;

const CHUNK: usize = 1000;

/// A drain of two chunks with contents of its own.
fn drain(n: u8) -> Vec<RawChunk> {
    let chunk = |cpu, ring| RawChunk {
        cpu,
        ring,
        bytes: (0..CHUNK)
            .map(|i| n.wrapping_mul(31) ^ (i % 251) as u8 ^ cpu as u8)
            .collect(),
    };
    vec![chunk(0, Ring::Slot), chunk(1, Ring::Wide)]
}

fn limits(drains: usize, file: u64) -> Limits {
    Limits {
        memory: drains * 2 * CHUNK,
        file,
        segment: 1500,
    }
}

fn assert_drain(entry: Option<Entry<u32>>, n: u8) {
    let Some(Entry::Drained(chunks, watermark_ns)) = entry else {
        panic!("no drain")
    };
    assert_eq!((chunks, watermark_ns), (drain(n), u64::from(n)));
}

#[test]
fn what_has_no_room_in_memory_waits_in_files_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (mut sender, receiver) = with_limits::<u32>(dir.path(), limits(2, 1 << 20));
    let mut spare = 0;
    for n in 0..10 {
        sender.drained(drain(n), n.into(), |_| spare += 1).unwrap();
        sender.message(n.into()).unwrap();
    }
    assert_eq!(spare, 8 * 2, "two drains stay in memory");
    assert!(sender.depth().in_files() > 0);
    assert_eq!(
        dir.path().read_dir().unwrap().count(),
        0,
        "files have no name"
    );
    for n in 0..10 {
        assert_drain(receiver.next().unwrap(), n);
        let message = receiver.next().unwrap();
        assert!(matches!(message, Some(Entry::Message(m)) if m == u32::from(n)));
        receiver.freed(2 * CHUNK);
    }
    assert_eq!(sender.depth().in_files(), 0);
    // There is room in memory again.
    sender.drained(drain(10), 10, |_| spare += 1).unwrap();
    assert_eq!((spare, sender.depth().in_files()), (16, 0));
    drop(sender);
    assert_drain(receiver.next().unwrap(), 10);
    assert!(receiver.next().unwrap().is_none());
}

#[test]
fn files_that_were_read_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap();
    let own = |fd: std::io::Result<std::fs::DirEntry>| {
        let target = fd.ok().and_then(|fd| fd.path().read_link().ok());
        target.is_some_and(|target| target.starts_with(dir.path()))
    };
    let (mut sender, receiver) = with_limits::<u32>(dir.path(), limits(1, 1 << 20));
    for n in 0..50 {
        sender.drained(drain(n), n.into(), drop).unwrap();
    }
    let many = open().map(own).filter(|own| *own).count();
    for n in 0..50 {
        assert_drain(receiver.next().unwrap(), n);
        receiver.freed(2 * CHUNK);
    }
    let few = open().map(own).filter(|own| *own).count();
    assert!(many > 3 && few == 1, "{many} files, then {few}");
}

#[test]
fn a_sender_waits_where_nothing_has_room() {
    let dir = tempfile::tempdir().unwrap();
    for directory in [dir.path(), Path::new("/nonexistent")] {
        // No files at all, or none can be made.
        let file = if directory == dir.path() { 0 } else { 1 << 20 };
        let (mut sender, receiver) = with_limits::<u32>(directory, limits(1, file));
        sender.drained(drain(0), 0, drop).unwrap();
        let sent = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                sender.drained(drain(1), 1, drop).unwrap();
                sent.store(true, Ordering::SeqCst);
            });
            assert_drain(receiver.next().unwrap(), 0);
            // It was taken, but is still in memory.
            thread::sleep(Duration::from_millis(50));
            assert!(!sent.load(Ordering::SeqCst));
            receiver.freed(2 * CHUNK);
            assert_drain(receiver.next().unwrap(), 1);
        });
    }
}

#[test]
fn a_sender_does_not_wait_for_a_receiver_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (mut sender, receiver) = with_limits::<u32>(dir.path(), limits(1, 0));
    sender.drained(drain(0), 0, drop).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| sender.drained(drain(1), 1, drop));
        thread::sleep(Duration::from_millis(20));
        drop(receiver);
        assert!(waits.join().unwrap().is_err());
    });
}
