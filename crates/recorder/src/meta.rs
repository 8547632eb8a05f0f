//! The metadata of a session at the start of its recording.

use std::path::{Path, PathBuf};

use fathom_model::meta::{self, Clock, Cost, SessionMeta, State, Totals};
use fathom_model::tables::SCHEMA_VERSION;
use fathom_probe::{Content, FilterArgs, moment, system};

use crate::plan::Plan;
use crate::{Detail, KeepLimit, LibraryBy, Options, Rows, Target, host, tail};

/// The directory of a session that has not been given one.
pub(crate) fn default_output(plan: &Plan, target: &Target) -> PathBuf {
    let mut pids = plan.filters.pid.iter();
    let name = match target {
        Target::Command { argv, .. } => argv
            .first()
            .and_then(|program| Path::new(program).file_name())
            .map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned()),
        _ => match pids.next().filter(|pid| !pid.starts_with('!')) {
            Some(pid) => format!("pid-{pid}"),
            None => "all".to_string(),
        },
    };
    PathBuf::from(format!("{name}-{}.fathom", system::local_time_for_names()))
}

/// The metadata of a recording, except for the part that only the probes know.
pub(crate) fn describe(options: &Options, target: &Target, plan: &Plan) -> SessionMeta {
    let filters = filters_as_given(&plan.filters);
    let start = moment();
    let (command, target_words) = match target {
        Target::Command { argv, .. } => {
            let words = argv.iter().map(|word| word.to_string_lossy().into_owned());
            (words.collect(), String::new())
        }
        Target::Everything => (Vec::new(), "--all".to_string()),
        Target::Processes { .. } => (Vec::new(), chosen_tasks(&filters)),
    };
    SessionMeta {
        schema_version: SCHEMA_VERSION,
        fathom_version: env!("CARGO_PKG_VERSION").to_string(),
        id: host::random_id(),
        state: State::Recording,
        command,
        target: target_words,
        options: meta::Options {
            detail: match options.detail {
                Detail::Counters { .. } => "counters",
                _ => plan.probe.detail.name(),
            }
            .to_string(),
            syscalls: options.syscalls.clone(),
            ring_mib: options.ring_mib,
            filters,
            other: others_as_given(options, target, plan),
            tail: tail::described(options),
        },
        host: host::describe(),
        labels: options.labels.clone(),
        clock: Clock {
            start_monotonic_ns: start.monotonic_ns,
            start_realtime_ns: start.realtime_ns,
            end_monotonic_ns: None,
            end_realtime_ns: None,
            wall_error_ns: system::wall_error_ns(),
        },
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost::default(),
        content: content(plan),
        spans: (!plan.spans.is_empty() || !plan.probe.usdt.is_empty() || plan.probe.contexts).then(
            || meta::Spans {
                otel_context: plan.probe.contexts,
                protocols: plan.spans.names().into_iter().map(str::to_owned).collect(),
                usdt: (plan.probe.usdt.iter())
                    .map(|kind| format!("{}:{}", kind.provider, kind.name))
                    .collect(),
                ..meta::Spans::default()
            },
        ),
        library_budget: (!options.library.is_empty())
            .then_some(options.library_budget)
            .flatten()
            .map(|calls_per_second| meta::LibraryBudget {
                calls_per_second,
                counted: Vec::new(),
            }),
        source: None,
        perf_counters: Vec::new(),
        own_tables: Default::default(),
        history: meta::History {
            keep: plan.keep.clone(),
            ..Default::default()
        },
    }
}

fn content(plan: &Plan) -> Option<meta::Content> {
    let (mode, hash_in) = match plan.probe.content {
        Content::None => return None,
        Content::Hash => ("hash", "kernel"),
        Content::Send => ("hash", "user"),
        Content::Plain => ("plain", ""),
    };
    Some(meta::Content {
        mode: mode.to_string(),
        hash_in: hash_in.to_string(),
        max_bytes: plan.probe.content_max,
        ..meta::Content::default()
    })
}

/// The filters as on the command line, one option a word.
pub fn filters_as_given(given: &FilterArgs) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |option: &str, value: &str| words.push(format!("--{option} {value}"));
    let plain = [
        ("pid", &given.pid),
        ("tid", &given.tid),
        ("uid", &given.uid),
        ("cgroup", &given.cgroup),
        ("container", &given.container),
        ("unit", &given.unit),
        ("pod", &given.pod),
        ("namespace", &given.namespace),
        ("file-type", &given.file_type),
    ];
    for (option, values) in plain {
        values.iter().for_each(|value| add(option, value));
    }
    for (option, values) in [("comm", &given.comm), ("path", &given.path)] {
        for value in values {
            add(option, &value.to_string_lossy());
        }
    }
    if let Some(time) = given.min_duration {
        add("min-duration", &format!("{time:?}"));
    }
    if given.errors_only {
        words.push("--errors-only".to_string());
    }
    words
}

/// Filters that choose tasks, by the names of their options.
pub const TASK_FILTERS: [&str; 9] = [
    "pid",
    "tid",
    "comm",
    "uid",
    "cgroup",
    "container",
    "unit",
    "pod",
    "namespace",
];

/// The members of `filters` that select tasks.
fn chosen_tasks(filters: &[String]) -> String {
    let words: Vec<_> = filters
        .iter()
        .filter_map(|filter| {
            let (option, value) = filter.strip_prefix("--")?.split_once(' ')?;
            if !TASK_FILTERS.contains(&option) {
                return None;
            }
            Some(match option {
                "pid" => format!("-p {value}"),
                _ => filter.clone(),
            })
        })
        .collect();
    words.join(" ")
}

/// `--library-budget`, if it is not the usual one.
fn library_budget(options: &Options) -> Option<String> {
    match options.library_budget {
        _ if options.library.is_empty() => None,
        Some(crate::LIBRARY_CALLS_PER_SECOND) => None,
        Some(calls) => Some(format!("--library-budget {calls}")),
        None => Some("--library-budget off".to_owned()),
    }
}

/// Further options as on the command line.
fn others_as_given(options: &Options, target: &Target, plan: &Plan) -> Vec<String> {
    let given = |given: bool, word: &str| given.then(|| word.to_string());
    let (user, preserve_environment, children) = match target {
        Target::Command {
            user,
            preserve_environment,
            ..
        } => (user.as_ref(), *preserve_environment, false),
        Target::Processes { children, .. } => (None, false, *children),
        Target::Everything => (None, false, false),
    };
    let counters = &plan.probe.perf_counters;
    let counts_files = options.detail == Detail::Counters { by_file: true };
    let (slower_than, sample) = match options.rows {
        Rows::All => (None, None),
        Rows::Tail {
            slower_than,
            sample,
        } => (slower_than, Some(sample)),
    };
    let keep = options.keep.iter().map(|limit| match limit {
        KeepLimit::Time(time) => format!("--keep {}s", time.as_secs_f64()),
        KeepLimit::Bytes(bytes) => format!("--keep {}KiB", bytes >> 10),
    });
    let before = [
        (!options.layers.is_empty()).then(|| format!("--layers {}", plan.layers.names())),
        (!counters.is_empty()).then(|| format!("--counters {}", counters.names())),
        (!options.spans.is_empty()).then(|| format!("--spans {}", options.spans.join(","))),
        given(!options.tls, "--no-tls"),
        given(options.stacks, "--stacks"),
        (!options.library.is_empty()).then(|| format!("--library {}", options.library.join(","))),
        (!options.usdt.is_empty()).then(|| format!("--usdt {}", options.usdt.join(","))),
        given(options.otel_context, "--otel-context"),
        given(
            options.library_by == LibraryBy::Preload,
            "--library-by preload",
        ),
        library_budget(options),
        (!options.functions.is_empty())
            .then(|| format!("--function {}", options.functions.join(","))),
        (options.rows != Rows::All).then(|| "--rows tail".to_string()),
        slower_than.map(|time| format!("--slower-than {time:?}")),
        sample.map(|sample| format!("--sample {sample}")),
        (options.budget).map(|share| format!("--budget {}%", share * 100.0)),
        user.map(|user| format!("--user {user}")),
        given(preserve_environment, "--preserve-env"),
        (options.share_name.as_ref()).map(|name| format!("--share {name}")),
        (options.duration).map(|duration| format!("--duration {}", duration.as_secs_f64())),
    ];
    let behind = [
        (options.save_when.as_ref()).map(|when| format!("--save-when {}", when.condition)),
        given(options.durable, "--durable"),
        given(counts_files, "--count-files"),
        given(children, "--children"),
    ];
    let before = before.into_iter().flatten();
    before
        .chain(keep)
        .chain(behind.into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SaveWhen;

    #[test]
    fn options_are_kept_as_given() {
        let mut options = Options {
            detail: Detail::Full,
            layers: vec!["block".into()],
            share_name: Some("staff".into()),
            labels: [("job".into(), "17".into())].into(),
            duration: Some(Duration::from_millis(1500)),
            keep: vec![
                KeepLimit::Bytes(2 << 20),
                KeepLimit::Time(Duration::from_secs(60)),
            ],
            save_when: Some(SaveWhen {
                condition: "ret < 0".into(),
                max_saves: 1,
                pause: Duration::ZERO,
            }),
            durable: true,
            ..Options::default()
        };
        options.filters.errors_only = true;
        let target = Target::Processes {
            pids: vec!["12,13".into()],
            children: true,
        };
        let plan = Plan::of(&options, &target).unwrap();
        let meta = describe(&options, &target, &plan);
        assert_eq!(meta.options.filters, ["--pid 12,13", "--errors-only"]);
        assert_eq!(meta.target, "-p 12,13");
        assert_eq!(meta.labels, options.labels);
        assert_eq!(
            meta.options.other,
            [
                &format!("--layers {}", plan.layers.names()),
                "--share staff",
                "--duration 1.5",
                "--keep 2048KiB",
                "--keep 60s",
                "--save-when ret < 0",
                "--durable",
                "--children",
            ]
        );
        let output = default_output(&plan, &target);
        assert!(output.to_string_lossy().starts_with("pid-12,13-"));
    }
}
