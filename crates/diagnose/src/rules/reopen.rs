//! `reopen`: one process opens the same file again and again.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Costs, Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::stats::Durations;
use crate::text::Text;

/// Opens a second, in the busiest second.
const MIN_RATE: u32 = 10;
/// Opens in all.
const MIN_OPENS: u64 = 20;
const SECOND_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "reopen",
    name: "File opened again and again",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: false,
    what: "A process opens one file many times a second, uses it for a call or two and closes it. The \
           path is looked up, the rights are checked and the description is made each time; with a log, \
           each line costs open, write and close.",
    when: "20 or more opens of one regular file by one process, 10 or more of them within a second. A \
           program that reads its configuration anew every second stays below.",
    lost: "opens and closes of the file but the first, as long as they took",
    advice: "Keep the descriptor open: open once, write or pread through it, close at the end; for a log \
             that is rotated, open again on a signal or when stat shows another inode.",
    not_when: "Not when another process replaces the file between uses and the newest is wanted.",
    bad: "void log_line(const char *line) {\n    int fd = open(path, O_APPEND | O_WRONLY | O_CREAT, 0644);\n    \
          write(fd, line, strlen(line));\n    close(fd);\n}",
    good: "static int fd = -1;\nvoid log_line(const char *line) {\n    if (fd < 0)\n        \
           fd = open(path, O_APPEND | O_WRONLY | O_CREAT, 0644);\n    write(fd, line, strlen(line));\n}",
    reference: "DIO, section II: Redis opens its log for every message",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Openings {
    comm: Text,
    opens: u64,
    /// The second of the last open, opens in it, most in any.
    second: i64,
    in_second: u32,
    most: u32,
    /// Opens with O_APPEND.
    appending: u64,
    /// Reads and writes in between.
    ios: u64,
    open: Durations,
    close_ns: i64,
    first_ns: i64,
    examples: Examples,
}

/// The rule's state.
#[derive(Debug)]
pub struct Reopen {
    files: Bounded<(i32, FileId), Openings>,
}

impl Default for Reopen {
    fn default() -> Self {
        Self {
            files: Bounded::new(|openings| openings.opens),
        }
    }
}

impl Rule for Reopen {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Open, Kind::Close, Kind::Read, Kind::Write])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        if call.kind != Kind::Open {
            if let Some(openings) = self.files.get_mut(&(call.pid, file)) {
                match call.kind {
                    Kind::Close => openings.close_ns += call.dur_ns,
                    _ => openings.ios += 1,
                }
            }
            return;
        }
        let regular = context.file(call).is_some_and(|file| file.is_regular());
        if !regular || call.has_flag("O_PATH") {
            return;
        }
        let openings = self.files.entry((call.pid, file));
        if openings.opens == 0 {
            openings.comm = call.comm_text();
            openings.first_ns = call.dur_ns;
        }
        openings.opens += 1;
        openings.open.add(call.dur_ns);
        openings.appending += u64::from(call.has_flag("O_APPEND"));
        openings.examples.add(call);
        let second = call.ts_ns.div_euclid(SECOND_NS);
        if second != openings.second {
            openings.second = second;
            openings.in_second = 0;
        }
        openings.in_second += 1;
        openings.most = openings.most.max(openings.in_second);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), openings) in self.files.iter() {
            let lost = openings.open.sum_ns - openings.first_ns + openings.close_ns;
            if openings.opens < MIN_OPENS || openings.most < MIN_RATE || !run.matters(lost) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let opens = openings.opens as i64;
            let log = openings.appending * 2 > openings.opens;
            out.push(Found {
                lost_ns: Some(lost),
                costs: Costs::of(&[Kind::Open, Kind::Close]),
                title: format!(
                    "{} opens {path} {} times, up to {} times a second{}, for {:.1} reads and writes each",
                    openings.comm,
                    units::count(opens),
                    openings.most,
                    if log { " to append to it" } else { "" },
                    openings.ios as f64 / openings.opens as f64,
                ),
                subject: Subject::process(*pid, &openings.comm).with_file(*file, path),
                evidence: vec![
                    number("opens", opens),
                    number("opens_in_one_second", i64::from(openings.most)),
                    number("opens_to_append", openings.appending as i64),
                    number("reads_and_writes", openings.ios as i64),
                    number("median_open_ns", openings.open.median_ns()),
                ],
                examples: openings.examples.list(),
                query: sql::calls(&format!(
                    "pid = {pid} AND file_id = {} AND syscall IN ('open', 'openat', 'openat2', 'creat', 'close')",
                    file.0
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
    fn fires_on_a_log_opened_for_each_line() {
        let mut s = Scenario::new();
        for _ in 0..100 {
            let fd = s.open("/var/log/app", "O_WRONLY|O_CREAT|O_APPEND");
            s.write(fd, 80);
            s.close(fd);
            s.wait_us(20);
        }
        let found = fires("reopen", s);
        assert_eq!(found[0].evidence[2].value, 100.0);
    }

    #[test]
    fn silent_on_many_files() {
        let mut s = Scenario::new();
        for i in 0..500 {
            let fd = s.open_existing(&format!("/src/{i}"), "O_RDONLY", 4096);
            s.read(fd, 4096);
            s.close(fd);
        }
        silent("reopen", s);
    }

    #[test]
    fn silent_once_a_second() {
        let mut s = Scenario::new();
        for _ in 0..60 {
            let fd = s.open_existing("/etc/app.conf", "O_RDONLY", 4096);
            s.read(fd, 4096);
            s.close(fd);
            s.wait_ms(1000);
        }
        silent("reopen", s);
    }
}
