//! The thread between the rings and the session: merges, decodes, enriches and
//! hands rows to the writer.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_decode::capture::{self, CaptureError};
use fathom_enrich::MAX_FILE_BYTES;
use fathom_model::Batch;
use fathom_model::abi::{ShedKey, ShedValue};
use fathom_model::meta::{CountedFunction, Save, SessionMeta, Totals};
use fathom_model::raw::RawChunk;
use fathom_probe::{Losses, moment, system};
use fathom_session::{
    Finished, SaveRequest, SessionWriter, WriterOptions, create_private, discard, is_ours,
    open_regular,
};

use crate::backlog::{self, DecoderEnded, Entry, backlog, bytes_of};
use crate::pace::{Pace, Turn};
use crate::rules::RulesFeed;
use crate::stages::{ROWS_BYTES, Stages, Written};
use crate::trigger::Trigger;
use crate::{Options, RecordError, RowSink};

/// Limit of the recorder's resident memory, without its rings and the page's server: waiting
/// drained records, remembered files, rows, and the program itself.
pub const MEMORY_BYTES: usize = backlog::MEMORY_BYTES + MAX_FILE_BYTES + ROWS_BYTES + (64 << 20);

/// Buffers of decoded drains that are kept to drain into again.
const SPARE_BUFFERS: usize = 16;

/// How often rows are written when the session is watched: a call is to be seen within a
/// second, and on its way waits in the rings and in batches, too.
const WATCHED: Duration = Duration::from_millis(250);

type Capture = capture::Writer<BufWriter<File>>;

/// A pipeline that is not yet running. Dropped, it removes the session that it has made.
pub(crate) struct Pipeline {
    /// None once it runs.
    stages: Option<Stages>,
    raw: Option<Capture>,
    output: PathBuf,
    existed: bool,
    /// No reader needs the rows before the end.
    may_wait: bool,
}

/// The work of the thread.
struct Work {
    stages: Stages,
    raw: Option<Capture>,
    raw_failed: Option<CaptureError>,
    output: PathBuf,
    shared: Arc<Shared>,
    spare: SyncSender<Vec<u8>>,
    cpu_before: u64,
}

/// State shared by the thread and its client.
type Shared = Mutex<News>;

#[derive(Default)]
struct News {
    written: Written,
    /// Counts for session.json that have not been noted there.
    totals: Option<Totals>,
    /// Why what is kept is to be saved.
    wanted: Option<String>,
    /// Copies that were made, or could not be.
    saves: Vec<Save>,
    /// The latest copy that was reported.
    reported: Option<i64>,
    /// Functions of libraries whose calls are counted, which were not reported.
    counted: Vec<CountedFunction>,
}

/// Messages to the thread.
pub(crate) enum Message {
    /// Losses so far.
    Losses(Losses),
    /// Save the recording so far, with the losses until then.
    Save(SaveRequest, Losses),
    /// Calls that the kernel had counted at a time instead of recording them: by CPU, call,
    /// process, and file.
    Counted(u64, Vec<(ShedKey, ShedValue)>),
    /// Rows that are complete.
    Rows(Batch),
    /// The session is to be closed.
    Finish(Box<SessionMeta>, Losses),
}

pub(crate) struct Running {
    to: backlog::Sender<Message>,
    spare: Receiver<Vec<u8>>,
    /// Buffers of drains that wait in files.
    own_spare: Vec<Vec<u8>>,
    shared: Arc<Shared>,
    output: PathBuf,
    thread: Option<JoinHandle<Result<Completed, RecordError>>>,
    /// None where the threads are always urgent.
    pace: Option<Pace>,
    /// Copies under way.
    saving: usize,
}

/// A session that is complete.
pub(crate) struct Completed {
    /// Messages of the writer; its snapshots are the ones that were not reported before.
    pub(crate) finished: Finished,
    /// Functions of libraries that are counted and that [`Running::new_counted`] has not named.
    pub(crate) counted: Vec<CountedFunction>,
    /// Why the raw capture is not whole.
    pub(crate) raw_failed: Option<CaptureError>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl News {
    fn not_reported(&mut self) -> Vec<Save> {
        let reported = self.reported;
        let saves = self.saves.drain(..);
        let new: Vec<Save> = saves.filter(|s| Some(s.at_ns) > reported).collect();
        self.reported = reported.max(new.iter().map(|s| s.at_ns).max());
        new
    }
}

impl Pipeline {
    /// Makes the session in `output`.
    pub(crate) fn create(
        meta: &SessionMeta,
        output: &Path,
        options: &Options,
        trigger: Option<Trigger>,
        rules: Option<RulesFeed>,
    ) -> Result<Self, RecordError> {
        let existed = output.symlink_metadata().is_ok();
        let raw = match &options.raw {
            Some(path) => Some(create_capture(path, meta, options)?),
            None => None,
        };
        let defaults = WriterOptions::default();
        let writer = WriterOptions {
            force: options.force,
            durable: options.durable,
            share: options.share,
            part_interval: match options.watched {
                true => WATCHED,
                false => defaults.part_interval,
            },
            ..defaults
        };
        let writer = SessionWriter::create(output, meta.clone(), writer)?;
        Ok(Self {
            stages: Some(Stages::new(writer, meta, trigger, rules)),
            raw,
            output: output.to_owned(),
            existed,
            // Rows that are dropped again after a time, or watched, are wanted at once.
            may_wait: !options.watched && options.keep.is_empty(),
        })
    }

    /// Rows go to `sink`, too.
    pub(crate) fn also_to(&mut self, sink: Box<dyn RowSink>) {
        if let Some(stages) = &mut self.stages {
            stages.also_to(sink);
        }
    }

    pub(crate) fn start(mut self) -> Result<Running, RecordError> {
        let Some(stages) = self.stages.take() else {
            return Err(RecordError::Internal("the pipeline was started twice"));
        };
        system::return_large_buffers();
        let (to, from) = backlog(&self.output);
        let (spare_to, spare) = sync_channel(SPARE_BUFFERS);
        let shared = Arc::<Shared>::default();
        let may_wait = self.may_wait && !stages.is_looked_at();
        let mut threads = stages.threads().to_vec();
        let work = Work {
            stages,
            raw: self.raw.take(),
            raw_failed: None,
            output: self.output.clone(),
            shared: Arc::clone(&shared),
            spare: spare_to,
            // Loading the probes is over by now and does not count as recording.
            cpu_before: system::own_usage().0,
        };
        let (id, ids) = channel();
        let thread = std::thread::Builder::new()
            .name("fathom-rows".into())
            .spawn(move || {
                id.send(system::thread_id()).ok();
                work.run(&from)
            })
            .map_err(RecordError::system("can't start a thread"))?;
        threads.extend(ids.recv().ok());
        let pace = may_wait.then(|| Pace::start(threads, Arc::clone(to.depth())));
        let pace = pace
            .transpose()
            .map_err(RecordError::system("can't start a thread"))?;
        Ok(Running {
            to,
            spare,
            own_spare: Vec::new(),
            shared,
            output: self.output.clone(),
            thread: Some(thread),
            pace,
            saving: 0,
        })
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // Nothing was recorded: nothing is left behind.
        if let Some(stages) = self.stages.take() {
            drop(stages);
            if !self.existed {
                discard(&self.output).ok();
            }
        }
    }
}

fn create_capture(
    path: &Path,
    meta: &SessionMeta,
    options: &Options,
) -> Result<Capture, RecordError> {
    let removed = match options.force && is_old_capture(path) {
        true => fs::remove_file(path),
        false => Ok(()),
    };
    removed
        .and_then(|()| create_private(path, options.share))
        .map_err(CaptureError::from)
        .and_then(|file| capture::Writer::new(BufWriter::new(file), meta))
        .map_err(RecordError::capture("can't write the raw capture", path))
}

/// Whether a capture is at `path` that is this user's to replace.
fn is_old_capture(path: &Path) -> bool {
    open_regular(path).is_ok_and(|file| {
        let ours = file.metadata().is_ok_and(|meta| is_ours(meta.uid()));
        ours && capture::Reader::new(BufReader::new(file)).is_ok()
    })
}

impl Work {
    fn run(mut self, from: &backlog::Receiver<Message>) -> Result<Completed, RecordError> {
        let next = || {
            from.next()
                .map_err(RecordError::system("can't read the backlog"))
        };
        while let Some(entry) = next()? {
            let totals = lock(&self.shared).totals.take();
            if let Some(totals) = totals {
                self.stages.note_totals(totals);
                lock(&self.shared).saves = self.stages.saves();
            }
            match entry {
                Entry::Drained(chunks, watermark_ns) => {
                    let bytes = bytes_of(&chunks);
                    self.drained(chunks, watermark_ns)?;
                    from.freed(bytes);
                }
                Entry::Message(Message::Losses(losses)) => self.stages.note_losses(&losses)?,
                Entry::Message(Message::Save(request, losses)) => {
                    self.stages.save(request, &losses)?;
                }
                Entry::Message(Message::Counted(now_ns, values)) => {
                    self.stages.note_counted(now_ns, values)?;
                }
                Entry::Message(Message::Rows(rows)) => self.stages.store(rows)?,
                Entry::Message(Message::Finish(meta, losses)) => {
                    return self.finish(*meta, &losses);
                }
            }
        }
        Err(RecordError::Internal(
            "the recorder ended without closing the session",
        ))
    }

    fn drained(&mut self, chunks: Vec<RawChunk>, watermark_ns: u64) -> Result<(), RecordError> {
        self.write_raw(|raw| {
            chunks.iter().try_for_each(|chunk| raw.chunk(chunk))?;
            raw.watermark(watermark_ns)
        });
        self.stages.push(chunks, watermark_ns)?;
        while let Some(buffer) = self.stages.spare_buffer() {
            // At the end the other thread drains no more.
            self.spare.try_send(buffer).ok();
        }
        let written = self.stages.written();
        let mut news = lock(&self.shared);
        news.written = written;
        news.counted.extend(self.stages.new_counted());
        if let Some(because) = self.stages.wants_save() {
            news.wanted = Some(because);
        }
        Ok(())
    }

    /// After its first failure the raw capture is left alone: the session goes on without.
    fn write_raw(&mut self, write: impl FnOnce(&mut Capture) -> Result<(), CaptureError>) {
        if let Some(raw) = &mut self.raw
            && let Err(error) = write(raw)
        {
            self.raw_failed = Some(error);
            self.raw = None;
        }
    }

    fn finish(mut self, meta: SessionMeta, losses: &Losses) -> Result<Completed, RecordError> {
        self.write_raw(|raw| {
            raw.losses(&capture::Losses {
                per_cpu: losses.by_cpu.clone(),
                split: losses.split.clone(),
                cpus: losses.counters.clone(),
            })
        });
        if let Some(Err(error)) = self.raw.take().map(capture::Writer::finish) {
            self.raw_failed = Some(error);
        }
        // A condition that held in rows before may not have been answered yet.
        let found = lock(&self.shared).wanted.take();
        let output = &self.output;
        let save = |because: Option<String>| Some(save_request(output, &found.or(because)?));
        // The merges at the end take processor time and memory, too.
        let measured = |meta: &mut SessionMeta| {
            let (cpu_ns, peak_rss) = system::own_usage();
            meta.cost.recorder_cpu_ns = Some(cpu_ns.saturating_sub(self.cpu_before));
            meta.cost.recorder_peak_rss_bytes = Some(peak_rss);
        };
        let mut finished = self.stages.finish(meta, losses, save, measured)?;
        let mut news = lock(&self.shared);
        news.saves = std::mem::take(&mut finished.saves);
        finished.saves = news.not_reported();
        Ok(Completed {
            finished,
            counted: std::mem::take(&mut news.counted),
            raw_failed: self.raw_failed,
        })
    }
}

impl Running {
    /// The draining thread's work until this is dropped must not be held up.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.pace.as_ref().map(Pace::turn)
    }

    /// Hands over what was drained; everything before `watermark_ns` has been.
    /// Waits when the pipeline is behind and nothing has room for more.
    pub(crate) fn send(
        &mut self,
        chunks: Vec<RawChunk>,
        watermark_ns: u64,
    ) -> Result<(), RecordError> {
        let own_spare = &mut self.own_spare;
        match (self.to).drained(chunks, watermark_ns, |buffer| own_spare.push(buffer)) {
            Ok(()) => Ok(()),
            // The thread's own error says why.
            Err(DecoderEnded) => self.join().map(drop),
        }
    }

    /// Sends what the recording can go on without when the pipeline is gone: [`Running::send`]
    /// reports that.
    pub(crate) fn tell(&self, message: Message) {
        let _turn = self.turn();
        self.to.message(message).ok();
    }

    /// Counts for session.json. They do not wait for what was drained before: should the recorder be
    /// killed, they say what is missing.
    pub(crate) fn note_totals(&self, totals: Totals) {
        lock(&self.shared).totals = Some(totals);
    }

    /// Compressed bytes that wait in files.
    pub(crate) fn in_files(&self) -> u64 {
        self.to.depth().in_files()
    }

    /// From now on the user waits until all drained records are stored.
    pub(crate) fn hurry(&mut self) {
        self.pace = None;
    }

    /// Saves the recording so far next to the session, with the losses until then.
    pub(crate) fn save(&mut self, because: &str, losses: Losses) {
        self.saving += 1;
        self.wait_for_saves();
        self.tell(Message::Save(save_request(&self.output, because), losses));
    }

    /// Why what is kept is to be saved now; says so once for each save.
    pub(crate) fn wanted_save(&self) -> Option<String> {
        let _turn = self.turn();
        lock(&self.shared).wanted.take()
    }

    /// Copies that were made, or could not be, since the last time.
    pub(crate) fn new_saves(&mut self) -> Vec<Save> {
        let saves = lock(&self.shared).not_reported();
        self.saving = self.saving.saturating_sub(saves.len());
        self.wait_for_saves();
        saves
    }

    fn wait_for_saves(&self) {
        if let Some(pace) = &self.pace {
            pace.hurry(self.saving > 0);
        }
    }

    /// Functions of libraries whose calls are counted, since the last time.
    pub(crate) fn new_counted(&self) -> Vec<CountedFunction> {
        std::mem::take(&mut lock(&self.shared).counted)
    }

    /// Memory to drain into.
    pub(crate) fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.own_spare.pop().or_else(|| self.spare.try_recv().ok())
    }

    pub(crate) fn written(&self) -> Written {
        lock(&self.shared).written
    }

    /// Writes what is left and closes the session.
    pub(crate) fn finish(
        mut self,
        meta: SessionMeta,
        losses: Losses,
    ) -> Result<Completed, RecordError> {
        // If it can't be sent, the thread's own error says why.
        self.tell(Message::Finish(Box::new(meta), losses));
        self.join()
    }

    fn join(&mut self) -> Result<Completed, RecordError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(RecordError::Internal(
                "the thread that writes the session panicked",
            )),
            None => Err(RecordError::Internal(
                "the thread that writes the session ended",
            )),
        }
    }
}

/// A request to save, under a name next to the session in `output`.
fn save_request(output: &Path, because: &str) -> SaveRequest {
    let stem = output.file_stem().unwrap_or(output.as_os_str());
    let time = system::local_time_for_names();
    let free = |n: u32| -> PathBuf {
        let mut name = stem.to_owned();
        name.push(format!("-{time}"));
        if n > 0 {
            name.push(format!("-{n}"));
        }
        name.push(".fathom");
        output.with_file_name(name)
    };
    let to = (0..1000)
        .map(free)
        .find(|to| to.symlink_metadata().is_err());
    SaveRequest {
        to: to.unwrap_or_else(|| free(0)),
        because: because.to_owned(),
        at: moment(),
    }
}
