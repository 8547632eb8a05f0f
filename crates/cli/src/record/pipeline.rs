//! The thread between the rings and the session: merges, decodes, enriches and
//! hands rows to the writer.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use fathom_decode::capture;
use fathom_model::abi::{ShedKey, ShedValue};
use fathom_model::meta::{Save, SessionMeta, Totals};
use fathom_model::raw::RawChunk;
use fathom_probe::{Losses, system};
use fathom_session::{
    Finished, SaveRequest, SessionWriter, Share, WriterOptions, create_private, discard,
};

use super::{Feed, Watch, saving};
use crate::stages::Stages;

/// Drains that may wait for the pipeline, and their bytes; one alone may have more. When it
/// falls behind, the rings take what comes; what they can't take is counted as lost.
const WAITING: usize = 16;
/// As above.
pub const WAITING_BYTES: usize = 64 << 20;

/// How often rows are written when somebody looks on: a call is to be seen within a
/// second, and on its way waits in the rings and in batches, too.
const WATCHED: Duration = Duration::from_millis(250);

/// Where rows and records go.
pub struct Destination {
    /// Directory of the session.
    pub output: PathBuf,
    /// Replace a session that is there.
    pub force: bool,
    /// File for the kernel's records.
    pub raw: Option<PathBuf>,
    /// Who may read both besides their owner.
    pub share: Share,
    /// Flush what is stored to the device at once.
    pub durable: bool,
    /// Looks for a reason to save what is kept.
    pub watch: Option<Watch>,
    /// The rules, which look at rows.
    pub feed: Option<Feed>,
    /// Somebody looks on: write what there is sooner.
    pub watched: bool,
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
    Losses(Losses),
    Save(SaveRequest, Losses),
    Counted(Counted),
    Finish {
        meta: Box<SessionMeta>,
        losses: Losses,
    },
}

/// What the kernel has counted instead of recording it.
pub struct Counted {
    /// When the recording began.
    pub started_at_ns: u64,
    /// When it was read.
    pub now_ns: u64,
    /// By processor, call, process and file.
    pub values: Vec<(ShedKey, ShedValue)>,
}

/// News of saves.
#[derive(Default)]
struct Saves {
    /// Why what is kept is to be saved.
    wanted: Option<String>,
    /// Copies that were made, or could not be.
    made: Vec<Save>,
    /// Copies that were told before.
    told: Option<i64>,
}

impl Saves {
    fn not_told(&mut self) -> Vec<Save> {
        let told = self.told;
        let made = self.made.drain(..);
        let new: Vec<Save> = made.filter(|s| Some(s.at_ns) > told).collect();
        self.told = told.max(new.iter().map(|s| s.at_ns).max());
        new
    }
}

/// A running pipeline.
pub struct Running {
    to: SyncSender<Message>,
    spare: Receiver<Vec<u8>>,
    progress: Arc<Mutex<Progress>>,
    saves: Arc<Mutex<Saves>>,
    backlog: Arc<Backlog>,
    thread: JoinHandle<anyhow::Result<Finished>>,
}

impl Pipeline {
    /// Makes the session.
    pub fn create(meta: &SessionMeta, destination: Destination) -> anyhow::Result<Self> {
        let existed = destination.output.symlink_metadata().is_ok();
        let raw = destination
            .raw
            .as_ref()
            .map(|path| {
                let file = create_private(path, destination.share)
                    .with_context(|| format!("can't write the raw capture {}", path.display()))?;
                Ok::<_, anyhow::Error>(capture::Writer::new(BufWriter::new(file), meta)?)
            })
            .transpose()?;
        let mut options = WriterOptions {
            force: destination.force,
            durable: destination.durable,
            share: destination.share,
            ..WriterOptions::default()
        };
        if destination.watched {
            options.part_interval = WATCHED;
        }
        let writer = SessionWriter::create(&destination.output, meta.clone(), options)?;
        let mut stages = Stages::new(writer, &meta.options);
        if meta.history.keep.is_some() {
            stages = stages.ring(&meta.options, destination.watch);
        }
        let stages = stages.diagnosed(destination.feed);
        Ok(Self {
            stages,
            raw,
            output: destination.output,
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
            discard(&output).ok();
        }
    }

    /// Starts the thread.
    pub fn start(self) -> anyhow::Result<Running> {
        system::return_large_buffers();
        let (to, from) = sync_channel(WAITING);
        // Loading the probes is over by then and does not count as recording.
        let (cpu_before, _) = system::own_usage();
        let (spare_to, spare) = channel();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let shared = Arc::clone(&progress);
        let saves = Arc::new(Mutex::new(Saves::default()));
        let news = Arc::clone(&saves);
        let backlog = Arc::new(Backlog::default());
        let waiting = Arc::clone(&backlog);
        let thread = std::thread::Builder::new()
            .name("fathom-rows".into())
            .spawn(move || {
                let ended = Ended(&waiting);
                self.work(&from, &spare_to, (&shared, &news), ended.0, cpu_before)
            })
            .context("can't start a thread")?;
        Ok(Running {
            to,
            spare,
            progress,
            saves,
            backlog,
            thread,
        })
    }

    fn work(
        mut self,
        from: &Receiver<Message>,
        spare: &Sender<Vec<u8>>,
        (progress, saves): (&Mutex<Progress>, &Mutex<Saves>),
        backlog: &Backlog,
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
                    let bytes = bytes_of(&chunks);
                    self.stages.push(chunks, watermark_ns)?;
                    backlog.take(bytes);
                    while let Some(buffer) = self.stages.spare_buffer() {
                        spare.send(buffer).ok();
                    }
                    if let Ok(mut progress) = progress.lock() {
                        *progress = self.stages.progress();
                    }
                    if let Some(because) = self.stages.wants_save()
                        && let Ok(mut saves) = saves.lock()
                    {
                        saves.wanted = Some(because);
                    }
                }
                Message::Totals(totals) => {
                    self.stages.note_totals(totals);
                    let made = self.stages.saves();
                    if !made.is_empty()
                        && let Ok(mut saves) = saves.lock()
                    {
                        saves.made = made;
                    }
                }
                Message::Losses(losses) => self.stages.note_losses(&losses)?,
                Message::Save(request, losses) => self.stages.save(request, &losses)?,
                Message::Counted(counted) => {
                    let Counted {
                        started_at_ns,
                        now_ns,
                        values,
                    } = counted;
                    self.stages.note_counted(started_at_ns, now_ns, &values)?;
                }
                Message::Finish { meta, losses } => {
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
                    // What was found in rows before may not have been asked for yet.
                    let found = saves.lock().ok().and_then(|mut saves| saves.wanted.take());
                    let output = &self.output;
                    let save = |because: Option<String>| {
                        Some(saving::request(output, &found.or(because)?))
                    };
                    // The merges at the end take processor time and memory, too.
                    let measured = |meta: &mut SessionMeta| {
                        let (cpu_ns, peak_rss) = system::own_usage();
                        meta.cost.recorder_cpu_ns = Some(cpu_ns.saturating_sub(cpu_before));
                        meta.cost.recorder_peak_rss_bytes = Some(peak_rss);
                    };
                    let stages = self.stages;
                    return stages.finish(*meta, &losses.by_cpu, &losses.split, save, measured);
                }
            }
        }
        Err(anyhow!("the recorder ended without closing the session"))
    }
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

/// Bytes of the drains that wait for the pipeline or are in it.
#[derive(Default)]
struct Backlog {
    bytes: Mutex<usize>,
    less: Condvar,
}

impl Backlog {
    fn add(&self, bytes: usize) {
        let waiting = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |waiting: &mut usize| *waiting > 0 && *waiting + bytes > WAITING_BYTES;
        let mut waiting = self
            .less
            .wait_while(waiting, full)
            .unwrap_or_else(PoisonError::into_inner);
        *waiting += bytes;
    }

    fn take(&self, bytes: usize) {
        let mut waiting = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = waiting.saturating_sub(bytes);
        drop(waiting);
        self.less.notify_all();
    }
}

/// Takes all of it as the pipeline ends: nobody waits for a thread that is gone.
struct Ended<'a>(&'a Backlog);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.take(usize::MAX);
    }
}

fn bytes_of(chunks: &[RawChunk]) -> usize {
    chunks.iter().map(|chunk| chunk.bytes.len()).sum()
}

impl Running {
    /// Hands over what was drained; everything before `watermark_ns` has been.
    /// Waits when the pipeline is behind.
    pub fn send(&self, chunks: Vec<RawChunk>, watermark_ns: u64) -> anyhow::Result<()> {
        self.backlog.add(bytes_of(&chunks));
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

    /// What was lost so far.
    pub fn note_losses(&self, losses: Losses) {
        self.to.send(Message::Losses(losses)).ok();
    }

    /// Has what came so far saved, with what was lost until then.
    pub fn save(&self, request: SaveRequest, losses: Losses) {
        self.to.send(Message::Save(request, losses)).ok();
    }

    /// What the kernel has counted.
    pub fn note_counted(&self, counted: Counted) {
        self.to.send(Message::Counted(counted)).ok();
    }

    /// Why what is kept is to be saved now; tells each time once.
    pub fn wanted_save(&self) -> Option<String> {
        self.saves.lock().ok()?.wanted.take()
    }

    /// Copies that were made, or could not be, since the last time.
    pub fn new_saves(&self) -> Vec<Save> {
        match self.saves.lock() {
            Ok(mut saves) => saves.not_told(),
            Err(_) => Vec::new(),
        }
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

    /// Writes what is left and closes the session; its copies in what is returned are those of
    /// which [`Running::new_saves`] has not told.
    pub fn finish(self, meta: SessionMeta, losses: Losses) -> anyhow::Result<Finished> {
        let finish = Message::Finish {
            meta: Box::new(meta),
            losses,
        };
        // If it can't be sent, the thread's own error says why.
        self.to.send(finish).ok();
        drop(self.to);
        let finished = self
            .thread
            .join()
            .map_err(|_| anyhow!("the thread that writes the session panicked"))?;
        let mut finished = finished?;
        if let Ok(mut saves) = self.saves.lock() {
            saves.made = std::mem::take(&mut finished.saves);
            finished.saves = saves.not_told();
        }
        Ok(finished)
    }
}
