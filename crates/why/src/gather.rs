//! Taking the numbers of a story from a session, some requests after the others: a join of hundreds of millions of
//! requests with their visits of layers would need more memory than a query has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::SYSCALLS;
use fathom_query::fetch::{each, rows};
use fathom_query::{Db, QueryError};

use crate::causes::{Layer, Share, Sleep, causes};
use crate::facts::{
    Ahead, Block, Facts, Group, OF_CAUSES, OF_REQUESTS, PAGE_FAULT, Requests, activity_of,
    add_path, ahead, blocks, focus_of, missing, name_of, single, span, walls, without_rows,
};
use crate::scope::Scope;

/// Requests of a portion.
const PORTION: i64 = 2_000_000;
/// Sums by purpose and file at most: they are in memory.
const MOST_FILES: usize = 4_000_000;
/// Portions at most: ids in a damaged session may be any.
const MOST_PORTIONS: i64 = 1 << 16;
/// Requests up to which time of the clock is measured: their intervals are sorted.
const MAX_INTERVALS: i64 = 5_000_000;
/// A group with this share of all time is the one that the story is about.
const MOST: f64 = 0.5;
/// The same of the clock.
const MOST_OF_CLOCK: f64 = 0.25;
/// Marks sums of requests that are all of one call.
const ONE_CALL: &str = "one";

/// Sums of the requests of a scope by purpose.
#[derive(Debug, Default)]
struct Gathered(BTreeMap<Purpose, Sums>);

/// Program, activity, and whether its requests are operations of io_uring and AIO.
type Purpose = (String, String, i64);

/// Sums of the requests of a program with one purpose.
#[derive(Debug, Default)]
struct Sums {
    files: HashMap<Option<i64>, FileSum>,
    pids: BTreeSet<i64>,
    tids: HashSet<i64>,
    layers: BTreeMap<(String, String), i64>,
    sleeps: BTreeMap<(String, String), (i64, i64)>,
}

#[derive(Clone, Debug)]
struct FileSum {
    file_id: Option<i64>,
    /// The call of the longest request.
    syscall: &'static str,
    /// All requests are of that call.
    one_call: bool,
    requests: i64,
    bytes: i64,
    total_ns: i64,
    longest_rid: i64,
    longest_ns: i64,
}

/// A row of a statement about a portion, whose numbers `a` to `h` are others in each.
struct Found {
    purpose: Purpose,
    name: String,
    other: String,
    numbers: [Option<i64>; 8],
}

impl Facts {
    /// Takes the numbers of the requests of `scope` from the session that `db` was opened on.
    ///
    /// # Errors
    /// When a query fails.
    pub fn gather(db: &Db, meta: &SessionMeta, scope: &Scope) -> Result<Self, QueryError> {
        Self::gather_in_portions(db, meta, scope, PORTION)
    }

    /// The same with about `most` requests at a time.
    ///
    /// # Errors
    /// When a query fails.
    pub fn gather_in_portions(
        db: &Db,
        meta: &SessionMeta,
        scope: &Scope,
        most: i64,
    ) -> Result<Self, QueryError> {
        let scope = &scope.kept(meta);
        let mut gathered = Gathered::default();
        let has_waits = count(db, "SELECT count(*) AS n FROM waits")? > 0;
        let requests = Requests::of(db, scope)?;
        for portion in portions(db, scope, most.max(1))? {
            gathered.add(db, &requests, portion.as_deref(), has_waits)?;
        }
        gathered.facts(db, meta, &requests)
    }
}

impl Gathered {
    /// Adds the requests of a portion.
    fn add(
        &mut self,
        db: &Db,
        requests: &Requests<'_>,
        portion: Option<&str>,
        has_waits: bool,
    ) -> Result<(), QueryError> {
        let purposes = &mut self.0;
        found(db, &by_file(requests, portion), |row| {
            sums_of(purposes, &row).add_file(row);
        })?;
        let files: usize = purposes.values().map(|sums| sums.files.len()).sum();
        if files > MOST_FILES {
            return Err(QueryError::Memory {
                limit_mib: (MOST_FILES * size_of::<FileSum>()) as u64 >> 20,
                detail: format!("sums of {files} files"),
            });
        }
        found(db, &by_layer(requests, portion), |row| {
            sums_of(purposes, &row).add_layer(row);
        })?;
        if has_waits {
            found(db, &by_reason(requests, portion), |row| {
                sums_of(purposes, &row).add_sleep(row);
            })?;
        }
        Ok(())
    }

    fn facts(
        &self,
        db: &Db,
        meta: &SessionMeta,
        requests: &Requests<'_>,
    ) -> Result<Facts, QueryError> {
        let scope = requests.scope;
        let (from, until) = span(db, meta, scope)?;
        let mut facts = Facts {
            span_ns: until.saturating_sub(from),
            groups: self.groups(db)?,
            missing_causes: missing(db, meta, &OF_CAUSES)?,
            ..Facts::default()
        };
        // A request that is there is whole.
        if scope.request.is_none() {
            facts.missing_requests = missing(db, meta, &OF_REQUESTS)?;
            without_rows(db, requests, from, until, &mut facts)?;
        }
        facts.requests = facts.groups.iter().map(|group| group.requests).sum();
        facts.total_ns = facts
            .groups
            .iter()
            .fold(0i64, |sum, group| sum.saturating_add(group.total_ns));
        if facts.requests <= MAX_INTERVALS {
            walls(db, &requests.selected(None), from, until, &mut facts.groups)?;
            facts.walls_ns = facts.groups.iter().try_fold(0i64, |sum, group| {
                group.wall_ns.map(|wall_ns| sum.saturating_add(wall_ns))
            });
        }
        let of_all = [false, true].map(|operations| {
            let groups = facts.groups.iter();
            let groups = groups.filter(|group| group.asynchronous == operations);
            groups.fold(0i64, |sum, group| sum.saturating_add(group.total_ns))
        });
        facts.groups.sort_by_key(|group| {
            let wall_ns = group.wall_ns.unwrap_or(group.total_ns);
            std::cmp::Reverse((wall_ns, group.total_ns))
        });
        facts.groups.truncate(8);
        let Some(first) = facts.groups.first_mut() else {
            return Ok(facts);
        };
        let key = purpose_of(first);
        if let Some(sums) = self.0.get(&key) {
            first.processes = sums.pids.len() as i64;
            first.threads = sums.tids.len() as i64;
            first.pid = sums.pids.first().copied().filter(|_| sums.pids.len() == 1);
        }
        add_path(db, first)?;
        let wall_ns = first.wall_ns.unwrap_or(0);
        facts.first_only = first.total_ns as f64 >= facts.total_ns as f64 * MOST
            || wall_ns as f64 >= facts.span_ns as f64 * MOST_OF_CLOCK;
        let (focus, of_focus) = match (facts.first_only, first.asynchronous) {
            (true, false) => (focus_of(first), [first.total_ns, 0]),
            (true, true) => (focus_of(first), [0, first.total_ns]),
            (false, _) => ("true".to_owned(), of_all),
        };
        if let Some(rid) = scope.request {
            facts.single = single(db, rid)?;
        }
        if !facts.missing_requests.is_empty() || !facts.missing_causes.is_empty() {
            return Ok(facts);
        }
        let has_sched = meta
            .layers
            .iter()
            .any(|layer| layer.name == fathom_model::layers::Layer::Sched && layer.recorded);
        facts.all = self.causes(of_all, has_sched, |_| true);
        facts.causes = match facts.first_only {
            true => self.causes(of_focus, has_sched, |purpose| *purpose == key),
            false => facts.all.clone(),
        };
        let has_bios = "SELECT count(*) AS n FROM (SELECT 1 FROM bios LIMIT 1)";
        if count(db, has_bios)? > 0 {
            // Only requests with bios have any block requests.
            let with_bios = "rid IN (SELECT rid FROM bios UNION ALL SELECT submit_rid FROM bios)";
            let focus = format!(
                "{}, focus AS (SELECT * FROM selected WHERE {focus})",
                requests.selected(Some(with_bios))
            );
            match block_requests(db, &focus) {
                Ok((blocks, ahead)) => (facts.blocks, facts.ahead) = (blocks, ahead),
                // The rest of the story stays true.
                Err(QueryError::Memory { .. } | QueryError::TimeLimit(_)) => {
                    facts.too_many_blocks = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(facts)
    }

    /// The groups of requests, in no order.
    fn groups(&self, db: &Db) -> Result<Vec<Group>, QueryError> {
        let ids: HashSet<i64> = self
            .0
            .values()
            .flat_map(|sums| sums.files.keys().flatten().copied())
            .collect();
        let mut paths: HashMap<i64, String> = HashMap::new();
        each(db, "SELECT file_id, path FROM files", |row| {
            let id = row.int("file_id")?;
            if let Some(path) = row.get::<Option<String>>("path")?
                && ids.contains(&id)
            {
                paths.insert(id, path);
            }
            Ok::<_, QueryError>(())
        })?;
        let group = |((comm, activity, asynchronous), sums): (&Purpose, &Sums)| {
            let mut group = Group {
                comm: comm.clone(),
                activity: activity_of(activity),
                asynchronous: *asynchronous != 0,
                file_ns: -1,
                longest_ns: -1,
                one_call: true,
                ..Group::default()
            };
            for sum in sums.by_path(&paths).into_values() {
                group.requests += sum.requests;
                group.bytes = group.bytes.saturating_add(sum.bytes);
                group.total_ns = group.total_ns.saturating_add(sum.total_ns);
                group.files += i64::from(sum.file_id.is_some());
                if sum.total_ns > group.file_ns {
                    group.file_ns = sum.total_ns;
                    group.file_id = sum.file_id;
                    group.syscall = sum.syscall.to_owned();
                }
                let first = group.longest_syscall.is_empty();
                group.one_call &= sum.one_call && (first || group.longest_syscall == sum.syscall);
                if sum.longest_ns > group.longest_ns {
                    group.longest_ns = sum.longest_ns;
                    group.longest_rid = sum.longest_rid;
                    group.longest_syscall = sum.syscall.to_owned();
                }
            }
            group
        };
        Ok(self.0.iter().map(group).collect())
    }

    /// Where the time of the requests of some purposes went: `total_ns` of calls, and of operations.
    fn causes(
        &self,
        total_ns: [i64; 2],
        has_sched: bool,
        of: impl Fn(&Purpose) -> bool,
    ) -> Vec<Share> {
        let purposes = || self.0.iter().filter(|(purpose, _)| of(purpose));
        let layers = purposes().flat_map(|((.., asynchronous), sums)| {
            sums.layers.iter().map(|((layer, name), self_ns)| Layer {
                layer: layer.clone(),
                name: name.clone(),
                operations: *asynchronous != 0,
                self_ns: *self_ns,
            })
        });
        let sleeps = purposes().flat_map(|(_, sums)| {
            let sleeps = sums.sleeps.iter();
            sleeps.map(|((reason, waker), (cpu_ns, slept_ns))| Sleep {
                reason: reason.clone(),
                waker: waker.clone(),
                cpu_ns: *cpu_ns,
                slept_ns: *slept_ns,
            })
        });
        causes(layers, &sleeps.collect::<Vec<_>>(), total_ns, has_sched)
    }
}

/// The block requests of `focus` by device, and the block requests of others that were ahead.
fn block_requests(db: &Db, focus: &str) -> Result<(Vec<Block>, Vec<Ahead>), QueryError> {
    let blocks = blocks(db, focus)?;
    let ahead = match blocks.is_empty() {
        true => Vec::new(),
        false => ahead(db, focus)?,
    };
    Ok((blocks, ahead))
}

fn purpose_of(group: &Group) -> Purpose {
    (
        group.comm.clone(),
        name_of(group.activity),
        i64::from(group.asynchronous),
    )
}

impl Sums {
    fn add_file(&mut self, row: Found) {
        let [file_id, b, c, d, e, f, pid, tid] = row.numbers;
        let [requests, bytes, total_ns, longest_rid, longest_ns] =
            [b, c, d, e, f].map(Option::unwrap_or_default);
        let new = FileSum {
            file_id,
            syscall: known_name(&row.name),
            one_call: row.other == ONE_CALL,
            requests,
            bytes,
            total_ns,
            longest_rid,
            longest_ns,
        };
        self.pids.extend(pid);
        self.tids.extend(tid);
        match self.files.get_mut(&file_id) {
            Some(sum) => sum.merge(&new),
            None => drop(self.files.insert(file_id, new)),
        }
    }

    fn add_layer(&mut self, row: Found) {
        let [self_ns, ..] = row.numbers;
        let sum = self.layers.entry((row.name, row.other)).or_default();
        *sum = sum.saturating_add(self_ns.unwrap_or_default());
    }

    fn add_sleep(&mut self, row: Found) {
        let [cpu_ns, slept_ns, ..] = row.numbers;
        let sums = self.sleeps.entry((row.name, row.other)).or_default();
        sums.0 = sums.0.saturating_add(cpu_ns.unwrap_or_default());
        sums.1 = sums.1.saturating_add(slept_ns.unwrap_or_default());
    }

    /// The sums of files by their paths: files that had one path count as one.
    fn by_path<'a>(
        &self,
        paths: &'a HashMap<i64, String>,
    ) -> BTreeMap<(Option<&'a str>, Option<i64>), FileSum> {
        let mut found: BTreeMap<_, (FileSum, i64)> = BTreeMap::new();
        for (id, sum) in &self.files {
            let path = id.and_then(|id| paths.get(&id)).map(String::as_str);
            let key = (path, if path.is_some() { None } else { *id });
            match found.get_mut(&key) {
                None => drop(found.insert(key, (sum.clone(), sum.total_ns))),
                Some((of_path, most_ns)) => {
                    of_path.merge(sum);
                    if (sum.total_ns, sum.file_id) > (*most_ns, of_path.file_id) {
                        (*most_ns, of_path.file_id) = (sum.total_ns, sum.file_id);
                    }
                }
            }
        }
        found
            .into_iter()
            .map(|(key, (sum, _))| (key, sum))
            .collect()
    }
}

impl FileSum {
    fn merge(&mut self, other: &FileSum) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.one_call &= other.one_call && self.syscall == other.syscall;
        let of_equals = other.longest_ns == self.longest_ns && other.longest_rid < self.longest_rid;
        if other.longest_ns > self.longest_ns || of_equals {
            self.longest_ns = other.longest_ns;
            self.longest_rid = other.longest_rid;
            self.syscall = other.syscall;
        }
    }
}

/// The name of a call that lives as long as the program: there may be millions of sums.
fn known_name(name: &str) -> &'static str {
    static NAMES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SYSCALLS.iter().map(|call| call.name).collect());
    NAMES.get(name).copied().unwrap_or(PAGE_FAULT)
}

/// The sums that a row belongs to.
fn sums_of<'a>(purposes: &'a mut BTreeMap<Purpose, Sums>, row: &Found) -> &'a mut Sums {
    purposes.entry(row.purpose.clone()).or_default()
}

/// Calls `take` with each row of a statement about a portion.
fn found(db: &Db, sql: &str, mut take: impl FnMut(Found)) -> Result<(), QueryError> {
    each(db, sql, |row| {
        let mut numbers = [None; 8];
        for (number, name) in numbers
            .iter_mut()
            .zip(["a", "b", "c", "d", "e", "f", "g", "h"])
        {
            *number = row.get(name)?;
        }
        take(Found {
            purpose: (
                row.text("comm")?,
                row.text("activity")?,
                row.int("asynchronous")?,
            ),
            name: row.text("name")?,
            other: row.text("other")?,
            numbers,
        });
        Ok(())
    })
}

/// Sums of the requests of a portion by file and thread.
fn by_file(requests: &Requests<'_>, portion: Option<&str>) -> String {
    format!(
        "{selected}
         SELECT comm, activity, asynchronous, arg_max(syscall, dur_ns) AS name,
             if(min(syscall) = max(syscall), '{ONE_CALL}', '') AS other,
             file_id::BIGINT AS a, count(*) AS b, bounded(coalesce(sum(bytes), 0)) AS c,
             bounded(sum(dur_ns)) AS d, arg_max(rid, dur_ns)::BIGINT AS e, max(dur_ns)::BIGINT AS f,
             pid::BIGINT AS g, tid::BIGINT AS h
         FROM selected GROUP BY comm, activity, asynchronous, file_id, pid, tid",
        selected = requests.selected(portion),
    )
}

/// Their time by layer.
fn by_layer(requests: &Requests<'_>, portion: Option<&str>) -> String {
    format!(
        "{selected}
         SELECT s.comm, activity, asynchronous, layer AS name,
             if(layer IN ('block', 'device'), v.name, '') AS other,
             bounded(sum(self_ns)) AS a, NULL::BIGINT AS b, NULL::BIGINT AS c, NULL::BIGINT AS d, NULL::BIGINT AS e, NULL::BIGINT AS f,
             NULL::BIGINT AS g, NULL::BIGINT AS h
         FROM (SELECT rid, layer, name, self_ns FROM slices WHERE {of} AND depth > 0) AS v
         JOIN selected AS s ON v.rid = s.rid GROUP BY ALL",
        selected = requests.selected(portion),
        of = portion.unwrap_or("true"),
    )
}

/// Their time off the CPU by reason and waker.
fn by_reason(requests: &Requests<'_>, portion: Option<&str>) -> String {
    format!(
        "{selected},
         served AS (
             SELECT rid, ts_ns, ts_ns + dur_ns AS until_ns
             FROM slices SEMI JOIN selected USING (rid)
             WHERE {of} AND layer IN ('fuse', 'nfs', 'block', 'device')
                 -- Time in which a thread submits is its own.
                 AND name IS DISTINCT FROM 'submit_bio'),
         asleep AS (
             SELECT s.comm, activity, asynchronous,
                 -- The call does not tell such a wait from others: the wake-up does.
                 CASE WHEN cause = 'block_request' AND reason IN ('other', 'lock', 'file_system')
                     THEN 'disk' ELSE coalesce(reason, '') END AS name,
                 coalesce(waker, '') AS other, if(reason = 'cpu', w.dur_ns, run_queue_ns) AS cpu_ns,
                 -- A wait for a request to a device that has no visit, as before the request was made,
                 -- is asleep for all that is known.
                 if(reason = 'cpu' OR EXISTS (SELECT 1 FROM served WHERE served.rid = w.rid
                         AND w.ts_ns BETWEEN served.ts_ns AND served.until_ns),
                     0, w.dur_ns - coalesce(run_queue_ns, 0)) AS slept_ns
             FROM (SELECT * FROM waits WHERE {of}) AS w JOIN selected AS s ON w.rid = s.rid)
         SELECT comm, activity, asynchronous, name, other,
             bounded(coalesce(sum(cpu_ns), 0)) AS a, bounded(coalesce(sum(slept_ns), 0)) AS b,
             NULL::BIGINT AS c, NULL::BIGINT AS d, NULL::BIGINT AS e, NULL::BIGINT AS f, NULL::BIGINT AS g, NULL::BIGINT AS h
         FROM asleep GROUP BY ALL",
        selected = requests.selected(portion),
        of = portion.unwrap_or("true"),
    )
}

/// The portions of the requests of a scope, as conditions on their ids; one for all when they are few.
///
/// # Errors
/// When a query fails.
pub fn portions(db: &Db, scope: &Scope, most: i64) -> Result<Vec<Option<String>>, QueryError> {
    let whole = Ok(vec![None]);
    if scope.request.is_some() {
        return whole;
    }
    let stored = "SELECT (SELECT count(*) FROM syscalls) + (SELECT count(*) FROM faults) AS n";
    if count(db, stored)? <= most {
        return whole;
    }
    let mut tables = vec![format!(
        "SELECT rid FROM syscalls WHERE {}",
        scope.call_condition()
    )];
    if let Some(condition) = scope.fault_condition() {
        tables.push(format!(
            "SELECT rid FROM (SELECT *, NULL::VARCHAR AS path2 FROM faults) WHERE {condition}"
        ));
    }
    let range = rows(
        db,
        &format!(
            "SELECT count(*) AS n, min(rid) AS first, max(rid) AS last FROM ({})",
            tables.join(" UNION ALL ")
        ),
        |row| Ok((row.int("n")?, row.int("first")?, row.int("last")?)),
    )?;
    let Some((n, first, last)) = range.first().copied().filter(|(n, ..)| *n > most) else {
        return whole;
    };
    // Ids are given in turn, so that a range has as many requests as ids at most.
    let ids = i128::from(last) - i128::from(first) + 1;
    let portions = (ids / i128::from(most) + 1).min(i128::from(MOST_PORTIONS.min(n)));
    let edge = |i: i128| i128::from(first) + ids * i / portions;
    let portion = |i| format!("rid >= {} AND rid < {}", edge(i), edge(i + 1));
    Ok((0..portions).map(|i| Some(portion(i))).collect())
}

fn count(db: &Db, sql: &str) -> Result<i64, QueryError> {
    let counts = rows(db, sql, |row| row.int("n"))?;
    Ok(counts.first().copied().unwrap_or_default())
}
