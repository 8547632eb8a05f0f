//! Which programs have requests in the queue of a device while it serves other programs.

use hashbrown::HashMap;
use serde::Serialize;

/// Requests of an interval that are looked at; the rest of a busier one is left out.
const MAX_REQUESTS: usize = 1 << 17;
/// Pairs of a frame.
const MAX_HOLDUPS: usize = 8;

/// A program that waits for a device that serves another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Holdup {
    pub device: String,
    pub waiting: String,
    pub behind: String,
    /// Share of the interval in which a request of the one waited while the device had requests
    /// of the other: 1 at most.
    pub share: f64,
}

/// A request to a device; times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub device: u32,
    /// Name of the program.
    pub owner: u32,
    pub queued_at_ns: i64,
    pub issued_at_ns: i64,
    pub completed_at_ns: i64,
}

/// Requests of this interval, and of the one before, for which requests of this one may have waited.
#[derive(Default)]
pub struct Queues {
    now: Vec<Request>,
    before: Vec<Request>,
}

/// The change at a time. In this order at the same time, so that a request that ends when
/// another one begins does not hold it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Completed,
    Issued,
    Queued,
    Served,
}

impl Queues {
    pub fn add(&mut self, request: Request) {
        if self.now.len() < MAX_REQUESTS {
            self.now.push(request);
        }
    }

    /// Device, who waited and behind whom, with the nanoseconds, most first; then the next interval
    /// begins.
    pub fn cut(&mut self) -> Vec<(u32, u32, u32, i64)> {
        let mut changes: Vec<(u32, i64, Change, u32)> = Vec::new();
        for (requests, wait) in [(&self.before, false), (&self.now, true)] {
            for r in requests {
                if wait && r.issued_at_ns > r.queued_at_ns {
                    changes.push((r.device, r.queued_at_ns, Change::Queued, r.owner));
                    changes.push((r.device, r.issued_at_ns, Change::Issued, r.owner));
                }
                if r.completed_at_ns > r.issued_at_ns {
                    changes.push((r.device, r.issued_at_ns, Change::Served, r.owner));
                    changes.push((r.device, r.completed_at_ns, Change::Completed, r.owner));
                }
            }
        }
        self.before = std::mem::take(&mut self.now);
        changes.sort_unstable();
        let mut held: HashMap<(u32, u32, u32), i64> = HashMap::new();
        let (mut waiting, mut served): (HashMap<u32, u64>, HashMap<u32, u64>) = Default::default();
        let mut last = (u32::MAX, 0);
        for (device, ns, change, owner) in changes {
            if device == last.0 && ns > last.1 {
                for victim in waiting.keys() {
                    for other in served.keys().filter(|other| *other != victim) {
                        *held.entry((device, *victim, *other)).or_default() += ns - last.1;
                    }
                }
            }
            last = (device, ns);
            let (counts, more) = match change {
                Change::Queued => (&mut waiting, true),
                Change::Issued => (&mut waiting, false),
                Change::Served => (&mut served, true),
                Change::Completed => (&mut served, false),
            };
            let count = counts.entry(owner).or_default();
            *count = if more {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
            if *count == 0 {
                counts.remove(&owner);
            }
        }
        let mut held: Vec<_> = held
            .into_iter()
            .map(|((d, w, b), ns)| (d, w, b, ns))
            .collect();
        held.sort_unstable_by_key(|(d, w, b, ns)| (std::cmp::Reverse(*ns), *d, *w, *b));
        held.truncate(MAX_HOLDUPS);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(owner: u32, queued_at_ns: i64, issued_at_ns: i64, completed_at_ns: i64) -> Request {
        Request {
            device: 1,
            owner,
            queued_at_ns,
            issued_at_ns,
            completed_at_ns,
        }
    }

    #[test]
    fn a_program_waits_behind_another_one() {
        let mut queues = Queues::default();
        queues.add(request(7, 0, 0, 100));
        queues.add(request(7, 0, 10, 150));
        queues.add(request(8, 20, 150, 160));
        // 7 waits for itself alone; 8 for 7, whose two requests count once.
        assert_eq!(queues.cut(), [(1, 8, 7, 130)]);
        // The interval before holds up, and does not wait again.
        queues.add(request(9, 120, 155, 170));
        assert_eq!(queues.cut(), [(1, 9, 7, 30), (1, 9, 8, 5)]);
        queues.cut();
        assert_eq!(queues.cut(), []);
    }

    #[test]
    fn other_devices_and_times_hold_nobody_up() {
        let mut queues = Queues::default();
        queues.add(request(7, 0, 0, 100));
        queues.add(Request {
            device: 2,
            ..request(8, 0, 50, 60)
        });
        queues.add(request(8, 100, 120, 130));
        assert_eq!(queues.cut(), []);
    }
}
