//! A recording at work: drains the rings until the target ends, and completes the session.

use std::time::{Duration, Instant};

use fathom_model::Batch;
use fathom_model::escape;
use fathom_model::meta::{Cost, CountedFunction, Counts, SessionMeta, Totals};
use fathom_model::raw::RawChunk;
use fathom_model::units;
use fathom_probe::{Arrived, CONTEXT, KernelStats, LIBRARY, USDT, moment, monotonic_ns, system};

use crate::claims::Claims;
use crate::machine::Machine;
use crate::pipeline::{self, Message};
use crate::rules::Rules;
use crate::running::RunningTarget;
use crate::source::RecordSource;
use crate::stalls::Stalls;
use crate::tail::Tailing;
use crate::{Control, Observer, Progress, RecordError, Summary};

/// How long the rings may fill before they are drained.
pub(crate) const BUSY: Duration = Duration::from_millis(10);
/// The same when nothing has come lately.
const IDLE: Duration = Duration::from_millis(50);
/// When "lately" ends.
const LATELY: Duration = Duration::from_secs(1);
/// Records this much younger than a drain may still be on their way.
pub(crate) const IN_FLIGHT_NS: u64 = 5_000_000;
/// How often counts are looked at and the observer gets news.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// How often details are stored that would die with the recorder.
const DETAILS: Duration = Duration::from_secs(1);

/// A recording at work.
pub(crate) struct Drain<S> {
    source: S,
    pipeline: pipeline::Running,
    rules: Option<Rules>,
    meta: SessionMeta,
    started: Instant,
    deadline: Option<Instant>,
    /// Calls that were counted so far, where not all calls have rows.
    counted: Option<u64>,
    tailing: Option<Tailing>,
    stalls: Option<Stalls>,
    machine: Option<Machine>,
    /// Names the claims of volumes.
    pub(crate) claims: Option<Claims>,
    /// Names of functions of libraries whose calls are counted.
    counted_functions: Vec<String>,
    /// Losses of which table `losses` has the details.
    stored_losses: u64,
    /// Times at which something was in the rings, and the last one.
    drains: u64,
    last_record: Instant,
    housekeeping: Instant,
    details: Instant,
}

impl<S: RecordSource> Drain<S> {
    pub(crate) fn new(
        source: S,
        pipeline: pipeline::Running,
        rules: Option<Rules>,
        meta: SessionMeta,
        (started, duration): (Instant, Option<Duration>),
        (counts, tailing): (bool, Option<Tailing>),
        (stalls, machine): (Option<Stalls>, Option<Machine>),
    ) -> Self {
        Self {
            source,
            pipeline,
            rules,
            meta,
            started,
            deadline: duration.map(|duration| started + duration),
            counted: counts.then_some(0),
            tailing,
            stalls,
            machine,
            claims: None,
            counted_functions: Vec::new(),
            stored_losses: 0,
            drains: 0,
            last_record: started,
            housekeeping: started,
            details: started,
        }
    }

    /// Records until the target ends, time is over or `control` asks for the end, and completes
    /// the session. `first` are records that no ring holds.
    pub(crate) fn run(
        mut self,
        first: Vec<RawChunk>,
        target: &mut RunningTarget,
        control: &mut dyn Control,
        observer: &mut dyn Observer,
    ) -> Result<Summary, RecordError> {
        self.pipeline.send(first, 0)?;
        while !self.turn(target, control, observer)? {
            control
                .wait(self.pause(), target.pidfd())
                .map_err(RecordError::system("cannot wait for signals"))?;
        }
        // The user waits for the session now.
        self.pipeline.hurry();
        self.settle()?;
        observer.ended();
        self.look_at_claims(Claims::finish, observer);
        let waiting = self.pipeline.in_files();
        if waiting > 0 {
            observer.note(&format!(
                "storing the records that wait to be decoded ({} compressed)",
                units::bytes(i64::try_from(waiting).unwrap_or(i64::MAX))
            ));
        }
        self.complete(target, observer)
    }

    /// One look at everything; true when the recording is over.
    fn turn(
        &mut self,
        target: &mut RunningTarget,
        control: &mut dyn Control,
        observer: &mut dyn Observer,
    ) -> Result<bool, RecordError> {
        let turn = self.pipeline.turn();
        if self.drain(monotonic_ns().saturating_sub(IN_FLIGHT_NS))? > 0 {
            self.drains += 1;
            self.last_record = Instant::now();
        }
        let housekeeping = self.housekeeping.elapsed() >= HOUSEKEEPING;
        if housekeeping {
            self.housekeeping = Instant::now();
            self.report(observer);
        }
        // The kernel's counters may take longer than a drain may be held up.
        drop(turn);
        if let (true, Some(tailing)) = (housekeeping, &mut self.tailing) {
            tailing.look(&self.source, observer)?;
        }
        if self.details.elapsed() >= DETAILS {
            self.details = Instant::now();
            self.store_details()?;
            self.look_at_claims(Claims::take, observer);
        }
        let arrived = control
            .take()
            .map_err(RecordError::system("cannot read signals"))?;
        let (saves, ends): (Vec<Arrived>, Vec<Arrived>) =
            arrived.into_iter().partition(Arrived::asks_to_save);
        if let Some(because) = self.pipeline.wanted_save() {
            self.save(&because)?;
        }
        if let Some(stalls) = &mut self.stalls
            && let Some(because) = stalls.look(&mut self.source, observer)?
        {
            self.save(&because)?;
        }
        if !saves.is_empty() {
            self.save("signal")?;
        }
        if let Some(because) = control.wants_save() {
            self.save(&because)?;
        }
        let source = &self.source;
        let ended = target
            .has_ended(|| source.live_tasks(), &ends, observer)
            .map_err(RecordError::system("cannot wait for the command"))?;
        let over = self.deadline.is_some_and(|at| Instant::now() >= at);
        Ok(ended || over || control.wants_end())
    }

    /// Time until the next turn.
    fn pause(&self) -> Duration {
        let pause = match self.last_record.elapsed() > LATELY {
            true => IDLE,
            false => BUSY,
        };
        match self.deadline {
            Some(at) => pause.min(at.saturating_duration_since(Instant::now())),
            None => pause,
        }
    }

    /// Takes what the rings hold and hands it on; returns its bytes.
    fn drain(&mut self, watermark_ns: u64) -> Result<usize, RecordError> {
        let mut chunks = Vec::new();
        while let Some(buffer) = self.pipeline.spare_buffer() {
            self.source.recycle(buffer);
        }
        self.source.drain(&mut chunks);
        let bytes = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        self.pipeline.send(chunks, watermark_ns)?;
        Ok(bytes)
    }

    /// Reports the progress of the recording to the observer and the session.
    fn report(&mut self, observer: &mut dyn Observer) {
        for save in self.pipeline.new_saves() {
            observer.saved(&save);
        }
        for finding in self.rules.iter().flat_map(Rules::news) {
            observer.found(&finding);
        }
        let counted = self.pipeline.new_counted();
        report_counted(&counted, observer);
        self.counted_functions
            .extend(counted.into_iter().map(|function| function.function));
        let counters = self.source.counters();
        let written = self.pipeline.written();
        let waiting = self.pipeline.in_files();
        let totals = self.totals(&counters);
        observer.progress(&Progress {
            elapsed: self.started.elapsed(),
            seen: totals.seen,
            lost: counters.lost + written.lost,
            ring_peak: self.source.ring_peak(),
            bytes: written.bytes,
            waiting,
        });
        self.pipeline.note_totals(Totals {
            stored: written.rows,
            lost: counters.lost,
            ..totals
        });
    }

    /// Stores what a recorder that is killed could not store any more.
    fn store_details(&mut self) -> Result<(), RecordError> {
        self.count()?;
        self.look_at_machine();
        let counters = self.source.counters();
        let lost = counters.lost + counters.faults.1 + counters.writeback.1;
        if lost != self.stored_losses {
            self.stored_losses = lost;
            self.pipeline.tell(Message::Losses(self.source.losses()?));
        }
        Ok(())
    }

    /// Saves what came so far. Counters wait for the records before them, which name their processes and
    /// files, so these records are drained first.
    fn save(&mut self, because: &str) -> Result<(), RecordError> {
        self.count()?;
        std::thread::sleep(Duration::from_nanos(IN_FLIGHT_NS));
        self.drain(monotonic_ns().saturating_sub(IN_FLIGHT_NS))?;
        self.pipeline.save(because, self.source.losses()?);
        Ok(())
    }

    /// Reads the counters that stand for calls.
    fn count(&mut self) -> Result<(), RecordError> {
        if let Some(counted) = &mut self.counted {
            let now_ns = monotonic_ns();
            let values = self.source.take_counted()?;
            *counted += values.iter().map(|(_, value)| value.count).sum::<u64>();
            self.pipeline.tell(Message::Counted(now_ns, values));
        }
        Ok(())
    }

    /// Stores what the machine has done since the last time.
    fn look_at_machine(&mut self) {
        if let Some(rows) = self.machine.as_mut().and_then(Machine::row) {
            self.pipeline.tell(Message::Rows(rows));
        }
    }

    /// Stores the claims that were named since the last time.
    fn look_at_claims(
        &mut self,
        take: fn(&mut Claims) -> (Option<Batch>, Vec<String>),
        observer: &mut dyn Observer,
    ) {
        let Some((rows, failures)) = self.claims.as_mut().map(take) else {
            return;
        };
        if let Some(rows) = rows {
            self.pipeline.tell(Message::Rows(rows));
        }
        for failure in failures {
            observer.warning(&failure);
        }
    }

    /// Ends what the kernel does, and takes what is left there.
    fn settle(&mut self) -> Result<(), RecordError> {
        self.source.stop()?;
        self.meta.clock.end(moment());
        let at_start = self.meta.clock.wall_error_ns;
        // Of the two ends the worse one; without a bound at one of them there is none.
        self.meta.clock.wall_error_ns =
            at_start.zip(system::wall_error_ns()).map(|(a, b)| a.max(b));
        self.look_at_machine();
        self.drain(u64::MAX)?;
        self.count()
    }

    /// Closes the session, and says what came of it.
    fn complete(
        mut self,
        target: &RunningTarget,
        observer: &mut dyn Observer,
    ) -> Result<Summary, RecordError> {
        let counters = self.source.counters();
        let losses = self.source.losses()?;
        let duration = self.started.elapsed();
        let totals = self.totals(&counters);
        let probe_ns_per_call = counters.ns_per_call();
        if let (Some(tail), Some(tailing)) = (&mut self.meta.options.tail, self.tailing.take()) {
            tail.steps = tailing.steps();
        }
        let meta = SessionMeta {
            exit_status: target.exit_status(),
            cost: Cost {
                probe_ns_per_call,
                probe_ns: probe_ns_per_call.map(|ns| (ns * totals.seen as f64) as u64),
                target_cpu_ns: target.cpu_ns(),
                drains: self.drains,
                ring_peak: Some(self.source.ring_peak()),
                ..self.meta.cost
            },
            totals,
            // With the runs that the kernel left out.
            hooks: self.source.hooks().to_vec(),
            ..self.meta
        };
        let done = self.pipeline.finish(meta, losses)?;
        for save in &done.finished.saves {
            observer.saved(save);
        }
        if let Some(error) = done.raw_failed {
            observer.warning(&format!("the raw capture is incomplete: {error}"));
        }
        if let Some(error) = &done.finished.last_error {
            observer.warning(error);
        }
        for text in missing(&counters) {
            observer.warning(&text);
        }
        // Counting may have begun in records that were decoded after the end.
        report_counted(&done.counted, observer);
        if counters.layers.user_calls_counted > 0 {
            let late = done.counted.into_iter().map(|function| function.function);
            self.counted_functions.extend(late);
            observer.warning(&format!(
                "{} library calls have no row, they were counted: {} (--library-budget)",
                units::count(i64::try_from(counters.layers.user_calls_counted).unwrap_or(i64::MAX)),
                names(&self.counted_functions),
            ));
        }
        for hook in self.source.hooks().iter().filter(|hook| hook.skipped > 0) {
            observer.warning(&format!(
                "the kernel skipped hook {} {} times: the data of these runs is missing",
                hook.name, hook.skipped
            ));
        }
        let hooks = self.source.hooks().iter().filter(|hook| !hook.attached);
        for hook in hooks.filter(|hook| {
            [LIBRARY, USDT, CONTEXT]
                .iter()
                .any(|name| hook.name.starts_with(name))
        }) {
            observer.warning(&format!("{}: {}", hook.name, hook.note));
        }
        Ok(Summary {
            totals: done.finished.totals,
            lost_in_rings: counters.lost,
            bytes: done.finished.bytes_on_disk,
            duration,
            probe_ns_per_call,
            found: self.rules.and_then(|rules| rules.finish(observer)),
        })
    }

    /// Counts as the kernel side has them, and what crossed from there.
    fn totals(&self, counters: &KernelStats) -> Totals {
        let counts = |(seen, lost): (u64, u64)| Counts {
            seen,
            lost,
            ..Counts::default()
        };
        let counted = self.counted.unwrap_or_default();
        Totals {
            seen: counters.seen + counted,
            counted,
            compat: counters.compat,
            records: self.source.records(),
            faults: counts(counters.faults),
            faults_unknown: counters.faults_unknown,
            writeback: counts(counters.writeback),
            layers: counters.layers,
            ..Totals::default()
        }
    }
}

/// Up to 8 names of functions, and how many others there are.
fn names(functions: &[String]) -> String {
    let known = functions.iter().take(8);
    let mut names: Vec<String> = known.map(|name| escape::text(name).into_owned()).collect();
    if let Some(more) = functions.len().checked_sub(8).filter(|more| *more > 0) {
        names.push(format!("and {more} others"));
    }
    names.join(", ")
}

/// Says which functions of libraries are counted from now on.
fn report_counted(counted: &[CountedFunction], observer: &mut dyn Observer) {
    for function in counted {
        let file = function.library.rsplit('/').next().unwrap_or_default();
        observer.note(&format!(
            "{} of {} was called {} times in {}: its further calls are counted and have no rows \
             (--library-budget)",
            escape::text(&function.function),
            escape::text(file),
            units::count(i64::try_from(function.calls).unwrap_or(i64::MAX)),
            units::duration(i64::try_from(function.in_ns).unwrap_or(i64::MAX)),
        ));
    }
}

/// Data missing from the recording other than its losses.
fn missing(counters: &KernelStats) -> Vec<String> {
    let mut missing = Vec::new();
    if counters.compat > 0 {
        missing.push(format!(
            "{} calls by 32-bit programs are not recorded",
            counters.compat
        ));
    }
    if counters.untracked > 0 {
        missing.push(format!(
            "{} threads are not recorded: the kernel had no memory for their state",
            counters.untracked
        ));
    }
    if counters.faults_unknown > 0 {
        missing.push(format!(
            "{} page faults are not recorded: it is unknown whether they were on a file, because their \
             mappings could not be looked up",
            counters.faults_unknown
        ));
    }
    missing
}

#[cfg(test)]
mod tests;
