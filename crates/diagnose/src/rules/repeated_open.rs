//! `repeated-open`: one process opens the same file again and again.

use crate::prelude::*;

/// Opens a second, in the busiest second.
const MIN_RATE: u32 = 10;
const MIN_OPENS: u64 = 20;
/// Uses of an opening above which it is the lesser part of the work.
const MAX_USES: f64 = 16.0;
/// Share of the recorded time from which on it is worth a descriptor that is kept: a file that is opened
/// again is the newest one, and a name that is not held can be renamed, removed and mounted over.
const MIN_COST: f64 = 0.03;
const SECOND_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "repeated-open",
    name: "File opened again and again",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Close, Read, Write, Transfer, Mmap, Stat, Seek, Ioctl],
    about_calls: false,
    what: "A process opens one file many times per second, uses it for one or two calls, and closes \
           it. Each time the kernel looks up the path, checks permissions, and creates a file \
           description; in a log, each line costs open, write, and close.",
    when: "One process opens one regular file (or one of /proc, /sys, and the like) 20 or more times, 10 or more of them within a second, \
           with 16 uses or fewer per open on average: reads, writes, mappings, and copies by the \
           kernel (sendfile, splice, copy_file_range). With more uses, opening is the smaller part \
           of the work. Silent below 3 % of the recorded time, because opening again has the \
           advantage of finding the newest file. A program that rereads its configuration every \
           second stays below.",
    cost: "all opens and closes of the file except the first, plus the calls on each descriptor \
           before its first use (fstat, lseek, ioctl)",
    advice: "Keep the descriptor open: open once, write or pread through it, close at the end; for \
           a log that is rotated, open again on a signal or when stat shows another inode.",
    not_when: "Not when another process replaces the file between uses and the program needs the \
           newest one.",
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
    appending: u64,
    /// Reads, writes, mappings and copies in between.
    uses: u64,
    open: Durations,
    close_ns: i64,
    asked_ns: i64,
    first_at_ns: i64,
    examples: Examples,
}

rule! {
    pub struct RepeatedOpen {
        files: Bounded<(i32, FileId), Openings> = Bounded::new(|openings| openings.opens),
    }
}

impl Rule for RepeatedOpen {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        let Some(file) = call.file else { return };
        if call.kind != Kind::Open {
            if let Some(openings) = self.files.get_mut(&(call.pid, file)) {
                match call.kind {
                    Kind::Close => openings.close_ns += call.dur_ns,
                    Kind::Stat | Kind::Seek | Kind::Ioctl => {
                        // Libraries do so once they have opened a file.
                        let opened = context.open().is_some_and(|open| open.ios == 0 && open.opened.is_some());
                        if opened && openings.opens > 1 {
                            openings.asked_ns += call.dur_ns;
                        }
                    }
                    _ => openings.uses += 1,
                }
            }
            return;
        }
        // Also one that the kernel makes up.
        let regular = context.file(call).is_some_and(|file| &*file.file_type == "regular");
        if !regular || call.has_flag("O_PATH") {
            return;
        }
        let openings = self.files.entry((call.pid, file));
        if openings.opens == 0 {
            openings.comm = call.comm_text();
            openings.first_at_ns = call.dur_ns;
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
            let cost = openings.open.sum_ns - openings.first_at_ns + openings.close_ns + openings.asked_ns;
            let uses = openings.uses as f64 / openings.opens.max(1) as f64;
            let often = openings.opens >= MIN_OPENS && openings.most >= MIN_RATE;
            if !often || uses > MAX_USES || !run.matters_from(cost, MIN_COST) {
                continue;
            }
            let state = run.state.files.get(*file);
            let path = state.map_or("", |f| f.name());
            let made_up = state.is_some_and(|f| !f.is_regular());
            let opens = openings.opens as i64;
            let log = openings.appending * 2 > openings.opens;
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Open, Kind::Close, Kind::Stat, Kind::Seek, Kind::Ioctl]),
                title: format!(
                    "{} opens {path} {} times, up to {} times per second{}, {}",
                    openings.comm,
                    units::count(opens),
                    units::count(i64::from(openings.most)),
                    if log { " to append to it" } else { "" },
                    used(openings.uses as i64, uses),
                ),
                subject: Subject::process(*pid, &openings.comm).with_file(*file, path),
                evidence: vec![
                    number("opens", opens),
                    number("opens_in_one_second", i64::from(openings.most)),
                    number("opens_to_append", openings.appending as i64),
                    number("reads_and_writes", openings.uses as i64),
                    number("median_open_ns", openings.open.median_ns()),
                ],
                examples: openings.examples.list(),
                advice: made_up.then(|| {
                    "Keep the descriptor open and read from the beginning again (pread at offset 0), for which the kernel \
                     makes the contents again; or ask once for each process or device, and remember the answer."
                        .to_owned()
                }),
                query: calls!("pid = {pid} AND file_id = {file} AND syscall IN ('open', 'openat', 'openat2', 'creat', 'close')"),
                ..Found::default()
            });
        }
    }
}

/// The uses of the openings.
fn used(all: i64, each: f64) -> String {
    match all {
        0 => "and neither reads nor writes it".to_owned(),
        _ if each < 0.95 => format!("for {} in all", counted(all, "read or write", "reads and writes")),
        _ if each < 1.05 => "for one read or write each".to_owned(),
        _ => format!("for {each:.1} reads and writes each"),
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn files_that_cost_little_each_are_a_finding_together() {
        let run = |files: usize| {
            let mut s = Scenario::new();
            for i in 0..3000 {
                let fd = s.open(&format!("/data/{}.log", i % 40), "O_WRONLY|O_CREAT|O_APPEND");
                // Of the other files each opening is for much.
                for _ in 0..if i % 40 < files { 1 } else { 50 } {
                    s.write(fd, 80);
                }
                s.close(fd);
            }
            s
        };
        assert_eq!(fires("repeated-open", run(40)).len(), 1);
        silent("repeated-open", run(1));
    }

    #[test]
    fn fires_on_a_log_opened_for_each_line() {
        let mut s = Scenario::new();
        for _ in 0..100 {
            let fd = s.open("/var/log/app", "O_WRONLY|O_CREAT|O_APPEND");
            s.write(fd, 80);
            s.close(fd);
            s.wait_us(20);
        }
        let found = fires("repeated-open", s);
        assert_eq!(found[0].evidence[2].value, 100.0);
        assert!(found[0].title.ends_with(" to append to it, for one read or write each"), "{}", found[0].title);
    }

    /// The C library's fstat takes a descriptor and an empty path.
    #[test]
    fn what_is_asked_of_a_descriptor_before_its_first_use_counts() {
        let cost = |by| fires("repeated-open", serve(by))[0].cost_ns.unwrap();
        let asked = cost(|s, fd| {
            s.fstat(fd);
            s.read(fd, 100);
            s.fstat(fd);
        });
        let unasked = cost(|s, fd| {
            s.read(fd, 100);
            s.fstat(fd);
        });
        let each = (asked - unasked) / 199;
        assert!(each > 0 && (asked - unasked) % 199 == 0, "{asked} {unasked}");
    }

    /// A page that is opened for each of 200 requests.
    fn serve(by: fn(&mut Scenario, i32)) -> Scenario {
        let mut s = Scenario::new();
        for _ in 0..200 {
            let fd = s.open_existing("/www/a.html", "O_RDONLY", 4096);
            by(&mut s, fd);
            s.close(fd);
        }
        s
    }

    #[test]
    fn copies_by_the_kernel_and_mappings_are_uses() {
        let title = |by: fn(&mut Scenario, i32)| fires("repeated-open", serve(by))[0].title.clone();
        let sent = title(|s, fd| s.sendfile(fd, 4096));
        assert!(sent.ends_with(", for one read or write each"), "{sent}");
        let mapped = title(|s, fd| s.mmap(fd));
        assert!(mapped.ends_with(", for one read or write each"), "{mapped}");
        let unused = title(|_, _| {});
        assert!(unused.ends_with(", and neither reads nor writes it"), "{unused}");
    }

    #[test]
    fn what_is_copied_to_is_used() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/in", "O_RDONLY", 1 << 20);
        for _ in 0..100 {
            let to = s.open("/data/out", "O_WRONLY");
            s.copy_range(from, to, 4096);
            s.copy_range(from, to, 4096);
            s.close(to);
        }
        let found = fires("repeated-open", s);
        assert!(found[0].title.ends_with(", for 2.0 reads and writes each"), "{}", found[0].title);
    }

    #[test]
    fn silent_when_much_is_done_with_each_opening() {
        silent("repeated-open", serve(|s, fd| (0..17).for_each(|_| s.read(fd, 100))));
    }

    #[test]
    fn files_of_proc_are_asked_with_the_descriptor_kept() {
        let found = fires("repeated-open", {
            let mut s = Scenario::new();
            s.fs_type("proc");
            for _ in 0..200 {
                let fd = s.open_existing("/proc/77/cmdline", "O_RDONLY", 0);
                s.read(fd, 40);
                s.close(fd);
            }
            s
        });
        assert!(found[0].advice.contains("pread at offset 0"), "{}", found[0].advice);
    }

    #[test]
    fn silent_on_many_files() {
        let mut s = Scenario::new();
        for i in 0..500 {
            let fd = s.open_existing(&format!("/src/{i}"), "O_RDONLY", 4096);
            s.read(fd, 4096);
            s.close(fd);
        }
        silent("repeated-open", s);
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
        silent("repeated-open", s);
    }
}
