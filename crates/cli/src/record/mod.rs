//! `fathom record`: probe -> pipeline -> session, until the end.

mod content;
mod counting;
pub mod filters;
#[cfg_attr(not(feature = "analyse"), path = "no_findings.rs")]
mod findings;
mod host;
#[cfg(feature = "analyse")]
mod page;
mod pipeline;
mod saving;
mod status;
mod target;

use anyhow::anyhow;
use fathom_model::layers::{Layer, LayerSet};
use fathom_probe::usual_layers;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::meta::{
    Clock, Cost, Counts, Options, PerfCounter, Records, Save, SessionMeta, State, Totals,
};
use fathom_model::raw::RawChunk;
use fathom_model::tables::SCHEMA_VERSION;
use fathom_probe::{
    Command, Conditions, Detail, PerfCounters, Probe, ProbeError, ProbeOptions, Selection, Signals,
    User, monotonic_ns, realtime_ns, system,
};

use crate::args::{DetailArg, RecordArgs};
use crate::exit::Failure;
use content::Choice;
pub use findings::Feed;
pub use host::describe as describe_host;
use pipeline::{Counted, Destination, Pipeline};
pub use pipeline::{Progress, WAITING_BYTES};
pub use saving::Watch;
use status::StatusLine;
use target::{Ended, Target};

/// How long the rings may fill before they are drained.
pub const BUSY: Duration = Duration::from_millis(10);
/// The same when nothing has come lately.
const IDLE: Duration = Duration::from_millis(50);
/// Records this much younger than a drain may still be on their way.
pub const IN_FLIGHT_NS: u64 = 5_000_000;
/// How readily the kernel ends the recorder when memory runs out: only where it alone has used
/// nearly all of it.
const OOM_SCORE: i32 = -900;
/// How often counters, task counts and the status line are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// Runs `record` and returns the exit status.
pub fn run(args: RecordArgs) -> Result<u8, Failure> {
    let selection = Selection::parse(&args.syscalls).map_err(Failure::input)?;
    let user = args
        .user
        .as_deref()
        .map(User::named)
        .transpose()
        .map_err(Failure::input)?;
    let counters = matches!(args.detail, DetailArg::Counters);
    if !counters && args.keep.count_files {
        return Err(Failure::input(anyhow!(
            "--count-files says what to count: add --detail counters"
        )));
    }
    if counters && (!args.keep.keep.is_empty() || args.raw.is_some()) {
        return Err(Failure::input(anyhow!(
            "--detail counters makes no rows to keep and no records: leave --keep and --raw out"
        )));
    }
    if counters && args.stacks {
        return Err(Failure::input(anyhow!(
            "--stacks is about single calls, which --detail counters does not record: leave one out"
        )));
    }
    let perf_counters = PerfCounters::parse(&args.counters).map_err(Failure::input)?;
    if counters && !perf_counters.is_empty() {
        return Err(Failure::input(anyhow!(
            "--counters is about single calls, which --detail counters does not record: leave \
             one out"
        )));
    }
    let keep = saving::keep(&args.keep).map_err(Failure::input)?;
    let watch = Watch::of(&args.keep).map_err(Failure::input)?;
    let detail = match args.detail {
        DetailArg::Counters if args.keep.count_files => Detail::Fds,
        DetailArg::Counters => Detail::Raw,
        DetailArg::Raw => Detail::Raw,
        DetailArg::Fds => Detail::Fds,
        DetailArg::Full => Detail::Full,
    };
    let layers = match args.layers[..] {
        // Counts are those of calls.
        _ if counters => LayerSet::default().with(Layer::Syscall),
        [] => usual_layers(&selection),
        _ => LayerSet::parse(&args.layers).map_err(Failure::input)?,
    };
    let content = Choice::of(&args)?;
    let filters = filters::of(&args, &selection).map_err(Failure::input)?;
    let pids = filters.pids().to_vec();
    let open_ended = filters.open_ended();
    let options = ProbeOptions {
        layers,
        detail,
        selection,
        // Only files and tasks go through the rings then.
        ring_mib: if counters {
            args.ring_mib.min(4)
        } else {
            args.ring_mib
        },
        all_tasks: args.command.is_empty() && pids.is_empty(),
        follow: !args.command.is_empty() || args.children,
        content: content.content,
        content_max: content.max_bytes,
        filters,
        counters,
        stacks: args.stacks,
        perf_counters,
    };
    // Before threads are started, so that all inherit the blocked signals.
    let mut signals = Signals::block().map_err(Failure::recording)?;
    let nice = system::nice();
    // The recorder must not wait for the program that fills its rings. Without
    // the right to do so it goes on as it is: losses are counted.
    system::set_nice(nice - 10);
    // When memory runs out the recording is what tells why: others are to go first. The command
    // has it as it was.
    let oom_score = system::oom_score();
    if oom_score.is_some_and(|score| score > OOM_SCORE) {
        system::set_oom_score(OOM_SCORE);
    }
    let mut probe = Probe::load(&options).map_err(|error| match error {
        ProbeError::NoFilter(_) => Failure::input(error),
        _ => Failure::recording(error),
    })?;
    probe.attach().map_err(Failure::recording)?;

    let output = args.output.clone().unwrap_or_else(|| default_output(&args));
    let mut meta = metadata(&args, if counters { "counters" } else { detail.name() });
    meta.history.keep = keep;
    meta.content = content.meta();
    if let Some(warning) = content.warning() {
        eprintln!("fathom: {warning}");
    }
    meta.hooks = probe.hooks().to_vec();
    meta.layers = probe.layers();
    meta.cost.recorder_limit_bytes = memory_limit(&args, &probe);
    if let (true, Some(hook)) = (args.stacks, probe.missing_stacks()) {
        eprintln!("fathom: --stacks: {}", hook.note);
    }
    meta.perf_counters = probe.perf_counters().to_vec();
    for line in refused_counters(&meta.perf_counters) {
        eprintln!("fathom: {line}");
    }
    if !args.layers.is_empty() {
        for hook in probe.hooks().iter().filter(|hook| !hook.attached) {
            if let Some(layer) = hook.name.strip_prefix("layer ") {
                eprintln!("fathom: --layers {layer}: {}", hook.note);
            }
        }
    }
    let (feed, findings) = rules(&args, &meta, &output).map_err(Failure::recording)?;
    let destination = Destination {
        output: output.clone(),
        force: args.force,
        raw: args.raw.clone(),
        share: args.share.share(),
        durable: args.keep.durable,
        watch,
        feed,
        #[cfg(feature = "analyse")]
        watched: args.page.ui,
        #[cfg(not(feature = "analyse"))]
        watched: false,
    };
    let pipeline = Pipeline::create(&meta, destination).map_err(Failure::recording)?;
    #[cfg(feature = "analyse")]
    let page = match page::Page::start(&args.page, &output, &signals, (nice, oom_score)) {
        Ok(page) => page,
        Err(failure) => {
            pipeline.abandon();
            return Err(failure);
        }
    };
    let started = Instant::now();
    let mut first = Vec::new();
    let mut target = if args.command.is_empty() {
        match probe.adopt(&pids) {
            Ok(tasks) => first.push(tasks),
            Err(error) => {
                pipeline.abandon();
                return Err(match error {
                    ProbeError::NoProcess { .. } | ProbeError::Itself(_) => Failure::input(error),
                    _ => Failure::recording(error),
                });
            }
        }
        Target::running(open_ended)
    } else {
        let conditions = Conditions {
            user,
            preserve_environment: args.preserve_env,
            mask: signals.original(),
            nice,
            oom_score,
        };
        let spawned = Command::spawn(&args.command, conditions, |pidfd| {
            probe.record_from_exec(pidfd)
        });
        match spawned {
            Ok(command) => Target::command(command),
            Err(error) => {
                // Nothing ran: nothing is left behind.
                pipeline.abandon();
                return Err(Failure::with_status(error.exit_status(), error));
            }
        }
    };
    let pipeline = pipeline.start().map_err(Failure::recording)?;

    let recording = Recording {
        status: StatusLine::new(!args.quiet && std::io::stderr().is_terminal()),
        deadline: args.duration.map(|duration| started + duration),
        started,
        probe,
        pipeline,
        output: output.clone(),
        quiet: args.quiet,
        started_at_ns: meta.clock.start_monotonic_ns as u64,
        stored_losses: 0,
        each_second: Instant::now(),
        counting: counters.then(counting::Counting::default),
    };
    let result = recording.run(&mut target, &mut signals, first, meta);
    if let Some(score) = oom_score {
        system::set_oom_score(score);
    }
    let summary = match result {
        Ok(summary) => summary,
        Err(error) => {
            // The program is not to suffer from what happened to its recorder.
            let status = target.wait_for_command(&mut signals);
            eprintln!(
                "fathom: the recording failed: {}; {} has what was stored before",
                Failure::recording(error),
                output.display()
            );
            return Ok(status.map_or(125, |status| if status == 0 { 125 } else { status }));
        }
    };
    // Before the line about them; nobody waits for them at a recording without.
    let found = match findings {
        Some(findings) => findings.finish(&output).map(|line| (true, line)),
        None if args.quiet || !std::io::stderr().is_terminal() => None,
        None => findings::in_passing(&output, summary.totals.stored).map(|line| (false, line)),
    };
    if !args.quiet {
        status::print_summary(&output, args.output.is_some(), &summary, found);
    }
    let status = target.wait_for_command(&mut signals).unwrap_or(0);
    #[cfg(feature = "analyse")]
    if let Some(page) = page {
        page.stay(&target, &mut signals);
    }
    Ok(status)
}

/// The rules, if they are to look at rows as they are recorded.
#[cfg(feature = "analyse")]
fn rules(
    args: &RecordArgs,
    meta: &SessionMeta,
    output: &Path,
) -> std::io::Result<(Option<Feed>, Option<findings::Findings>)> {
    if !args.diagnose {
        return Ok((None, None));
    }
    let (feed, findings) = findings::start(meta, output, args.quiet)?;
    Ok((Some(feed), Some(findings)))
}

#[cfg(not(feature = "analyse"))]
fn rules(
    _: &RecordArgs,
    _: &SessionMeta,
    _: &Path,
) -> std::io::Result<(Option<Feed>, Option<findings::Findings>)> {
    Ok((None, None))
}

/// A recording at work.
struct Recording {
    probe: Probe,
    pipeline: pipeline::Running,
    status: StatusLine,
    started: Instant,
    deadline: Option<Instant>,
    output: PathBuf,
    quiet: bool,
    started_at_ns: u64,
    /// Losses of which table `losses` has the details.
    stored_losses: u64,
    /// When that was looked at last.
    each_second: Instant,
    /// With `--detail counters`.
    counting: Option<counting::Counting>,
}

/// What came of a recording.
pub struct Summary {
    /// Counts.
    pub totals: Totals,
    /// Calls that found no room in the kernel's rings.
    pub lost_in_rings: u64,
    /// Bytes of the session on disk.
    pub bytes: u64,
    /// How long it took.
    pub duration: Duration,
    /// What the probes took of each call, nanoseconds.
    pub probe_ns_per_call: Option<f64>,
}

impl Recording {
    /// Records until the end.
    fn run(
        mut self,
        target: &mut Target,
        signals: &mut Signals,
        first: Vec<RawChunk>,
        meta: SessionMeta,
    ) -> anyhow::Result<Summary> {
        self.pipeline.send(first, 0)?;
        let mut drains = 0;
        let mut housekeeping = Instant::now();
        let mut last_record = Instant::now();
        loop {
            let now = monotonic_ns();
            let drained = self.drain(now.saturating_sub(IN_FLIGHT_NS))?;
            drains += u64::from(drained > 0);
            if drained > 0 {
                last_record = Instant::now();
            }
            if housekeeping.elapsed() >= HOUSEKEEPING {
                housekeeping = Instant::now();
                self.report_progress();
                if self.each_second.elapsed() >= Duration::from_secs(1) {
                    self.each_second = Instant::now();
                    self.store_details()?;
                }
            }
            if let Some(because) = self.pipeline.wanted_save() {
                self.save(&because)?;
            }
            let mut asked = signals.take()?;
            if asked.iter().any(|signal| signal.asks_to_save()) {
                asked.retain(|signal| !signal.asks_to_save());
                self.save("signal")?;
            }
            if target.update(&self.probe, &asked, &mut self.status)? == Ended::Yes
                || self
                    .deadline
                    .is_some_and(|deadline| Instant::now() >= deadline)
            {
                break;
            }
            let pause = if last_record.elapsed() > Duration::from_secs(1) {
                IDLE
            } else {
                BUSY
            };
            let until_deadline = self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now()))
                .unwrap_or(pause);
            signals.wait(pause.min(until_deadline), target.pidfd())?;
        }
        self.finish(target, meta, drains)
    }

    /// Takes what the rings hold and hands it on; returns its bytes.
    fn drain(&mut self, watermark_ns: u64) -> anyhow::Result<usize> {
        let mut chunks = Vec::new();
        while let Some(buffer) = self.pipeline.spare_buffer() {
            self.probe.recycle(buffer);
        }
        self.probe.drain(&mut chunks);
        let bytes = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        self.pipeline.send(chunks, watermark_ns)?;
        Ok(bytes)
    }

    fn records(&self) -> Records {
        let crossed = self.probe.crossed();
        Records {
            calls: crossed.calls,
            files: crossed.files,
            tasks: crossed.tasks,
        }
    }

    /// Saves what came so far.
    fn save(&mut self, because: &str) -> anyhow::Result<()> {
        self.count()?;
        let losses = self.probe.losses()?;
        let request = saving::request(&self.output, because);
        self.pipeline.save(request, losses);
        Ok(())
    }

    /// Stores what a recorder that is killed could not store any more.
    fn store_details(&mut self) -> anyhow::Result<()> {
        self.count()?;
        let counters = self.probe.counters();
        let lost = counters.lost + counters.faults.1 + counters.writeback.1;
        if lost != self.stored_losses {
            self.stored_losses = lost;
            self.pipeline.note_losses(self.probe.losses()?);
        }
        Ok(())
    }

    /// Reads the counters of `--detail counters`.
    fn count(&mut self) -> anyhow::Result<()> {
        let Some(counting) = &mut self.counting else {
            return Ok(());
        };
        let now_ns = monotonic_ns();
        let values = counting.read(&mut self.probe)?;
        let started_at_ns = self.started_at_ns;
        self.pipeline.note_counted(Counted {
            started_at_ns,
            now_ns,
            values,
        });
        Ok(())
    }

    fn counted(&self) -> u64 {
        self.counting.as_ref().map_or(0, counting::Counting::total)
    }

    fn report_progress(&mut self) {
        tell_saves(&self.pipeline.new_saves(), self.quiet);
        let counters = self.probe.counters();
        let seen = counters.seen + self.counted();
        let stats = self.pipeline.stats();
        self.pipeline.note_totals(Totals {
            seen,
            stored: stats.rows,
            counted: self.counted(),
            lost: counters.lost,
            compat: counters.compat,
            records: self.records(),
            ..pagecache_totals(&counters)
        });
        self.status.show(&status::Progress {
            elapsed: self.started.elapsed(),
            seen,
            lost: counters.lost + stats.lost,
            ring: self.probe.ring_peak(),
            bytes: stats.bytes,
        });
    }

    fn finish(
        mut self,
        target: &Target,
        mut meta: SessionMeta,
        drains: u64,
    ) -> anyhow::Result<Summary> {
        self.probe.stop()?;
        meta.clock.end_monotonic_ns = Some(monotonic_ns() as i64);
        meta.clock.end_realtime_ns = Some(realtime_ns() as i64);
        self.drain(u64::MAX)?;
        let counters = self.probe.counters();
        self.count()?;
        let losses = self.probe.losses()?;
        let seen = counters.seen + self.counted();
        meta.exit_status = target.exit_status();
        let probe_ns_per_call = counters.ns_per_call();
        meta.cost = Cost {
            probe_ns_per_call,
            probe_ns: probe_ns_per_call.map(|ns| (ns * seen as f64) as u64),
            // Filled in by the pipeline, which works longest.
            recorder_cpu_ns: None,
            target_cpu_ns: target.cpu_ns(),
            recorder_peak_rss_bytes: None,
            recorder_limit_bytes: meta.cost.recorder_limit_bytes,
            drains,
            ring_peak: Some(self.probe.ring_peak()),
        };
        self.status.clear();
        let duration = self.started.elapsed();
        meta.totals = Totals {
            seen,
            counted: self.counted(),
            compat: counters.compat,
            records: self.records(),
            ..pagecache_totals(&counters)
        };
        // With the runs that the kernel left out.
        meta.hooks = self.probe.hooks().to_vec();
        let finished = self.pipeline.finish(meta, losses)?;
        tell_saves(&finished.saves, self.quiet);
        if let Some(error) = &finished.last_error {
            eprintln!("fathom: {error}");
        }
        for note in notes(&counters) {
            eprintln!("fathom: {note}");
        }
        for hook in self.probe.hooks().iter().filter(|hook| hook.skipped > 0) {
            eprintln!(
                "fathom: the kernel left hook {} out {} times: what it would have recorded is missing",
                hook.name, hook.skipped
            );
        }
        Ok(Summary {
            totals: finished.totals,
            lost_in_rings: counters.lost,
            bytes: finished.bytes_on_disk,
            duration,
            probe_ns_per_call,
        })
    }
}

fn tell_saves(saves: &[Save], quiet: bool) {
    for save in saves {
        match &save.error {
            Some(error) => eprintln!("fathom: nothing was saved: {error}"),
            None if quiet => {}
            None => eprintln!("fathom: saved {} ({})", save.path, save.because),
        }
    }
}

/// What to say of counters that were asked for and are not there: those with one reason in
/// one line.
fn refused_counters(asked: &[PerfCounter]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for counter in asked.iter().filter(|counter| !counter.counted) {
        match reasons.iter_mut().find(|(note, _)| *note == counter.note) {
            Some((_, names)) => names.push(&counter.name),
            None => reasons.push((&counter.note, vec![&counter.name])),
        }
    }
    let line = |(note, names): (&str, Vec<&str>)| {
        format!("--counters {}: not recorded: {note}", names.join(","))
    };
    reasons.into_iter().map(line).collect()
}

/// Counts of page faults and write-back as the kernel side has them.
fn pagecache_totals(counters: &fathom_probe::Counters) -> Totals {
    let counts = |(seen, lost): (u64, u64)| Counts {
        seen,
        lost,
        ..Counts::default()
    };
    Totals {
        faults: counts(counters.faults),
        faults_unknown: counters.faults_unknown,
        writeback: counts(counters.writeback),
        layers: counters.layers,
        ..Totals::default()
    }
}

/// What the user should know about the recording besides its losses.
fn notes(counters: &fathom_probe::Counters) -> Vec<String> {
    let mut notes = Vec::new();
    if counters.compat > 0 {
        notes.push(format!(
            "{} calls by 32-bit programs are not recorded",
            counters.compat
        ));
    }
    if counters.untracked > 0 {
        notes.push(format!(
            "{} threads are not recorded: the kernel had no memory for their state",
            counters.untracked
        ));
    }
    if counters.faults_unknown > 0 {
        notes.push(format!(
            "{} page faults are not recorded: nobody knows whether they were on a file, as their \
             mappings could not be looked up",
            counters.faults_unknown
        ));
    }
    notes
}

fn default_output(args: &RecordArgs) -> PathBuf {
    let pid = args.filter.pid.first().filter(|pid| !pid.starts_with('!'));
    let name = match (args.command.first(), pid) {
        (Some(program), _) => Path::new(program)
            .file_name()
            .map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned()),
        (None, Some(pid)) => format!("pid-{pid}"),
        (None, None) => "all".to_string(),
    };
    PathBuf::from(format!("{name}-{}.fathom", system::local_time_for_names()))
}

/// What the recorder's memory stays below; nothing is promised when it serves a page, too.
fn memory_limit(args: &RecordArgs, probe: &Probe) -> Option<u64> {
    #[cfg(feature = "analyse")]
    if args.page.ui {
        return None;
    }
    #[cfg(not(feature = "analyse"))]
    let _ = args;
    Some(crate::stages::MEMORY_BYTES as u64 + probe.ring_bytes())
}

fn metadata(args: &RecordArgs, detail: &str) -> SessionMeta {
    let clock = Clock {
        start_monotonic_ns: monotonic_ns() as i64,
        start_realtime_ns: realtime_ns() as i64,
        end_monotonic_ns: None,
        end_realtime_ns: None,
    };
    let lossy = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
    let filters = filters::as_given(&args.filter);
    let target = if args.all {
        "--all".to_string()
    } else if args.command.is_empty() {
        filters::target(&filters)
    } else {
        String::new()
    };
    let mut other = Vec::new();
    // What names no layer has been refused.
    if !args.layers.is_empty()
        && let Ok(layers) = LayerSet::parse(&args.layers)
    {
        other.push(format!("--layers {}", layers.names()));
    }
    // So has what names no counter.
    if let Ok(counters) = PerfCounters::parse(&args.counters)
        && !counters.is_empty()
    {
        other.push(format!("--counters {}", counters.names()));
    }
    if args.stacks {
        other.push("--stacks".to_string());
    }
    if let Some(user) = &args.user {
        other.push(format!("--user {user}"));
    }
    if args.preserve_env {
        other.push("--preserve-env".to_string());
    }
    other.extend(args.share.as_given());
    if let Some(duration) = args.duration {
        other.push(format!("--duration {}", duration.as_secs_f64()));
    }
    other.extend(saving::as_given(&args.keep));
    if args.children {
        other.push("--children".to_string());
    }
    SessionMeta {
        schema_version: SCHEMA_VERSION,
        fathom_version: env!("CARGO_PKG_VERSION").to_string(),
        id: host::random_id(),
        state: State::Recording,
        command: args.command.iter().map(lossy).collect(),
        target,
        options: Options {
            detail: detail.to_string(),
            syscalls: args.syscalls.clone(),
            ring_mib: args.ring_mib,
            filters,
            other,
        },
        host: host::describe(),
        clock,
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost::default(),
        content: None,
        source: None,
        perf_counters: Vec::new(),
        history: Default::default(),
    }
}
