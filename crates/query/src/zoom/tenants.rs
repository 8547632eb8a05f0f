//! Filters by tenant: the processes, threads, and files that a cgroup, unit, pod, ... stands for.
//!
//! Views `tenants` and `volume_files` say which calls are whose. A filter asks them for the processes and
//! files of its tenants: these the pyramid knows.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use fathom_model::set::ClockMap;

use super::Filter;
use crate::escape::sql_string;
use crate::fetch::rows;
use crate::views::query_of;
use crate::{Db, QueryError};

/// Files of volumes from which on the database compares them: a pyramid keeps fewer apart.
const MANY_FILES: usize = 1000;
/// Times of threads from which on the database joins them with the calls.
const MANY_SPELLS: usize = 16;
/// Ends of the names of units that have cgroups.
const UNITS: [&str; 3] = [".service", ".scope", ".slice"];
/// Digits of a container's id that stand for the id.
const SHORT_ID: usize = 12;

/// A property of tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenant {
    /// Path of a cgroup (v2), with all below it.
    Cgroup,
    /// Unit of systemd, with all below it; `nginx` is `nginx.service`.
    Unit,
    /// Pod of Kubernetes: its name, or NAMESPACE/NAME.
    Pod,
    /// Kubernetes' namespace of a pod.
    Namespace,
    /// Container: its id, 12 or more digits from the beginning of the id, or its name in a pod.
    Container,
    /// Volume of Kubernetes: the name of its claim, NAMESPACE/CLAIM, its own name, or PLUGIN/NAME. Calls on its files.
    Volume,
}

impl Tenant {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Cgroup,
        Self::Unit,
        Self::Pod,
        Self::Namespace,
        Self::Container,
        Self::Volume,
    ];

    /// Its name in options and filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Unit => "unit",
            Self::Pod => "pod",
            Self::Namespace => "namespace",
            Self::Container => "container",
            Self::Volume => "volume",
        }
    }

    /// The view that shows what there is.
    pub fn view(self) -> &'static str {
        match self {
            Self::Volume => "volume_files",
            _ => "tenants",
        }
    }

    /// Whether a row of the view is of `value`: SQL.
    fn is(self, value: &str) -> String {
        let pair = |first: &str, second: &str| {
            let (a, b) = value.split_once('/')?;
            Some(format!("({} AND {})", like(first, a), like(second, b)))
        };
        let any = |all: Vec<String>| format!("({})", all.join(" OR "));
        match self {
            Self::Cgroup => {
                let path = value.trim_end_matches('/');
                any(vec![
                    like("cgroup", path),
                    like("cgroup", &format!("{path}/*")),
                ])
            }
            Self::Unit => {
                let is_whole = UNITS.iter().any(|suffix| value.ends_with(suffix));
                let suffix = match is_whole || value.ends_with('*') {
                    true => "",
                    false => ".service",
                };
                like("(cgroup || '/')", &format!("*/{value}{suffix}/*"))
            }
            Self::Pod => pair("namespace", "pod").unwrap_or_else(|| like("pod", value)),
            Self::Namespace => like("namespace", value),
            Self::Container => {
                let mut all = vec![like("container_id", value), like("container", value)];
                if value.len() >= SHORT_ID && value.bytes().all(|b| b.is_ascii_hexdigit()) {
                    all.push(like("container_id", &format!("{value}*")));
                }
                any(all)
            }
            Self::Volume => match pair("namespace", "claim").zip(pair("plugin", "volume")) {
                Some((claim, volume)) => any(vec![claim, volume]),
                None => any(vec![like("claim", value), like("volume", value)]),
            },
        }
    }
}

/// Whether a column is a text, in which `*` stands for anything: SQL.
fn like(column: &str, text: &str) -> String {
    if !text.contains('*') {
        return format!("{column} = {}", sql_string(text));
    }
    let mut pattern = String::new();
    for c in text.chars() {
        match c {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => {
                let _ = write!(pattern, "\\{c}");
            }
            _ => pattern.push(c),
        }
    }
    format!("{column} LIKE {} ESCAPE '\\'", sql_string(&pattern))
}

/// Which tenants' calls are meant: of each list any of its values, and all lists must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants(Vec<Asked>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    of: Tenant,
    values: Vec<String>,
    /// The calls of the others.
    not: bool,
}

impl Tenants {
    /// Adds a list. `not`: its values are left out.
    pub fn add(&mut self, of: Tenant, values: &[String], not: bool) {
        self.0.push(Asked {
            of,
            values: values.to_vec(),
            not,
        });
    }

    /// Whether all calls are meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Values that no process and no file has, with their property.
    ///
    /// # Errors
    /// The errors of [`Db::query`].
    pub fn unknown(&self, db: &Db) -> Result<Vec<(Tenant, &str)>, QueryError> {
        let mut unknown = Vec::new();
        for asked in &self.0 {
            let view = query_of(asked.of.view());
            for value in &asked.values {
                let of = asked.of.is(value);
                let found = format!("SELECT 1::BIGINT AS found FROM ({view}) WHERE {of} LIMIT 1");
                if rows(db, &found, |row| row.int("found"))?.is_empty() {
                    unknown.push((asked.of, value.as_str()));
                }
            }
        }
        Ok(unknown)
    }

    /// `filter`, and only calls of these tenants in the session of `db`.
    ///
    /// # Errors
    /// The errors of [`Db::query`].
    pub fn narrow(&self, db: &Db, mut filter: Filter) -> Result<Filter, QueryError> {
        let mut faults = Vec::from_iter(filter.faults_sql());
        let passes_faults = !faults.is_empty();
        let of_faults = filter.fault_condition.is_some();
        let mut conditions = Vec::from_iter(filter.condition.take());
        let of_tasks = |asked: &Asked| asked.of != Tenant::Volume;
        if let Some((condition, not)) = self.condition(of_tasks) {
            let owners = Owners::of(db, &condition, not)?;
            faults.push(owners.sql());
            filter.owners = Some(Arc::new(owners));
        }
        if let Some((condition, not)) = self.condition(|asked| !of_tasks(asked)) {
            let volumes = query_of(Tenant::Volume.view());
            let select = format!("SELECT file_id FROM ({volumes}) WHERE {condition}");
            let files = rows(db, &select, |row| row.int("file_id"))?;
            let list: Vec<String> = match files.len() {
                0..=MANY_FILES => files.iter().map(i64::to_string).collect(),
                _ => vec![select],
            };
            let is = match list.is_empty() {
                true => "false".to_owned(),
                false => format!("file_id IN ({})", list.join(", ")),
            };
            let of_volumes = match not {
                true => format!("NOT coalesce({is}, false)"),
                false => is,
            };
            faults.push(of_volumes.clone());
            if not || files.len() > MANY_FILES {
                conditions.push(of_volumes);
            } else {
                let asked = filter.file_id.take();
                let meant = |file: &i64| asked.as_ref().is_none_or(|list| list.contains(file));
                filter.file_id = Some(files.into_iter().filter(meant).collect());
            }
        }
        filter.condition = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        if of_faults || filter.condition.is_some() {
            filter.fault_condition = passes_faults.then(|| faults.join(" AND "));
        }
        Ok(filter)
    }

    /// The lists that `wanted` picks as a condition on the rows of their view, and whether the calls
    /// of the rows for which it holds are left out; `None` without a list. Calls that have no row are of no tenant: lists that
    /// only leave out leave them.
    fn condition(&self, wanted: impl Fn(&Asked) -> bool) -> Option<(String, bool)> {
        let lists: Vec<&Asked> = self.0.iter().filter(|asked| wanted(asked)).collect();
        if lists.is_empty() {
            return None;
        }
        let any = |asked: &&Asked| {
            let values: Vec<String> = asked.values.iter().map(|v| asked.of.is(v)).collect();
            match values.is_empty() {
                true => "false".to_owned(),
                false => format!("coalesce({}, false)", values.join(" OR ")),
            }
        };
        let only_not = lists.iter().all(|asked| asked.not);
        if only_not {
            let all: Vec<String> = lists.iter().map(any).collect();
            return Some((all.join(" OR "), true));
        }
        let all: Vec<String> = lists
            .iter()
            .map(|asked| format!("{}{}", if asked.not { "NOT " } else { "" }, any(asked)))
            .collect();
        Some((all.join(" AND "), false))
    }
}

impl Filter {
    /// The same with the times of its tenants on another clock.
    pub(super) fn moved(&self, clock: &ClockMap) -> Self {
        let owners = self.owners.as_ref();
        Self {
            owners: owners.map(|owners| Arc::new(owners.moved(clock))),
            ..self.clone()
        }
    }
}

/// The processes and threads whose calls are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    pids: BTreeSet<i32>,
    /// Process and thread.
    threads: BTreeSet<(i32, i32)>,
    /// Threads for a time, as their ids were used again.
    spells: Vec<Spell>,
    /// The calls of the others are meant.
    not: bool,
}

/// Process, thread, from when and until when, CLOCK_MONOTONIC nanoseconds.
type Spell = (i32, i32, i64, i64);

impl Owners {
    /// Those in the rows of view `tenants` for which a condition holds.
    fn of(db: &Db, condition: &str, not: bool) -> Result<Self, QueryError> {
        let sql = format!(
            "SELECT pid::BIGINT AS pid, tid::BIGINT AS tid, from_ns, until_ns FROM ({}) WHERE {condition}",
            query_of("tenants")
        );
        let found = rows(db, &sql, |row| {
            let number = |name| row.get::<Option<i64>>(name);
            Ok((
                row.int("pid")? as i32,
                number("tid")?.map(|tid| tid as i32),
                number("from_ns")?,
                number("until_ns")?,
            ))
        })?;
        let mut owners = Self {
            not,
            ..Self::default()
        };
        for (pid, tid, from, until) in found {
            match (tid, from, until) {
                (None, ..) => {
                    owners.pids.insert(pid);
                }
                (Some(tid), None, None) => {
                    owners.threads.insert((pid, tid));
                }
                (Some(tid), from, until) => {
                    let (from, until) = (from.unwrap_or(0), until.unwrap_or(i64::MAX));
                    owners.spells.push((pid, tid, from, until));
                }
            }
        }
        Ok(owners)
    }

    /// The same with times on another clock.
    fn moved(&self, clock: &ClockMap) -> Self {
        let spell = |(pid, tid, from, until): &Spell| {
            let on_clock = |time: i64| match time {
                0 | i64::MAX => time,
                time => clock.apply(time),
            };
            (*pid, *tid, on_clock(*from), on_clock(*until))
        };
        Self {
            spells: self.spells.iter().map(spell).collect(),
            ..self.clone()
        }
    }

    /// Whether a thread's calls are meant at any time or at none, for each thread.
    pub(super) fn is_timeless(&self) -> bool {
        self.spells.is_empty()
    }

    /// Whether the calls of a thread are meant, if they are at any time.
    pub(super) fn pass(&self, pid: i32, tid: i32) -> bool {
        (self.pids.contains(&pid) || self.threads.contains(&(pid, tid))) != self.not
    }

    /// Whether calls without a process are meant.
    pub(super) fn pass_unknown(&self) -> bool {
        self.not
    }

    /// A condition on the columns of tables with `pid`, `tid`, and `ts_ns`.
    pub(super) fn sql(&self) -> String {
        let list = |values: Vec<String>| values.join(", ");
        let mut any = Vec::new();
        if !self.pids.is_empty() {
            let pids = self.pids.iter().map(i32::to_string).collect();
            any.push(format!("pid IN ({})", list(pids)));
        }
        if !self.threads.is_empty() {
            let pair =
                |(pid, tid): &(i32, i32)| (i64::from(*pid) << 32 | i64::from(*tid)).to_string();
            let pairs = self.threads.iter().map(pair).collect();
            any.push(format!(
                "(pid::BIGINT * 4294967296 + tid) IN ({})",
                list(pairs)
            ));
        }
        if self.spells.len() > MANY_SPELLS {
            let spell = |(pid, tid, from, until): &Spell| {
                format!("({pid}, {tid}, {from}::BIGINT, {until}::BIGINT)")
            };
            any.push(format!(
                "EXISTS (SELECT 1 FROM (VALUES {}) AS spell(of_pid, of_tid, since_ns, before_ns) \
                 WHERE of_pid = pid AND of_tid = tid AND ts_ns >= since_ns AND ts_ns < before_ns)",
                list(self.spells.iter().map(spell).collect())
            ));
        } else {
            any.extend(self.spells.iter().map(|(pid, tid, from, until)| {
                format!("(pid = {pid} AND tid = {tid} AND ts_ns >= {from} AND ts_ns < {until})")
            }));
        }
        let any = match any.is_empty() {
            true => "false".to_owned(),
            false => any.join(" OR "),
        };
        match self.not {
            true => format!("NOT coalesce({any}, false)"),
            false => format!("({any})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_stars_are_patterns() {
        assert_eq!(Tenant::Namespace.is("a'b"), "namespace = 'a''b'");
        assert_eq!(
            Tenant::Pod.is("shop/web-*"),
            r"(namespace = 'shop' AND pod LIKE 'web-%' ESCAPE '\')"
        );
        assert_eq!(
            Tenant::Unit.is(r"dev-*\x2d_.service"),
            r"(cgroup || '/') LIKE '%/dev-%\\x2d\_.service/%' ESCAPE '\'"
        );
        assert_eq!(
            Tenant::Unit.is("nginx"),
            r"(cgroup || '/') LIKE '%/nginx.service/%' ESCAPE '\'"
        );
        assert_eq!(
            Tenant::Cgroup.is("/a/"),
            r"(cgroup = '/a' OR cgroup LIKE '/a/%' ESCAPE '\')"
        );
        assert!(!Tenant::Container.is("abc").contains("LIKE"));
        assert!(
            Tenant::Container
                .is("abcdef012345")
                .contains("abcdef012345%")
        );
    }

    #[test]
    fn owners_are_processes_threads_and_times() {
        let mut owners = Owners {
            pids: [7, 9].into(),
            threads: [(5, 6)].into(),
            ..Owners::default()
        };
        assert_eq!(
            owners.sql(),
            "(pid IN (7, 9) OR (pid::BIGINT * 4294967296 + tid) IN (21474836486))"
        );
        assert!(owners.is_timeless() && owners.pass(7, 1) && owners.pass(5, 6));
        assert!(!owners.pass(5, 5) && !owners.pass_unknown());
        owners.not = true;
        assert!(!owners.pass(7, 1) && owners.pass(5, 5) && owners.pass_unknown());
        owners.spells.push((1, 2, 0, 50));
        assert!(!owners.is_timeless());
        let none = Owners::default();
        assert_eq!(none.sql(), "(false)");
    }
}
