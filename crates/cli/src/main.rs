//! The command line of fathom: reads the options, calls the stages, prints results, and sets the
//! exit status.

#[macro_use]
mod stderr;

mod agent;
mod args;
mod completions;
mod doctor;
mod exit;
mod help;
mod import;
mod progress;
mod record;
mod redact;
mod remote;
mod repair;
mod replay;
mod settings;
mod snapshot;
mod top;

#[cfg(feature = "analysis")]
mod analysis;
#[cfg(feature = "analysis")]
mod critical_path;
#[cfg(feature = "analysis")]
mod diff;
#[cfg(feature = "analysis")]
mod export;
#[cfg(feature = "analysis")]
mod fleet;
#[cfg(feature = "analysis")]
mod interrupt;
#[cfg(all(test, feature = "analysis"))]
mod json_schemas;
#[cfg(feature = "analysis")]
mod mcp;
#[cfg(feature = "analysis")]
mod output;
#[cfg(feature = "analysis")]
mod own_table;
#[cfg(all(test, feature = "analysis", feature = "ship"))]
mod reference;
#[cfg(feature = "analysis")]
mod sessions;
#[cfg(feature = "analysis")]
mod set;
#[cfg(feature = "ship")]
mod ship;
#[cfg(feature = "analysis")]
mod sizes;
#[cfg(feature = "analysis")]
mod ui;
#[cfg(feature = "analysis")]
mod why;
#[cfg(feature = "analysis")]
mod zoom;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fathom_model::escape;

use crate::args::{Action, Arguments};

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    let line = match settings::complete(given.clone()) {
        Ok(line) => line,
        Err(error) => {
            errln!("fathom: {}", escape::lines(&error));
            return ExitCode::from(2);
        }
    };
    let arguments = match Arguments::try_parse_from(&line.arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            if let Some(path) = line
                .from
                .as_deref()
                .filter(|_| settings::is_to_blame(&line, &given))
            {
                errln!("fathom: options of {} do not fit here:", path.display());
            }
            if let Some(text) = command_without_dashes(&error) {
                errln!("fathom: {text}");
                return ExitCode::from(2);
            }
            // Help and version go to standard output with exit status 0.
            error.print().ok();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    let result = match arguments.action {
        #[cfg(feature = "analysis")]
        Action::Record(options) if !options.on.hosts.is_empty() => {
            remote::record_on(&options, &line.arguments)
        }
        Action::Record(options) => record::run(*options),
        Action::Agent(options) => agent::run(&options),
        Action::Replay(options) => replay::run(&options),
        Action::Redact(options) => redact::run(&options),
        #[cfg(feature = "ship")]
        Action::Ship(options) => ship::run(&options),
        Action::Repair(options) => repair::run(&options),
        Action::Snapshot(options) => snapshot::run(&options),
        Action::Top(options) => top::run(&options),
        Action::Doctor(options) => doctor::run(&options),
        #[cfg(feature = "analysis")]
        Action::Report(options) => analysis::report(&options),
        #[cfg(feature = "analysis")]
        Action::Why(options) => why::run(&options),
        #[cfg(feature = "analysis")]
        Action::CriticalPath(options) => critical_path::run(&options),
        #[cfg(feature = "analysis")]
        Action::Diagnose(options) => analysis::diagnose(&options),
        #[cfg(feature = "analysis")]
        Action::Diff(options) => diff::run(&options),
        #[cfg(feature = "analysis")]
        Action::Query(options) => analysis::query(&options),
        #[cfg(feature = "analysis")]
        Action::SqlWorker => analysis::sql_worker(),
        #[cfg(feature = "analysis")]
        Action::Zoom(options) => zoom::run(&options),
        #[cfg(feature = "analysis")]
        Action::Ui(options) => ui::run(&options),
        #[cfg(feature = "analysis")]
        Action::Export(options) => export::run(&options),
        #[cfg(feature = "analysis")]
        Action::Sessions(options) if options.by.is_empty() => sessions::run(&options),
        #[cfg(feature = "analysis")]
        Action::Sessions(options) => fleet::run(&options),
        #[cfg(feature = "analysis")]
        Action::Set(options) => set::run(&options),
        #[cfg(feature = "analysis")]
        Action::Mcp(options) => mcp::run(&options),
        Action::Pull(options) => remote::pull(&options),
        Action::Remote => remote::serve(),
        Action::Import(options) => import::run(&options),
        Action::Completions(options) => completions::run(&options),
        Action::ManPages(options) => completions::man_pages(&options),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            if !failure.is_broken_pipe() {
                // A message may name what another user has written.
                errln!("fathom: {}", escape::lines(&failure.to_string()));
            }
            ExitCode::from(failure.status())
        }
    }
}

/// The command line to write instead of `fathom record COMMAND`.
fn command_without_dashes(error: &clap::Error) -> Option<String> {
    let mut arguments = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned());
    if error.kind() != ErrorKind::UnknownArgument || arguments.next()? != "record" {
        return None;
    }
    let Some(ContextValue::String(first)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if first.starts_with('-') {
        return None;
    }
    let all: Vec<String> = arguments.collect();
    let (options, command) = all.split_at(all.iter().position(|argument| argument == first)?);
    let words = |words: &[String]| fathom_model::escape::shell_words(words);
    let options = match options {
        [] => String::new(),
        options => format!(" {}", words(options)),
    };
    Some(format!(
        "the command to record comes after --: fathom record{options} -- {}",
        words(command)
    ))
}
