//! `fathom replay`: a raw capture becomes a session, by the same path as a
//! recording and without privilege.

use std::fs::File;
use std::io::BufReader;

use anyhow::Context;
use fathom_decode::capture::{Frame, Losses, Reader};
use fathom_session::{SessionWriter, WriterOptions};

use crate::args::ReplayArgs;
use crate::exit::Failure;
use crate::stages::Stages;

/// Runs `replay` and returns the exit status.
pub fn run(args: &ReplayArgs) -> Result<u8, Failure> {
    replay(args).map_err(Failure::input)
}

fn replay(args: &ReplayArgs) -> anyhow::Result<u8> {
    let open = || format!("can't read the capture {}", args.capture.display());
    let file = File::open(&args.capture).with_context(open)?;
    let mut reader = Reader::new(BufReader::new(file)).with_context(open)?;
    let mut meta = reader.meta().clone();
    let options = WriterOptions {
        force: args.force,
        share: args.share.share(),
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&args.output, meta.clone(), options)?;
    let mut stages = Stages::new(writer, &meta.options);
    let mut losses = Losses::default();
    loop {
        match reader.next_frame() {
            Ok(Some(Frame::Chunk(chunk))) => stages.push(vec![chunk], 0)?,
            Ok(Some(Frame::Watermark(ns))) => stages.push(Vec::new(), ns)?,
            Ok(Some(Frame::Losses(last))) => losses = *last,
            Ok(None) => break,
            Err(error) => {
                eprintln!("fathom: {}: {error}", args.capture.display());
                break;
            }
        }
    }
    if !reader.is_complete() {
        eprintln!(
            "fathom: {} has no end: its recording was cut off; the session has what was there",
            args.capture.display()
        );
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
    let finished = stages.finish(meta, &losses.per_cpu, &losses.split, |_| None, |_| {})?;
    eprintln!(
        "fathom: {} calls, {} lost, in {}",
        finished.totals.stored,
        finished.totals.lost,
        args.output.display()
    );
    Ok(0)
}
