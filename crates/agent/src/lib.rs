//! The agent: records all the time, keeps the latest details in a ring on disk, adds everything up
//! exactly, and shows the sums to Prometheus and OpenTelemetry.
//!
//! [`run`] starts one recording after another, until a signal asks for the end. Rows of all of them
//! pass [`sums::Sums`] before they are stored, so that the ring may drop them. Nothing here prints:
//! the caller's [`Observer`] does.

#![warn(missing_docs)]

mod child;
mod collector;
pub mod config;
mod control;
mod http;
mod labels;
mod logs;
mod metrics;
mod openmetrics;
mod otlp;
mod sessions;
mod shipper;
mod status;
mod sums;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fathom_diagnose::Finding;
use fathom_http::Token;
use fathom_model::meta::Save;
use fathom_probe::{monotonic_ns, system};
use fathom_recorder::{
    Observer, Options, Progress, RecordError, Recorder, Signals, Stall, Summary, Target,
};
use fathom_session::{Session, SessionError};

use config::{Config, ConfigError, Metrics, Otlp, Ship};
use control::{AgentControl, Wish};
use http::{Server, Shown};
use logs::{Logs, RecordingLogs};
use otlp::Pusher;
use sessions::Sessions;
use shipper::Shipper;
use status::Status;
use sums::SharedSums;

/// The longest token, bytes.
const MAX_TOKEN: u64 = 4096;

/// Why the agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its options of the recording make no sense.
    #[error("{}: [record]: {message}", path.display())]
    Options {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// The token cannot be read.
    #[error("cannot read the token from {}: {source}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Metrics cannot be served.
    #[error(
        "cannot serve metrics on {listen}: {source}; choose another address in [metrics] listen"
    )]
    Listen {
        /// The address.
        listen: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Metrics cannot be sent.
    #[error("cannot send metrics: {0}")]
    Push(String),
    /// Findings and slow requests cannot be sent.
    #[error("[otlp] logs: {0}")]
    Logs(String),
    /// The directory of the sessions cannot be used.
    #[error("[sessions] directory: {0}")]
    Sessions(#[from] SessionError),
    /// Another agent records into the directory.
    #[error(
        "{} is the directory of another agent, which is running; stop that agent, or choose another \
         [sessions] directory",
        .0.display()
    )]
    Busy(PathBuf),
    /// Sessions cannot be shipped.
    #[error("[ship]: {0}")]
    Ship(String),
    /// The recording failed.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl AgentError {
    /// Whether the configuration is the cause.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Record(error) => error.is_input(),
            Self::Push(_) | Self::Ship(_) => false,
            _ => true,
        }
    }
}

/// Makes the recording's options and target of table `[record]`; says what is wrong with it.
pub type PlanRecording<'a> = &'a dyn Fn(&toml::Table) -> Result<(Options, Target), String>;

/// Commands that the running program has, besides the ones to record.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    /// `ship`.
    pub ship: bool,
    /// `query` and `why`.
    pub why: bool,
}

/// Events of the agent in addition to the events of its recordings.
pub trait AgentObserver: Observer {
    /// A recording has begun.
    fn ready(&mut self);

    /// A recording has ended.
    fn recorded(&mut self, session: &Path, summary: &Summary);
}

/// Records by the configuration in `path` until a signal asks for the end. SIGHUP reads the
/// configuration again, and starts another recording. Processes of the running program, which has
/// these `commands`, ship sessions and explain slow requests.
///
/// # Errors
/// All [`AgentError`]s. A configuration that is wrong when it is read again is a warning, and the
/// agent goes on.
pub fn run(
    path: &Path,
    plan: PlanRecording<'_>,
    commands: Commands,
    signals: Signals,
    observer: &mut dyn AgentObserver,
) -> Result<(), AgentError> {
    let read = || read(path, plan, commands);
    let mut config = read()?;
    let mut agent = Agent::start(&config, observer)?;
    let reread = Box::new(|| read().map_err(|error| error.to_string()));
    let mut control = AgentControl::new(signals, reread, Arc::clone(&agent.status));
    while let Wish::Reload(new) = agent.record(path, plan, &config, &mut control, observer)? {
        observer.note(&format!("{} was read again", path.display()));
        agent = agent.adopt(&config, &new, observer)?;
        config = *new;
    }
    agent.stop();
    Ok(())
}

/// Checks the configuration in `path`, with the files that it names.
///
/// # Errors
/// The errors that [`run`] has before it records.
pub fn check(path: &Path, plan: PlanRecording<'_>, commands: Commands) -> Result<(), AgentError> {
    read(path, plan, commands).map(drop)
}

fn read(path: &Path, plan: PlanRecording<'_>, commands: Commands) -> Result<Config, AgentError> {
    let config = Config::read(path)?;
    if config.ship.is_some() && !commands.ship {
        let why = "this program only records; install the one that also ships";
        return Err(AgentError::Ship(why.to_owned()));
    }
    let slow = config.otlp.as_ref().and_then(|otlp| otlp.slow_requests);
    if slow.is_some_and(|most| most > 0) && !commands.why {
        let why = "slow-requests: this program only records; install the one that also explains";
        return Err(AgentError::Logs(why.to_owned()));
    }
    planned(path, plan, &config)?;
    logs::check(&config).map_err(AgentError::Logs)?;
    Ok(config)
}

fn planned(
    path: &Path,
    plan: PlanRecording<'_>,
    config: &Config,
) -> Result<(Options, Target), AgentError> {
    let wrong = |message| AgentError::Options {
        path: path.to_owned(),
        message,
    };
    let (options, target) = plan(&config.record).map_err(wrong)?;
    Recorder::check(&options, &target).map_err(|error| wrong(error.to_string()))?;
    Ok((options, target))
}

/// The state that lasts from recording to recording.
struct Agent {
    sums: SharedSums,
    status: Arc<Mutex<Status>>,
    server: Server,
    pusher: Option<Pusher>,
    logs: Option<Logs>,
    shipper: Option<Shipper>,
    sessions: Sessions,
}

impl Agent {
    fn start(config: &Config, observer: &mut dyn AgentObserver) -> Result<Self, AgentError> {
        let sessions = Sessions::open(&config.sessions.directory)?;
        for text in sessions.repair() {
            observer.warning(&text);
        }
        let sums = SharedSums::new(&config.metrics);
        let status = Arc::default();
        let server = serve(&config.metrics, &sums, &status, observer)?;
        let pusher = push(config.otlp.as_ref(), &sums, &status)?;
        let logs = start_logs(config, &status)?;
        let shipper = ship(config.ship.as_ref(), &sessions, &status)?;
        Ok(Self {
            sums,
            status,
            server,
            pusher,
            logs,
            shipper,
            sessions,
        })
    }

    /// Goes on with another configuration. Sums go on unless their labels are others.
    fn adopt(
        mut self,
        old: &Config,
        new: &Config,
        observer: &mut dyn AgentObserver,
    ) -> Result<Self, AgentError> {
        let relabeled =
            (&old.metrics.by, old.metrics.label_sets) != (&new.metrics.by, new.metrics.label_sets);
        if relabeled {
            self.sums = SharedSums::new(&new.metrics);
            observer.note("labels have changed: the sums begin at 0 again");
        }
        if relabeled || old.metrics != new.metrics {
            self.server.stop();
            self.server = serve(&new.metrics, &self.sums, &self.status, observer)?;
        }
        if relabeled || old.otlp != new.otlp {
            if let Some(pusher) = self.pusher.take() {
                pusher.stop();
            }
            self.pusher = push(new.otlp.as_ref(), &self.sums, &self.status)?;
        }
        // Another name of the directory is no move: this agent has its lock.
        let place = |config: &Config| std::fs::canonicalize(&config.sessions.directory).ok();
        let moved = old.sessions.directory != new.sessions.directory && place(old) != place(new);
        if moved {
            self.sessions = Sessions::open(&new.sessions.directory)?;
        }
        let logs = |config: &Config| {
            let condition = condition(config).map(str::to_owned);
            (config.otlp.clone(), config.redaction_of_logs(), condition)
        };
        if moved || logs(old) != logs(new) {
            if let Some(logs) = self.logs.take() {
                logs.stop();
            }
            self.logs = start_logs(new, &self.status)?;
        }
        if moved || old.ship != new.ship {
            if let Some(shipper) = self.shipper.take() {
                shipper.stop();
            }
            self.shipper = ship(new.ship.as_ref(), &self.sessions, &self.status)?;
        }
        Ok(self)
    }

    /// One recording.
    fn record(
        &self,
        path: &Path,
        plan: PlanRecording<'_>,
        config: &Config,
        control: &mut AgentControl<'_>,
        observer: &mut dyn AgentObserver,
    ) -> Result<Wish, AgentError> {
        let (mut options, target) = planned(path, plan, config)?;
        let ring = self.sessions.next(&system::local_time_for_names());
        options.output = Some(ring.clone());
        options.diagnose |= config.sessions.save_on.is_some();
        control.begin(&config.sessions);
        let prune = |observer: &mut dyn Observer| {
            for text in self.sessions.prune(config.sessions.keep, Some(&ring)) {
                observer.warning(&text);
            }
        };
        let mut recorder = Recorder::open(&options, target, control.signals(), observer)?;
        self.sums.lock().next_recording();
        recorder.also_to(Box::new(self.sums.clone()));
        let recording = recorder.start()?;
        self.lock()
            .next_recording(Instant::now(), monotonic_ns() as i64);
        prune(observer);
        observer.ready();
        let findings = control.findings();
        let mut watch = Watch {
            inner: observer,
            status: &self.status,
            sums: &self.sums,
            found: &mut |finding| findings.found(finding),
            logs: self.logs.as_ref().map(|logs| logs.of_recording(&ring)),
            prune: &prune,
        };
        let ended = recording.run(control, &mut watch);
        self.lock().stopped();
        let summary = ended.summary?;
        // When the programs were stopped: closing the session takes its time after that.
        let closed = Session::read_meta(&ring)?.clock.end_monotonic_ns;
        {
            let mut status = self.lock();
            status.counts(summary.totals.seen, summary.totals.lost);
            status.ended(closed);
        }
        observer.recorded(&ring, &summary);
        Ok(control.take_wish())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(self) {
        if let Some(pusher) = self.pusher {
            pusher.stop();
        }
        if let Some(logs) = self.logs {
            logs.stop();
        }
        if let Some(shipper) = self.shipper {
            shipper.stop();
        }
        self.server.stop();
    }
}

fn serve(
    config: &Metrics,
    sums: &SharedSums,
    status: &Arc<Mutex<Status>>,
    observer: &mut dyn AgentObserver,
) -> Result<Server, AgentError> {
    let token = config.token_file.as_deref().map(read_token).transpose()?;
    if token.is_none() && !config.listen.ip().is_loopback() {
        observer.warning(&format!(
            "anyone who can reach {} can read the names of programs and units: add token-file to \
             [metrics], or let only Prometheus reach it",
            config.listen
        ));
    }
    let shown = Shown {
        sums: sums.clone(),
        status: Arc::clone(status),
        token,
        listen: config.listen,
    };
    let server = Server::start(shown).map_err(|source| AgentError::Listen {
        listen: config.listen,
        source,
    })?;
    observer.note(&format!("metrics: http://{}/metrics", server.address()));
    Ok(server)
}

fn read_token(path: &Path) -> Result<Token, AgentError> {
    let failed = |source| AgentError::Token {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(file.take(MAX_TOKEN))
        .read_line(&mut line)
        .map_err(failed)?;
    match line.trim() {
        "" => Err(failed(io::Error::other("its first line is empty"))),
        token => Ok(Token::given(token.to_owned())),
    }
}

fn push(
    config: Option<&Otlp>,
    sums: &SharedSums,
    status: &Arc<Mutex<Status>>,
) -> Result<Option<Pusher>, AgentError> {
    let Some((config, endpoint)) = config.and_then(|otlp| Some((otlp, otlp.endpoint.clone()?)))
    else {
        return Ok(None);
    };
    let pusher = Pusher::start(config, endpoint, sums.clone(), Arc::clone(status));
    Ok(Some(pusher.map_err(AgentError::Push)?))
}

/// The condition of saves.
fn condition(config: &Config) -> Option<&str> {
    config.record.get("save-when")?.as_str()
}

fn start_logs(config: &Config, status: &Arc<Mutex<Status>>) -> Result<Option<Logs>, AgentError> {
    let failed = |why: String| AgentError::Logs(why);
    if config.otlp.as_ref().is_none_or(|otlp| otlp.logs.is_none()) {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    Logs::start(config, condition(config), program, status).map_err(failed)
}

fn ship(
    config: Option<&Ship>,
    sessions: &Sessions,
    status: &Arc<Mutex<Status>>,
) -> Result<Option<Shipper>, AgentError> {
    let Some(config) = config else {
        return Ok(None);
    };
    let failed = |error: io::Error| AgentError::Ship(format!("cannot start to ship: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let shipper = Shipper::start(config, program, sessions.clone(), Arc::clone(status));
    Ok(Some(shipper.map_err(failed)?))
}

/// Reports of a recording: counted here, and passed on.
struct Watch<'a> {
    inner: &'a mut dyn AgentObserver,
    status: &'a Mutex<Status>,
    sums: &'a SharedSums,
    found: &'a mut dyn FnMut(&Finding),
    logs: Option<RecordingLogs<'a>>,
    prune: &'a dyn Fn(&mut dyn Observer),
}

impl Watch<'_> {
    fn status(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch<'_> {
    fn warning(&mut self, text: &str) {
        self.inner.warning(text);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }

    fn progress(&mut self, progress: &Progress) {
        let messages = {
            let mut status = self.status();
            status.progress(progress, Instant::now());
            status.take_messages()
        };
        for text in messages {
            self.inner.warning(&text);
        }
        self.inner.progress(progress);
    }

    fn saved(&mut self, save: &Save) {
        match save.error.is_some() {
            true => self.status().failed_saves += 1,
            false => self.status().saves += 1,
        }
        self.inner.saved(save);
        if let Some(logs) = &mut self.logs {
            logs.saved(save);
        }
        (self.prune)(self.inner);
    }

    fn stalled(&mut self, stall: &Stall) {
        if let Some(logs) = &mut self.logs {
            logs.stalled(stall);
        }
        self.inner.stalled(stall);
    }

    fn found(&mut self, finding: &Finding) {
        {
            let mut sums = self.sums.lock();
            let key = (finding.rule.to_string(), finding.severity.name());
            *sums.findings.entry(key).or_default() += 1;
        }
        (self.found)(finding);
        if let Some(logs) = &mut self.logs {
            logs.found(finding);
        }
        self.inner.found(finding);
    }

    fn ended(&mut self) {
        self.inner.ended();
    }
}
