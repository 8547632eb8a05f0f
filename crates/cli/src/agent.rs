//! `fathom agent`: the recording's options from its configuration, and its reports.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use fathom_agent::{AgentError, AgentObserver, Commands};
use fathom_diagnose::Finding;
use fathom_model::meta::Save;
use fathom_model::units;
use fathom_recorder::{Observer, Options, Signals, Stall, Summary, TASK_FILTERS, Target};

use crate::args::{Action, AgentArgs, Arguments};
use crate::exit::Failure;
use crate::record::{self, Terminal, ready};
use crate::settings;

/// Options whose default differs from the default of `fathom record`.
const DEFAULTS: [(&str, &[&str]); 3] = [
    ("rows", &["--rows=tail"]),
    ("keep", &["--keep=15m", "--keep=1GiB"]),
    ("ring-mib", &["--ring-mib=8"]),
];

/// Options that the agent decides on, or that make no sense in it.
const REFUSED: [&str; 9] = [
    "output", "force", "duration", "quiet", "raw", "held", "ui", "on", "user",
];

/// Runs `agent` and returns the exit status.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    let commands = Commands {
        ship: cfg!(feature = "ship"),
        why: cfg!(feature = "analysis"),
    };
    if args.check {
        fathom_agent::check(&args.config, &plan, commands)?;
        println!("{} is fine", args.config.display());
        return Ok(0);
    }
    // Before any thread starts, so that all threads inherit the blocked signals.
    let signals = Signals::block().map_err(Failure::recording)?;
    let mut journal = Journal(Terminal::new(false));
    fathom_agent::run(&args.config, &plan, commands, signals, &mut journal)?;
    Ok(0)
}

/// Options and target of the recording from table `[record]`.
fn plan(table: &toml::Table) -> Result<(Options, Target), String> {
    let has = |name: &&str| table.contains_key(*name);
    if let Some(refused) = REFUSED.iter().find(|name| has(name)) {
        return Err(format!(
            "{refused} is not an option of the agent's recording"
        ));
    }
    let mut arguments = settings::arguments(table)?;
    // Without a choice of tasks it records the machine.
    if !TASK_FILTERS.iter().chain([&"all"]).any(&has) {
        arguments.push("--all".into());
    }
    for (name, defaults) in DEFAULTS {
        if !has(&name) {
            arguments.extend(defaults.iter().map(OsString::from));
        }
    }
    let words = ["fathom", "record"].map(OsString::from);
    let parsed = Arguments::try_parse_from(words.into_iter().chain(arguments));
    let Action::Record(args) = parsed.map_err(|error| reason(&error))?.action else {
        return Err("these are not options of record".to_owned());
    };
    let (mut options, target) = record::recording(&args).map_err(|error| error.to_string())?;
    // Old sessions are removed, so their number needs no limit.
    if let Some(save) = &mut options.save_when
        && !has(&"max-saves")
    {
        save.max_saves = u64::MAX;
    }
    Ok((options, target))
}

/// The message of clap in one line, without the advice for a command line.
fn reason(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// Standard error, as the journal of the system takes it.
struct Journal(Terminal);

impl Observer for Journal {
    fn warning(&mut self, text: &str) {
        self.0.warning(text);
    }

    fn note(&mut self, text: &str) {
        self.0.warning(text);
    }

    fn saved(&mut self, save: &Save) {
        self.0.saved(save);
    }

    fn stalled(&mut self, stall: &Stall) {
        self.0.stalled(stall);
    }

    fn found(&mut self, finding: &Finding) {
        self.0.found(finding);
    }
}

impl AgentObserver for Journal {
    fn ready(&mut self) {
        self.0.warning("recording");
        ready::announce();
    }

    fn recorded(&mut self, session: &Path, summary: &Summary) {
        let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
        let totals = &summary.totals;
        self.0.warning(&format!(
            "{} calls in {:.1} s, {}, in {}",
            count(totals.seen),
            summary.duration.as_secs_f64(),
            totals.parts_text(),
            session.display(),
        ));
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Record(error) => error.into(),
            error if error.is_input() => Failure::input(error),
            error => Failure::recording(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fathom_recorder::{KeepLimit, Rows};

    use super::*;

    fn of(text: &str) -> Result<(Options, Target), String> {
        plan(&toml::from_str(text).unwrap())
    }

    #[test]
    fn the_machine_is_recorded_by_default() {
        let (options, target) = of("").unwrap();
        assert!(matches!(target, Target::Everything));
        assert!(matches!(options.rows, Rows::Tail { .. }));
        assert_eq!(options.keep.len(), 2);
        assert_eq!(options.ring_mib, 8);
    }

    #[test]
    fn options_replace_defaults() {
        let (options, target) = of(
            "comm = ['db', 'web']\nrows = 'all'\nkeep = '1h'\nring-mib = 4\nbudget = '3%'\n\
                save-when = 'dur_ns > 1e9'\n",
        )
        .unwrap();
        assert!(matches!(target, Target::Processes { .. }));
        assert_eq!(options.rows, Rows::All);
        assert_eq!(options.keep, [KeepLimit::Time(Duration::from_secs(3600))]);
        assert_eq!((options.ring_mib, options.budget), (4, Some(0.03)));
        assert_eq!(options.save_when.unwrap().max_saves, u64::MAX);
        let (options, _) = of("save-when = 'dur_ns > 1e9'\nmax-saves = 3\n").unwrap();
        assert_eq!(options.save_when.unwrap().max_saves, 3);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, part) in [
            ("output = '/x'", "output is not an option"),
            ("quiet = true", "quiet is not an option"),
            ("rows = 'some'", "some"),
            ("no-such = 1", "--no-such"),
            ("on = 'db'", "on is not an option"),
            ("children = true", "--pid"),
            ("budget = '300%'", "300%"),
            ("label = ['job=1', 'job=2']", "--label job is given twice"),
        ] {
            let message = of(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
