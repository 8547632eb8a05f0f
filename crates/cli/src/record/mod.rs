//! `fathom record`: options for the recorder, and its reports on the terminal.

pub mod held;
#[cfg(feature = "analysis")]
mod page;
pub mod ready;
mod terminal;

use std::collections::BTreeMap;

use anyhow::anyhow;
use fathom_recorder::{
    Content, Detail, Kubernetes, LIBRARY_CALLS_PER_SECOND, LibraryBy, Options, RecordError,
    Recorder, Rows, SAMPLE, SaveWhen, Signals, Target,
};

use crate::args::{
    ContentArg, DetailArg, HashInArg, KubernetesOptions, LibraryBudgetArg, LibraryByArg,
    RecordArgs, RowsArg,
};
use crate::exit::Failure;
pub use terminal::Terminal;

/// Runs `record` and returns the exit status.
pub fn run(args: RecordArgs) -> Result<u8, Failure> {
    let (options, target) = recording(&args)?;
    #[cfg(feature = "analysis")]
    let extensions = args.extensions.load_to_record()?;
    #[cfg(feature = "analysis")]
    let clients = page::Clients::read(&args.page)?;
    // Before any thread starts, so that all threads inherit the blocked signals.
    let signals = Signals::block().map_err(Failure::recording)?;
    let mut terminal = Terminal::new(args.quiet);
    let recorder = Recorder::open(&options, target, &signals, &mut terminal)?;
    let session = recorder.session().to_owned();
    #[cfg(feature = "analysis")]
    let page = page::Page::start(&args.page, clients, &extensions, &recorder)?;
    #[cfg(feature = "analysis")]
    let mut signals = page::Controlled::new(signals, page.as_ref());
    #[cfg(not(feature = "analysis"))]
    let mut signals = signals;
    if args.held && !held::wait().map_err(Failure::recording)? {
        return Ok(125);
    }
    let recording = recorder.start()?;
    // A command would inherit the socket, and is recorded from its first call on anyway.
    if args.command.is_empty() {
        ready::announce();
    }
    let mut ended = recording.run(&mut signals, &mut terminal);
    match ended.summary {
        #[cfg_attr(not(feature = "analysis"), allow(unused_mut))]
        Ok(mut summary) => {
            #[cfg(feature = "analysis")]
            if let Some(found) = &mut summary.found {
                terminal.run_rules(&session, &extensions, found);
            }
            terminal.print_summary(&session, args.output.is_some(), &summary);
        }
        Err(error) => {
            // A failure of the recorder must not end the recorded program.
            let status = ended.target.wait(&mut signals);
            errln!(
                "fathom: the recording failed: {}; {} contains everything stored before the failure",
                Failure::recording(error),
                session.display()
            );
            return Ok(status.filter(|status| *status != 0).unwrap_or(125));
        }
    }
    let status = ended.target.wait(&mut signals).unwrap_or(0);
    #[cfg(feature = "analysis")]
    if let Some(page) = page {
        page.stay(&ended.target, &mut signals.signals);
    }
    Ok(status)
}

/// The recorder's options from the arguments.
pub fn recording(args: &RecordArgs) -> Result<(Options, Target), Failure> {
    let keep = &args.keep;
    let counters = matches!(args.detail, DetailArg::Counters);
    if !counters && keep.count_files {
        return Err(Failure::input(anyhow!(
            "--count-files needs --detail counters"
        )));
    }
    let rows = match keep.rows {
        RowsArg::All if keep.slower_than.is_some() || keep.sample.is_some() => {
            return Err(Failure::input(anyhow!(
                "--slower-than and --sample say which calls get a row: add --rows tail"
            )));
        }
        RowsArg::All => Rows::All,
        RowsArg::Tail => Rows::Tail {
            slower_than: keep.slower_than,
            sample: keep.sample.unwrap_or(SAMPLE),
        },
    };
    if args.content != ContentArg::Hash && args.hash_in.is_some() {
        return Err(Failure::input(anyhow!("--hash-in needs --content hash")));
    }
    let mut filters = args.filter.filters();
    let target = if !args.command.is_empty() {
        Target::Command {
            argv: args.command.clone(),
            user: args.user.clone(),
            preserve_environment: args.preserve_env,
        }
    } else if args.all {
        Target::Everything
    } else {
        Target::Processes {
            pids: std::mem::take(&mut filters.pid),
            children: args.children,
        }
    };
    let options = Options {
        output: args.output.clone(),
        force: args.force,
        share: args.share.share(),
        share_name: args.share.name(),
        labels: labels(&args.label)?,
        syscalls: args.syscalls.clone(),
        layers: args.layers.clone(),
        detail: match args.detail {
            DetailArg::Counters => Detail::Counters {
                by_file: keep.count_files,
            },
            DetailArg::Raw => Detail::Raw,
            DetailArg::Fds => Detail::Fds,
            DetailArg::Full => Detail::Full,
        },
        rows,
        budget: keep.budget,
        content: match (args.content, args.hash_in) {
            (ContentArg::None, _) => Content::None,
            (ContentArg::Hash, Some(HashInArg::User)) => Content::Send,
            (ContentArg::Hash, _) => Content::Hash,
            (ContentArg::Plain, _) => Content::Plain,
        },
        content_max: args.content_max,
        spans: args.spans.clone(),
        tls: !args.no_tls,
        stacks: args.stacks,
        usdt: args.usdt.clone(),
        otel_context: args.otel_context,
        library: args.library.clone(),
        library_by: match args.library_by {
            Some(LibraryByArg::Preload) => LibraryBy::Preload,
            Some(LibraryByArg::Uprobe) | None => LibraryBy::Uprobe,
        },
        library_budget: match args.library_budget {
            Some(LibraryBudgetArg::Calls(calls)) => Some(calls),
            Some(LibraryBudgetArg::Off) => None,
            None => Some(LIBRARY_CALLS_PER_SECOND),
        },
        functions: args.function.clone(),
        perf_counters: args.counters.clone(),
        filters,
        duration: args.duration,
        ring_mib: args.ring_mib,
        keep: keep.keep.clone(),
        save_when: keep.save_when.clone().map(|condition| SaveWhen {
            condition,
            max_saves: keep.max_saves,
            pause: keep.save_pause,
        }),
        durable: keep.durable,
        raw: args.raw.clone(),
        diagnose: args.diagnose,
        kubernetes: kubernetes(&args.kubernetes),
        #[cfg(feature = "analysis")]
        watched: args.page.ui,
        #[cfg(not(feature = "analysis"))]
        watched: false,
    };
    Ok((options, target))
}

/// Labels by key; of two values of one key neither is dropped without a word.
fn labels(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut labels = BTreeMap::new();
    for (key, value) in given {
        if labels.insert(key.clone(), value.clone()).is_some() {
            let error = anyhow!("--label {key} is given twice; a label has one value");
            return Err(Failure::input(error));
        }
    }
    Ok(labels)
}

fn kubernetes(options: &KubernetesOptions) -> Option<Kubernetes> {
    Some(Kubernetes {
        server: options.kubernetes.clone()?,
        token: options.kubernetes_token.clone(),
        authority: options.kubernetes_ca.clone(),
        certificate: options.kubernetes_certificate.clone(),
    })
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Command(error) => Failure::with_status(error.exit_status(), error),
            error if error.is_input() => Failure::input(error),
            error => Failure::recording(error),
        }
    }
}
