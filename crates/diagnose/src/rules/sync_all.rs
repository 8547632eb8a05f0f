//! `sync-all`: everything is made durable where one file would do.

use std::collections::BTreeMap;

use crate::prelude::*;

/// Calls of a thread from which on they count.
const MIN_CALLS: u64 = 10;
/// Share of the thread's time that goes into them.
const MIN_PART: f64 = 0.1;

static INFO: RuleInfo = RuleInfo {
    id: "sync-all",
    name: "All files made durable instead of one",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![SyncAll],
    about_calls: false,
    what: "A program calls sync or syncfs again and again. Both write everything that any program \
           has changed, on all file systems or on one, and wait for it: the program waits for the \
           writes of others, and all of them wait at the same time.",
    when: "One thread makes 10 or more calls of sync or syncfs that take 10 % or more of its time; \
           or processes with one name and one parent do, compared with the parent's time. A few \
           calls at the end of an installation or before a shutdown stay below.",
    cost: "half of the time of these calls; a sync of the single file also waits for the device",
    advice: "Call fsync or fdatasync on the file that has to be durable, and fsync on its directory \
           if its name is new.",
    not_when: "Not when the program has changed so many files that syncing each would take longer \
           and no other program writes much: then use one syncfs at the end.",
    bad: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    sync();\n}",
    good: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    if (i % 64 == 63)\n        \
           fdatasync(fd);\n}\nfdatasync(fd);",
    reference: "sync(2), fsync(2)",
};

#[derive(Debug, Default)]
struct Thread {
    pid: i32,
    comm: Text,
    calls: Durations,
    names: Vec<Text>,
    examples: Examples,
}

rule! {
    pub struct SyncAll {
        threads: Bounded<i32, Thread> = Bounded::new(|thread| thread.calls.count),
    }
}

impl Rule for SyncAll {
    fn call(&mut self, call: &Call, _: &Context) {
        if !call.succeeded() {
            return;
        }
        let thread = self.threads.entry(call.tid);
        thread.pid = call.pid;
        thread.comm = call.comm_text();
        thread.calls.add(call.dur_ns);
        thread.examples.add(call);
        if !thread.names.iter().any(|name| **name == *call.syscall) {
            thread.names.push(call.syscall_text());
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // Processes that one parent starts, as a script does, by their name.
        let mut of_parent: BTreeMap<(i32, &str), (Thread, Vec<i32>)> = BTreeMap::new();
        for (tid, thread) in self.threads.iter() {
            if thread.calls.count >= MIN_CALLS {
                let subject = Subject::process(thread.pid, &thread.comm);
                let subject = Subject { tid: Some(*tid), ..subject };
                let query = format!("tid = {tid}");
                out.extend(found(thread, run.lifetime_ns(thread.pid), subject, &query, run));
                continue;
            }
            let Some(parent) = run.state.process(thread.pid).and_then(|process| process.ppid) else { continue };
            let (all, pids) = of_parent.entry((parent, &thread.comm)).or_default();
            all.comm.clone_from(&thread.comm);
            all.calls.merge(&thread.calls);
            all.examples.add_all(&thread.examples);
            for name in &thread.names {
                if !all.names.contains(name) {
                    all.names.push(name.clone());
                }
            }
            pids.push(thread.pid);
        }
        for ((parent, _), (all, mut pids)) in of_parent {
            pids.sort_unstable();
            let subject = Subject {
                pid: None,
                ..Subject::process(parent, &all.comm)
            };
            let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
            let query = format!("pid IN ({})", pids.join(", "));
            out.extend(found(&all, run.lifetime_ns(parent), subject, &query, run));
        }
    }
}

/// The finding about calls that take this part of a life.
fn found(thread: &Thread, life_ns: i64, subject: Subject, whose: &str, run: &Run) -> Option<Found> {
    let calls = &thread.calls;
    let part = calls.sum_ns as f64 / life_ns.max(1) as f64;
    let cost = calls.sum_ns / 2;
    let many = calls.count >= MIN_CALLS && part >= MIN_PART && run.matters(cost);
    many.then(|| Found {
        cost_ns: Some(cost),
        title: format!(
            "{} calls {} {} times, which makes all files durable: {} of its time",
            thread.comm,
            thread.names.iter().map(Text::as_str).collect::<Vec<_>>().join(" and "),
            units::count(i64::try_from(calls.count).unwrap_or(i64::MAX)),
            units::percent(part.min(1.0)),
        ),
        subject,
        evidence: vec![
            number("syncs_of_everything", i64::try_from(calls.count).unwrap_or(i64::MAX)),
            number("median_ns", calls.median_ns()),
            evidence("share_of_thread", part.min(1.0)),
        ],
        examples: thread.examples.list(),
        query: calls!("{whose} AND syscall IN ('sync', 'syncfs')"),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_a_script_that_starts_sync_each_time() {
        let script = |times| {
            let mut s = Scenario::new();
            let began = s.now();
            for pid in 201..201 + times {
                let began = s.now();
                s.process(pid);
                s.sync();
                s.child_ends(began, 100, "sync");
            }
            s.process(100);
            s.child_ends(began, 1, "sh");
            s
        };
        fires("sync-all", script(12));
        silent("sync-all", script(5));
    }

    #[test]
    fn fires_on_a_sync_a_row() {
        let mut s = Scenario::new();
        let fd = s.open("/data/rows", "O_WRONLY|O_CREAT");
        for _ in 0..40 {
            s.write(fd, 100);
            s.sync_all();
        }
        let found = fires("sync-all", s);
        assert_eq!(found[0].evidence[0].value, 40.0);
    }

    #[test]
    fn silent_on_a_few_and_on_rare_ones() {
        let mut s = Scenario::new();
        let fd = s.open("/data/rows", "O_WRONLY|O_CREAT");
        for _ in 0..3 {
            s.write(fd, 100);
            s.sync_all();
        }
        s.process(200);
        let fd = s.open("/data/more", "O_WRONLY|O_CREAT");
        for _ in 0..40 {
            s.write(fd, 100);
            s.sync_all();
            s.wait_ms(50);
        }
        silent("sync-all", s);
    }
}
