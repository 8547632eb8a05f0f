//! The worker that runs SQL of users: one, kept for the next statement on the same session.
//!
//! Its start and opening the session take a tenth of a second, which a panel that asks again and
//! again should not wait for. One is enough, as of long queries one runs at a time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fathom_query::QueryError;
use fathom_query::worker::{Outcome, Program, Statement, Worker};

use crate::error::ApiError;
use crate::job::{Running, Stop};
use crate::library::Library;
use crate::lock::lock;
use crate::stamp::Stamp;

/// Bytes of an answer at most; the worker stops before.
const MOST_BYTES: usize = 160 << 20;
/// How long a worker waits for another statement: it has the session's footers in memory.
const IDLE: Duration = Duration::from_secs(60);

/// A worker that has nothing to do.
struct Idle {
    id: String,
    /// State of the session that it has seen last.
    stamp: Stamp,
    worker: Worker,
    since: Instant,
}

/// The worker, when there is one.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Mutex<Option<Idle>>>);

impl Workers {
    /// Runs a statement of a user's over session `id`: the bytes of the answer, and how it ended.
    pub fn query(
        &self,
        library: &Library,
        id: &str,
        mut statement: Statement,
        stop: &Stop,
    ) -> Result<(Vec<u8>, Outcome), ApiError> {
        // Refuses what is no session, or not its own; and its state is at hand for the rest of the
        // page.
        let view = library.view(id)?;
        let dir = view.session.dir();
        // Taken before the worker looks, so that what comes meanwhile is looked at next time.
        let stamp = Stamp::of(dir);
        let mut idle = lock(&self.0).take().filter(|idle| idle.id == id);
        // When memory ran out on the machine it was the first to go.
        if idle.as_mut().is_some_and(|idle| !idle.worker.is_usable()) {
            idle = None;
        }
        let mut worker = match idle {
            Some(idle) => {
                statement.refresh = idle.stamp != stamp;
                stop.watch(Some(Running::Worker(idle.worker.killer())));
                idle.worker
            }
            None => {
                let limits = library.limits().clone();
                let mut worker = Worker::start(&Program::itself(), limits)?;
                stop.watch(Some(Running::Worker(worker.killer())));
                stop.check()?;
                worker.open(dir, library.extensions.views())?;
                worker
            }
        };
        stop.check()?;
        let mut answer = Vec::new();
        let result = worker.query(statement, |bytes| {
            if answer.len() + bytes.len() > MOST_BYTES {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            answer.extend_from_slice(bytes);
            Ok(())
        });
        stop.watch(None);
        if worker.is_usable() && !stop.is_asked() {
            *lock(&self.0) = Some(Idle {
                id: id.to_owned(),
                stamp,
                worker,
                since: Instant::now(),
            });
            self.dismiss_later();
        }
        match result {
            Ok(outcome) => Ok((answer, outcome)),
            Err(QueryError::Output(_)) => Err(ApiError::of_user_sql(QueryError::Sql(format!(
                "the answer has more than {} MiB",
                MOST_BYTES >> 20
            )))),
            Err(error) => Err(ApiError::of_user_sql(error)),
        }
    }

    /// Ends the worker when it has had nothing to do for a while.
    fn dismiss_later(&self) {
        let idle = Arc::downgrade(&self.0);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            tokio::time::sleep(IDLE).await;
            if let Some(idle) = idle.upgrade() {
                let expired = |idle: &mut Idle| idle.since.elapsed() >= IDLE;
                let worker = lock(&idle).take_if(expired);
                drop(worker);
            }
        });
    }
}
