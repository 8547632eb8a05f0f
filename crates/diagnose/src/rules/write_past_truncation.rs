//! `write-past-truncation`: a file is emptied while a process writes to it at its old position.

use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "write-past-truncation",
    name: "Write beyond the end of a truncated file",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Truncate, Write],
    about_calls: true,
    what: "A process truncates a file that it or another process has open, and the writer continues \
           at its old position. Its next write leaves a hole from the new end to this position, \
           which reads as zero bytes. Logs rotated by copy and truncate (logrotate's \
           `copytruncate`) end up this way: they have their old length again, and tools treat them \
           as binary.",
    when: "A process truncated a regular file (truncate, ftruncate, O_TRUNC), and the next write of \
           any process, at the position where its last read or write had ended and without \
           O_APPEND, started beyond the new end of the file. A process that moves its position \
           (lseek) or gives the offset itself (pwrite) intends that place.",
    cost: "",
    advice: "Truncating a file does not move positions in it: also move to its start (`seek(0)`). \
           Open log files with O_APPEND, so that each write goes to the current end; or rotate \
           them by rename and have the writer open the new file on a signal.",
    not_when: "",
    bad: "fd = open(\"log\", O_WRONLY | O_CREAT, 0644);\nwrite(fd, line, n);\n/* logrotate: ftruncate(\"log\", 0) */\nwrite(fd, line, n);",
    good: "fd = open(\"log\", O_WRONLY | O_CREAT | O_APPEND, 0644);\nwrite(fd, line, n);\n/* logrotate: ftruncate(\"log\", 0) */\nwrite(fd, line, n);",
    reference: "logrotate(8), copytruncate; open(2), O_APPEND",
};

/// One file.
#[derive(Debug, Default)]
struct Cut {
    /// The process that cut it last, and the call.
    by: i32,
    by_comm: Text,
    /// The one before the first hole.
    first_by: i32,
    first_by_comm: Text,
    example: Option<Example>,
    pid: i32,
    comm: Text,
    holes: u64,
    bytes: i64,
    examples: Examples,
}

rule! {
    pub struct WritePastTruncation {
        files: Bounded<FileId, Cut> = Bounded::new(|cut| cut.holes),
    }
}

impl Rule for WritePastTruncation {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file.filter(|_| call.succeeded()) else { return };
        if call.kind == Kind::Truncate || call.kind == Kind::Open && call.has_flag("O_TRUNC") {
            let cut = self.files.entry(id);
            (cut.by, cut.by_comm) = (call.pid, call.comm_text());
            cut.example = Some(Example::of(call));
            return;
        }
        if call.kind != Kind::Write || call.positional {
            return;
        }
        let Some(cut) = self.files.get_mut(&id) else { return };
        let Some((start, _)) = call.range() else { return };
        let stays = context.open().is_some_and(|open| open.end == Some(start) && open.opened_with("O_APPEND") != Some(true));
        let Some(file) = context.file(call).filter(|file| file.is_regular()) else { return };
        let hole = start - file.size.unwrap_or(i64::MAX);
        if !stays || hole <= 0 {
            return;
        }
        // One hole a truncation.
        let Some(example) = cut.example.take() else { return };
        if cut.holes == 0 {
            (cut.pid, cut.comm) = (call.pid, call.comm_text());
            (cut.first_by, cut.first_by_comm) = (cut.by, cut.by_comm.clone());
            cut.examples.keep(example);
        }
        cut.holes += 1;
        cut.bytes = cut.bytes.saturating_add(hole);
        cut.examples.add_first(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (id, cut) in self.files.iter().filter(|(_, cut)| cut.holes > 0) {
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            out.push(Found {
                severity: Some(Severity::Medium),
                title: format!(
                    "{} continues to write to {path} at its old position after {} truncated it, {}: this leaves {} of zero bytes",
                    cut.comm,
                    match *cut.first_by_comm == *cut.comm {
                        _ if cut.first_by == cut.pid => "it".to_owned(),
                        true => format!("process {}", cut.first_by),
                        false => cut.first_by_comm.to_string(),
                    },
                    times(cut.holes as i64),
                    units::bytes(cut.bytes),
                ),
                subject: Subject::process(cut.pid, &cut.comm).with_file(*id, path),
                evidence: vec![number("holes", cut.holes as i64), number("bytes_of_holes", cut.bytes)],
                examples: cut.examples.list(),
                query: calls!("file_id = {id} AND (call_writes(syscall) OR syscall IN ('ftruncate', 'open', 'openat', 'creat')) \
                     OR syscall = 'truncate' AND path = {}", sql::quote(path)),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A log that another process empties: by its path, or by a descriptor.
    fn rotated(flags: &str, by: i32, then: impl FnOnce(&mut Scenario, i32)) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/log/app", flags);
        for _ in 0..10 {
            s.write(fd, 100);
        }
        s.process(by);
        let other = s.open("/log/app", "O_RDWR");
        s.truncate(other, 0);
        s.close(other);
        s.process(100);
        then(&mut s, fd);
        s
    }

    #[test]
    fn fires_on_the_old_position() {
        let s = rotated("O_WRONLY|O_CREAT", 200, |s, fd| (0..5).for_each(|_| s.write(fd, 100)));
        let found = fires("write-past-truncation", s);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (1.0, 1000.0));
        assert_eq!(
            found[0].title,
            "program continues to write to /log/app at its old position after process 200 truncated it, once: this leaves 1000 B of zero bytes"
        );
        assert_eq!(found[0].examples[0].syscall.as_str(), "ftruncate");
    }

    #[test]
    fn fires_on_what_the_writer_truncates_itself() {
        let mut s = Scenario::new();
        let fd = s.open("/data/state", "O_WRONLY|O_CREAT");
        for _ in 0..3 {
            s.write(fd, 100);
            s.truncate(fd, 0);
        }
        s.write(fd, 100);
        let found = fires("write-past-truncation", s);
        assert_eq!(
            found[0].title,
            "program continues to write to /data/state at its old position after it truncated it, 3 times: this leaves 600 B of zero bytes"
        );
    }

    #[test]
    fn silent_when_it_moves_gives_the_offset_or_appends() {
        silent("write-past-truncation", rotated("O_WRONLY|O_CREAT", 200, |s, fd| {
            s.lseek(fd, 0);
            s.write(fd, 100);
        }));
        silent("write-past-truncation", rotated("O_WRONLY|O_CREAT", 200, |s, fd| s.pwrite(fd, 100, 1000)));
        silent("write-past-truncation", rotated("O_WRONLY|O_CREAT|O_APPEND", 200, |s, fd| s.write(fd, 100)));
    }

    #[test]
    fn silent_when_it_is_cut_behind_the_position_or_filled_again() {
        let mut s = Scenario::new();
        let fd = s.open("/log/app", "O_WRONLY|O_CREAT");
        s.write(fd, 100);
        s.process(200);
        let other = s.open("/log/app", "O_RDWR");
        s.truncate(other, 1 << 20);
        s.process(100);
        s.write(fd, 100);
        silent("write-past-truncation", s);
        let filled = rotated("O_WRONLY|O_CREAT", 200, |s, fd| {
            s.process(300);
            let other = s.open("/log/app", "O_WRONLY");
            s.write(other, 4096);
            s.process(100);
            s.write(fd, 100);
        });
        silent("write-past-truncation", filled);
    }
}
