//! Calls and operations that hang: looked for while they last, because their rows come when they
//! return or complete.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_model::kind::Kind;
use fathom_model::syscalls::{Class, Syscall};
use fathom_probe::{InFlight, ProbeError, monotonic_ns};

use crate::source::RecordSource;
use crate::trigger::Pace;
use crate::{Observer, RecordError, SaveWhen, Stall};

/// How often is looked.
const EVERY: Duration = Duration::from_millis(200);

/// From when on a call counts as one that hangs, unless the user says so.
const LONG: Duration = Duration::from_secs(1);

/// Looks for calls that have not returned for long.
#[derive(Debug)]
pub(crate) struct Stalls {
    limit: Duration,
    /// Condition and pace of the copies to be made, if any are.
    saves: Option<(String, Pace)>,
    looked: Instant,
    /// Calls that were reported: thread and beginning.
    reported: HashSet<(u32, u64)>,
}

impl Stalls {
    /// `None` if no option asks for them.
    pub(crate) fn new(
        when: Option<&SaveWhen>,
        diagnose: bool,
    ) -> Result<Option<Self>, RecordError> {
        let limit = when
            .map(|when| limit(&when.condition))
            .transpose()?
            .flatten();
        if limit.is_none() && !diagnose {
            return Ok(None);
        }
        let saves = when.filter(|_| limit.is_some());
        Ok(Some(Self {
            limit: limit.unwrap_or(LONG),
            saves: saves.map(|when| (when.condition.trim().to_owned(), Pace::new(when))),
            looked: Instant::now(),
            reported: HashSet::new(),
        }))
    }

    /// Looks, when it is time. Gives the reason to save, if there is one.
    pub(crate) fn look(
        &mut self,
        source: &mut impl RecordSource,
        observer: &mut dyn Observer,
    ) -> Result<Option<String>, ProbeError> {
        if self.looked.elapsed() < EVERY {
            return Ok(None);
        }
        self.looked = Instant::now();
        let mut still = HashSet::new();
        let mut because = None;
        for (call, elapsed) in older(source.in_flight()?, self.limit) {
            let key = (call.tid, call.ts_ns);
            still.insert(key);
            if self.reported.contains(&key) {
                continue;
            }
            let at = call.whereabouts();
            if self.saves.is_none() && may_take_long(&call, at.file.as_deref()) {
                continue;
            }
            let stall = Stall { call, elapsed, at };
            observer.stalled(&stall);
            if let Some((condition, pace)) = &mut self.saves
                && pace.take()
            {
                because = Some(format!("{condition}: {stall}"));
            }
        }
        self.reported = still;
        Ok(because)
    }
}

/// The calls that have lasted as long as `limit`, with how long they have.
fn older(in_flight: Vec<InFlight>, limit: Duration) -> impl Iterator<Item = (InFlight, Duration)> {
    let now_ns = monotonic_ns();
    let aged = in_flight.into_iter().map(move |call| {
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(call.ts_ns));
        (call, elapsed)
    });
    aged.filter(move |(_, elapsed)| *elapsed >= limit)
}

/// The calls that hang, longest first. Calls that are likely to take long are left out.
pub(crate) fn hanging(in_flight: Vec<InFlight>) -> Vec<Stall> {
    let mut stalls: Vec<Stall> = older(in_flight, LONG)
        // Without a look at /proc, which many idle threads would make dear.
        .filter(|(call, _)| !may_take_long(call, None))
        .map(|(call, elapsed)| Stall {
            at: call.whereabouts(),
            call,
            elapsed,
        })
        .filter(|stall| !may_take_long(&stall.call, stall.at.file.as_deref()))
        .collect();
    stalls.sort_by_key(|stall| stall.call.ts_ns);
    stalls
}

/// Whether a call is likely to take long: it waits for another program, or for input.
/// `file`: the link of its descriptor, or its path.
fn may_take_long(call: &InFlight, file: Option<&Path>) -> bool {
    let waits = Syscall::named(call.syscall.as_bytes()).is_none_or(|call| {
        matches!(call.class, Class::Socket | Class::Wait | Class::Async)
            || matches!(call.kind, Kind::Flock | Kind::Fcntl)
    });
    // By its name, because to look at the file might hang, too. The links of sockets, pipes, and
    // the like are no paths: `socket:[17]`.
    let special = file.is_some_and(|file| {
        let link = file.as_os_str().as_bytes();
        let terminal = [b"/dev/pts/".as_slice(), b"/dev/tty", b"/dev/console"];
        terminal.iter().any(|name| link.starts_with(name))
            || !link.starts_with(b"/") && link.contains(&b':')
    });
    // Of a file that is registered with a ring no more is known.
    let stream = call
        .operation
        .is_some_and(|operation| !operation.seekable && operation.fd.is_none());
    waits || special || stream
}

/// The time of the condition `in_flight > TIME`, which takes no other condition; `None` for another condition.
pub(crate) fn limit(condition: &str) -> Result<Option<Duration>, RecordError> {
    let Some(rest) = condition.trim().strip_prefix("in_flight") else {
        return Ok(None);
    };
    let time = rest.trim_start().strip_prefix('>').map(str::trim);
    let time = time.and_then(|time| fathom_model::units::parse_time(time).ok());
    match time {
        Some(time) if !time.is_zero() => Ok(Some(time)),
        _ => Err(RecordError::Input(format!(
            "--save-when \"{condition}\": in_flight takes a time and nothing else: in_flight > 1s"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use fathom_probe::Operation;

    use super::*;

    fn in_flight(syscall: &'static str, operation: Option<Operation>) -> InFlight {
        InFlight {
            ts_ns: 1,
            pid: 2,
            tid: 3,
            syscall,
            operation,
        }
    }

    /// Of operations on registered files only the type of the file is known.
    #[test]
    fn operations_on_streams_may_take_long() {
        let may = |fd, seekable, file: Option<&str>| {
            let read = in_flight("IORING_OP_READ", Some(Operation { fd, seekable }));
            super::may_take_long(&read, file.map(Path::new))
        };
        assert!(!may(Some(4), true, Some("/data/file")) && !may(None, true, None));
        assert!(may(None, false, None) && may(Some(4), false, Some("socket:[17]")));
        let poll = Operation {
            fd: Some(4),
            seekable: true,
        };
        let poll = in_flight("IORING_OP_POLL_ADD", Some(poll));
        assert!(super::may_take_long(&poll, None));
    }

    fn may_take_long(syscall: &'static str, file: Option<&Path>) -> bool {
        super::may_take_long(&in_flight(syscall, None), file)
    }

    #[test]
    fn calls_that_wait_for_others_may_take_long() {
        let may = |syscall, file: &str| may_take_long(syscall, Some(Path::new(file)));
        assert!(!may("fsync", "/data/file") && !may("openat", "relative/file"));
        assert!(!may_take_long("sync", None));
        assert!(may("read", "pipe:[17]") && may("read", "anon_inode:[eventfd]"));
        assert!(
            may("read", "/dev/pts/0") && !may("fsync", "/dev/vda") && may("flock", "/data/file")
        );
        assert!(may_take_long("epoll_wait", None) && may_take_long("io_getevents", None));
    }

    #[test]
    fn conditions() {
        let time = |text: &str| limit(text).map_err(|error| error.to_string());
        assert_eq!(time("in_flight > 1s"), Ok(Some(Duration::from_secs(1))));
        assert_eq!(
            time(" in_flight>250ms "),
            Ok(Some(Duration::from_millis(250)))
        );
        assert_eq!(time("dur_ns > 1e9"), Ok(None));
        for wrong in [
            "in_flight",
            "in_flight > ",
            "in_flight < 1s",
            "in_flight > 0s",
            "in_flight > 1s AND fd = 3",
        ] {
            assert!(
                time(wrong).unwrap_err().contains("in_flight > 1s"),
                "{wrong}"
            );
        }
    }
}
