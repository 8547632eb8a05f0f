//! `lock-by-polling`: processes wait for a lock by trying to make its name again and again.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::Call;
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Costs, Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text::Text;

/// Attempts that fail.
const MIN_FAILURES: u64 = 100;
/// Times that the name was removed while others had tried to make it.
const MIN_RELEASES: u64 = 3;
/// Longest time from the removal to the next success that counts, nanoseconds: whoever takes longer has given up.
const MAX_GAP_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "lock-by-polling",
    name: "Lock that is waited for by polling",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: false,
    what: "Several processes use a name as a lock: who can make it (mkdir, open with O_EXCL, link, symlink) has the lock, and the others try again and again until it is removed. Each attempt costs calls, often a process; \
           after each release nobody has the lock until the next attempt; and the name stays when its maker is killed.",
    when: "100 or more attempts to make one name failed with EEXIST, of several processes, and the name was made and removed 3 times or more while others had tried. Calls that \
           only find what is there already (mkdir -p) have no removal.",
    cost: "the failed calls, and the time from each removal to the next success, of those up to a second before which an attempt had failed",
    advice: "Open a lock file once and call flock on it, which waits and returns as soon as the lock is free; the kernel releases it when its holder ends. In a shell: `flock lockfile command`.",
    not_when: "Not on file systems without such locks, as some network ones are.",
    bad: "while ! mkdir lock 2>/dev/null; do\n    sleep 0.01\ndone\nwork\nrmdir lock",
    good: "(\n    flock 9\n    work\n) 9>lock",
    reference: "flock(2), flock(1), mkdir(2)",
};

/// One name.
#[derive(Debug, Default)]
struct Lock {
    path: Text,
    pid: i32,
    comm: Text,
    failures: u64,
    failed_ns: i64,
    pids: Vec<i32>,
    /// Whether an attempt failed since the name was made last.
    waited: bool,
    removed_at_ns: Option<i64>,
    releases: u64,
    idle_ns: i64,
    examples: Examples,
}

/// Processes that are told from each other.
const MAX_PIDS: usize = 64;

/// The rule's state.
#[derive(Debug)]
pub struct LockByPolling {
    names: Bounded<u64, Lock>,
}

impl Default for LockByPolling {
    fn default() -> Self {
        Self {
            names: Bounded::new(|lock| lock.failures),
        }
    }
}

impl Rule for LockByPolling {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        use Kind::*;
        Kinds::of(&[Mkdir, Open, Link, Symlink, Unlink, Rmdir, Rename])
    }

    fn call(&mut self, call: &Call, _: &Context) {
        let (path, key) = match call.kind {
            Kind::Link | Kind::Symlink => (call.path2, call.path2_key()),
            _ => (call.path, call.path_key()),
        };
        let Some((path, key)) = path.zip(key) else { return };
        let makes = match call.kind {
            Kind::Open => call.has_flag("O_EXCL") && call.has_flag("O_CREAT"),
            Kind::Mkdir | Kind::Link | Kind::Symlink => true,
            _ => false,
        };
        if makes && call.failed_with("EEXIST") {
            let lock = self.names.entry(key);
            if lock.failures == 0 {
                lock.path = path.into();
                (lock.pid, lock.comm) = (call.pid, call.comm_text());
            }
            lock.failures += 1;
            lock.failed_ns += call.dur_ns;
            lock.waited = true;
            lock.examples.add(call);
            if lock.pids.len() < MAX_PIDS && !lock.pids.contains(&call.pid) {
                lock.pids.push(call.pid);
            }
            return;
        }
        if !call.succeeded() {
            return;
        }
        let Some(lock) = self.names.get_mut(&key) else { return };
        if makes {
            let free = lock.removed_at_ns.take().map(|at| call.ended_at_ns() - at);
            lock.idle_ns += free.filter(|ns| (0..=MAX_GAP_NS).contains(ns)).unwrap_or(0);
            lock.waited = false;
        } else if matches!(call.kind, Kind::Unlink | Kind::Rmdir | Kind::Rename) && std::mem::take(&mut lock.waited) {
            lock.releases += 1;
            lock.removed_at_ns = Some(call.ended_at_ns());
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (_, lock) in self.names.iter() {
            let cost = lock.failed_ns.saturating_add(lock.idle_ns);
            let polled = lock.failures >= MIN_FAILURES && lock.releases >= MIN_RELEASES && lock.pids.len() > 1;
            if !polled || !run.matters(cost) {
                continue;
            }
            let failures = i64::try_from(lock.failures).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} and others poll for the lock {}: {} attempts fail with EEXIST, and it is free for {} before one of them notices",
                    lock.comm,
                    lock.path,
                    units::count(failures),
                    units::duration(lock.idle_ns),
                ),
                subject: Subject {
                    comm: (!lock.comm.is_empty()).then(|| lock.comm.to_string()),
                    ..Subject::default()
                }
                .with_path(&lock.path),
                evidence: vec![
                    number("failures", failures),
                    number("releases", i64::try_from(lock.releases).unwrap_or(i64::MAX)),
                    number("idle_ns", lock.idle_ns),
                    number("failed_ns", lock.failed_ns),
                ],
                examples: lock.examples.list(),
                query: sql::calls(&format!("{path} IN (path, path2)", path = sql::quote(&lock.path))),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Two processes that take the lock by turns; each tries so often before it gets it.
    fn locks(tries: usize, turns: i32, removes: bool) -> Scenario {
        let mut s = Scenario::new();
        for turn in 0..turns {
            s.process(100 + turn % 2);
            s.mkdir("/data/lock", None);
            s.process(100 + (turn + 1) % 2);
            for _ in 0..tries {
                s.wait_us(100);
                s.mkdir("/data/lock", Some("EEXIST"));
            }
            if removes {
                s.process(100 + turn % 2);
                s.rmdir("/data/lock");
                s.wait_us(50);
            }
        }
        s
    }

    #[test]
    fn fires_on_a_directory_that_several_wait_for() {
        let found = fires("lock-by-polling", locks(10, 20, true));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[0].value, 200.0);
        // From each removal but the last to the next success.
        assert_eq!(found[0].evidence[2].value, 19.0 * 51_500.0);
    }

    #[test]
    fn silent_on_names_that_stay_on_few_attempts_and_on_one_process() {
        silent("lock-by-polling", locks(10, 20, false));
        silent("lock-by-polling", locks(2, 20, true));
        let mut s = Scenario::new();
        for _ in 0..20 {
            s.mkdir("/data/parts", None);
            (0..10).for_each(|_| s.mkdir("/data/parts", Some("EEXIST")));
            s.rmdir("/data/parts");
        }
        silent("lock-by-polling", s);
    }
}
