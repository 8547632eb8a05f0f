//! The findings of a session that is shipped.
//!
//! They are made here, on the host that has recorded the session: its rows are in the page cache, and no
//! engine can run the rules later. The rules run once per session, in a thread that all others go before.

use fathom_diagnose::{diagnose_once, finding_rows};
use fathom_model::findings::FindingRow;
use fathom_session::Session;

use crate::error::ShipError;

/// All other programs go before a thread of this priority.
const NICEST: i32 = 19;

/// The rows of table `findings`, the worst first. `session` is as it is shipped: findings of a redacted
/// session have redacted texts.
pub fn of(session: &Session) -> Result<Vec<FindingRow>, ShipError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("fathom-diagnose".into());
        let work = thread.spawn_scoped(scope, || {
            // Of this thread and the threads that it starts.
            rustix::process::setpriority_process(None, NICEST).ok();
            diagnose_once(session, &|| true)
        });
        let work = work.map_err(ShipError::io("start a thread for", session.dir()))?;
        match work.join() {
            Ok(told) => Ok(finding_rows(&told?.diagnosis)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
