//! `fathom record --on`: a recording on several hosts, as a set.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory};
use fathom_model::escape;
use fathom_recorder::Signals;
use fathom_session::{SessionError, create_folder, write_set};
use fathom_set::{Named, Summary};

use super::peer::{Event, Outcome, Peer};
use super::{ALIVE, Request, host, pull};
use crate::args::{Arguments, RecordArgs};
use crate::exit::Failure;
use crate::set;

/// How often signals and hosts are looked at.
const TURN: Duration = Duration::from_millis(50);
/// Options that are for this host only.
const HERE: [&str; 6] = [
    "output",
    "force",
    "hosts",
    "remote_dir",
    "ssh",
    "remote_fathom",
];

/// Records on the hosts of `args`; returns the exit status.
pub fn run(args: &RecordArgs, line: &[OsString]) -> Result<u8, Failure> {
    let output = args.output.as_deref().unwrap_or(Path::new(""));
    let folder = output.with_extension("");
    if output.extension().is_none() || folder == output {
        return Err(Failure::input(anyhow!(
            "--on makes a set of sessions: name it -o FILE.fset"
        )));
    }
    if !args.force && output.symlink_metadata().is_ok() {
        return Err(Failure::input(SessionError::SetExists(output.to_owned())));
    }
    let mut places: Vec<PathBuf> = Vec::new();
    for host in &args.on.hosts {
        let place = folder.join(format!("{}.fathom", host.name()));
        if places.contains(&place) {
            return Err(Failure::input(anyhow!("{} is given twice", host.name())));
        }
        if !args.force && place.symlink_metadata().is_ok() {
            return Err(Failure::input(SessionError::Exists(place)));
        }
        places.push(place);
    }
    create_folder(&folder).map_err(Failure::recording)?;
    // Before signals are blocked: processes inherit that.
    let children = args.on.hosts.iter();
    let children: anyhow::Result<Vec<Child>> = children
        .map(|host| host::start(host, &args.on.ssh))
        .collect();
    let children = children.map_err(Failure::recording)?;
    let signals = Signals::block().map_err(Failure::recording)?;
    let arguments = arguments(line);
    let (sender, events) = mpsc::channel();
    let connections = args.on.hosts.iter().zip(children).zip(places).enumerate();
    let peers = connections.map(|(index, ((host, child), to))| {
        let options = (&*args.on.remote_dir, args.force);
        let place = (index, host.clone(), to);
        Some(Peer::start(
            place,
            child,
            options,
            &arguments,
            sender.clone(),
        ))
    });
    let peers = peers.collect();
    let mut recording = Recording {
        peers,
        ready: Vec::new(),
        over: Vec::new(),
        begun: false,
        quiet: args.quiet,
    };
    recording.run(signals, &events)?;
    join(recording.over, output, args)
}

/// The arguments for the hosts, from the command line: options as they were given, then the
/// command.
fn arguments(line: &[OsString]) -> Vec<Vec<u8>> {
    let command = Arguments::command();
    let matches = command.clone().get_matches_from(line);
    let (Some(record), Some(matches)) = (
        command.find_subcommand("record"),
        matches.subcommand_matches("record"),
    ) else {
        return Vec::new();
    };
    given(record, matches)
        .into_iter()
        .map(OsString::into_vec)
        .collect()
}

fn given(record: &clap::Command, matches: &ArgMatches) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut command = Vec::new();
    for arg in record.get_arguments() {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) || HERE.contains(&id) {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        match (arg.get_long(), arg.get_action()) {
            (None, _) => command.extend(values.map(OsString::from)),
            (Some(long), ArgAction::SetTrue) => words.push(format!("--{long}").into()),
            (Some(long), _) => words.extend(values.map(|value| {
                let mut word = OsString::from(format!("--{long}="));
                word.push(value);
                word
            })),
        }
    }
    if !command.is_empty() {
        words.push("--".into());
        words.append(&mut command);
    }
    words
}

/// A host whose recording is over.
struct Over {
    index: usize,
    name: String,
    status: Option<u8>,
    /// The copy.
    session: Option<PathBuf>,
    failed: bool,
}

struct Recording {
    /// Hosts that are not over.
    peers: Vec<Option<Peer>>,
    ready: Vec<usize>,
    over: Vec<Over>,
    begun: bool,
    quiet: bool,
}

impl Recording {
    /// Goes on until all hosts are over.
    fn run(&mut self, mut signals: Signals, events: &Receiver<Event>) -> Result<(), Failure> {
        let mut asked = 0;
        let mut alive = Instant::now();
        while self.peers.iter().any(Option::is_some) {
            // If waiting fails, the events below are waited for.
            let _ = signals.wait(TURN, None);
            let arrived = signals.take().unwrap_or_default();
            let stops = arrived.iter().filter(|signal| !signal.asks_to_save());
            for signal in stops {
                asked += 1;
                if asked > 2 {
                    for peer in self.peers.iter_mut().flatten() {
                        peer.kill();
                    }
                    return Err(Failure::with_status(
                        128 + signal.number,
                        anyhow!("ended; sessions may be left on the hosts"),
                    ));
                }
                errln!("fathom: ending the recordings");
                self.ask(&Request::Stop);
            }
            if alive.elapsed() > ALIVE {
                alive = Instant::now();
                self.ask(&Request::Alive);
            }
            while let Ok(event) = events.try_recv() {
                match event {
                    Event::Ready(index) => self.ready.push(index),
                    Event::Over(index, outcome) => self.over(index, *outcome),
                }
            }
            let waiting = self.peers.iter().flatten().count();
            if !self.begun && asked == 0 && waiting > 0 && self.ready.len() == waiting {
                self.begin();
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request) {
        for peer in self.peers.iter_mut().flatten() {
            peer.ask(request);
        }
    }

    /// All recorders are there.
    fn begin(&mut self) {
        self.begun = true;
        self.ask(&Request::Go);
        if !self.quiet {
            let names = self.peers.iter().flatten().map(|peer| peer.host.name());
            let names = names.collect::<Vec<_>>().join(", ");
            errln!("fathom: recording on {names}; Ctrl-C to end it");
        }
    }

    fn over(&mut self, index: usize, outcome: Outcome) {
        self.ready.retain(|ready| *ready != index);
        let Some(mut peer) = self.peers.get_mut(index).and_then(Option::take) else {
            return;
        };
        let name = peer.host.name().to_owned();
        let session = match &outcome.copy {
            Ok(Some(received)) => {
                peer.ask(&Request::Done);
                if !self.quiet {
                    errln!("fathom: {name}: {}", pull::summary(received));
                }
                Some(peer.to.clone())
            }
            _ => None,
        };
        let given = peer.host.given().to_owned();
        let why = peer.end();
        let failure = match outcome.copy {
            Ok(Some(_)) => None,
            Ok(None) => Some("nothing was recorded; its messages are above".to_owned()),
            Err(error) => {
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                let left = outcome.there.map_or(String::new(), |there| {
                    format!(
                        "; its session may be there: fathom pull {}",
                        escape::shell_words([format!("{given}:{there}")])
                    )
                });
                Some(format!("{error}{why}{left}"))
            }
        };
        if let Some(failure) = &failure {
            errln!("fathom: {name}: {}", escape::text(failure));
        }
        self.over.push(Over {
            index,
            name,
            status: outcome.status,
            session,
            failed: failure.is_some(),
        });
    }
}

/// Makes the set; returns the exit status.
fn join(mut over: Vec<Over>, output: &Path, args: &RecordArgs) -> Result<u8, Failure> {
    over.sort_by_key(|over| over.index);
    let named: Vec<Named> = over
        .iter()
        .filter_map(|over| {
            Some(Named {
                name: Some(over.name.clone()),
                dir: over.session.clone()?,
            })
        })
        .collect();
    let failed = over.iter().any(|over| over.failed);
    match &named[..] {
        [] => return Err(Failure::recording(anyhow!("no host has a session"))),
        [one] => errln!(
            "fathom: a set takes at least two sessions: there is {} only",
            one.dir.display()
        ),
        _ => {
            let built = fathom_set::build(&named).map_err(Failure::recording)?;
            set::warn(&built);
            write_set(output, built.meta().clone(), args.force).map_err(Failure::recording)?;
            let mut built = built;
            let summary = Summary::of(&mut built).map_err(Failure::recording)?;
            if !args.quiet {
                err!("{}", set::text(&summary));
                errln!("fathom: next: fathom report {}", output.display());
            }
        }
    }
    let status = over.iter().filter_map(|over| over.status).find(|s| *s != 0);
    Ok(match failed {
        true => 125,
        false => status.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fathom on a host gets options and a command that mean the same.
    #[test]
    fn options_go_to_the_hosts_as_they_were_given() {
        let line = [
            "fathom",
            "record",
            "--on",
            "web,root@db",
            "-o",
            "x.fset",
            "--force",
            "-q",
            "--ssh",
            "ssh -p 1",
            "--syscalls=all",
            "--label",
            "a=b c",
            "--label",
            "d='$x`",
            "--spans",
            "http,redis",
            "--duration",
            "3",
            "--path",
            "!/proc",
            "--",
            "sh",
            "-c",
            "echo \"$1\"\n",
            "--on",
            "",
        ];
        let command = Arguments::command();
        let matches = command.clone().get_matches_from(line);
        let record = command.find_subcommand("record").unwrap();
        let words = given(record, matches.subcommand_matches("record").unwrap());
        let (options, rest) = words.split_at(words.iter().position(|word| word == "--").unwrap());
        assert_eq!(rest, ["--", "sh", "-c", "echo \"$1\"\n", "--on", ""]);
        let mut options = options.to_vec();
        options.sort();
        let expected = [
            "--duration=3",
            "--label=a=b c",
            "--label=d='$x`",
            "--path=!/proc",
            "--quiet",
            "--spans=http",
            "--spans=redis",
            "--syscalls=all",
        ];
        assert_eq!(options, expected);
    }
}
