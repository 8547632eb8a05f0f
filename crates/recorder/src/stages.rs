//! Records to rows, and rows to a session: decode -> enrich -> session, for recordings and
//! replays alike.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fathom_decode::Merge;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::Batch;
use fathom_model::abi::{ShedKey, ShedValue};
use fathom_model::layers;
use fathom_model::meta::{CountedFunction, Save, SessionMeta, Totals};
use fathom_model::protocols::Protocols;
use fathom_model::raw::RawChunk;
use fathom_probe::{Losses, system};
use fathom_session::{Finished, REFRESH, SaveRequest, SessionWriter};

use crate::rules::RulesFeed;
use crate::trigger::Trigger;
use crate::{RecordError, RowSink};

/// Rows that are handed over at once.
const BATCH_ROWS: usize = 32 * 1024;
/// Bytes of their strings with which fewer are: contents add up.
const BATCH_BYTES: usize = 32 << 20;
/// Time after which fewer are.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Memory of rows on their way from records to the disk, whose texts take up to one page each: the
/// batch being filled, and the batches that the writer encodes and merges.
pub(crate) const ROWS_BYTES: usize = 768 << 20;

/// Files that are remembered where old rows are dropped, for days perhaps: one that was not used
/// for long gets another id when it is used again.
const MAX_FILES_KEPT: usize = 1 << 16;
/// Their memory.
pub(crate) const MAX_FILE_BYTES_KEPT: usize = 64 << 20;

/// The state of the written rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Rows of table syscalls on disk.
    pub(crate) rows: u64,
    /// Rows that could not be written.
    pub(crate) lost: u64,
    pub(crate) bytes: u64,
}

/// Records to rows.
pub(crate) struct Decoder {
    merge: Merge,
    pub(crate) enricher: Enricher,
}

impl Decoder {
    /// `keeps_all`: no row is dropped as long as the recording goes on. `calls_left_out`: filters
    /// leave out some of the calls that moved the position of a descriptor. `faults_left_out`:
    /// they may leave out some of the faults on files. `spans`: protocols whose requests are looked
    /// for; `plain_spans`: their texts are stored as they are.
    pub(crate) fn new(
        keeps_all: bool,
        (calls_left_out, faults_left_out): (bool, bool),
        spans: Protocols,
        plain_spans: bool,
    ) -> Self {
        let options = EnrichOptions {
            calls_left_out,
            faults_left_out,
            spans,
            plain_spans,
            ..EnrichOptions::default()
        };
        let options = match keeps_all {
            true => options,
            false => EnrichOptions {
                max_files: MAX_FILES_KEPT,
                max_file_bytes: MAX_FILE_BYTES_KEPT,
                refresh_ns: Some(REFRESH.as_nanos() as u64),
                ..options
            },
        };
        Self {
            merge: Merge::new(),
            enricher: Enricher::new(options),
        }
    }

    /// Takes records; everything before `watermark_ns` has been pushed. `hand_over` takes the rows
    /// when they are many.
    pub(crate) fn push<E>(
        &mut self,
        chunks: Vec<RawChunk>,
        watermark_ns: u64,
        mut hand_over: impl FnMut(&mut Enricher) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { merge, enricher } = self;
        for chunk in chunks {
            merge.push(chunk);
        }
        let mut handed = Ok(());
        merge.drain_until(watermark_ns, |cpu, event| {
            enricher.event(cpu, event);
            let full =
                enricher.pending_rows() >= BATCH_ROWS || enricher.pending_bytes() >= BATCH_BYTES;
            if full && handed.is_ok() {
                handed = hand_over(enricher);
            }
        });
        handed
    }

    /// Makes rows of what is left: everything has been pushed.
    pub(crate) fn end(&mut self) {
        let Self { merge, enricher } = self;
        merge.drain_all(|cpu, event| enricher.event(cpu, event));
        enricher.finish();
    }

    /// A buffer of a chunk that has been decoded.
    pub(crate) fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.merge.spare_buffer()
    }

    /// Records that could not be decoded, of calls most of all.
    pub(crate) fn damaged(&self) -> u64 {
        let stats = self.merge.stats();
        stats.slot.damaged + stats.wide.damaged
    }
}

/// The stages behind the probe.
pub(crate) struct Stages {
    decoder: Decoder,
    sink: Sink,
    started_at_ns: u64,
    /// Everything before it has been decoded.
    watermark_ns: u64,
    /// The kernel's counters at times up to which records are not decoded yet.
    counted: VecDeque<(u64, Vec<(ShedKey, ShedValue)>)>,
    last_batch: Instant,
    /// Functions whose calls are counted that were reported.
    reported: usize,
}

/// Where rows go.
struct Sink {
    writer: SessionWriter,
    trigger: Option<Trigger>,
    rules: Option<RulesFeed>,
    also: Option<Box<dyn RowSink>>,
}

impl Sink {
    fn take(&mut self, enricher: &mut Enricher) -> Result<(), RecordError> {
        let batches = enricher.take();
        if let Some(rules) = &mut self.rules {
            rules.offer(&batches);
        }
        if let Some(also) = &mut self.also {
            also.rows(&batches);
        }
        for batch in batches {
            if let Some(trigger) = &mut self.trigger {
                trigger.look(&batch);
            }
            if !batch.is_empty() {
                self.writer.append(batch)?;
            }
        }
        Ok(())
    }
}

impl Stages {
    /// Stages that end in `writer`, for a recording that says `meta` of itself.
    pub(crate) fn new(
        writer: SessionWriter,
        meta: &SessionMeta,
        trigger: Option<Trigger>,
        rules: Option<RulesFeed>,
    ) -> Self {
        let keeps_all = meta.history.keep.is_none();
        let calls_left_out = meta.options.leave_calls_out();
        // A filter by process leaves out no fault of a recorded process.
        let mut filters = meta.options.filters.iter();
        let faults_left_out = calls_left_out || filters.any(|filter| !filter.starts_with("--pid "));
        let spans = meta.spans.as_ref().map(|spans| &spans.protocols[..]);
        let spans = Protocols::parse(spans.unwrap_or_default()).unwrap_or_default();
        let plain = meta
            .content
            .as_ref()
            .is_some_and(|content| content.mode == "plain");
        Self {
            decoder: Decoder::new(keeps_all, (calls_left_out, faults_left_out), spans, plain),
            sink: Sink {
                writer,
                trigger,
                rules,
                also: None,
            },
            started_at_ns: meta.clock.start_monotonic_ns as u64,
            watermark_ns: 0,
            counted: VecDeque::new(),
            last_batch: Instant::now(),
            reported: 0,
        }
    }

    /// The kernel's ids of the threads that store rows.
    pub(crate) fn threads(&self) -> &[i32] {
        self.sink.writer.threads()
    }

    /// Whether rows are looked at while they are recorded.
    pub(crate) fn is_looked_at(&self) -> bool {
        let Sink {
            trigger,
            rules,
            also,
            ..
        } = &self.sink;
        trigger.is_some() || rules.is_some() || also.is_some()
    }

    /// Rows go to `sink`, too.
    pub(crate) fn also_to(&mut self, sink: Box<dyn RowSink>) {
        self.sink.also = Some(sink);
    }

    /// Takes records; everything before `watermark_ns` has been pushed.
    pub(crate) fn push(
        &mut self,
        chunks: Vec<RawChunk>,
        watermark_ns: u64,
    ) -> Result<(), RecordError> {
        let Self { decoder, sink, .. } = self;
        decoder.push(chunks, watermark_ns, |enricher| sink.take(enricher))?;
        self.watermark_ns = watermark_ns;
        self.hand_counted_over(watermark_ns)?;
        if self.last_batch.elapsed() >= BATCH_TIME {
            self.last_batch = Instant::now();
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), RecordError> {
        self.sink.take(&mut self.decoder.enricher)
    }

    /// Functions of libraries whose calls are counted, since the last time.
    pub(crate) fn new_counted(&mut self) -> Vec<CountedFunction> {
        let counted = self.decoder.enricher.counted_functions();
        let new = counted.get(self.reported..).unwrap_or_default().to_vec();
        self.reported = counted.len();
        new
    }

    /// A buffer of a chunk that has been decoded.
    pub(crate) fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.decoder.spare_buffer()
    }

    /// Why what is kept is to be saved now.
    pub(crate) fn wants_save(&mut self) -> Option<String> {
        self.sink.trigger.as_mut()?.take()
    }

    /// Stores what was lost so far.
    pub(crate) fn note_losses(&mut self, losses: &Losses) -> Result<(), RecordError> {
        let enricher = &mut self.decoder.enricher;
        let rows = enricher.losses(&losses.by_cpu, &losses.split);
        if !rows.is_empty() {
            self.sink.writer.append(rows)?;
        }
        Ok(())
    }

    /// Saves what has come so far, with what was lost until then.
    pub(crate) fn save(
        &mut self,
        request: SaveRequest,
        losses: &Losses,
    ) -> Result<(), RecordError> {
        self.hand_over()?;
        self.note_losses(losses)?;
        self.sink.writer.save(request);
        Ok(())
    }

    /// Copies that were made, or could not be.
    pub(crate) fn saves(&self) -> Vec<Save> {
        self.sink.writer.saves()
    }

    /// Takes what the kernel has counted until `now_ns`, instead of recording it.
    pub(crate) fn note_counted(
        &mut self,
        now_ns: u64,
        values: Vec<(ShedKey, ShedValue)>,
    ) -> Result<(), RecordError> {
        self.counted.push_back((now_ns, values));
        self.hand_counted_over(self.watermark_ns)
    }

    /// Stores what the kernel has counted until `until_ns`. A process counts before its name is decoded,
    /// so the rows of all processes and files until then are handed over first.
    fn hand_counted_over(&mut self, until_ns: u64) -> Result<(), RecordError> {
        let is_due = |(at_ns, _): &(u64, _)| *at_ns <= until_ns;
        while self.counted.front().is_some_and(is_due)
            && let Some((now_ns, values)) = self.counted.pop_front()
        {
            self.hand_over()?;
            let enricher = &mut self.decoder.enricher;
            let rows = enricher.counters(self.started_at_ns, now_ns, &values);
            if !rows.is_empty() {
                if let Some(also) = &mut self.sink.also {
                    also.rows(std::slice::from_ref(&rows));
                }
                self.sink.writer.append(rows)?;
            }
        }
        Ok(())
    }

    /// Stores rows that are complete.
    pub(crate) fn store(&mut self, rows: Batch) -> Result<(), RecordError> {
        Ok(self.sink.writer.append(rows)?)
    }

    /// The state on disk.
    pub(crate) fn written(&self) -> Written {
        let stats = self.sink.writer.stats();
        let calls = stats.tables.iter().find(|table| table.table == "syscalls");
        Written {
            rows: calls.map_or(0, |calls| calls.rows),
            lost: stats.lost,
            bytes: stats.bytes_on_disk,
        }
    }

    /// Counts for session.json.
    pub(crate) fn note_totals(&self, totals: Totals) {
        self.sink.writer.update_totals(totals);
    }

    /// Writes what is left and closes the session with `meta`, into which `measured` puts what
    /// is known only then. `save` gets the condition that holds in the last rows, if one does, and
    /// decides whether to save.
    pub(crate) fn finish(
        mut self,
        mut meta: SessionMeta,
        losses: &Losses,
        save: impl FnOnce(Option<String>) -> Option<SaveRequest>,
        measured: impl FnOnce(&mut SessionMeta),
    ) -> Result<Finished, RecordError> {
        self.push(Vec::new(), u64::MAX)?;
        self.decoder.end();
        self.hand_over()?;
        let wanted = self.wants_save();
        // The rules end when nothing feeds them any more.
        self.sink.rules = None;
        self.note_losses(losses)?;
        let Self { decoder, sink, .. } = self;
        let writer = sink.writer;
        if let Some(damaged) = decoder.enricher.decode_losses(&decoder.merge.stats()) {
            writer.append(damaged)?;
        }
        if let Some(request) = save(wanted) {
            writer.save(request);
        }
        if let Some(content) = &mut meta.content {
            let counts = decoder.enricher.content();
            content.calls = counts.calls;
            content.capped = counts.capped;
            content.unreadable = counts.unreadable;
            content.no_room = counts.no_room;
        }
        if let Some(spans) = &mut meta.spans {
            let counts = decoder.enricher.spans();
            spans.recorded = counts.recorded;
            spans.unread = counts.unread;
            spans.unfinished = counts.unfinished;
            spans.unrecognized = counts.unrecognized;
            spans.gaps = counts.gaps;
            spans.encrypted = counts.encrypted;
            spans.tls_calls = counts.tls;
            spans.usdt_seen = counts.usdt;
            spans.usdt_rows = counts.usdt_rows;
            spans.usdt_unpaired = counts.usdt_unpaired;
            spans.contexts = counts.contexts;
            spans.context_spans = counts.context_spans;
            let unreadable = losses
                .counters
                .iter()
                .map(|(_, cpu)| cpu.contexts_unreadable);
            spans.contexts_unreadable = unreadable.sum();
        }
        if let Some(budget) = &mut meta.library_budget {
            budget.counted = decoder.enricher.counted_functions().to_vec();
        }
        meta.totals.offsets_unknown = decoder.enricher.offsets_unknown();
        let damaged = decoder.damaged();
        // It remembers as much as the merges at the end need.
        drop(decoder);
        system::release_memory();
        let calls = losses
            .by_cpu
            .iter()
            .filter(|(_, call, _)| !layers::lost_is_other(*call));
        let lost: u64 = calls.map(|(_, _, value)| value.count).sum();
        meta.totals.lost = lost + damaged;
        Ok(writer.finish_with(meta, measured)?)
    }
}
