//! The thread between the rings and the session: merges, decodes, enriches and
//! hands rows to the writer.

use std::fs::{File, Permissions};
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use fathom_decode::capture;
use fathom_model::meta::{SessionMeta, Totals};
use fathom_model::raw::RawChunk;
use fathom_probe::{Losses, system};
use fathom_session::{Finished, SessionWriter, WriterOptions};

use crate::stages::Stages;

/// Drains that may wait for the pipeline. When it falls behind, the rings take
/// what comes; what they can't take is counted as lost.
const WAITING: usize = 16;

/// Where rows and records go.
pub struct Destination {
    /// Directory of the session.
    pub output: PathBuf,
    /// Replace a session that is there.
    pub force: bool,
    /// File for the kernel's records.
    pub raw: Option<PathBuf>,
}

/// A pipeline that is not yet running.
pub struct Pipeline {
    stages: Stages,
    raw: Option<capture::Writer<BufWriter<File>>>,
    output: PathBuf,
    existed: bool,
}

/// What the pipeline has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Rows of table syscalls on disk.
    pub rows: u64,
    /// Rows that could not be written.
    pub lost: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

enum Message {
    Drained {
        chunks: Vec<RawChunk>,
        watermark_ns: u64,
    },
    Totals(Totals),
    Finish {
        meta: Box<SessionMeta>,
        losses: Losses,
    },
}

/// A running pipeline.
pub struct Running {
    to: SyncSender<Message>,
    spare: Receiver<Vec<u8>>,
    progress: Arc<Mutex<Progress>>,
    thread: JoinHandle<anyhow::Result<Finished>>,
}

impl Pipeline {
    /// Makes the session.
    pub fn create(meta: &SessionMeta, destination: &Destination) -> anyhow::Result<Self> {
        let existed = destination.output.symlink_metadata().is_ok();
        let raw = destination
            .raw
            .as_ref()
            .map(|path| {
                let file = File::create_new(path)
                    .with_context(|| format!("can't write the raw capture {}", path.display()))?;
                Ok::<_, anyhow::Error>(capture::Writer::new(BufWriter::new(file), meta)?)
            })
            .transpose()?;
        let options = WriterOptions {
            force: destination.force,
            ..WriterOptions::default()
        };
        let writer = SessionWriter::create(&destination.output, meta.clone(), options)?;
        if meta.content.as_ref().is_some_and(|c| c.mode == "plain") {
            // What programs read and write is not for everybody to read.
            keep_private(&destination.output, 0o700)?;
            if let Some(raw) = &destination.raw {
                keep_private(raw, 0o600)?;
            }
        }
        Ok(Self {
            stages: Stages::new(writer, &meta.options),
            raw,
            output: destination.output.clone(),
            existed,
        })
    }

    /// Removes the session again, of which nothing was recorded.
    pub fn abandon(self) {
        let Self {
            stages,
            output,
            existed,
            ..
        } = self;
        drop(stages);
        if !existed {
            std::fs::remove_dir_all(output).ok();
        }
    }

    /// Starts the thread.
    pub fn start(self) -> anyhow::Result<Running> {
        let (to, from) = sync_channel(WAITING);
        // Loading the probes is over by then and does not count as recording.
        let (cpu_before, _) = system::own_usage();
        let (spare_to, spare) = channel();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let shared = Arc::clone(&progress);
        let thread = std::thread::Builder::new()
            .name("fathom-rows".into())
            .spawn(move || self.work(&from, &spare_to, &shared, cpu_before))
            .context("can't start a thread")?;
        Ok(Running {
            to,
            spare,
            progress,
            thread,
        })
    }

    fn work(
        mut self,
        from: &Receiver<Message>,
        spare: &Sender<Vec<u8>>,
        progress: &Mutex<Progress>,
        cpu_before: u64,
    ) -> anyhow::Result<Finished> {
        let mut raw_failed = None;
        for message in from {
            match message {
                Message::Drained {
                    chunks,
                    watermark_ns,
                } => {
                    if let Some(raw) = &mut self.raw
                        && let Err(error) = write_raw(raw, &chunks, watermark_ns)
                    {
                        raw_failed = Some(error);
                        self.raw = None;
                    }
                    self.stages.push(chunks, watermark_ns)?;
                    while let Some(buffer) = self.stages.spare_buffer() {
                        spare.send(buffer).ok();
                    }
                    if let Ok(mut progress) = progress.lock() {
                        *progress = self.stages.progress();
                    }
                }
                Message::Totals(totals) => self.stages.note_totals(totals),
                Message::Finish { mut meta, losses } => {
                    if let Some(mut raw) = self.raw.take() {
                        let losses = capture::Losses {
                            per_cpu: losses.by_cpu.clone(),
                            split: losses.split.clone(),
                            cpus: losses.counters.clone(),
                        };
                        let written = raw.losses(&losses).and_then(|()| raw.finish().map(drop));
                        raw_failed = written.err().or(raw_failed);
                    }
                    if let Some(error) = raw_failed {
                        eprintln!("fathom: the raw capture is incomplete: {error}");
                    }
                    let (cpu_ns, peak_rss) = system::own_usage();
                    meta.cost.recorder_cpu_ns = Some(cpu_ns.saturating_sub(cpu_before));
                    meta.cost.recorder_peak_rss_bytes = Some(peak_rss);
                    return self.stages.finish(*meta, &losses.by_cpu, &losses.split);
                }
            }
        }
        Err(anyhow!("the recorder ended without closing the session"))
    }
}

fn keep_private(path: &Path, mode: u32) -> anyhow::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("can't make {} private", path.display()))
}

fn write_raw(
    raw: &mut capture::Writer<BufWriter<File>>,
    chunks: &[RawChunk],
    watermark_ns: u64,
) -> Result<(), capture::CaptureError> {
    for chunk in chunks {
        raw.chunk(chunk)?;
    }
    raw.watermark(watermark_ns)
}

impl Running {
    /// Hands over what was drained; everything before `watermark_ns` has been.
    /// Waits when the pipeline is behind.
    pub fn send(&self, chunks: Vec<RawChunk>, watermark_ns: u64) -> anyhow::Result<()> {
        self.to
            .send(Message::Drained {
                chunks,
                watermark_ns,
            })
            .map_err(|_| anyhow!("the thread that writes the session ended"))
    }

    /// Counts for session.json.
    pub fn note_totals(&self, totals: Totals) {
        // When the thread is gone, `send` says so.
        self.to.try_send(Message::Totals(totals)).ok();
    }

    /// Memory to drain into.
    pub fn spare_buffer(&self) -> Option<Vec<u8>> {
        self.spare.try_recv().ok()
    }

    /// What has been done so far.
    pub fn stats(&self) -> Progress {
        self.progress
            .lock()
            .map(|progress| *progress)
            .unwrap_or_default()
    }

    /// Writes what is left and closes the session.
    pub fn finish(self, meta: SessionMeta, losses: Losses) -> anyhow::Result<Finished> {
        let finish = Message::Finish {
            meta: Box::new(meta),
            losses,
        };
        // If it can't be sent, the thread's own error says why.
        self.to.send(finish).ok();
        drop(self.to);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that writes the session panicked"))?
    }
}
