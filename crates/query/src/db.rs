//! A session opened for SQL.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use duckdb::{Config, Connection, InterruptHandle};
use fathom_model::failure::{ErrorKind, error_kind};
use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::{Class, Returns, SYSCALLS, Syscall};
use fathom_model::tables::TABLES;
use fathom_session::{Session, on_latest};

use crate::error::message;
use crate::escape::sql_string;
use crate::findings::FindingRow;
use crate::limits::Limits;
use crate::place::Place;
use crate::rows::Rows;
use crate::sql_policy::Checked;
use crate::views::VIEWS;
use crate::watchdog::Watchdog;
use crate::{
    PathCall, PathRow, QueryError, findings, paths, percentiles, session_row, sql_policy, tables,
};

/// Number of stored calls up to which percentiles of the views are exact: the database keeps about
/// 20 bytes per call for them, outside of its memory limit. With more calls, percentiles come from
/// a histogram and are at most 1/64 too low.
const EXACT_PERCENTILES: u64 = 20_000_000;
/// Bytes of the memory limit per call: percentiles use at most half of the limit.
const EXACT_BYTES: u64 = 40;

/// Calls that have no rows in table `syscalls`, for the views that add them to those
/// that have: lost ones and counted ones.
const UNSTORED: &str = "CREATE VIEW unstored AS
    SELECT syscall, pid, nullif(file_id, -1) AS file_id, count, count AS lost, bytes, errors,
        dur_ns, max_dur_ns, hist
    FROM losses
    WHERE layer = 'syscall'
    UNION ALL
    SELECT syscall, pid, file_id, count, 0, bytes, errors, dur_ns, max_dur_ns, hist
    FROM counters";

/// Computes the path of a call of table function `critical_path` in the session that a database was
/// opened on.
pub type FindPath = fn(&Db, &SessionMeta, PathCall) -> Result<Vec<PathRow>, QueryError>;

/// A session opened for SQL: its tables, the views, macro `wall_time(ts_ns)`.
pub struct Db {
    connection: Connection,
    limits: Limits,
    busy: Cell<bool>,
    exact_percentiles: bool,
    place: Place,
}

impl Limits {
    /// Calls up to which percentiles are exact.
    fn exact_percentiles(&self) -> u64 {
        EXACT_PERCENTILES.min(self.memory_bytes / EXACT_BYTES)
    }
}

impl Db {
    /// Opens `session`, or its newest state when it changes meanwhile.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open`].
    pub fn open_latest(session: &mut Session, limits: &Limits) -> Result<Self, QueryError> {
        on_latest(session, |session| Self::open(session, limits.clone()))
    }

    /// Opens `session` as it is now.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open_parts`]. Parts of a session in progress may be merged at any time:
    /// [`Db::open_latest`] tries again.
    pub fn open(session: &Session, limits: Limits) -> Result<Self, QueryError> {
        // Parts that are written later are to be read, too.
        let dirs = match session.is_live() {
            true => TABLES.iter().map(|t| session.dir().join(t.name)).collect(),
            false => Vec::new(),
        };
        let place = Place::of(session.dir())?;
        Self::start(
            &meta_of(session),
            |t| session.parts(t),
            place,
            &dirs,
            limits,
        )
    }

    /// Opens the session whose tables consist of the Parquet files that
    /// `parts` names, in order of writing.
    ///
    /// # Errors
    ///
    /// When a part cannot be read or lacks a column, and when the database
    /// cannot be started.
    pub fn open_parts(
        meta: &SessionMeta,
        parts: impl Fn(&str) -> Vec<PathBuf>,
        limits: Limits,
    ) -> Result<Self, QueryError> {
        Self::start(meta, parts, Place::default(), &[], limits)
    }

    /// Opens a session, which is in `place`; files in `dirs` may be read besides its parts.
    fn start(
        meta: &SessionMeta,
        parts: impl Fn(&str) -> Vec<PathBuf>,
        place: Place,
        dirs: &[PathBuf],
        limits: Limits,
    ) -> Result<Self, QueryError> {
        let db = |e: duckdb::Error| QueryError::Sql(message(&e));
        let connection =
            Connection::open_in_memory_with_flags(config(&limits).map_err(db)?).map_err(db)?;
        // Known only to a library that has time zones built in; one without them
        // shows UTC anyway.
        let _ = connection.execute_batch("SET TimeZone = 'UTC'");
        // Parts do not change under their names. Their bytes are left to the kernel's
        // cache: a second one would fill the memory up to its limit and keep it.
        connection
            .execute_batch(
                "SET parquet_metadata_cache = true; SET enable_external_file_cache = false",
            )
            .map_err(db)?;
        connection.execute_batch(&macros(meta)).map_err(db)?;
        connection
            .execute_batch(&percentiles::functions())
            .map_err(db)?;
        session_row::create(&connection, meta).map_err(db)?;
        findings::create(&connection).map_err(db)?;
        paths::create(&connection).map_err(db)?;
        let mut allowed = Vec::new();
        for table in TABLES {
            let files = parts(table.name);
            allowed.extend(place.literals(&files)?);
            let unreadable = |e: duckdb::Error| QueryError::Table {
                table: table.name,
                detail: message(&e),
            };
            connection
                .execute_batch(&tables::create_view(table, &place, &parts, "CREATE VIEW")?)
                .map_err(unreadable)?;
        }
        let stored: i64 = connection
            .query_row("SELECT count(*) FROM syscalls", [], |row| row.get(0))
            .map_err(|e| QueryError::Table {
                table: "syscalls",
                detail: message(&e),
            })?;
        let exact_percentiles =
            u64::try_from(stored).is_ok_and(|n| n <= limits.exact_percentiles());
        let macro_sql = percentiles::of_durations("CREATE MACRO", exact_percentiles);
        connection.execute_batch(&macro_sql).map_err(db)?;
        connection.execute_batch(UNSTORED).map_err(db)?;
        for view in VIEWS {
            let sql = format!("CREATE VIEW {} AS\n{}", view.name, view.sql);
            connection.execute_batch(&sql).map_err(db)?;
        }
        connection
            .execute_batch(&format!(
                "SET allowed_paths = [{}]; SET allowed_directories = [{}]; \
                 SET enable_external_access = false; SET lock_configuration = true",
                allowed.join(", "),
                place.literals(dirs)?.join(", ")
            ))
            .map_err(db)?;
        Ok(Self {
            connection,
            limits,
            busy: Cell::new(false),
            exact_percentiles,
            place,
        })
    }

    /// Another connection to the same database, whose tables now have the parts of `session`:
    /// the same recording at a later moment than `before`, still going on. Costs what the
    /// tables cost that have changed. Other connections see the new rows, too.
    ///
    /// # Errors
    /// When the database refuses; it is as before then.
    pub(crate) fn follow(&self, before: &Session, session: &Session) -> Result<Self, QueryError> {
        let db = |e: duckdb::Error| QueryError::Sql(message(&e));
        let mut next = self.try_clone()?;
        let mut sql = String::from("BEGIN;\n");
        for table in TABLES {
            let differs = |table: &str| before.part_infos(table) != session.part_infos(table);
            if differs(table.name) || tables::sources(table).iter().any(|of| differs(of)) {
                let parts = |table: &str| session.parts(table);
                let create = "CREATE OR REPLACE VIEW";
                sql.push_str(&tables::create_view(table, &self.place, &parts, create)?);
                sql.push_str(";\n");
            }
        }
        next.exact_percentiles = session.rows("syscalls") <= self.limits.exact_percentiles();
        if next.exact_percentiles != self.exact_percentiles {
            let create = "CREATE OR REPLACE MACRO";
            sql.push_str(&percentiles::of_durations(create, next.exact_percentiles));
            sql.push_str(";\n");
        }
        sql.push_str("DELETE FROM session;\n");
        let connection = &next.connection;
        let changed = connection
            .execute_batch(&sql)
            .and_then(|()| session_row::insert(connection, &meta_of(session)))
            .and_then(|()| connection.execute_batch("COMMIT"));
        if let Err(error) = changed {
            // The connection that would be left in a transaction is dropped; this says so
            // in time for the others.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(db(error));
        }
        Ok(next)
    }

    /// Runs one SELECT. The result is computed as it is read; a database runs
    /// one query at a time.
    ///
    /// # Errors
    ///
    /// When `sql` is anything but one statement that selects from this session,
    /// when it is wrong, and when it exceeds a limit.
    pub fn query(&self, sql: &str) -> Result<Rows<'_>, QueryError> {
        let checked = self.check(sql)?;
        if !checked.paths.is_empty() {
            return Err(QueryError::CriticalPath(format!(
                "{} is available in fathom query and on the page only",
                paths::NAME
            )));
        }
        self.run(&checked.sql)
    }

    /// Checks a statement, which is then to be run by [`Db::run`].
    ///
    /// # Errors
    ///
    /// When `sql` is anything but one statement that selects from this session.
    pub(crate) fn check(&self, sql: &str) -> Result<Checked, QueryError> {
        if self.busy.get() {
            return Err(QueryError::Busy);
        }
        sql_policy::check(&self.connection, sql)
    }

    /// Computes the critical paths that a statement asks for. The paths of the statement before it
    /// are forgotten.
    ///
    /// # Errors
    /// The errors of `find`, and when the database fails.
    pub(crate) fn fill_paths(
        &self,
        statement: &Checked,
        meta: &SessionMeta,
        find: FindPath,
    ) -> Result<(), QueryError> {
        let db = |e: duckdb::Error| QueryError::from_db(&e, &self.limits, false);
        if statement.paths.is_empty() {
            return Ok(());
        }
        paths::clear(&self.connection).map_err(db)?;
        for call in &statement.paths {
            let rows = find(self, meta, *call)?;
            paths::add(&self.connection, *call, &rows).map_err(db)?;
        }
        Ok(())
    }

    /// Fills table `findings`, which is empty until then.
    ///
    /// # Errors
    /// When the database fails, and when the rows of a query are still being read.
    pub fn set_findings(&self, rows: &[FindingRow]) -> Result<(), QueryError> {
        if self.busy.get() {
            return Err(QueryError::Busy);
        }
        findings::fill(&self.connection, rows).map_err(|e| QueryError::Sql(message(&e)))
    }

    /// Where the parts are.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Runs a SELECT that fathom itself has made: nothing checks it, so texts in it
    /// must be quoted with [`crate::escape`].
    ///
    /// # Errors
    ///
    /// The errors of [`Db::query`].
    pub fn run(&self, sql: &str) -> Result<Rows<'_>, QueryError> {
        if self.busy.get() {
            return Err(QueryError::Busy);
        }
        let watchdog = Watchdog::start(self.limits.time, self.connection.interrupt_handle())?;
        let statement = self
            .connection
            .prepare(sql)
            .map_err(|e| QueryError::from_db(&e, &self.limits, watchdog.fired()))?;
        Rows::new(statement, &self.limits, watchdog, &self.busy)
    }
}

impl Db {
    /// Another connection to the same database, for a query at the same time: memory
    /// and its limit are shared.
    ///
    /// # Errors
    ///
    /// When the database refuses.
    pub fn try_clone(&self) -> Result<Self, QueryError> {
        let connection = self.connection.try_clone();
        Ok(Self {
            connection: connection.map_err(|e| QueryError::Sql(message(&e)))?,
            limits: self.limits.clone(),
            busy: Cell::new(false),
            exact_percentiles: self.exact_percentiles,
            place: self.place.clone(),
        })
    }

    /// Whether the macro `duration_percentiles` and the views are exact: with very many calls they
    /// are approximate.
    pub fn exact_percentiles(&self) -> bool {
        self.exact_percentiles
    }

    /// A handle with which another thread stops this connection's query.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.connection.interrupt_handle())
    }
}

/// Stops the query of a connection.
#[derive(Clone)]
pub struct Interrupter(Arc<InterruptHandle>);

impl Interrupter {
    /// Stops the query that runs: it fails with [`QueryError::Interrupted`]. Nothing
    /// happens when none does, or when it has not quite begun.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

fn config(limits: &Limits) -> duckdb::Result<Config> {
    let config = Config::default()
        .max_memory(&format!("{}KiB", limits.memory_bytes >> 10))?
        .enable_autoload_extension(false)?
        .with("autoinstall_known_extensions", "false")?
        .with("allow_community_extensions", "false")?
        .with("allow_persistent_secrets", "false")?
        // Without a directory nothing is spilled to disk: the default is one in
        // the current directory.
        .with("temp_directory", "")?;
    match limits.threads {
        0 => Ok(config),
        n => config.threads(i64::from(n)),
    }
}

/// The functions that the views share.
fn macros(meta: &SessionMeta) -> String {
    let offset = meta
        .clock
        .start_realtime_ns
        .wrapping_sub(meta.clock.start_monotonic_ns);
    let moves = |s: &Syscall| s.class == Class::Data && s.returns == Returns::Bytes;
    let names = |keep: &dyn Fn(&Syscall) -> bool| {
        let names: Vec<&str> = SYSCALLS
            .iter()
            .filter(|s| keep(s))
            .map(|s| s.name)
            .collect();
        sql_string(&names.join("|"))
    };
    let classes: Vec<String> = SYSCALLS
        .iter()
        .map(|s| format!("({}, {})", sql_string(s.name), sql_string(s.class.name())))
        .collect();
    let answers = answers();
    format!(
        // Sums are of more bits than their columns: of numbers that cannot be, as a damaged
        // capture has them, the largest is shown, instead of failing.
        //
        // A function of one column runs once for each entry of the column's dictionary,
        // where IN compares every row with every name: the sums of reads and writes by
        // file took three times as long. The digits of a number in base 2 tell its power
        // exactly, and in half the time of a logarithm.
        "CREATE MACRO wall_time(ts_ns) AS make_timestamp_ns(ts_ns::BIGINT + {offset});\n\
         CREATE MACRO bounded(n) AS coalesce(try_cast(n AS BIGINT), \
             CASE WHEN n > 0 THEN 9223372036854775807 \
             WHEN n < 0 THEN -9223372036854775807 END);\n\
         CREATE MACRO hash_hex(hash) AS lpad(lower(hex(hash::BIGINT)), 16, '0');\n\
         CREATE MACRO duration_bucket(ns) AS \
             CASE WHEN ns IS NULL THEN NULL \
             ELSE least(39, length(bin(greatest(ns, 1)::BIGINT)) - 1)::INTEGER END;
\
         CREATE MACRO call_reads(name) AS regexp_full_match(name, {});
\
         CREATE MACRO call_writes(name) AS regexp_full_match(name, {});
\
         CREATE MACRO call_failed(name, errno) AS \
             (errno IS NOT NULL AND NOT (CASE errno {answers} ELSE false END));
\
         CREATE VIEW call_classes AS SELECT * FROM (VALUES {}) AS t(syscall, class);",
        names(&|s| moves(s) && !s.writes()),
        names(&|s| moves(s) && s.writes()),
        classes.join(", ")
    )
}

/// The errors that are answers rather than failures, as the branches of a CASE: the names of
/// the calls of which each is one.
fn answers() -> String {
    let is_answer = |call: &str, errno: &str| error_kind(call, errno) == ErrorKind::Answer;
    let branch = |errno: &str| {
        let calls: Vec<&str> = SYSCALLS
            .iter()
            .map(|s| s.name)
            .filter(|name| is_answer(name, errno))
            .collect();
        let condition = match calls.len() {
            0 => return None,
            n if n == SYSCALLS.len() => "true".to_string(),
            _ => format!("regexp_full_match(name, {})", sql_string(&calls.join("|"))),
        };
        Some(format!("WHEN {} THEN {condition} ", sql_string(errno)))
    };
    let errors = (1..4096).filter_map(fathom_model::errno::name);
    errors.filter_map(branch).collect()
}

/// The metadata of a session; during the recording with the totals of its parts.
fn meta_of(session: &Session) -> SessionMeta {
    let mut meta = session.meta().clone();
    if session.is_live() {
        // The totals are of another moment than the parts: what is in the parts
        // counts, and calls that are on their way are seen when they arrive.
        let totals = &mut meta.totals;
        totals.stored = session.rows("syscalls");
        totals.seen = totals.stored + totals.lost;
    }
    meta
}

impl Db {
    /// Names and SQL types of the columns of a table or view, in order.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub fn columns(&self, table: &str) -> Result<Vec<(String, String)>, QueryError> {
        let db = |e: duckdb::Error| QueryError::Sql(message(&e));
        let mut statement = self
            .connection
            .prepare(
                "SELECT column_name, data_type FROM duckdb_columns() \
                 WHERE table_name = ? ORDER BY column_index",
            )
            .map_err(db)?;
        let rows = statement
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(db)?;
        rows.collect::<Result<_, _>>().map_err(db)
    }
}

/// A database over a session without rows: what describes the views.
pub(crate) fn empty() -> Result<Db, QueryError> {
    let meta = SessionMeta {
        schema_version: fathom_model::tables::SCHEMA_VERSION,
        fathom_version: String::new(),
        id: String::new(),
        state: fathom_model::meta::State::Complete,
        command: Vec::new(),
        target: String::new(),
        options: Default::default(),
        host: Default::default(),
        clock: Default::default(),
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Default::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Default::default(),
        content: None,
        spans: None,
        source: None,
        perf_counters: Vec::new(),
        history: Default::default(),
    };
    Db::open_parts(&meta, |_| Vec::new(), Limits::default())
}
