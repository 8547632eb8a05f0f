//! The capture format: round trip and damage.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use fathom_decode::capture::{CaptureError, Frame, Losses, Reader, Writer};
use fathom_model::abi::{CpuStats, ShedKey, ShedValue};
use fathom_model::raw::{RawChunk, Ring};
use fathom_testkit::meta;

fn frames() -> Vec<Frame> {
    let value = ShedValue::parse(&[3; ShedValue::SIZE]).unwrap();
    let losses = Losses {
        per_cpu: vec![(1, 2, value)],
        split: vec![
            (
                ShedKey {
                    cpu: 1,
                    syscall: 2,
                    pid: 3,
                    file: 4
                },
                value
            );
            2
        ],
        cpus: vec![(0, CpuStats::parse(&[1; CpuStats::SIZE]).unwrap())],
    };
    vec![
        Frame::Chunk(RawChunk {
            cpu: 3,
            ring: Ring::Slot,
            bytes: vec![7; 128],
        }),
        Frame::Watermark(99),
        Frame::Chunk(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes: vec![],
        }),
        Frame::Losses(Box::new(losses)),
        Frame::Chunk(RawChunk {
            cpu: 1,
            ring: Ring::Wide,
            bytes: vec![1, 2, 3],
        }),
    ]
}

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    for frame in frames() {
        match frame {
            Frame::Chunk(chunk) => writer.chunk(&chunk).unwrap(),
            Frame::Watermark(ns) => writer.watermark(ns).unwrap(),
            Frame::Losses(losses) => writer.losses(&losses).unwrap(),
        }
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Vec<Frame>, bool), CaptureError> {
    let mut reader = Reader::new(bytes)?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame);
    }
    Ok((frames, reader.is_complete()))
}

#[test]
fn what_was_written_is_read() {
    let bytes = written();
    let reader = Reader::new(bytes.as_slice()).unwrap();
    assert_eq!(reader.meta().command, meta().command);
    assert_eq!(read(&bytes).unwrap(), (frames(), true));
}

#[test]
fn a_cut_capture_gives_what_stands_before_the_cut() {
    let bytes = written();
    let head = 20 + serde_json::to_vec(&meta()).unwrap().len();
    let mut longest = 0;
    for len in 0..bytes.len() {
        match read(&bytes[..len]) {
            Ok((read, complete)) => {
                assert!(len >= head && !complete, "cut at {len}");
                assert_eq!(read, frames()[..read.len()]);
                assert!(read.len() >= longest);
                longest = read.len();
            }
            Err(_) => assert!(len < head, "cut at {len}"),
        }
    }
    assert_eq!(longest, frames().len());
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(
        read(b"PAR1 and so on"),
        Err(CaptureError::NotACapture)
    ));
    assert!(matches!(read(b""), Err(CaptureError::NotACapture)));
    let mut bytes = written();
    bytes[8..12].copy_from_slice(&7u32.to_ne_bytes());
    assert!(matches!(read(&bytes), Err(CaptureError::Version(7))));
    let mut bytes = written();
    bytes[12..16].reverse();
    assert!(matches!(read(&bytes), Err(CaptureError::ByteOrder)));
    let mut bytes = written();
    bytes[20] = b'[';
    assert!(matches!(read(&bytes), Err(CaptureError::Header(_))));
}

#[test]
fn damage_is_an_error_or_a_shorter_capture_never_a_panic() {
    let good = written();
    for seed in 0..3000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = good.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let _ = read(&bytes);
    }
    let mut bytes = good;
    let head = 20 + serde_json::to_vec(&meta()).unwrap().len();
    bytes[head + 12] = 9;
    let error = read(&bytes).unwrap_err();
    assert!(
        matches!(error, CaptureError::Damaged { at, .. } if at == head as u64),
        "{error}"
    );
}
