//! Work on a session that may change meanwhile.

use std::time::Duration;

use fathom_model::tables::TABLES;

use crate::read::session::Session;

/// How often work is begun, and how long to wait in between: merges come one by one, and the
/// recording's end is a burst of them.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// Does `work` on `session`. While that is recorded, parts that were listed are merged into
/// others at any moment: when `work` fails and the session has changed since, it is done again on
/// the newest state, some times at most.
///
/// # Errors
/// The last error of `work`.
pub fn on_latest<T, E>(
    session: &mut Session,
    mut work: impl FnMut(&Session) -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..TRIES {
        // In a session without a writer, an error is its own.
        let live = session.is_live();
        let before: Vec<_> = TABLES.iter().map(|t| session.parts(t.name)).collect();
        match work(session) {
            Err(error) if live => {
                std::thread::sleep(PAUSE);
                // Where that fails the error before says more.
                if session.refresh().is_err() {
                    return Err(error);
                }
                let now = TABLES.iter().map(|t| session.parts(t.name));
                if now.eq(before) {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
    work(session)
}
