//! Raw captures become sessions, by the same stages as a recording and without privilege.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fathom_decode::capture::{self, CaptureError, Frame, Reader};
use fathom_model::meta::Totals;
use fathom_probe::Losses;
use fathom_session::{SessionWriter, WriterOptions};

use crate::stages::Stages;
use crate::{Observer, RecordError};

/// Makes the session `output` from the raw capture `path`; the observer learns about missing data.
///
/// # Errors
/// When the capture cannot be read at all, or the session not be written.
pub fn replay(
    path: &Path,
    output: &Path,
    options: WriterOptions,
    observer: &mut dyn Observer,
) -> Result<Totals, RecordError> {
    let mut reader = File::open(path)
        .map_err(CaptureError::from)
        .and_then(|file| Reader::new(BufReader::new(file)))
        .map_err(RecordError::capture("can't read the capture", path))?;
    let mut meta = reader.meta().clone();
    let writer = SessionWriter::create(output, meta.clone(), options)?;
    let mut stages = Stages::new(writer, &meta, None, None);
    let mut losses = capture::Losses::default();
    loop {
        match reader.next_frame() {
            Ok(Some(Frame::Chunk(chunk))) => stages.push(vec![chunk], 0)?,
            Ok(Some(Frame::Watermark(ns))) => stages.push(Vec::new(), ns)?,
            Ok(Some(Frame::Losses(last))) => losses = *last,
            Ok(None) => break,
            Err(error) => {
                observer.warning(&format!("{}: {error}", path.display()));
                break;
            }
        }
    }
    if !reader.is_complete() {
        observer.warning(&format!(
            "{} has no end: its recording was cut off; the session has what was there",
            path.display()
        ));
    }
    // The capture's header was written at the start.
    meta.totals.seen = losses.cpus.iter().map(|(_, cpu)| cpu.calls()).sum();
    for (_, cpu) in &losses.cpus {
        meta.totals.faults.seen += cpu.faults + cpu.faults_lost;
        meta.totals.faults.lost += cpu.faults_lost;
        meta.totals.faults_unknown += cpu.faults_unknown;
        meta.totals.writeback.seen += cpu.writebacks + cpu.writebacks_lost;
        meta.totals.writeback.lost += cpu.writebacks_lost;
        meta.totals.layers.add(cpu);
    }
    meta.totals.compat = losses.cpus.iter().map(|(_, cpu)| cpu.compat).sum();
    let losses = Losses {
        by_cpu: losses.per_cpu,
        split: losses.split,
        counters: Vec::new(),
    };
    let finished = stages.finish(meta, &losses, |_| None, |_| {})?;
    Ok(finished.totals)
}
