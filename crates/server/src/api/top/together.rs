//! Paths that count together as one row, as in the report (`fathom_query::together`).

use std::collections::HashMap;

use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::{filter_record_batch, not};
use arrow::record_batch::RecordBatch;
use fathom_query::escape::sql_string;
use fathom_query::together::{Group, LITTLE, MANY, Place, directory_of, groups, marked};

use super::pyramid::Sums;
use super::{Asked, Found, Kind, labels};
use crate::calls::Calls;
use crate::columns::{collect, column, flags, internal, numbers, texts};
use crate::error::ApiError;
use crate::view::Reader;

/// Keys that take more than little, at most.
const LARGE: usize = (1.0 / LITTLE) as usize;

/// The statement whose rows [`Split::of`] takes apart; `sums` is a CTE with a row per path.
pub(super) fn statement(sums: &str, asked: &Asked) -> String {
    let sort = asked.order();
    let marked = marked("sums", "key", sort, "true");
    let directory = directory_of("key");
    let most = asked.limit.max(LARGE);
    format!(
        "WITH {sums}, marked AS ({marked}), grouped AS (SELECT if(together, NULL, key) AS key, together, \
         if(together, {directory}, NULL) AS directory, count(*)::DOUBLE AS paths, \
         sum(calls) AS calls, sum(errors) AS errors, sum(failures) AS failures, \
         sum(bytes) AS bytes, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written, \
         sum(time_ns) AS time_ns, max(max_ns) AS max_ns, sum(faults) AS faults, \
         sum(fault_ns) AS fault_ns, sum(spent_ns) AS spent_ns FROM marked GROUP BY ALL) \
         SELECT *, sum(paths) OVER () AS total, sum(time_ns) OVER () AS all_ns, \
         sum(fault_ns) OVER () AS all_fault_ns FROM grouped \
         QUALIFY together OR row_number() OVER (PARTITION BY together ORDER BY {sort} DESC NULLS LAST, key) <= {most} \
         ORDER BY {sort} DESC NULLS LAST, key"
    )
}

/// The rows of an answer of [`statement`].
pub(super) struct Split {
    /// Paths alone, as many as are shown.
    pub(super) alone: RecordBatch,
    /// Directories of the paths that count together.
    directories: RecordBatch,
    /// Paths alone that begin with `/`, all of them.
    large: Vec<String>,
}

impl Split {
    pub(super) fn of(rows: &RecordBatch, asked: &Asked) -> Result<Self, ApiError> {
        let together = flags(rows, "together")?;
        let alone = not(&together).map_err(internal)?;
        let alone = filter_record_batch(rows, &alone).map_err(internal)?;
        let keys = texts(&alone, "key")?;
        let absolute = keys.iter().flatten().filter(|key| key.starts_with('/'));
        Ok(Self {
            large: absolute.map(sql_string).collect(),
            alone: alone.slice(0, asked.limit.min(alone.num_rows())),
            directories: filter_record_batch(rows, &together).map_err(internal)?,
        })
    }

    /// Adds the rows of the paths that count together, where their values put them.
    pub(super) fn add(
        &self,
        reader: &Reader,
        calls: &Calls,
        found: &mut Found,
        asked: &Asked,
    ) -> Result<(), ApiError> {
        let rows = &self.directories;
        let others = numbers(&self.alone, asked.order())?;
        let mut together = Vec::new();
        let all = groups(&self.values(asked)?);
        for group in &all {
            let column = |name: &str| {
                let column = numbers(rows, name)?;
                let values = group.rows.iter().map(move |row| column.value(*row));
                Ok::<_, ApiError>(values.collect::<Vec<f64>>())
            };
            let sum = |name: &str| Ok::<_, ApiError>(column(name)?.iter().sum::<f64>());
            let value = sum(asked.order())?;
            let larger = others.iter().flatten().take_while(|other| *other >= value);
            // Groups are in order of their values.
            let at = larger.count() + together.len();
            if at >= asked.limit {
                break;
            }
            found.keys.insert(at, None);
            for (column, name) in [
                (&mut found.calls, "calls"),
                (&mut found.errors, "errors"),
                (&mut found.failures, "failures"),
                (&mut found.bytes, "bytes"),
                (&mut found.bytes_read, "bytes_read"),
                (&mut found.bytes_written, "bytes_written"),
                (&mut found.time_ns, "time_ns"),
                (&mut found.faults, "faults"),
                (&mut found.fault_ns, "fault_ns"),
            ] {
                column.insert(at, Some(sum(name)?));
            }
            let longest = column("max_ns")?.into_iter().fold(0.0, f64::max);
            found.max_ns.insert(at, Some(longest));
            let (p50, p99) = match sum("calls")? > super::MANY {
                // Sorting so many durations takes long.
                true => (None, None),
                false => self.percentiles(reader, calls, group, &all)?,
            };
            found.p50_ns.insert(at, p50);
            found.p99_ns.insert(at, p99);
            together.push((at, group.place.clone()));
        }
        found.together = Some(together);
        Ok(())
    }

    /// The directories: name, paths, value.
    fn values(&self, asked: &Asked) -> Result<Vec<(&str, i64, f64)>, ApiError> {
        let rows = &self.directories;
        let directory = column(rows, "directory")?.as_string_opt::<i32>();
        let directory = directory.ok_or_else(|| ApiError::internal("directories are no texts"))?;
        let (paths, value) = (numbers(rows, "paths")?, numbers(rows, asked.order())?);
        let row = |i: usize| (text(directory, i), paths.value(i) as i64, value.value(i));
        Ok((0..rows.num_rows()).map(row).collect())
    }

    fn percentiles(
        &self,
        reader: &Reader,
        calls: &Calls,
        group: &Group,
        all: &[Group],
    ) -> Result<(Option<f64>, Option<f64>), ApiError> {
        let below = |name: &str| format!("starts_with(path, {})", sql_string(&format!("/{name}/")));
        let mut condition = match &group.below {
            Some(name) => below(name),
            None => {
                let others = all.iter().filter_map(|other| other.below.as_deref());
                let others = others.map(|name| format!(" AND NOT {}", below(name)));
                format!("starts_with(path, '/'){}", others.collect::<String>())
            }
        };
        if !self.large.is_empty() {
            condition.push_str(&format!(" AND path NOT IN ({})", self.large.join(", ")));
        }
        let rows = collect(reader.db().run(&format!(
            "SELECT duration_percentiles(dur_ns) AS p, p[1]::DOUBLE AS p50_ns, \
             p[3]::DOUBLE AS p99_ns FROM {}",
            calls.and(&condition)
        ))?)?;
        let first = |name| Ok::<_, ApiError>(numbers(&rows, name)?.iter().next().flatten());
        Ok((first("p50_ns")?, first("p99_ns")?))
    }
}

fn text(column: &StringArray, i: usize) -> &str {
    match column.is_valid(i) {
        true => column.value(i),
        false => "",
    }
}

/// Takes the files out of `sums` that count together, and adds them up, the groups with the most
/// first: the pyramid knows files instead of paths.
pub(super) fn take(
    reader: &Reader,
    files: &Kind,
    sums: &mut Vec<(Option<&str>, Sums)>,
    value: impl Fn(&Sums) -> f64,
) -> Result<Vec<(Sums, Place)>, ApiError> {
    let total: f64 = sums.iter().map(|(_, of)| value(of)).sum();
    let keys: Vec<&str> = sums.iter().filter_map(|(key, _)| *key).collect();
    if keys.len() < MANY {
        return Ok(Vec::new());
    }
    let paths = labels(reader, files, &keys)?;
    let path = |key: Option<&str>| {
        let path = key.and_then(|key| paths.get(key)).map(String::as_str);
        path.filter(|path| path.starts_with('/'))
    };
    // Several files can have one path, one after the other.
    let mut values: HashMap<&str, f64> = HashMap::new();
    for (key, of) in sums.iter() {
        if let Some(path) = path(*key) {
            *values.entry(path).or_default() += value(of);
        }
    }
    values.retain(|_, value| *value < LITTLE * total);
    if values.len() < MANY {
        return Ok(Vec::new());
    }
    let rows: Vec<(&str, f64)> = values.into_iter().collect();
    let directories: Vec<(&str, i64, f64)> = rows
        .iter()
        .map(|(path, value)| {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            (directory, 1, *value)
        })
        .collect();
    let groups = groups(&directories);
    let mut of_path: HashMap<&str, usize> = HashMap::new();
    for (number, group) in groups.iter().enumerate() {
        let paths = group.rows.iter().filter_map(|row| rows.get(*row));
        of_path.extend(paths.map(|(path, _)| (*path, number)));
    }
    let mut found: Vec<Sums> = groups.iter().map(|_| Sums::default()).collect();
    sums.retain(|(key, of)| {
        let group = path(*key).and_then(|path| of_path.get(path));
        if let Some(all) = group.and_then(|group| found.get_mut(*group)) {
            all.merge(of);
        }
        group.is_none()
    });
    Ok(found
        .into_iter()
        .zip(groups.into_iter().map(|group| group.place))
        .collect())
}
