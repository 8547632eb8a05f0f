//! From options and a target to a recording that runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::layers::Layer;
use fathom_model::meta::{PerfCounter, SessionMeta};
use fathom_model::raw::RawChunk;
use fathom_probe::{Command, Conditions, Content, Probe, Signals, User, system};

use crate::claims::Claims;
use crate::drain::Drain;
use crate::machine::Machine;
use crate::pipeline::MEMORY_BYTES;
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::rules::Rules;
use crate::running::RunningTarget;
use crate::tail::Tailing;
use crate::{Control, Observer, Options, RecordError, RowSink, Summary, Target, meta};

/// How readily the kernel ends the recorder when memory runs out: only where it alone has used
/// nearly all of it.
const OOM_SCORE: i32 = -900;
/// How much more urgent the recorder is than the program that fills its rings.
pub(crate) const URGENCY: i32 = 10;

/// A recorder that is ready: its programs are attached, its session is there, nothing is recorded
/// yet. Dropped, it removes the session again.
pub struct Recorder {
    probe: Probe,
    pipeline: Pipeline,
    rules: Option<Rules>,
    claims: Option<Claims>,
    plan: Plan,
    target: Target,
    meta: SessionMeta,
    output: PathBuf,
    duration: Option<Duration>,
    before: Conditions,
    protection: Protection,
}

/// A recording that runs.
pub struct Recording {
    drain: Drain<Probe>,
    first: Vec<RawChunk>,
    target: RunningTarget,
    _protection: Protection,
}

/// A recording that has ended.
pub struct Ended {
    /// The result. After an error the session contains everything stored before.
    pub summary: Result<Summary, RecordError>,
    /// The target, which may go on.
    pub target: RunningTarget,
}

impl Recorder {
    /// Checks the options, loads and attaches the programs, and creates the session. The calling
    /// thread gets a higher priority, the process a lower score for the end when memory runs out,
    /// until the recording has ended; the command gets neither, and the mask of signals from before
    /// `signals`.
    ///
    /// # Errors
    /// Options or target that make no sense or name something that is not there
    /// ([`RecordError::is_input`]), a kernel that refuses the programs, a session that cannot be
    /// created.
    pub fn open(
        options: &Options,
        target: Target,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<Self, RecordError> {
        let mut plan = Plan::of(options, &target)?;
        let claims = options.kubernetes.as_ref().map(Claims::start).transpose();
        let claims = claims.map_err(RecordError::Input)?;
        let before = Conditions {
            user: None,
            preserve_environment: true,
            preload: None,
            mask: signals.original(),
            nice: system::nice(),
            oom_score: system::oom_score(),
        };
        // The recorder must not wait for the program that fills its rings. Without
        // the right to do so it goes on as it is: losses are counted.
        system::set_nice(before.nice - URGENCY);
        // When memory runs out the recording shows why: others are to go first.
        let protection = Protection::new(before.oom_score);
        let mut probe = Probe::load(&plan.probe)?;
        probe.attach()?;
        let output = match &options.output {
            Some(output) => output.clone(),
            None => meta::default_output(&plan, &target),
        };
        let mut meta = meta::describe(options, &target, &plan);
        meta.hooks = probe.hooks().to_vec();
        meta.layers = probe.layers();
        meta.perf_counters = probe.perf_counters().to_vec();
        meta.cost.recorder_limit_bytes =
            (!options.watched).then(|| MEMORY_BYTES as u64 + probe.ring_bytes());
        for warning in warnings(options, &plan, &probe) {
            observer.warning(&warning);
        }
        let (feed, rules) = match options.diagnose {
            true => Some(Rules::start(&meta, &output)?).unzip(),
            false => (None, None),
        };
        let trigger = plan.trigger.take();
        let pipeline = Pipeline::create(&meta, &output, options, trigger, feed)?;
        Ok(Self {
            probe,
            pipeline,
            rules,
            claims,
            plan,
            target,
            meta,
            output,
            duration: options.duration,
            before,
            protection,
        })
    }

    /// Checks options and target without a recording.
    ///
    /// # Errors
    /// The errors of [`Recorder::open`] about options that make no sense.
    pub fn check(options: &Options, target: &Target) -> Result<(), RecordError> {
        Plan::of(options, target).map(drop)
    }

    /// Directory of the session.
    pub fn session(&self) -> &Path {
        &self.output
    }

    /// State that a program must find as if there were no recorder.
    pub fn conditions(&self) -> Conditions {
        self.before.clone()
    }

    /// Rows go to `sink`, too.
    pub fn also_to(&mut self, sink: Box<dyn RowSink>) {
        self.pipeline.also_to(sink);
    }

    /// Starts the target, or takes it in where it runs, and with it the recording.
    ///
    /// # Errors
    /// [`RecordError::Command`] when the command does not start, [`RecordError::Probe`] when a
    /// process is not there. Nothing is left of the session then.
    pub fn start(mut self) -> Result<Recording, RecordError> {
        let tail = self.meta.options.tail.as_ref();
        let cpus = self.meta.host.cpus;
        let tailing = Tailing::start(tail, self.plan.rows, cpus, &self.probe)?;
        let started = Instant::now();
        // Its rows begin before the first call.
        let with_states = self.plan.probe.layers.has(Layer::Sched);
        let machine = with_states.then(Machine::new);
        let mut first = Vec::new();
        let target = match self.target {
            Target::Command {
                argv,
                preserve_environment,
                ..
            } => {
                let uid = self.plan.user.as_ref().map(User::uid);
                let files = self.probe.preload(uid)?;
                let conditions = Conditions {
                    user: self.plan.user,
                    preserve_environment,
                    preload: files.as_ref().map(|files| files.object()),
                    ..self.before
                };
                let probe = &self.probe;
                let command =
                    Command::spawn(&argv, conditions, |pidfd| probe.record_from_exec(pidfd))?;
                RunningTarget::command(command, files)
            }
            Target::Processes { .. } | Target::Everything => {
                let filters = &self.plan.probe.filters;
                first.push(self.probe.adopt(filters.pids())?);
                RunningTarget::tasks(filters.open_ended())
            }
        };
        let counts = self.plan.probe.counters || self.plan.probe.tail;
        let mut drain = Drain::new(
            self.probe,
            self.pipeline.start()?,
            self.rules,
            self.meta,
            (started, self.duration),
            (counts, tailing),
            (self.plan.stalls, machine),
        );
        drain.claims = self.claims;
        Ok(Recording {
            drain,
            first,
            target,
            _protection: self.protection,
        })
    }
}

impl Recording {
    /// Records until the target ends, time is over or `control` asks for the end, and completes
    /// the session. On the thread that called [`Recorder::open`].
    pub fn run(mut self, control: &mut dyn Control, observer: &mut dyn Observer) -> Ended {
        Ended {
            summary: (self.drain).run(self.first, &mut self.target, control, observer),
            target: self.target,
        }
    }
}

/// Keeps the kernel from ending the recorder when memory runs out; holds the score from before.
struct Protection(Option<i32>);

impl Protection {
    fn new(before: Option<i32>) -> Self {
        if before.is_some_and(|score| score > OOM_SCORE) {
            system::set_oom_score(OOM_SCORE);
        }
        Self(before)
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        if let Some(score) = self.0 {
            system::set_oom_score(score);
        }
    }
}

/// Warnings for the user before the recording starts.
fn warnings(options: &Options, plan: &Plan, probe: &Probe) -> Vec<String> {
    let mut warnings = Vec::new();
    if plan.probe.content == Content::Plain {
        warnings.push(format!(
            "--content plain: the session will contain the first {} bytes of every read and \
             write, including passwords and keys; protect it like those files",
            plan.probe.content_max
        ));
    }
    if let (true, Some(hook)) = (options.stacks, probe.missing_stacks()) {
        warnings.push(format!("--stacks: {}", hook.note));
    }
    if let (false, Some(hook)) = (options.usdt.is_empty(), probe.missing_usdt()) {
        warnings.push(format!("--usdt: {}", hook.note));
    }
    if let (false, Some(hook)) = (options.library.is_empty(), probe.missing_libraries()) {
        warnings.push(format!("--library: {}", hook.note));
    }
    if probe.waits_for_pods() {
        warnings.push(
            "no pod that --pod and --namespace ask for is on this node yet: it is recorded from its start".to_owned(),
        );
    }
    let missing = probe.missing_functions();
    warnings.extend(missing.map(|hook| format!("--function: {}: {}", hook.name, hook.note)));
    warnings.extend(refused_counters(probe.perf_counters()));
    if !options.layers.is_empty() {
        for hook in probe.hooks().iter().filter(|hook| !hook.attached) {
            if let Some(layer) = hook.name.strip_prefix("layer ") {
                warnings.push(format!("--layers {layer}: {}", hook.note));
            }
        }
    }
    warnings
}

/// Counters that were asked for and are not there: those with one reason in one line.
fn refused_counters(asked: &[PerfCounter]) -> impl Iterator<Item = String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for counter in asked.iter().filter(|counter| !counter.counted) {
        match reasons.iter_mut().find(|(note, _)| *note == counter.note) {
            Some((_, names)) => names.push(&counter.name),
            None => reasons.push((&counter.note, vec![&counter.name])),
        }
    }
    reasons
        .into_iter()
        .map(|(note, names)| format!("--counters {}: not recorded: {note}", names.join(",")))
}
