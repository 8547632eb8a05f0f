//! `GET /sessions/ID/top`: what the most time, calls, bytes, ... went into.

mod pyramid;
mod together;

use std::collections::HashMap;

use arrow::array::{Array, Float64Array, StringArray};
use arrow::record_batch::RecordBatch;
use axum::extract::{Path, State};
use fathom_query::escape::sql_string;
use fathom_query::together::Place;
use fathom_query::zoom::By;
use serde::{Deserialize, Serialize};

pub(crate) use pyramid::Sums;
use pyramid::{HISTOGRAM, of_pyramid};
use together::Split;

use super::Shared;
use crate::calls::{Calls, faults};
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Keys of an answer at most.
const MOST: usize = 1000;
/// Names of files from which on all are read.
const MANY_NAMES: usize = 500;
/// Calls from which on the pyramid answers, if it can.
const MANY: f64 = 2e6;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TopParams {
    /// The key of the rows. With `path` all files that had one path one after another are one row; with millions of
    /// calls the files answer.
    #[cfg_attr(test, schemars(extend("enum" = ["file", "path", "syscall", "thread", "process", "class", "errno", "comm"])))]
    by: Option<String>,
    /// The order, largest first; `time_ns` by default.
    #[cfg_attr(test, schemars(extend("enum" = ["time_ns", "calls", "bytes", "errors", "p99_ns", "max_ns"])))]
    sort: Option<String>,
    /// Rows of the answer; 20 by default, at most 1,000.
    limit: Option<usize>,
    /// With 1 only rows answer, not the pyramid.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    exact: Option<u8>,
    /// With 1, by path, and in order of a sum: many paths that each have little of it count as one row, as in `fathom report`.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    together: Option<u8>,
    /// With 1, by file: calls that name a path and use no descriptor, such as `unlink`, count to the file that had the path, as far as
    /// rows answer.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    named: Option<u8>,
    /// With 1: the page faults on mapped files besides, which are no calls: `faults` (their number) and `fault_ns` (the time that they took, in the
    /// order by time included). By call and class they have the key `page fault`; by name of error they are not there. By file this is always so.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    faults: Option<u8>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct TopMeta {
    /// The key of the rows.
    pub by: &'static str,
    /// How many keys there are.
    pub total: usize,
    /// Sum of the durations of all calls, nanoseconds.
    pub time_ns: f64,
    /// Sum of the durations of all page faults on mapped files, if rows include them.
    pub fault_ns: f64,
    /// Whether all numbers are exact. In windows with millions of calls percentiles are not,
    /// and files and threads may lack calls; with exact=1 only percentiles are not, of 20
    /// millions or more.
    pub exact: bool,
}

/// A way of telling calls apart: the key in SQL, and where names come from.
struct Kind {
    name: &'static str,
    key: &'static str,
    /// As the pyramid has it.
    by: Option<By>,
    /// The key of page faults in SQL, if they have one.
    of_faults: Option<&'static str>,
    names: Option<&'static str>,
}

/// Further options.
struct Asked {
    sort: &'static str,
    limit: usize,
    /// Whether only rows may answer.
    exact: bool,
    /// Whether paths with little count together.
    together: bool,
    /// Whether calls by a path count to the file that had it.
    named: bool,
    /// Whether page faults count.
    faults: bool,
}

impl Asked {
    /// The column that the order is by: time includes page faults.
    fn order(&self) -> &'static str {
        match self.sort {
            "time_ns" => "spent_ns",
            sort => sort,
        }
    }
}

fn kind(name: &str) -> Option<Kind> {
    let plain = |key, by, of_faults| Kind {
        name: key,
        key,
        by,
        of_faults,
        names: None,
    };
    let fault = Some("'page fault'");
    Some(match name {
        "path" => plain("path", None, Some("path")),
        "syscall" => plain("syscall", Some(By::Syscall), fault),
        "class" => plain("class", Some(By::Class), fault),
        "errno" => plain("errno", None, None),
        "comm" => plain("comm", None, Some("comm")),
        "file" => Kind {
            name: "file",
            key: "file_id",
            by: Some(By::File),
            of_faults: Some("file_id"),
            names: Some(
                "SELECT file_id::VARCHAR AS key, path AS label FROM files WHERE file_id IN",
            ),
        },
        "thread" => Kind {
            name: "thread",
            key: "tid",
            by: Some(By::Thread),
            of_faults: Some("tid"),
            names: Some(
                "SELECT tid::VARCHAR AS key, arg_max(comm, started_at_ns) AS label FROM processes \
                 WHERE tid IN",
            ),
        },
        "process" => Kind {
            name: "process",
            key: "pid",
            by: Some(By::Process),
            of_faults: Some("pid"),
            names: Some(
                "SELECT pid::VARCHAR AS key, arg_max(comm, started_at_ns) AS label FROM processes \
                 WHERE pid = tid AND pid IN",
            ),
        },
        _ => return None,
    })
}

/// `GET /sessions/ID/top`.
pub(crate) async fn top(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<TopParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let kind = kind(params.by.as_deref().unwrap_or("file")).ok_or_else(|| {
        let takes = "it is one of file, path, syscall, thread, process, class, errno, comm";
        ApiError::parameter("by", takes)
    })?;
    let sort = match params.sort.as_deref().unwrap_or("time_ns") {
        "time_ns" => "time_ns",
        "calls" => "calls",
        "bytes" => "bytes",
        "errors" => "errors",
        "max_ns" => "max_ns",
        "p99_ns" => "p99_ns",
        _ => {
            let takes = "it is one of time_ns, calls, bytes, errors, p99_ns, max_ns";
            return Err(ApiError::parameter("sort", takes));
        }
    };
    let asked = Asked {
        sort,
        limit: params.limit.unwrap_or(20).min(MOST),
        exact: params.exact.unwrap_or(0) != 0,
        together: params.together.unwrap_or(0) != 0
            && kind.name == "path"
            && !matches!(sort, "p99_ns" | "max_ns"),
        named: params.named.unwrap_or(0) != 0 && kind.name == "file",
        faults: params.faults.unwrap_or(0) != 0 || kind.name == "file",
    };
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, &selection, &kind, &asked);
    app.jobs.query(id, Lane::Quick, query).await
}

fn answer(
    reader: &Reader,
    stop: &Stop,
    selection: &Selection,
    asked_kind: &Kind,
    asked: &Asked,
) -> Result<ArrowAnswer, ApiError> {
    let window = selection.window(reader.started_at_ns(), reader.span());
    let many = reader.zoom.rows_near(window.from..window.to) as f64 > MANY;
    // The sums over time know files, not the paths that calls took.
    let file = kind("file").filter(|_| many && asked_kind.name == "path");
    let kind = file.as_ref().unwrap_or(asked_kind);
    if many
        && !asked.exact
        && let Some(found) = of_pyramid(reader, selection, kind, asked)?
    {
        return found.answer(reader, kind);
    }
    let mut calls = Calls::of(reader, selection, window)?;
    if asked.named {
        calls.source = named(&calls.source);
    }
    let faults = match asked.faults && kind.of_faults.is_some() {
        true => faults(reader, selection, window)?,
        false => None,
    };
    let faults = faults.as_deref();
    let mut found = of_rows(reader, stop, &calls, faults, kind, asked)?;
    if kind.name == "path" {
        found.of_paths = files_of(reader, &calls, faults, &found.keys)?;
    }
    found.answer(reader, kind)
}

/// Calls, those by a path with the file that had it: of several files in turn the last one.
fn named(calls: &str) -> String {
    format!(
        "(SELECT c.* REPLACE (coalesce(c.file_id, f.file) AS file_id) FROM {calls} AS c \
         LEFT JOIN (SELECT path AS named, max(file_id) AS file FROM files GROUP BY path) AS f \
         ON c.file_id IS NULL AND c.path = f.named)"
    )
}

/// The files that had a path.
#[derive(Clone, Copy, Default)]
struct OfPath {
    /// The one with the longest call.
    file: Option<f64>,
    files: f64,
}

fn files_of(
    reader: &Reader,
    calls: &Calls,
    faults: Option<&str>,
    keys: &[Option<String>],
) -> Result<HashMap<String, OfPath>, ApiError> {
    let paths: Vec<String> = keys.iter().flatten().map(|key| sql_string(key)).collect();
    if paths.is_empty() {
        return Ok(HashMap::new());
    }
    let listed = format!("path IN ({})", paths.join(", "));
    let faults = faults.map_or(String::new(), |faults| {
        format!(" UNION ALL SELECT path, file_id, dur_ns FROM {faults} AND {listed}")
    });
    let rows = collect(reader.db().run(&format!(
        "SELECT path, arg_max(file_id, dur_ns)::DOUBLE AS file, \
         count(DISTINCT file_id)::DOUBLE AS files FROM ( \
         SELECT path, file_id, dur_ns FROM {}{faults}) GROUP BY path",
        calls.and(&listed)
    ))?)?;
    let (path, file, files) = (
        texts(&rows, "path")?,
        numbers(&rows, "file")?,
        numbers(&rows, "files")?,
    );
    let of_path = |i: usize| OfPath {
        file: file.is_valid(i).then(|| file.value(i)),
        files: files.value(i),
    };
    Ok((0..rows.num_rows())
        .map(|i| (path.value(i).to_owned(), of_path(i)))
        .collect())
}

/// Exact sums, and percentiles that are exact up to very many calls. `faults`: the page faults that
/// belong to them, as what comes after FROM.
fn of_rows(
    reader: &Reader,
    stop: &Stop,
    calls: &Calls,
    faults: Option<&str>,
    kind: &Kind,
    asked: &Asked,
) -> Result<Found, ApiError> {
    let (key, sort) = (kind.key, asked.order());
    let faults = faults
        .zip(kind.of_faults)
        .map_or(String::new(), |(faults, key)| {
            format!(
                " UNION ALL SELECT {key}, NULL, 0, 0, 0, 0, 0, NULL, count(*), \
             coalesce(sum(dur_ns), 0) FROM {faults} GROUP BY 1"
            )
        });
    // The direction of bytes is looked up per call name, not per row.
    let sums = format!(
        "sums AS (SELECT key, sum(n)::DOUBLE AS calls, sum(failed)::DOUBLE AS errors, sum(failures)::DOUBLE AS failures, \
         sum(bytes)::DOUBLE AS bytes, \
         coalesce(sum(bytes) FILTER (call_reads(name)), 0)::DOUBLE AS bytes_read, \
         coalesce(sum(bytes) FILTER (call_writes(name)), 0)::DOUBLE AS bytes_written, \
         sum(time)::DOUBLE AS time_ns, max(longest)::DOUBLE AS max_ns, \
         sum(faults)::DOUBLE AS faults, sum(in_faults)::DOUBLE AS fault_ns, \
         sum(time + in_faults)::DOUBLE AS spent_ns FROM ( \
         SELECT {key} AS key, syscall AS name, count(*) AS n, count(errno) AS failed, \
         count(*) FILTER (call_failed(syscall, errno)) AS failures, \
         coalesce(sum(bytes), 0) AS bytes, coalesce(sum(dur_ns), 0) AS time, \
         coalesce(max(dur_ns), 0) AS longest, 0 AS faults, 0 AS in_faults \
         FROM {calls} GROUP BY 1, 2{faults}) GROUP BY key)"
    );
    let percentiles = |more: &str| {
        format!(
            "percentiles AS (SELECT {key} AS key, duration_percentiles(dur_ns) AS p, \
             p[1]::DOUBLE AS p50_ns, p[3]::DOUBLE AS p99_ns FROM {} GROUP BY 1)",
            calls.and(more)
        )
    };
    let columns = "s.key::VARCHAR AS key, s.calls, s.errors, s.failures, s.bytes, s.bytes_read, \
                   s.bytes_written, s.time_ns, s.max_ns, s.faults, s.fault_ns, s.spent_ns";
    let all = "sum(time_ns) OVER () AS all_ns, sum(fault_ns) OVER () AS all_fault_ns";
    let order = format!("ORDER BY {sort} DESC NULLS LAST, key LIMIT {}", asked.limit);
    let join = "LEFT JOIN percentiles AS p ON s.key IS NOT DISTINCT FROM p.key";
    let mut exact = reader.db().exact_percentiles();
    let first = |rows: &RecordBatch, name: &str| {
        let value = numbers(rows, name)?.iter().flatten().next();
        Ok::<_, ApiError>(value.unwrap_or(0.0))
    };
    let (total, all_ns, all_fault_ns);
    let mut split = None;
    let (rows, percentiles) = match sort {
        "p99_ns" => {
            let sql = format!(
                "WITH {sums}, {} SELECT {columns}, p50_ns, p99_ns, count(*) OVER () AS total, \
                 {all} FROM sums AS s {join} {order}",
                percentiles("true")
            );
            let rows = collect(reader.db().run(&sql)?)?;
            (total, all_ns) = (first(&rows, "total")?, first(&rows, "all_ns")?);
            all_fault_ns = first(&rows, "all_fault_ns")?;
            let values = (numbers(&rows, "p50_ns")?, numbers(&rows, "p99_ns")?);
            (rows, values)
        }
        _ => {
            let sql = match asked.together {
                true => together::statement(&sums, asked),
                false => format!(
                    "WITH {sums} SELECT {columns}, count(*) OVER () AS total, \
                     {all} FROM sums AS s {order}"
                ),
            };
            let mut rows = collect(reader.db().run(&sql)?)?;
            stop.check()?;
            (total, all_ns) = (first(&rows, "total")?, first(&rows, "all_ns")?);
            all_fault_ns = first(&rows, "all_fault_ns")?;
            if asked.together {
                let of = Split::of(&rows, asked)?;
                rows = of.alone.clone();
                split = Some(of);
            }
            // Only of the keys that are shown: percentiles cost more than sums.
            let keys = texts(&rows, "key")?;
            let calls_in_all: f64 = numbers(&rows, "calls")?.iter().flatten().sum();
            let values = match keys.is_empty() {
                false if calls_in_all > MANY && !asked.exact => {
                    exact = false;
                    of_histograms(reader, calls, kind, &keys)?
                }
                false => {
                    let percentiles = percentiles(&shown(kind, &keys));
                    let list = listed(kind, &keys);
                    let sql = format!(
                        "WITH {percentiles}, shown AS (SELECT unnest({list}) AS key, \
                         generate_subscripts({list}, 1) AS place) \
                         SELECT p.p50_ns, p.p99_ns FROM shown AS s {join} ORDER BY place"
                    );
                    let values = collect(reader.db().run(&sql)?)?;
                    (numbers(&values, "p50_ns")?, numbers(&values, "p99_ns")?)
                }
                true => (numbers(&rows, "calls")?, numbers(&rows, "calls")?),
            };
            (rows, values)
        }
    };
    let column = |name: &str| Ok::<_, ApiError>(numbers(&rows, name)?.iter().collect());
    let mut found = Found {
        keys: texts(&rows, "key")?
            .iter()
            .map(|k| k.map(str::to_string))
            .collect(),
        calls: column("calls")?,
        errors: column("errors")?,
        failures: column("failures")?,
        bytes: column("bytes")?,
        bytes_read: column("bytes_read")?,
        bytes_written: column("bytes_written")?,
        time_ns: column("time_ns")?,
        p50_ns: percentiles.0.iter().collect(),
        p99_ns: percentiles.1.iter().collect(),
        max_ns: column("max_ns")?,
        faults: column("faults")?,
        fault_ns: column("fault_ns")?,
        total: total as usize,
        all_ns,
        all_fault_ns,
        exact,
        with_faults: asked.faults,
        ..Found::default()
    };
    if let Some(split) = split {
        split.add(reader, calls, &mut found, asked)?;
    }
    Ok(found)
}

/// Medians and 99th percentiles of the keys by histograms: sorting millions of durations
/// takes longer than counting them.
fn of_histograms(
    reader: &Reader,
    calls: &Calls,
    kind: &Kind,
    keys: &StringArray,
) -> Result<(Float64Array, Float64Array), ApiError> {
    let rows = collect(reader.db().run(&format!(
        "SELECT key::VARCHAR AS key, level, n FROM (SELECT {} AS key, \
         duration_bucket(dur_ns) AS level, count(*) AS n FROM {} GROUP BY 1, 2)",
        kind.key,
        calls.and(&format!("dur_ns IS NOT NULL AND {}", shown(kind, keys))),
    ))?)?;
    let (key, level, n) = (
        texts(&rows, "key")?,
        numbers(&rows, "level")?,
        numbers(&rows, "n")?,
    );
    let mut sums: HashMap<Option<&str>, Sums> = HashMap::new();
    for i in 0..rows.num_rows() {
        let sums = sums
            .entry(key.is_valid(i).then(|| key.value(i)))
            .or_default();
        sums.histogram.resize(HISTOGRAM, 0.0);
        sums.longest = f64::INFINITY;
        if let Some(count) = sums.histogram.get_mut(level.value(i) as usize) {
            *count += n.value(i);
        }
    }
    let percentile = |part: f64| -> Float64Array {
        let of = |key: Option<&str>| sums.get(&key).and_then(|s| s.percentile(part));
        keys.iter().map(of).collect()
    };
    Ok((percentile(0.5), percentile(0.99)))
}

/// The keys of an answer as a list in SQL.
fn listed(kind: &Kind, keys: &StringArray) -> String {
    let keys: Vec<String> = keys
        .iter()
        .map(|key| key.map_or("NULL".to_string(), |key| quoted(kind, key)))
        .collect();
    format!("[{}]", keys.join(", "))
}

/// A condition: the key is one of the listed keys.
fn shown(kind: &Kind, keys: &StringArray) -> String {
    let list: Vec<String> = keys.iter().flatten().map(|key| quoted(kind, key)).collect();
    let mut any = Vec::new();
    if !list.is_empty() {
        any.push(format!("{} IN ({})", kind.key, list.join(", ")));
    }
    if keys.null_count() > 0 {
        any.push(format!("{} IS NULL", kind.key));
    }
    format!("({})", any.join(" OR "))
}

/// The content of an answer, one entry per row.
#[derive(Default)]
struct Found {
    keys: Vec<Option<String>>,
    calls: Vec<Option<f64>>,
    errors: Vec<Option<f64>>,
    failures: Vec<Option<f64>>,
    bytes: Vec<Option<f64>>,
    bytes_read: Vec<Option<f64>>,
    bytes_written: Vec<Option<f64>>,
    time_ns: Vec<Option<f64>>,
    p50_ns: Vec<Option<f64>>,
    p99_ns: Vec<Option<f64>>,
    max_ns: Vec<Option<f64>>,
    faults: Vec<Option<f64>>,
    fault_ns: Vec<Option<f64>>,
    total: usize,
    all_ns: f64,
    all_fault_ns: f64,
    exact: bool,
    /// Whether page faults were asked for.
    with_faults: bool,
    /// Of answers by path.
    of_paths: HashMap<String, OfPath>,
    /// Where paths may count together: the rows for these, in order, and where they are.
    together: Option<Vec<(usize, Place)>>,
}

impl Found {
    fn answer(self, reader: &Reader, kind: &Kind) -> Result<ArrowAnswer, ApiError> {
        let ids: Vec<&str> = self.keys.iter().flatten().map(String::as_str).collect();
        let labels = labels(reader, kind, &ids)?;
        let label = |key: &Option<String>| match kind.names {
            Some(_) => labels.get(key.as_ref()?).cloned(),
            None => key.clone(),
        };
        let names: Vec<Option<String>> = self.keys.iter().map(label).collect();
        let mut columns = Columns::default();
        if let Some(groups) = self.together {
            let mut directories = vec![None; names.len()];
            let (mut paths, mut elsewhere) = (vec![1.0; names.len()], vec![0.0; names.len()]);
            for (at, place) in groups {
                paths[at] = place.paths() as f64;
                elsewhere[at] = place.elsewhere as f64;
                directories[at] = Some(place.directory);
            }
            columns.texts("directory", directories);
            columns.numbers("paths", paths);
            columns.numbers("elsewhere", elsewhere);
        }
        if kind.name == "path" {
            let of = |key: &Option<String>| {
                let of_path = key.as_ref().and_then(|key| self.of_paths.get(key));
                of_path.copied().unwrap_or_default()
            };
            columns.optional_numbers("file", self.keys.iter().map(|key| of(key).file));
            columns.numbers("files", self.keys.iter().map(|key| of(key).files));
        }
        if kind.name == "file" {
            let types = Kind {
                names: Some(
                    "SELECT file_id::VARCHAR AS key, file_type AS label FROM files WHERE file_id IN",
                ),
                ..*kind
            };
            let types = self::labels(reader, &types, &ids)?;
            let of = |key: &Option<String>| types.get(key.as_ref()?).cloned();
            columns.texts("type", self.keys.iter().map(of));
        }
        columns.texts("key", self.keys);
        columns.texts("label", names);
        for (name, values) in [
            ("calls", self.calls),
            ("errors", self.errors),
            ("failures", self.failures),
            ("bytes", self.bytes),
            ("bytes_read", self.bytes_read),
            ("bytes_written", self.bytes_written),
            ("time_ns", self.time_ns),
            ("p50_ns", self.p50_ns),
            ("p99_ns", self.p99_ns),
            ("max_ns", self.max_ns),
        ] {
            columns.optional_numbers(name, values);
        }
        if self.with_faults {
            columns.optional_numbers("faults", self.faults);
            columns.optional_numbers("fault_ns", self.fault_ns);
        }
        columns.answer(&TopMeta {
            by: kind.name,
            total: self.total,
            time_ns: self.all_ns,
            fault_ns: self.all_fault_ns,
            exact: self.exact,
        })
    }
}

/// A key as SQL has it.
fn quoted(kind: &Kind, key: &str) -> String {
    match kind.names {
        // Numbers.
        Some(_) => key.to_string(),
        None => sql_string(key),
    }
}

/// Names of what has a number, as files, threads and processes do, by their numbers; `None` for
/// other kinds, whose keys are names.
pub(crate) fn names_of(
    reader: &Reader,
    by: &str,
    keys: &[&str],
) -> Result<Option<HashMap<String, String>>, ApiError> {
    match kind(by) {
        Some(kind) if kind.names.is_some() => labels(reader, &kind, keys).map(Some),
        _ => Ok(None),
    }
}

/// Names of keys that are numbers.
fn labels(
    reader: &Reader,
    kind: &Kind,
    keys: &[&str],
) -> Result<HashMap<String, String>, ApiError> {
    let Some(names) = kind.names.filter(|_| !keys.is_empty()) else {
        return Ok(HashMap::new());
    };
    let group = match kind.key {
        "file_id" => "",
        _ => " GROUP BY 1",
    };
    let sql = match names.rsplit_once(" WHERE ") {
        // To plan a statement with thousands of numbers takes longer than to read the table.
        Some((all, _)) if kind.key == "file_id" && keys.len() > MANY_NAMES => all.to_string(),
        _ => format!("{names} ({}){group}", keys.join(", ")),
    };
    let rows = collect(reader.db().run(&sql)?)?;
    let (key, label) = (texts(&rows, "key")?, texts(&rows, "label")?);
    let pairs = key.iter().zip(label.iter());
    Ok(pairs
        .filter_map(|(key, label)| Some((key?.to_string(), label?.to_string())))
        .collect())
}

#[cfg(test)]
mod tests {
    use fathom_query::{Db, Limits};
    use fathom_testkit::sample::{self, Call, Files};

    use super::*;

    #[test]
    fn calls_by_a_path_count_to_its_file() {
        let of = |syscall, at_ns, dur_ns, path| Call {
            path: Some(path),
            ..Call::new(syscall, at_ns, dur_ns)
        };
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path());
        files
            .add(&sample::files(&[(1, "/db"), (2, "/log"), (3, "/log")]))
            .add(&sample::syscalls(
                1,
                &[
                    Call::new("write", 0, 10).on(1),
                    of("unlink", 20, 400, "/db"),
                    of("unlink", 500, 7, "/log"),
                    of("stat", 600, 1, "/nothing"),
                ],
            ));
        let meta = sample::meta();
        let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
        let rows = collect(
            db.run(&format!(
                "SELECT file_id::VARCHAR AS key, sum(dur_ns)::DOUBLE AS ns FROM {} WHERE ts_ns > 0 \
                 GROUP BY 1 ORDER BY 1",
                named("syscalls")
            ))
            .unwrap(),
        )
        .unwrap();
        let keys = texts(&rows, "key").unwrap();
        let ns: Vec<_> = numbers(&rows, "ns").unwrap().iter().flatten().collect();
        assert_eq!(
            keys.iter().collect::<Vec<_>>(),
            [Some("1"), Some("3"), None]
        );
        assert_eq!(ns, [410.0, 7.0, 1.0]);
    }
}
