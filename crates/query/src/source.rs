//! A session as a database opens it.

use std::path::PathBuf;

use fathom_model::meta::SessionMeta;
use fathom_model::set::ClockMap;

use fathom_session::Session;

use crate::names::is_taken;
use crate::place::Place;

/// A session that a database opens.
pub(crate) struct Source<'a> {
    /// Its metadata.
    pub meta: &'a SessionMeta,
    /// Parts of each table, in order of writing.
    pub parts: &'a dyn Fn(&str) -> Vec<PathBuf>,
    /// Where they are.
    pub place: &'a Place,
    /// Tables that the user added: name, and file.
    pub own: Vec<(String, PathBuf)>,
    /// How its times are shown.
    pub clock: &'a ClockMap,
    /// Nanoseconds from a time, as shown, to the wall clock.
    pub wall_ns: i64,
    /// Number of calls, if it is known without asking the database.
    pub stored: Option<u64>,
}

/// The tables that the user added to a session: name, and file.
pub(crate) fn own_of(session: &Session) -> Vec<(String, PathBuf)> {
    let tables = session.own_tables().iter();
    let tables = tables.filter(|own| !is_taken(&own.name));
    tables
        .map(|own| (own.name.clone(), session.dir().join(&own.file)))
        .collect()
}

/// From times of a session to its wall clock, nanoseconds.
pub(crate) fn wall_ns(meta: &SessionMeta) -> i64 {
    let clock = &meta.clock;
    clock
        .start_realtime_ns
        .wrapping_sub(clock.start_monotonic_ns)
}
