//! The history of threads, from their waits: periods without gaps, for as long as a thread lives.

use std::collections::HashMap;

/// A state of a thread, with its reason.
pub(super) type StateOf = (&'static str, Option<u32>);

pub(super) const RUNNING: &str = "running";
pub(super) const RUNNABLE: &str = "runnable";
pub(super) const BLOCKED: &str = "blocked";
pub(super) const UNKNOWN: &str = "unknown";

/// Reasons that no wait has, at the beginning of the list of reasons.
pub(super) const REASONS: [&str; 7] = [
    "cpu",
    "unseen_start",
    "unseen_return",
    "no_waits",
    "not_recorded",
    "not_ended",
    "dropped",
];
const CPU: u32 = 0;
const UNSEEN_START: u32 = 1;
const UNSEEN_RETURN: u32 = 2;
const NO_WAITS: u32 = 3;
const NOT_RECORDED: u32 = 4;
const NOT_ENDED: u32 = 5;
const DROPPED: u32 = 6;

/// One life of a thread: its number may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub tid: i32,
    pub from: i64,
    pub until: i64,
    /// From when its history is known; before, it was not seen.
    pub known_from: i64,
    /// Whether it has waits at all.
    pub has_waits: bool,
    /// Whether rows of it follow behind the window: its last wait is no sign that it ran since.
    pub goes_on: bool,
}

/// Facts that concern all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub from: i64,
    pub to: i64,
    /// Whether waits outside of requests were recorded: without them gaps are unknown.
    pub all_periods: bool,
    /// Rows before were dropped to save room.
    pub complete_from: i64,
}

/// A wait, in the order of threads and times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub tid: i32,
    pub begin: i64,
    /// Null: its end was not seen.
    pub dur: Option<i64>,
    pub queue: i64,
    pub reason: u32,
}

/// A part of the history of a thread within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub tid: i32,
    pub from: i64,
    pub until: i64,
    pub state: &'static str,
    pub reason: Option<u32>,
    /// The wait that it is a part of.
    pub wait: Option<usize>,
    /// Its length, when both ends are known.
    pub whole: Option<i64>,
}

/// Passes the periods of all lives to `each`: in the window, without gaps or overlaps. Waits are
/// in the order of their threads and times, as are lives.
pub(super) fn walk(lives: &[Life], waits: &[Wait], scope: Scope, mut each: impl FnMut(Period)) {
    let mut places: HashMap<i32, (usize, usize)> = HashMap::new();
    for (i, wait) in waits.iter().enumerate() {
        places.entry(wait.tid).or_insert((i, i)).1 = i + 1;
    }
    for life in lives {
        let (first, end) = places.get(&life.tid).copied().unwrap_or_default();
        let own = waits.get(first..end).unwrap_or_default();
        of_life(life, own, first, scope, &mut each);
    }
}

struct Pen<'a> {
    life: &'a Life,
    /// The end of the last period.
    at: i64,
    until: i64,
    each: &'a mut dyn FnMut(Period),
}

impl Pen<'_> {
    fn put(&mut self, until: i64, of: StateOf, wait: Option<usize>, whole: Option<i64>) {
        let until = until.min(self.until);
        if self.at >= until {
            return;
        }
        let (state, reason) = of;
        (self.each)(Period {
            tid: self.life.tid,
            from: self.at,
            until,
            state,
            reason,
            wait,
            whole,
        });
        self.at = until;
    }
}

fn of_life(life: &Life, waits: &[Wait], first: usize, scope: Scope, each: &mut dyn FnMut(Period)) {
    let mut unknown = (life.known_from, UNSEEN_START);
    if scope.complete_from > unknown.0 {
        unknown = (scope.complete_from, DROPPED);
    }
    let mut pen = Pen {
        life,
        at: life.from.max(scope.from),
        until: life.until.min(scope.to),
        each,
    };
    if !life.has_waits {
        pen.put(i64::MAX, (UNKNOWN, Some(NO_WAITS)), None, None);
        return;
    }
    pen.put(unknown.0, (UNKNOWN, Some(unknown.1)), None, None);
    let gap = match scope.all_periods {
        true => (RUNNING, None),
        false => (UNKNOWN, Some(NOT_RECORDED)),
    };
    // The end of the wait before, from which on the thread ran.
    let mut ran_from = (life.known_from == life.from).then_some(life.from);
    let inside = |wait: &Wait| wait.begin >= life.from && wait.begin < life.until;
    let mut own = waits
        .iter()
        .enumerate()
        .filter(|(_, w)| inside(w))
        .peekable();
    let mut open = false;
    while let Some((i, wait)) = own.next() {
        let ran = ran_from
            .map(|from| wait.begin - from)
            .filter(|ran| *ran > 0);
        pen.put(wait.begin, gap, None, ran);
        let Some(dur) = wait.dur else {
            let next = own.peek().map_or(life.until, |(_, next)| next.begin);
            open = own.peek().is_none();
            pen.put(next, (UNKNOWN, Some(UNSEEN_RETURN)), Some(first + i), None);
            ran_from = None;
            continue;
        };
        let end = wait.begin.saturating_add(dur.max(0));
        let woken = match wait.reason {
            CPU => wait.begin,
            _ => end.saturating_sub(wait.queue).clamp(wait.begin, end),
        };
        let place = Some(first + i);
        let blocked = woken - wait.begin;
        pen.put(woken, (BLOCKED, Some(wait.reason)), place, Some(blocked));
        let queue = end - woken;
        pen.put(end, (RUNNABLE, Some(CPU)), place, Some(queue));
        ran_from = Some(end);
    }
    if !open && !life.goes_on {
        pen.put(i64::MAX, (UNKNOWN, Some(NOT_ENDED)), None, None);
    }
    let ran = ran_from.filter(|_| life.until <= scope.to);
    pen.put(i64::MAX, gap, None, ran.map(|from| life.until - from));
}

/// Sums of periods by thread, bucket, and state, in this order.
pub(super) struct Sums {
    from: i64,
    width: i64,
    cells: HashMap<(i32, i64, &'static str, Option<u32>), i64>,
}

impl Sums {
    pub fn new(from: i64, width: i64) -> Self {
        Self {
            from,
            width: width.max(1),
            cells: HashMap::new(),
        }
    }

    /// Divides a period among the buckets that it overlaps.
    pub fn add(&mut self, period: &Period) {
        let mut at = period.from;
        while at < period.until {
            let bucket = (at - self.from).div_euclid(self.width);
            let end = self
                .from
                .saturating_add((bucket + 1).saturating_mul(self.width));
            let until = end.min(period.until);
            let key = (period.tid, bucket, period.state, period.reason);
            *self.cells.entry(key).or_default() += until - at;
            at = until;
        }
    }

    /// Thread, bucket, state, reason, and nanoseconds.
    pub fn rows(self) -> Vec<(i32, i64, &'static str, Option<u32>, i64)> {
        let cells = self.cells.into_iter();
        let mut rows: Vec<_> = cells.map(|((a, b, c, d), ns)| (a, b, c, d, ns)).collect();
        rows.sort_unstable();
        rows
    }
}
