//! A session opened for SQL.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duckdb::{Connection, InterruptHandle};
use fathom_model::findings::FindingRow;
use fathom_model::meta::SessionMeta;
use fathom_model::set::{ClockMap, MemberClock};
use fathom_model::tables::{SYSCALLS, TABLES};
use fathom_session::{Session, SessionSet, on_latest};

use crate::engine;
use crate::error::message;
use crate::limits::Limits;
use crate::moved::Moved;
use crate::on_demand::OnDemand;
use crate::place::Place;
use crate::rows::Rows;
use crate::source::{Source, own_of, wall_ns};
use crate::sql_policy::Checked;
use crate::watchdog::Watchdog;
use crate::{
    PathCall, PathRow, QueryError, clocks, findings, members, on_demand, own_tables, paths,
    percentiles, relations, session_row, sql_policy, tables,
};

/// Number of stored calls up to which percentiles of the views are exact: the database keeps about
/// 20 bytes per call for them, outside of its memory limit. With more calls, percentiles come from
/// a histogram and are at most 1/64 too low.
const EXACT_PERCENTILES: u64 = 20_000_000;
/// Bytes of the memory limit per call: percentiles use at most half of the limit.
const EXACT_BYTES: u64 = 40;

/// Tries to open a set whose sessions change, and the time between them.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(20);

/// Computes the path of a call of table function `critical_path` in the session that a database was
/// opened on.
pub type FindPath = fn(&Db, &SessionMeta, PathCall) -> Result<Vec<PathRow>, QueryError>;

/// Compares the rows of tables with their checksums, unless that was done before; false if some are damaged.
pub type RowGate = Arc<dyn Fn(&[&str]) -> bool + Send + Sync>;

/// A session opened for SQL: its tables, the views, macro `wall_time(ts_ns)`.
pub struct Db {
    connection: Connection,
    on_demand: Arc<OnDemand>,
    limits: Limits,
    busy: Cell<bool>,
    exact_percentiles: bool,
    place: Place,
    /// Directories of the sessions, which stay open.
    _members: Vec<Place>,
    /// Names of the members of a set; empty for one session.
    hosts: Vec<String>,
    /// Asked before rows are read; none if all were compared with their checksums.
    /// Schema of the statements, if they see one session of the set.
    home: Option<String>,
    rows: Option<RowGate>,
    /// The clock on which sums of a window show rows, if it is another one.
    moved: Option<Arc<Moved>>,
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
        let meta = meta_of(session);
        let source = Source {
            meta: &meta,
            parts: &|table| session.parts(table),
            place: &place,
            own: own_of(session),
            clock: &ClockMap::default(),
            wall_ns: wall_ns(&meta),
            stored: Some(session.rows(SYSCALLS.name)),
        };
        Self::start(&[source], &[], None, &place.literals(&dirs)?, limits)
    }

    /// The same of a session whose rows were not compared with their checksums: `rows` is asked for the tables that a
    /// statement reads, before it runs.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open`].
    pub fn open_unchecked(
        session: &Session,
        limits: Limits,
        rows: RowGate,
    ) -> Result<Self, QueryError> {
        let mut db = Self::open(session, limits)?;
        db.rows = Some(rows);
        Ok(db)
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
        let source = Source {
            meta,
            parts: &parts,
            place: &Place::default(),
            own: Vec::new(),
            clock: &ClockMap::default(),
            wall_ns: wall_ns(meta),
            stored: None,
        };
        Self::start(&[source], &[], None, &[], limits)
    }

    /// Opens the sessions of `set` as they are now. Each table and view has the rows of all of them
    /// and a first column `host`, the member's name. Times are on the clock of the reference.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open_parts`].
    pub fn open_set(set: &SessionSet, limits: Limits) -> Result<Self, QueryError> {
        Self::several(set, false, limits)
    }

    /// Opens `set`, or its newest state when sessions change meanwhile.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open_set`], and [`QueryError::Worker`] if a session is gone.
    pub fn open_set_latest(set: &mut SessionSet, limits: &Limits) -> Result<Self, QueryError> {
        Self::latest(set, false, limits)
    }

    /// Opens the newest state of `set` for critical paths: tables syscalls, faults, waits, processes, block
    /// and losses have the rows of all of them. Ids of threads and requests are unique
    /// ([`crate::joined_tid`], [`crate::joined_rid`]), and waits for the network that a thread of
    /// another session ended name it in `cause_id`, with the end of its send in `caused_at_ns`.
    ///
    /// # Errors
    ///
    /// The errors of [`Db::open_set_latest`].
    pub fn open_joined(set: &mut SessionSet, limits: &Limits) -> Result<Self, QueryError> {
        Self::latest(set, true, limits)
    }

    fn latest(set: &mut SessionSet, joined: bool, limits: &Limits) -> Result<Self, QueryError> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match Self::several(set, joined, limits.clone()) {
                // Parts of a recording in progress have been merged meanwhile.
                Err(error) if error.may_be_stale() && tries > 0 => {
                    std::thread::sleep(PAUSE);
                    let refreshed = set.refresh();
                    refreshed.map_err(|e| QueryError::Worker(e.to_string()))?;
                }
                opened => return opened,
            }
        }
    }

    fn several(set: &SessionSet, joined: bool, limits: Limits) -> Result<Self, QueryError> {
        let members = set.members().map(|(member, session)| {
            let place = Place::of(session.dir())?;
            Ok((member, session, meta_of(session), place))
        });
        let members = members.collect::<Result<Vec<_>, QueryError>>()?;
        let wall_ns = members.first().map_or(0, |(_, _, meta, _)| wall_ns(meta));
        let parts: Vec<_> = members
            .iter()
            .map(|(_, session, ..)| |table: &str| session.parts(table))
            .collect();
        let mut sources = Vec::new();
        let mut dirs = Vec::new();
        for ((member, session, meta, place), parts) in members.iter().zip(&parts) {
            sources.push(Source {
                meta,
                parts,
                place,
                own: own_of(session),
                clock: &member.clock.map,
                wall_ns,
                stored: Some(session.rows(SYSCALLS.name)),
            });
            if session.is_live() {
                let live: Vec<_> = TABLES.iter().map(|t| session.dir().join(t.name)).collect();
                dirs.extend(place.literals(&live)?);
            }
        }
        let hosts: Vec<&str> = members.iter().map(|(m, ..)| m.host.as_str()).collect();
        let clocks: Vec<&MemberClock> = members.iter().map(|(m, ..)| &m.clock).collect();
        let joined = joined.then_some(clocks.as_slice());
        Self::start(&sources, &hosts, joined, &dirs, limits)
    }

    /// Opens sessions; files in `dirs` may be read besides their parts. One session is opened as it
    /// is, several with their names in `hosts`, and for critical paths with the clocks of all in `joined`.
    fn start(
        sources: &[Source<'_>],
        hosts: &[&str],
        joined: Option<&[&MemberClock]>,
        dirs: &[String],
        limits: Limits,
    ) -> Result<Self, QueryError> {
        let db = |e: duckdb::Error| QueryError::Sql(message(&e));
        let connection = engine::open(&limits, db)?;
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
        let mut allowed = Vec::new();
        for source in sources {
            for table in TABLES {
                allowed.extend(source.place.literals(&(source.parts)(table.name))?);
            }
            let own: Vec<_> = source.own.iter().map(|(_, file)| file.clone()).collect();
            allowed.extend(source.place.literals(&own)?);
        }
        for source in sources {
            clocks::create(&connection, source.clock)?;
        }
        let home = match joined {
            Some(_) => members::JOINED,
            None => members::MAIN,
        };
        let on_demand = OnDemand::new(relations::tables(sources)?, hosts, home);
        let stored: Option<u64> = sources.iter().map(|source| source.stored).sum();
        // Parts that are merged are gone when a statement names their table.
        let is_live = !dirs.is_empty();
        let (exact_percentiles, place) = match (sources, hosts) {
            ([source], []) => {
                relations::create(&connection, source)?;
                own_tables::create(&connection, source)?;
                if is_live || stored.is_none() {
                    on_demand.create_tables(&connection)?;
                }
                let stored = stored.map_or_else(|| relations::count(&connection), Ok)?;
                let exact = stored <= limits.exact_percentiles();
                relations::create_percentiles(&connection, exact)?;
                (exact, source.place.clone())
            }
            _ => {
                let exact = stored.unwrap_or(u64::MAX) <= limits.exact_percentiles();
                members::create(&connection, sources, hosts, exact)?;
                if is_live || joined.is_some() {
                    on_demand.create_tables(&connection)?;
                }
                if let Some(clocks) = joined {
                    members::join(&connection, hosts, clocks)?;
                }
                (exact, Place::default())
            }
        };
        paths::create(&connection).map_err(db)?;
        connection
            .execute_batch(&format!(
                "SET allowed_paths = [{}]; SET allowed_directories = [{}]; \
                 SET enable_external_access = false; SET lock_configuration = true",
                allowed.join(", "),
                dirs.join(", ")
            ))
            .map_err(db)?;
        let places = sources.iter().map(|source| source.place.clone()).collect();
        Ok(Self {
            connection,
            on_demand: Arc::new(on_demand),
            limits,
            busy: Cell::new(false),
            exact_percentiles,
            place,
            _members: places,
            hosts: hosts.iter().map(|host| (*host).to_string()).collect(),
            home: None,
            rows: None,
            moved: None,
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
                let source = Source {
                    meta: session.meta(),
                    parts: &|table| session.parts(table),
                    place: &self.place,
                    // A recording has none.
                    own: Vec::new(),
                    clock: &ClockMap::default(),
                    wall_ns: wall_ns(session.meta()),
                    stored: None,
                };
                let create = "CREATE OR REPLACE VIEW";
                sql.push_str(&tables::create_view(table, &source, create)?);
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
        let changed = self.on_demand.locked(|| {
            connection
                .execute_batch(&sql)
                .and_then(|()| session_row::insert(connection, &meta_of(session)))
                .and_then(|()| connection.execute_batch("COMMIT"))
                .inspect_err(|_| {
                    // The connection that would be left in a transaction is dropped; this says
                    // so in time for the others.
                    let _ = connection.execute_batch("ROLLBACK");
                })
        });
        changed.map_err(db)?;
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

    /// Refuses a statement on a set that asks for critical paths.
    pub(crate) fn refuse_paths(&self, statement: &Checked) -> Result<(), QueryError> {
        match statement.paths.is_empty() {
            true => Ok(()),
            false => Err(QueryError::CriticalPath(format!(
                "{} takes one session, and this is a set of {}",
                paths::NAME,
                self.hosts.len()
            ))),
        }
    }

    /// Fills table `findings`, which is empty until then, with the findings of each session.
    ///
    /// # Errors
    /// When the database fails, and when the rows of a query are still being read.
    pub fn set_findings(&self, sessions: &[Vec<FindingRow>]) -> Result<(), QueryError> {
        if self.busy.get() {
            return Err(QueryError::Busy);
        }
        for (member, rows) in sessions.iter().enumerate() {
            let table = match self.hosts.is_empty() {
                true => "findings".to_string(),
                false => format!("{}.findings", members::schema(member)),
            };
            let filled = findings::fill(&self.connection, &table, rows);
            filled.map_err(|e| QueryError::Sql(message(&e)))?;
        }
        Ok(())
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Compares all rows with their checksums, unless that was done before.
    ///
    /// # Errors
    /// [`QueryError::Damaged`].
    pub fn check_rows(&self) -> Result<(), QueryError> {
        let all: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        self.check_rows_of(&all)
    }

    fn check_rows_of(&self, tables: &[&str]) -> Result<(), QueryError> {
        match &self.rows {
            Some(rows) if !rows(tables) => Err(QueryError::Damaged),
            _ => Ok(()),
        }
    }

    /// Creates a view; `sql` is the statement for that.
    pub(crate) fn create_view(&self, sql: &str) -> Result<(), QueryError> {
        // Statements that name it do not show the tables that it reads.
        self.check_rows()?;
        let create = || self.connection.execute_batch(sql);
        self.with_relations(sql, create, |e| QueryError::Sql(message(e)))
    }

    /// Runs `prepare` with the tables and views that `sql` names.
    fn with_relations<T>(
        &self,
        sql: &str,
        prepare: impl Fn() -> duckdb::Result<T>,
        failed: impl Fn(&duckdb::Error) -> QueryError,
    ) -> Result<T, QueryError> {
        let (connection, home) = (&self.connection, self.home.as_deref());
        let on_demand = &self.on_demand;
        on_demand.with_relations(connection, home, sql, prepare, failed)
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
        let read: Vec<&str> = on_demand::tables_read(sql).into_iter().collect();
        self.check_rows_of(&read)?;
        let watchdog = Watchdog::start(self.limits.time, self.connection.interrupt_handle())?;
        let prepare = || self.connection.prepare(sql);
        let failed = |e: &_| QueryError::from_db(e, &self.limits, watchdog.fired());
        let statement = self.with_relations(sql, prepare, failed)?;
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
        let db = |e: duckdb::Error| QueryError::Sql(message(&e));
        let connection = self.connection.try_clone().map_err(db)?;
        if let Some(home) = &self.home {
            connection
                .execute_batch(&format!("USE {home}"))
                .map_err(db)?;
        }
        Ok(Self {
            connection,
            on_demand: Arc::clone(&self.on_demand),
            limits: self.limits.clone(),
            busy: Cell::new(false),
            exact_percentiles: self.exact_percentiles,
            place: self.place.clone(),
            _members: self._members.clone(),
            hosts: self.hosts.clone(),
            home: self.home.clone(),
            rows: self.rows.clone(),
            moved: self.moved.clone(),
        })
    }

    /// Another connection, whose statements see the session of a set with this number as a database of it
    /// alone has it, but with times on the clock of the reference.
    ///
    /// # Errors
    ///
    /// When there is no such session, and when the database refuses.
    pub fn member(&self, member: usize) -> Result<Self, QueryError> {
        if member >= self.hosts.len() {
            return Err(QueryError::Sql(format!("the set has no session {member}")));
        }
        let home = members::schema(member);
        let mut of_member = self.try_clone()?;
        let used = of_member.connection.execute_batch(&format!("USE {home}"));
        used.map_err(|e| QueryError::Sql(message(&e)))?;
        of_member.home = Some(home);
        Ok(of_member)
    }

    /// The same, with sums of windows on another clock.
    pub(crate) fn moved_to(&self, moved: Moved) -> Result<Self, QueryError> {
        clocks::create(&self.connection, &moved.clock)?;
        Ok(Self {
            moved: Some(Arc::new(moved)),
            ..self.try_clone()?
        })
    }

    /// The clock on which sums of a window show rows, if it is another one.
    pub(crate) fn moved(&self) -> Option<&Moved> {
        self.moved.as_deref()
    }

    /// Whether the macro `duration_percentiles` and the views are exact: with very many calls they
    /// are approximate.
    pub fn exact_percentiles(&self) -> bool {
        self.exact_percentiles
    }

    /// Names of the sessions of a set; empty for one session.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
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
        let columns = "SELECT column_name, data_type FROM duckdb_columns() \
             WHERE table_name = ? ORDER BY column_index";
        let prepare = || self.connection.prepare(columns);
        let failed = |e: &_| QueryError::Sql(message(e));
        let mut statement = self.with_relations(table, prepare, failed)?;
        let rows = statement
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(db)?;
        rows.collect::<Result<_, _>>().map_err(db)
    }
}

impl Db {
    /// Tables that the user added to the session; in a set, to a session of it.
    pub fn own_tables(&self) -> Result<Vec<String>, QueryError> {
        own_tables::names(&self.connection).map_err(|e| QueryError::Sql(message(&e)))
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
        labels: Default::default(),
        clock: Default::default(),
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Default::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Default::default(),
        content: None,
        spans: None,
        library_budget: None,
        source: None,
        perf_counters: Vec::new(),
        own_tables: Default::default(),
        history: Default::default(),
    };
    Db::open_parts(&meta, |_| Vec::new(), Limits::default())
}
