//! Records to rows on disk: decode -> enrich -> session, for recordings and
//! replays alike.

use std::time::{Duration, Instant};

use fathom_decode::Merge;
use fathom_enrich::{EnrichOptions, Enricher, MAX_FILE_BYTES};
use fathom_model::abi::{ShedKey, ShedValue, lost_is_other};
use fathom_model::meta::{Options, Save, SessionMeta, Totals};
use fathom_model::raw::RawChunk;
use fathom_probe::{Losses, system};
use fathom_session::{Finished, REFRESH, SaveRequest, SessionWriter};

use crate::record::{Feed, WAITING_BYTES, Watch};

/// Rows that are handed to the writer at once.
pub const BATCH_ROWS: usize = 32 * 1024;
/// Bytes of their strings with which fewer are: contents add up.
const BATCH_BYTES: usize = 32 << 20;
/// Time after which fewer are.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// The stages behind the probe.
pub struct Stages {
    merge: Merge,
    enricher: Enricher,
    writer: SessionWriter,
    watch: Watchers,
    last_batch: Instant,
}

/// Who looks at rows as they pass.
#[derive(Default)]
struct Watchers {
    save: Option<Watch>,
    findings: Option<Feed>,
}

/// Memory of rows on their way from records to the disk, whose texts have up to a page of
/// memory each: the batch that is filled, those that the writer encodes and merges.
const ROWS_BYTES: usize = 768 << 20;
/// What the recorder's resident memory stays below, besides its rings and the page that it may
/// serve: drained records that wait, files that are remembered, rows, and the program itself.
pub const MEMORY_BYTES: usize = WAITING_BYTES + MAX_FILE_BYTES + ROWS_BYTES + (64 << 20);

/// Files that a recording remembers which goes on for days: one that was not used
/// for long gets another id when it is used again.
pub const FILES_OF_A_RING: usize = 1 << 16;
/// Their memory.
const FILE_BYTES_OF_A_RING: usize = 64 << 20;

impl Stages {
    /// Stages that end in `writer`; `options` are those of the recording.
    pub fn new(writer: SessionWriter, options: &Options) -> Self {
        Self {
            merge: Merge::new(),
            enricher: Enricher::new(EnrichOptions {
                calls_left_out: options.leave_calls_out(),
                ..EnrichOptions::default()
            }),
            writer,
            watch: Watchers::default(),
            last_batch: Instant::now(),
        }
    }

    /// For a session that keeps its latest rows only; `watch` looks for a reason to
    /// save them.
    pub fn ring(mut self, options: &Options, watch: Option<Watch>) -> Self {
        self.enricher = Enricher::new(EnrichOptions {
            calls_left_out: options.leave_calls_out(),
            max_files: FILES_OF_A_RING,
            max_file_bytes: FILE_BYTES_OF_A_RING,
            refresh_ns: Some(REFRESH.as_nanos() as u64),
            ..EnrichOptions::default()
        });
        self.watch.save = watch;
        self
    }

    /// Rows are shown to the rules, too.
    pub fn diagnosed(mut self, feed: Option<Feed>) -> Self {
        self.watch.findings = feed;
        self
    }

    /// Why what is kept is to be saved now.
    pub fn wants_save(&mut self) -> Option<String> {
        self.watch.save.as_mut()?.take()
    }

    /// Stores what was lost so far.
    pub fn note_losses(&mut self, losses: &Losses) -> anyhow::Result<()> {
        let rows = self.enricher.losses(&losses.by_cpu, &losses.split);
        if !rows.is_empty() {
            self.writer.append(rows)?;
        }
        Ok(())
    }

    /// Saves what has come so far, with what was lost until then.
    pub fn save(&mut self, request: SaveRequest, losses: &Losses) -> anyhow::Result<()> {
        hand_over(&mut self.enricher, &self.writer, &mut self.watch)?;
        self.note_losses(losses)?;
        self.writer.save(request);
        Ok(())
    }

    /// Copies that were made, or could not be.
    pub fn saves(&self) -> Vec<Save> {
        self.writer.saves()
    }

    /// Stores what the kernel has counted instead of recording it.
    pub fn note_counted(
        &mut self,
        started_at_ns: u64,
        now_ns: u64,
        read: &[(ShedKey, ShedValue)],
    ) -> anyhow::Result<()> {
        let rows = self.enricher.counters(started_at_ns, now_ns, read);
        if !rows.is_empty() {
            self.writer.append(rows)?;
        }
        Ok(())
    }

    /// Takes records; everything before `watermark_ns` has been pushed.
    pub fn push(&mut self, chunks: Vec<RawChunk>, watermark_ns: u64) -> anyhow::Result<()> {
        for chunk in chunks {
            self.merge.push(chunk);
        }
        let Self {
            merge,
            enricher,
            writer,
            watch,
            ..
        } = self;
        let mut failed = Ok(());
        merge.drain_until(watermark_ns, |cpu, event| {
            enricher.event(cpu, event);
            let full =
                enricher.pending_rows() >= BATCH_ROWS || enricher.pending_bytes() >= BATCH_BYTES;
            if full && failed.is_ok() {
                failed = hand_over(enricher, writer, watch);
            }
        });
        failed?;
        if self.last_batch.elapsed() >= BATCH_TIME {
            self.last_batch = Instant::now();
            hand_over(&mut self.enricher, &self.writer, &mut self.watch)?;
        }
        Ok(())
    }

    /// A buffer of a chunk that has been decoded.
    pub fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.merge.spare_buffer()
    }

    /// What is on disk.
    pub fn progress(&self) -> crate::record::Progress {
        let stats = self.writer.stats();
        let rows = stats
            .tables
            .iter()
            .find(|t| t.table == "syscalls")
            .map_or(0, |t| t.rows);
        crate::record::Progress {
            rows,
            lost: stats.lost,
            bytes: stats.bytes_on_disk,
        }
    }

    /// Counts for session.json.
    pub fn note_totals(&self, totals: Totals) {
        self.writer.update_totals(totals);
    }

    /// Writes what is left and closes the session with `meta`, into which `measured` puts what
    /// is known only then. If there is a reason in the last rows to save what is kept, `save`
    /// tells where.
    pub fn finish(
        mut self,
        mut meta: SessionMeta,
        lost: &[(u32, u32, ShedValue)],
        split: &[(ShedKey, ShedValue)],
        save: impl FnOnce(Option<String>) -> Option<SaveRequest>,
        measured: impl FnOnce(&mut SessionMeta),
    ) -> anyhow::Result<Finished> {
        self.push(Vec::new(), u64::MAX)?;
        let Self {
            mut merge,
            mut enricher,
            writer,
            mut watch,
            ..
        } = self;
        merge.drain_all(|cpu, event| enricher.event(cpu, event));
        enricher.finish();
        hand_over(&mut enricher, &writer, &mut watch)?;
        let wanted = watch.save.as_mut().and_then(Watch::take);
        // The rules end when nothing feeds them any more.
        drop(watch);
        let losses = enricher.losses(lost, split);
        if !losses.is_empty() {
            writer.append(losses)?;
        }
        let stats = merge.stats();
        if let Some(damaged) = enricher.decode_losses(&stats) {
            writer.append(damaged)?;
        }
        if let Some(request) = save(wanted) {
            writer.save(request);
        }
        if let Some(content) = &mut meta.content {
            let counts = enricher.content();
            content.calls = counts.calls;
            content.capped = counts.capped;
            content.unreadable = counts.unreadable;
            content.no_room = counts.no_room;
        }
        meta.totals.offsets_unknown = enricher.offsets_unknown();
        // What it remembers is as much as the merges at the end need.
        drop((merge, enricher));
        system::release_memory();
        let calls_lost: u64 = lost
            .iter()
            .filter(|(_, call, _)| !lost_is_other(*call))
            .map(|(_, _, value)| value.count)
            .sum();
        meta.totals.lost = calls_lost + stats.slot.damaged + stats.wide.damaged;
        Ok(writer.finish_with(meta, measured)?)
    }
}

fn hand_over(
    enricher: &mut Enricher,
    writer: &SessionWriter,
    watch: &mut Watchers,
) -> anyhow::Result<()> {
    let batches = enricher.take();
    if let Some(feed) = &mut watch.findings {
        feed.offer(&batches);
    }
    for batch in batches {
        if let Some(save) = &mut watch.save {
            save.look(&batch);
        }
        if !batch.is_empty() {
            writer.append(batch)?;
        }
    }
    Ok(())
}
