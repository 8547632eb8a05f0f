//! How long a recorded command ran.

use fathom_model::meta::SessionMeta;

use crate::fetch::rows;
use crate::{Db, QueryError};

/// From the first call of a recorded command to the end of its last process, CLOCK_MONOTONIC nanoseconds. The recorder
/// starts before and ends later. `None` without a command, and for a recording of which the latest rows were kept only.
///
/// # Errors
/// The errors of [`Db::run`].
pub fn run_of(db: &Db, meta: &SessionMeta) -> Result<Option<(i64, i64)>, QueryError> {
    if meta.command.is_empty() || meta.source.is_some() || meta.history.keep.is_some() {
        return Ok(None);
    }
    let times = rows(
        db,
        "SELECT min(ts_ns) AS first, max(ts_ns + coalesce(dur_ns, 0)) AS last,
             (SELECT min(started_at_ns) FROM processes) AS started,
             (SELECT max(ended_at_ns) FROM processes) AS ended,
             (SELECT count(*) FROM processes WHERE pid = tid AND ended_at_ns IS NULL) AS running
         FROM syscalls",
        |row| {
            Ok(Times {
                calls: [row.get("first")?, row.get("last")?],
                processes: [row.get("started")?, row.get("ended")?],
                running: row.int("running")? > 0,
            })
        },
    )?;
    let whole = meta.totals.stored == meta.totals.seen;
    let end = meta.clock.end_monotonic_ns;
    Ok(times.first().and_then(|times| times.run(whole, end)))
}

/// First begin and last end.
#[derive(Debug)]
struct Times {
    calls: [Option<i64>; 2],
    processes: [Option<i64>; 2],
    /// Whether a process has no end.
    running: bool,
}

impl Times {
    /// `whole`: all calls have rows. Otherwise the first call may have none, and the start of the first process takes
    /// its place. A process without an end outlived the recording, which ended at `end`.
    fn run(&self, whole: bool, end: Option<i64>) -> Option<(i64, i64)> {
        let ([first, last], [started, ended]) = (self.calls, self.processes);
        let begin = if whole { first } else { started.or(first) };
        let last = match self.running {
            true => end.or(last),
            false => last.max(ended),
        };
        begin.zip(last).filter(|(begin, last)| begin < last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recording is from 0 to 500, a command in it from 20 to 437.
    #[test]
    fn a_command_runs_from_its_first_call_to_the_end_of_its_last_process() {
        let mut times = Times {
            calls: [Some(25), Some(430)],
            processes: [Some(20), Some(437)],
            running: false,
        };
        assert_eq!(times.run(true, Some(500)), Some((25, 437)));
        // The first call may have been counted.
        assert_eq!(times.run(false, Some(500)), Some((20, 437)));
        times.running = true;
        assert_eq!(times.run(true, Some(500)), Some((25, 500)));
        assert_eq!(times.run(true, None), Some((25, 430)));
        times.calls = [None; 2];
        assert_eq!(times.run(true, Some(500)), None);
    }
}
