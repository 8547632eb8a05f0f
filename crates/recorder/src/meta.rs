//! What a session says of its recording when that begins.

use std::path::{Path, PathBuf};

use fathom_model::meta::{self, Clock, Cost, SessionMeta, State, Totals};
use fathom_model::tables::SCHEMA_VERSION;
use fathom_probe::{Content, FilterArgs, Probe, monotonic_ns, realtime_ns, system};

use crate::plan::Plan;
use crate::stages::MEMORY_BYTES;
use crate::{Detail, KeepLimit, Options, Target, host};

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

/// The metadata of a recording by `probe`, which is attached.
pub(crate) fn describe(
    options: &Options,
    target: &Target,
    plan: &Plan,
    probe: &Probe,
) -> SessionMeta {
    let filters = filters_as_given(&plan.filters);
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
        },
        host: host::describe(),
        clock: Clock {
            start_monotonic_ns: monotonic_ns() as i64,
            start_realtime_ns: realtime_ns() as i64,
            end_monotonic_ns: None,
            end_realtime_ns: None,
        },
        hooks: probe.hooks().to_vec(),
        layers: probe.layers(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost {
            recorder_limit_bytes: (!options.watched)
                .then(|| MEMORY_BYTES as u64 + probe.ring_bytes()),
            ..Cost::default()
        },
        content: content(plan),
        source: None,
        perf_counters: probe.perf_counters().to_vec(),
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

/// Those of `filters` that choose tasks.
fn chosen_tasks(filters: &[String]) -> String {
    const TASKS: [&str; 6] = ["pid", "tid", "comm", "uid", "cgroup", "container"];
    let words: Vec<_> = filters
        .iter()
        .filter_map(|filter| {
            let (option, value) = filter.strip_prefix("--")?.split_once(' ')?;
            if !TASKS.contains(&option) {
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

fn others_as_given(options: &Options, target: &Target, plan: &Plan) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |given: bool, word: String| {
        if given {
            words.push(word);
        }
    };
    let layers = &options.layers;
    add(
        !layers.is_empty(),
        format!("--layers {}", plan.layers.names()),
    );
    let counters = &plan.probe.perf_counters;
    add(
        !counters.is_empty(),
        format!("--counters {}", counters.names()),
    );
    add(options.stacks, "--stacks".into());
    if let Target::Command {
        user,
        preserve_environment,
        ..
    } = target
    {
        if let Some(user) = user {
            add(true, format!("--user {user}"));
        }
        add(*preserve_environment, "--preserve-env".into());
    }
    if let Some(name) = &options.share_name {
        add(true, format!("--share {name}"));
    }
    if let Some(duration) = options.duration {
        add(true, format!("--duration {}", duration.as_secs_f64()));
    }
    for limit in &options.keep {
        let limit = match limit {
            KeepLimit::Time(time) => format!("--keep {}s", time.as_secs_f64()),
            KeepLimit::Bytes(bytes) => format!("--keep {}KiB", bytes >> 10),
        };
        add(true, limit);
    }
    if let Some(save_when) = &options.save_when {
        add(true, format!("--save-when {}", save_when.condition));
    }
    add(options.durable, "--durable".into());
    add(
        options.detail == Detail::Counters { by_file: true },
        "--count-files".into(),
    );
    add(
        matches!(target, Target::Processes { children: true, .. }),
        "--children".into(),
    );
    words
}
