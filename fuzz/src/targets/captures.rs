//! Raw captures: what comes from the kernel, damaged, to rows, to a session, to a report.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use fathom_decode::Merge;
use fathom_decode::capture::{Frame, Reader, Writer};
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::ColumnData;
use fathom_model::meta::SessionMeta;
use fathom_model::protocols::Protocols;
use fathom_model::raw::Ring;
use fathom_model::tables::Column;
use fathom_query::{Db, Limits};
use fathom_report::Report;
use fathom_session::{Session, SessionWriter, WriterOptions};

use super::Target;
use crate::{corpus, mutate};

/// Bytes of a chunk that a case starts from: many small cases see more than few large ones.
const CHUNK: usize = 4 << 10;
/// Frames of a case.
const FRAMES: usize = 12;

/// Captures, as frames and as bytes.
pub struct Captures {
    seeds: Vec<(SessionMeta, Vec<Frame>)>,
    input: Vec<u8>,
}

impl Captures {
    /// Reads the captures of a corpus.
    pub fn new(dir: &Path) -> Self {
        let seeds = corpus::files(dir, "captures").into_iter().map(|path| {
            let bytes = fs::read(path).expect("a capture");
            let mut reader = Reader::new(bytes.as_slice()).expect("a capture");
            let mut frames = Vec::new();
            while let Some(frame) = reader.next_frame().expect("a whole capture") {
                frames.push(frame);
            }
            (reader.meta().clone(), frames)
        });
        Self {
            seeds: seeds.collect(),
            input: Vec::new(),
        }
    }

    /// Some frames of a capture, damaged one by one.
    fn frames(&self, rng: &mut Rng) -> Vec<u8> {
        let (meta, all) = mutate::one(rng, &self.seeds);
        let (_, others) = mutate::one(rng, &self.seeds);
        let from = rng.usize(..all.len());
        let mut frames: Vec<Frame> = all[from..].iter().take(FRAMES).cloned().collect();
        for _ in 0..rng.usize(..3) {
            let (at, to) = (rng.usize(..frames.len()), rng.usize(..frames.len()));
            match rng.u8(..3) {
                0 => frames.swap(at, to),
                1 if frames.len() > 1 => {
                    frames.remove(at);
                }
                _ => frames.insert(at, mutate::one(rng, others).clone()),
            }
        }
        let mut writer = Writer::new(Vec::new(), meta).expect("a capture");
        for frame in frames {
            match frame {
                Frame::Chunk(mut chunk) => {
                    // What begins where a record does is still a chunk.
                    chunk.bytes.truncate(CHUNK);
                    if rng.u8(..3) > 0 {
                        mutate::bytes(rng, &mut chunk.bytes, b"", 12);
                    }
                    if rng.u8(..16) == 0 {
                        chunk.cpu = *mutate::one(rng, &[0, 1, 63, 4095, u32::MAX]);
                    }
                    if rng.u8(..32) == 0 {
                        chunk.ring = if rng.bool() { Ring::Slot } else { Ring::Wide };
                    }
                    writer.chunk(&chunk).expect("a capture");
                }
                Frame::Watermark(ns) => {
                    let ns = if rng.u8(..8) == 0 { rng.u64(..) } else { ns };
                    writer.watermark(ns).expect("a capture");
                }
                Frame::Losses(losses) => writer.losses(&losses).expect("a capture"),
            }
        }
        writer.finish().expect("a capture")
    }
}

impl Target for Captures {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.input = self.frames(rng);
        if rng.u8(..4) == 0 {
            mutate::bytes(rng, &mut self.input, b"FATHMCAP", 4);
        }
        // Few things remembered, so that forgetting is tried.
        let options = EnrichOptions {
            max_files: *mutate::one(rng, &[8, 1 << 10]),
            max_file_bytes: *mutate::one(rng, &[1 << 14, 1 << 24]),
            max_threads: *mutate::one(rng, &[8, 1 << 10]),
            calls_left_out: rng.bool(),
            faults_left_out: rng.bool(),
            refresh_ns: rng.bool().then_some(1_000_000),
            spans: Protocols::all(),
            plain_spans: rng.bool(),
        };
        let Ok(mut reader) = Reader::new(self.input.as_slice()) else {
            return Ok(());
        };
        let meta = reader.meta().clone();
        let dir = super::scratch();
        let path = dir.path().join("s.fathom");
        // Writing is slow beside decoding.
        let writer = if rng.u8(..16) == 0 {
            let made = SessionWriter::create(&path, meta.clone(), WriterOptions::default());
            Some(made.map_err(|e| format!("a session that cannot be made: {e}"))?)
        } else {
            None
        };
        let mut merge = Merge::new();
        let mut enricher = Enricher::new(options);
        let (mut calls, mut rows) = (0, 0);
        let mut event = |enricher: &mut Enricher, cpu, event: &fathom_decode::Event<'_>| {
            calls += u64::from(event.is_call());
            enricher.event(cpu, event);
        };
        let mut store = |enricher: &mut Enricher| -> Result<(), String> {
            for batch in enricher.take() {
                if batch.table.name == "syscalls" {
                    rows += batch.len() as u64;
                }
                let columns = batch.table.columns.iter().zip(&batch.columns);
                // One that is null in every row is left empty.
                let is_wrong = |(of, column): &(&Column, &ColumnData)| {
                    column.len() != batch.len() && !(of.nullable && column.is_empty())
                };
                if let Some((of, column)) = columns.clone().find(is_wrong) {
                    return Err(format!(
                        "table {}: column {} has {} of {} rows",
                        batch.table.name,
                        of.name,
                        column.len(),
                        batch.len()
                    ));
                }
                if let Some(writer) = writer.as_ref().filter(|_| !batch.is_empty()) {
                    writer
                        .append(batch)
                        .map_err(|e| format!("not stored: {e}"))?;
                }
            }
            Ok(())
        };
        while let Ok(Some(frame)) = reader.next_frame() {
            match frame {
                Frame::Chunk(chunk) => merge.push(chunk),
                Frame::Watermark(ns) => {
                    merge.drain_until(ns, |cpu, e| event(&mut enricher, cpu, e));
                }
                Frame::Losses(losses) => {
                    let lost = enricher.losses(&losses.per_cpu, &losses.split);
                    if let Some(writer) = writer.as_ref().filter(|_| !lost.is_empty()) {
                        writer
                            .append(lost)
                            .map_err(|e| format!("not stored: {e}"))?;
                    }
                }
            }
            if rng.u8(..4) == 0 {
                store(&mut enricher)?;
            }
        }
        merge.drain_all(|cpu, e| event(&mut enricher, cpu, e));
        enricher.finish();
        store(&mut enricher)?;
        if merge.pending() != 0 {
            return Err(format!("{} records were never handed out", merge.pending()));
        }
        let counted = enricher.totals();
        if (rows, counted) != (calls, calls) {
            return Err(format!(
                "{calls} calls made {rows} rows, {counted} were counted"
            ));
        }
        let Some(writer) = writer else { return Ok(()) };
        if let Some(damaged) = enricher.decode_losses(&merge.stats()) {
            writer
                .append(damaged)
                .map_err(|e| format!("not stored: {e}"))?;
        }
        writer
            .finish(meta)
            .map_err(|e| format!("not closed: {e}"))?;
        read_back(&path, calls)
    }

    fn keep(&mut self, path: &Path) {
        fs::write(path, &self.input).expect("the input");
    }
}

/// The session that was made is whole, has all rows, and a report.
fn read_back(path: &Path, calls: u64) -> Result<(), String> {
    let session = Session::open(path).map_err(|e| format!("the session is not one: {e}"))?;
    if !session.problems().is_empty() {
        return Err(format!(
            "a new session has problems: {:?}",
            session.problems()
        ));
    }
    if session.rows("syscalls") != calls {
        return Err(format!(
            "{calls} calls made {} rows",
            session.rows("syscalls")
        ));
    }
    let db = Db::open(&session, Limits::default()).map_err(|e| format!("no SQL: {e}"))?;
    Report::build(&db, &session).map_err(|e| format!("no report: {e}"))?;
    Ok(())
}
