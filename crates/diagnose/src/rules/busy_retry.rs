//! `busy-retry`: the same call fails again and again, without a pause.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::Call;
use crate::finding::{Examples, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text::Text;

/// Failures in a row.
const MIN_FAILURES: u64 = 100;
/// Longest pause between two of them, nanoseconds.
const MAX_GAP_NS: i64 = 50_000;

static INFO: RuleInfo = RuleInfo {
    id: "busy-retry",
    name: "Trying again without waiting",
    group: Group::Correctness,
    needs: &[Input::Calls],
    about_calls: false,
    what: "A thread repeats a call that fails with EAGAIN, EINTR or EBUSY at once, hundreds of times: it burns a processor \
           while it waits, and starves what it waits for.",
    when: "100 or more failures in a row of one call on one descriptor by one thread with one of these errors, no \
           more than 50 microseconds apart: less than a poll with a time-out or a sleep would take.",
    cost: "from the first failure of each row to the last",
    advice: "Wait for the descriptor with poll, epoll or io_uring, or let the call block; for locks use F_SETLKW or flock \
             without LOCK_NB.",
    not_when: "",
    bad: "while (read(fd, buffer, n) < 0 && errno == EAGAIN)\n    ;",
    good: "while (read(fd, buffer, n) < 0 && errno == EAGAIN)\n    poll(&(struct pollfd){fd, POLLIN}, 1, -1);",
    reference: "poll(2)",
};

/// One thread on one descriptor.
#[derive(Debug, Default)]
struct Spin {
    pid: i32,
    comm: Text,
    kind: Option<Kind>,
    syscall: Text,
    errno: String,
    file_id: Option<i64>,
    path: Text,
    /// The row that goes on.
    row: u64,
    began_ns: i64,
    last_at_ns: i64,
    first: Examples,
    /// Rows that were long enough.
    rows: u64,
    failures: u64,
    cost_ns: i64,
    examples: Examples,
}

impl Spin {
    fn end(&mut self) {
        if self.row >= MIN_FAILURES {
            self.rows += 1;
            self.failures += self.row;
            self.cost_ns += self.last_at_ns - self.began_ns;
            if self.examples.list().is_empty() {
                self.examples = std::mem::take(&mut self.first);
            }
        }
        self.row = 0;
        self.first = Examples::default();
    }

    /// Rows, failures, time, with the row that goes on.
    fn total(&self) -> (u64, u64, i64) {
        if self.row < MIN_FAILURES {
            return (self.rows, self.failures, self.cost_ns);
        }
        (
            self.rows + 1,
            self.failures + self.row,
            self.cost_ns + self.last_at_ns - self.began_ns,
        )
    }
}

/// The rule's state.
#[derive(Debug)]
pub struct BusyRetry {
    spins: Bounded<(i32, i32), Spin>,
}

impl Default for BusyRetry {
    fn default() -> Self {
        Self {
            spins: Bounded::new(|spin| spin.failures + spin.row),
        }
    }
}

impl Rule for BusyRetry {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn call(&mut self, call: &Call, _: &Context) {
        let Some(fd) = call.fd.filter(|_| !call.operation) else { return };
        let key = (call.tid, fd);
        let errno = call.errno.filter(|e| matches!(*e, "EAGAIN" | "EINTR" | "EBUSY" | "EWOULDBLOCK"));
        let Some(errno) = errno else {
            if let Some(spin) = self.spins.get_mut(&key) {
                spin.end();
            }
            return;
        };
        let spin = self.spins.entry(key);
        let goes_on = spin.row > 0
            && spin.kind == Some(call.kind)
            && spin.errno == errno
            && call.ts_ns - spin.last_at_ns <= MAX_GAP_NS;
        if !goes_on {
            spin.end();
            spin.kind = Some(call.kind);
            spin.began_ns = call.ts_ns;
            if spin.rows == 0 {
                spin.errno = errno.to_owned();
                spin.syscall = call.syscall_text();
                spin.pid = call.pid;
                spin.comm = call.comm_text();
                spin.file_id = call.file.map(|file| file.0);
                spin.path = call.path_text();
            }
        }
        spin.row += 1;
        spin.last_at_ns = call.ended_at_ns();
        spin.first.add_first(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((tid, fd), spin) in self.spins.iter() {
            let (rows, failures, cost) = spin.total();
            if rows == 0 {
                continue;
            }
            let share = cost as f64 / run.span_ns.max(1) as f64;
            let name = match spin.path.as_str() {
                "" => format!("descriptor {fd}"),
                path => path.to_owned(),
            };
            out.push(Found {
                severity: Some(if share >= 0.1 { Severity::High } else { Severity::Medium }),
                cost_ns: Some(cost),
                title: format!(
                    "{} repeats {} on {name} {} times after {} without waiting",
                    spin.comm,
                    spin.syscall,
                    units::count(failures as i64),
                    spin.errno,
                ),
                subject: Subject {
                    tid: Some(*tid),
                    file_id: spin.file_id,
                    path: Some(spin.path.to_string()).filter(|path| !path.is_empty()),
                    ..Subject::process(spin.pid, &spin.comm)
                },
                evidence: vec![number("failures", failures as i64), number("rows", rows as i64)],
                examples: match rows {
                    1 if spin.rows == 0 => spin.first.list(),
                    _ => spin.examples.list(),
                },
                query: sql::calls(&format!(
                    "tid = {tid} AND fd = {fd} AND errno = {}",
                    sql::quote(&spin.errno)
                )),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_a_busy_loop() {
        let mut s = Scenario::new();
        let fd = s.open("/dev/source", "O_RDONLY|O_NONBLOCK");
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
        }
        let found = fires("busy-retry", s);
        assert_eq!(found[0].evidence[0].value, 500.0);
    }

    #[test]
    fn silent_with_a_pause_or_progress() {
        let mut s = Scenario::new();
        let fd = s.open("/dev/source", "O_RDONLY|O_NONBLOCK");
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
            s.wait_us(200);
        }
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
            s.read(fd, 100);
        }
        silent("busy-retry", s);
    }
}
