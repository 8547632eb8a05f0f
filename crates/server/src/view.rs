//! A session opened for queries: a state of it. Its span and parts do not change; the tables of
//! one that is being recorded grow with the states that follow.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fathom_query::zoom::Zoom;
use fathom_query::{Db, Limits};
use fathom_session::{RowCheck, Session};

use crate::error::ApiError;
use crate::lock::lock;
use crate::stamp::Stamp;

/// Connections that are kept for the next queries.
const IDLE: usize = 2;
/// Number of times that a recording is followed before it is opened again: the database also
/// remembers the footers of parts that were merged since.
const FOLLOWED: u32 = 500;

/// A state of a session.
pub(crate) struct View {
    /// Name of its folder.
    pub id: String,
    pub session: Session,
    /// Idle connections.
    idle: Mutex<Vec<Zoom>>,
    /// The connection from which others are made.
    base: Mutex<Zoom>,
    span: Option<(i64, i64)>,
    /// How often it was followed since it was opened.
    followed: u32,
    /// The fingerprint of the session when it was opened or followed.
    pub stamp: Option<Stamp>,
    /// The comparison of its rows with their checksums, if that was not done when it was opened.
    rows: Option<Arc<RowCheck>>,
}

impl View {
    /// Opens a session as it is now.
    pub fn open(id: &str, session: Session, limits: Limits) -> Result<Self, ApiError> {
        let zoom = Zoom::open(&session, limits).map_err(|e| {
            let mut error = ApiError::from(e);
            error.problem.subject = id.to_string();
            error
        })?;
        Ok(Self::of(id, session, zoom, 0))
    }

    /// The same of a session of which only footers were compared with their checksums. Rows are compared when a query
    /// first needs them. `damaged` is set if some are not as they were written: queries fail as if the state were out
    /// of date, and the session is to be opened with [`Session::open`].
    pub fn open_unchecked(
        id: &str,
        session: Session,
        limits: Limits,
        damaged: Arc<AtomicBool>,
    ) -> Result<Self, ApiError> {
        let rows = Arc::new(RowCheck::new(session.clone()));
        let asked = Arc::clone(&rows);
        let gate = Arc::new(move |tables: &[&str]| {
            let passed = asked.passed(tables);
            if !passed {
                damaged.store(true, Ordering::Relaxed);
            }
            passed
        });
        let zoom = Zoom::open_unchecked(&session, limits, gate).map_err(|e| {
            let mut error = ApiError::from(e);
            error.problem.subject = id.to_string();
            error
        })?;
        Ok(Self {
            rows: Some(rows),
            ..Self::of(id, session, zoom, 0)
        })
    }

    /// Whether all rows were compared with their checksums, and are as they were written or left out.
    pub fn is_checked(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.is_over())
    }

    /// The same recording later, at the cost of the new parts. The database stays, so this state's
    /// tables also get the new rows. `None` if it must be opened again: the recording has ended,
    /// another session has taken its place, needed parts were merged just now, or this was done
    /// very often.
    ///
    pub fn follow(&self) -> Option<Self> {
        if !self.session.is_live() || self.followed >= FOLLOWED {
            return None;
        }
        let mut session = self.session.clone();
        session.refresh().ok()?;
        if !session.is_live() || session.meta().id != self.session.meta().id {
            return None;
        }
        let zoom = lock(&self.base).follow(&self.session, &session).ok()?;
        Some(Self::of(&self.id, session, zoom, self.followed + 1))
    }

    fn of(id: &str, session: Session, zoom: Zoom, followed: u32) -> Self {
        Self {
            id: id.to_string(),
            span: zoom.span(),
            session,
            idle: Mutex::default(),
            base: Mutex::new(zoom),
            followed,
            stamp: None,
            rows: None,
        }
    }

    /// Beginning of the recording, CLOCK_MONOTONIC nanoseconds: times are sent since then.
    pub fn started_at_ns(&self) -> i64 {
        self.session.meta().clock.start_monotonic_ns
    }

    /// Times of the first and the last call.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// A connection of one's own.
    pub fn reader(self: &Arc<Self>) -> Result<Reader, ApiError> {
        let idle = lock(&self.idle).pop();
        let zoom = match idle {
            Some(zoom) => zoom,
            None => lock(&self.base).try_clone()?,
        };
        Ok(Reader {
            view: self.clone(),
            zoom,
        })
    }
}

/// A session and a connection to it, for one query after the other.
pub(crate) struct Reader {
    view: Arc<View>,
    /// Sums and rows of windows.
    pub zoom: Zoom,
}

impl Reader {
    /// The tables.
    pub fn db(&self) -> &Db {
        self.zoom.db()
    }

    /// Keeps the connection for the next query.
    pub fn give_back(self) {
        let mut idle = lock(&self.view.idle);
        if idle.len() < IDLE {
            idle.push(self.zoom);
        }
    }
}

impl Deref for Reader {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}
