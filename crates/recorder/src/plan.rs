//! Options and target, checked with each other, as the parts of a recorder take them.

use fathom_model::abi::{CONTENT_CHUNK, MAX_CONTENT};
use fathom_model::layers::{Layer, LayerSet};
use fathom_model::meta::Keep;
use fathom_model::protocols::{Protocol, Protocols};
use fathom_model::usdt;
use fathom_probe::{
    self as probe, Content, FilterArgs, Filters, KernelFunctions, PerfCounters, Preload,
    ProbeOptions, Selection, User, Wanted, usual_layers,
};

use crate::program;
use crate::stalls::{self, Stalls};
use crate::trigger::Trigger;
use crate::{Detail, KeepLimit, LibraryBy, Options, RecordError, Rows, Target};

/// Bytes of a call that are hashed unless the options say otherwise.
const HASH_BYTES: u32 = 1 << 20;
/// Bytes of a call that are kept unless the options say otherwise.
const PLAIN_BYTES: u32 = 256;
/// Bytes of a call on a stream socket in which requests are found: the line and most headers of a
/// request of HTTP.
const SPAN_BYTES: u32 = 1024;
/// The same where requests of FastCGI or MongoDB are looked for.
const LONGER_SPAN_BYTES: u32 = 4096;
/// Memory of a ring that only files and tasks go through, MiB.
const COUNTERS_RING_MIB: u32 = 4;

/// The decisions that follow from the options.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) probe: ProbeOptions,
    /// The filters as given, including the target's.
    pub(crate) filters: FilterArgs,
    /// The layers as given; none when those are the usual ones.
    pub(crate) layers: LayerSet,
    pub(crate) user: Option<User>,
    pub(crate) keep: Option<Keep>,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) stalls: Option<Stalls>,
    pub(crate) rows: Rows,
    /// Protocols whose requests are recorded as spans.
    pub(crate) spans: Protocols,
}

impl Plan {
    pub(crate) fn of(options: &Options, target: &Target) -> Result<Self, RecordError> {
        let refuse = |text: &str| Err(RecordError::input(text));
        let counters = matches!(options.detail, Detail::Counters { .. });
        if counters && (!options.keep.is_empty() || options.raw.is_some()) {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with --keep or --raw",
            );
        }
        if counters && options.stacks {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with \
                 --stacks",
            );
        }
        let tail = options.rows != Rows::All || options.budget.is_some();
        if tail && counters {
            return refuse(
                "--detail counters makes no rows of calls: leave it or --rows and --budget out",
            );
        }
        if tail && options.raw.is_some() {
            return refuse(
                "--raw keeps the records of calls, which --rows tail and --budget count instead: \
                 leave one out",
            );
        }
        if options
            .budget
            .is_some_and(|share| !(share > 0.0 && share <= 1.0))
        {
            return refuse("--budget: a share of the processors' time is above 0 and at most 100%");
        }
        let usdt = usdt::parse(&options.usdt).map_err(RecordError::input)?;
        if counters && !usdt.is_empty() {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with --usdt",
            );
        }
        let spans = spans(options)?;
        let tls = options.tls && !spans.is_empty();
        let usdt_files = match target {
            Target::Command { argv, .. } if !usdt.is_empty() || tls => program::files(argv),
            _ => Vec::new(),
        };
        if options.otel_context && (counters || options.detail == Detail::Raw) {
            return refuse(
                "--otel-context needs rows of calls and reads memory of the program: use it with \
                 --detail fds or full",
            );
        }
        if options.otel_context && !options.keep.is_empty() {
            return refuse(
                "--otel-context cannot be combined with --keep: the change to the span that a kept \
                 call was made in may not be kept",
            );
        }
        let library = Wanted::parse(&options.library).map_err(RecordError::input)?;
        if counters && !library.is_empty() {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with \
                 --library",
            );
        }
        let by_preload = options.library_by == LibraryBy::Preload;
        if by_preload && library.is_empty() {
            return refuse("--library-by preload: name the functions with --library");
        }
        if by_preload && !matches!(target, Target::Command { .. }) {
            return refuse(
                "--library-by preload loads a library into the command that fathom starts, and nothing \
                 into programs that run already: name a command, or use --library-by uprobe",
            );
        }
        if options.library_budget == Some(0) {
            return refuse("--library-budget: at least one call per second, or off");
        }
        let functions = KernelFunctions::parse(&options.functions).map_err(RecordError::input)?;
        if counters && !functions.is_empty() {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with \
                 --function",
            );
        }
        let perf_counters =
            PerfCounters::parse(&options.perf_counters).map_err(RecordError::input)?;
        if counters && !perf_counters.is_empty() {
            return refuse(
                "--detail counters records no single calls: it cannot be combined with \
                 --counters",
            );
        }
        let mut selection = Selection::parse(&options.syscalls).map_err(RecordError::input)?;
        if !spans.is_empty() {
            selection = selection.with_streams();
        }
        let given_layers = match options.layers[..] {
            [] => LayerSet::default(),
            _ => LayerSet::parse(&options.layers).map_err(RecordError::input)?,
        };
        let layers = match options.layers[..] {
            // Counts are counts of calls.
            _ if counters => LayerSet::default().with(Layer::Syscall),
            [] => usual_layers(&selection),
            _ => given_layers,
        };
        let unrecorded = functions.iter().find(|f| !layers.has(f.layer));
        if let Some(function) = unrecorded {
            return refuse(&format!(
                "--function {}: layer {1} is not recorded; add {1} to --layers, or name another layer",
                function.name,
                function.layer.name()
            ));
        }
        let content_max = content_max(options)?;
        let (given, filters) = filters(options, target, &selection)?;
        let detail = match options.detail {
            Detail::Counters { by_file: false } | Detail::Raw => probe::Detail::Raw,
            Detail::Counters { by_file: true } | Detail::Fds => probe::Detail::Fds,
            Detail::Full => probe::Detail::Full,
        };
        let (library, preload) = match by_preload {
            true => {
                let preload = Preload::new(library, detail, filters.by_path());
                (Wanted::default(), preload.map_err(RecordError::input)?)
            }
            false => (library, Preload::default()),
        };
        let command = matches!(target, Target::Command { .. });
        let user = match target {
            Target::Command { user, .. } => user.as_deref().map(User::named).transpose(),
            _ => Ok(None),
        };
        let stalls = Stalls::new(options.save_when.as_ref(), options.diagnose)?;
        // A condition on calls in flight is none on rows.
        let on_rows = match &options.save_when {
            Some(when) if stalls::limit(&when.condition)?.is_none() => Some(when),
            _ => None,
        };
        let trigger = on_rows.map(Trigger::new).transpose()?;
        Ok(Self {
            user: user.map_err(RecordError::input)?,
            keep: keep(&options.keep)?,
            trigger,
            stalls,
            rows: options.rows,
            filters: given,
            layers: given_layers,
            spans,
            probe: ProbeOptions {
                detail,
                ring_mib: match counters {
                    true => options.ring_mib.min(COUNTERS_RING_MIB),
                    false => options.ring_mib,
                },
                all_tasks: !command && filters.pids().is_empty(),
                follow: command || matches!(target, Target::Processes { children: true, .. }),
                selection,
                layers,
                content: options.content,
                content_max,
                spans: span_bytes(spans),
                tls,
                filters,
                counters,
                tail,
                stacks: options.stacks,
                functions,
                library,
                library_budget: options.library_budget,
                preload,
                usdt,
                usdt_files,
                contexts: options.otel_context,
                perf_counters,
            },
        })
    }
}

fn filters(
    options: &Options,
    target: &Target,
    selection: &Selection,
) -> Result<(FilterArgs, Filters), RecordError> {
    let refuse = |text: &str| Err(RecordError::input(text));
    let mut given = options.filters.clone();
    if let Target::Processes { pids, .. } = target {
        given.pid.extend_from_slice(pids);
    }
    let filters = Filters::parse(&given, selection.all_file_types).map_err(RecordError::input)?;
    if selection.calls.is_empty() {
        return refuse("--syscalls: the values exclude every call");
    }
    if matches!(target, Target::Everything) && !filters.pids().is_empty() {
        return refuse("--all and --pid contradict each other; --pid '!PID' excludes a process");
    }
    if matches!(target, Target::Processes { children: true, .. }) && filters.pids().is_empty() {
        return refuse("--children needs --pid");
    }
    if filters.by_path() && options.detail == Detail::Raw {
        return refuse("--detail raw reads no paths: use --path with --detail fds or full");
    }
    Ok((given, filters))
}

/// Bytes of a call's content that are taken.
fn content_max(options: &Options) -> Result<u32, RecordError> {
    let refuse = |text: &str| Err(RecordError::input(text));
    let (default, most) = match options.content {
        Content::None if options.content_max.is_some() => {
            return refuse("--content-max needs --content hash or plain");
        }
        Content::None => return Ok(0),
        Content::Hash | Content::Send => (HASH_BYTES, MAX_CONTENT),
        // One record holds it.
        Content::Plain => (PLAIN_BYTES, CONTENT_CHUNK),
    };
    match options.detail {
        Detail::Counters { .. } => refuse(
            "--detail counters records no single calls: it cannot be combined with --content",
        ),
        Detail::Raw => refuse(
            "--detail raw reads no memory of the program: use --content with --detail fds or \
             full",
        ),
        _ => match options.content_max.unwrap_or(default) {
            bytes if bytes > most => Err(RecordError::Input(format!(
                "--content-max: the maximum is {most} bytes here"
            ))),
            bytes => Ok(bytes),
        },
    }
}

/// Protocols whose requests are recorded.
fn spans(options: &Options) -> Result<Protocols, RecordError> {
    let refuse = |text: &str| Err(RecordError::input(text));
    let protocols = Protocols::parse(&options.spans)
        .map_err(|error| RecordError::Input(format!("--spans: {error}")))?;
    if protocols.is_empty() {
        return Ok(protocols);
    }
    let filters = &options.filters;
    match options.detail {
        Detail::Counters { .. } => {
            refuse("--detail counters records no single calls: it cannot be combined with --spans")
        }
        Detail::Raw => refuse(
            "--detail raw reads no memory of the program: use --spans with --detail fds or full",
        ),
        _ if options.rows != Rows::All || options.budget.is_some() => refuse(
            "--spans needs every call on a socket: it cannot be combined with --rows tail or \
             --budget",
        ),
        _ if filters.errors_only
            || filters.min_duration.is_some()
            || !filters.path.is_empty()
            || !filters.file_type.is_empty() =>
        {
            refuse(
                "--spans needs every call on a socket: it cannot be combined with --errors-only, \
                 --min-duration, --path, or --file-type",
            )
        }
        _ => Ok(protocols),
    }
}

/// Bytes of each call in which requests of these protocols are found.
fn span_bytes(protocols: Protocols) -> u32 {
    match protocols {
        _ if protocols.is_empty() => 0,
        // The end of a message is known from all messages before it. Servers of PostgreSQL send
        // 8 KiB at a time, clients receive 16 KiB; servers of Redis receive 16 KiB.
        _ if protocols.has(Protocol::Postgresql) || protocols.has(Protocol::Redis) => CONTENT_CHUNK,
        // FastCGI: the address of a client is behind the other parameters. MongoDB: filters may be
        // long.
        _ if protocols.has(Protocol::Fastcgi) || protocols.has(Protocol::Mongodb) => {
            LONGER_SPAN_BYTES
        }
        _ => SPAN_BYTES,
    }
}

fn keep(limits: &[KeepLimit]) -> Result<Option<Keep>, RecordError> {
    let mut keep = Keep::default();
    for limit in limits {
        match limit {
            KeepLimit::Time(time) if keep.time_ns.is_none() => {
                keep.time_ns = Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
            KeepLimit::Bytes(bytes) if keep.bytes.is_none() => keep.bytes = Some(*bytes),
            _ => {
                return Err(RecordError::input(
                    "--keep takes one time and one size, not two of the same kind",
                ));
            }
        }
    }
    Ok((!limits.is_empty()).then_some(keep))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SaveWhen;

    fn refusal(target: Target, change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        let error = Plan::of(&options, &target).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let counters = Detail::Counters { by_file: false };
        let all = || Target::Everything;
        let keep = |seconds| KeepLimit::Time(Duration::from_secs(seconds));
        for (said, reason) in [
            (
                refusal(all(), |o| (o.detail, o.stacks) = (counters, true)),
                "--stacks",
            ),
            (
                refusal(all(), |o| (o.detail, o.keep) = (counters, vec![keep(1)])),
                "cannot be combined with --keep or --raw",
            ),
            (
                refusal(all(), |o| o.keep = vec![keep(1), keep(2)]),
                "two of the same kind",
            ),
            (
                refusal(all(), |o| {
                    (o.detail, o.content) = (Detail::Raw, Content::Hash);
                }),
                "--detail raw reads no memory",
            ),
            (
                refusal(all(), |o| (o.detail, o.budget) = (counters, Some(0.1))),
                "--rows and --budget",
            ),
            (refusal(all(), |o| o.budget = Some(1.5)), "at most 100%"),
            (
                refusal(all(), |o| {
                    o.rows = Rows::Tail {
                        slower_than: None,
                        sample: 0,
                    };
                    o.raw = Some("x".into());
                }),
                "--raw",
            ),
            (
                refusal(all(), |o| o.content_max = Some(1)),
                "--content-max needs --content",
            ),
            (
                refusal(all(), |o| {
                    (o.content, o.content_max) = (Content::Plain, Some(CONTENT_CHUNK + 1));
                }),
                "the maximum is",
            ),
            (
                refusal(all(), |o| o.filters.pid = vec!["12".into()]),
                "--all and --pid",
            ),
            (
                refusal(all(), |o| {
                    (o.detail, o.filters.path) = (Detail::Raw, vec!["/tmp".into()]);
                }),
                "--detail raw reads no paths",
            ),
            (
                refusal(
                    Target::Processes {
                        pids: vec!["!12".into()],
                        children: true,
                    },
                    |_| (),
                ),
                "--children",
            ),
            (
                refusal(all(), |o| {
                    o.save_when = Some(SaveWhen {
                        condition: "dur_ns >".into(),
                        max_saves: 1,
                        pause: Duration::ZERO,
                    });
                }),
                "--save-when \"dur_ns >\": at character",
            ),
            (
                refusal(all(), |o| o.spans = vec!["smtp".into()]),
                "--spans: no protocol named 'smtp'",
            ),
            (
                refusal(all(), |o| {
                    (o.detail, o.spans) = (counters, vec!["all".into()]);
                }),
                "--spans",
            ),
            (
                refusal(all(), |o| {
                    (o.filters.errors_only, o.spans) = (true, vec!["all".into()]);
                }),
                "--spans needs every call on a socket",
            ),
            (
                refusal(all(), |o| o.layers = vec!["floppy".into()]),
                "floppy",
            ),
        ] {
            assert!(said.contains(reason), "{said}: {reason}");
        }
    }

    #[test]
    fn targets_choose_tasks() {
        let of = |target| Plan::of(&Options::default(), &target).unwrap().probe;
        let command = of(Target::command(["true"]));
        assert!(command.follow && !command.all_tasks);
        let everything = of(Target::Everything);
        assert!(!everything.follow && everything.all_tasks && everything.filters.open_ended());
        let processes = of(Target::Processes {
            pids: vec!["12,13".into(), "!14".into()],
            children: true,
        });
        assert!(processes.follow && !processes.all_tasks);
        assert_eq!(processes.filters.pids(), [12, 13]);
    }

    #[test]
    fn counts_are_of_calls_and_need_small_rings() {
        let options = Options {
            detail: Detail::Counters { by_file: true },
            layers: vec!["block".into()],
            ..Options::default()
        };
        let probe = Plan::of(&options, &Target::Everything).unwrap().probe;
        assert!(probe.counters && probe.detail == probe::Detail::Fds);
        assert!(!probe.layers.has(Layer::Block) && probe.ring_mib == COUNTERS_RING_MIB);
    }
}
