//! The filters of a recording: from the command line to the kernel side, and to
//! the session's metadata.

use anyhow::bail;
use fathom_probe::{FilterArgs, Filters, Selection};

use crate::args::{DetailArg, FilterOptions, RecordArgs};

/// The filters that were given.
pub fn parse(given: &FilterOptions, selection: &Selection) -> anyhow::Result<Filters> {
    let filters = Filters::parse(
        &FilterArgs {
            path: given.path.clone(),
            comm: given.comm.clone(),
            pid: given.pid.clone(),
            tid: given.tid.clone(),
            uid: given.uid.clone(),
            cgroup: given.cgroup.clone(),
            container: given.container.clone(),
            file_type: given.file_type.clone(),
            errors_only: given.errors_only,
            min_duration: given.min_duration,
        },
        selection.all_file_types,
    )?;
    if selection.calls.is_empty() {
        bail!("--syscalls: no call is left to record");
    }
    Ok(filters)
}

/// The filters of a recording, checked with its other options.
pub fn of(args: &RecordArgs, selection: &Selection) -> anyhow::Result<Filters> {
    let filters = parse(&args.filter, selection)?;
    if args.all && !filters.pids().is_empty() {
        bail!("--all and --pid contradict each other; --pid '!PID' leaves a process out");
    }
    if args.children && filters.pids().is_empty() {
        bail!("--children needs a --pid whose children are meant");
    }
    if filters.by_path() && matches!(args.detail, DetailArg::Raw) {
        bail!("--path needs paths, which --detail raw does not read: use fds or full");
    }
    Ok(filters)
}

/// The filters as on the command line, one option a word.
pub fn as_given(given: &FilterOptions) -> Vec<String> {
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

/// What of `filters` says which tasks are recorded.
pub fn target(filters: &[String]) -> String {
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
