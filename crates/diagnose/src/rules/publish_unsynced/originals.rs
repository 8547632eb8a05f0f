//! Originals that are removed before the file that takes their place is durable.

use std::collections::BTreeMap;

use crate::names::{directory, file_name, is_pid_or_lock, is_rebuilt};
use crate::prelude::*;
use crate::state::files::FileState;

/// Files from which on it is how a program works.
const MIN_FILES: usize = 8;
/// Share of an original that is read, or of its length that is written to the new file.
const MIN_TAKEN: f64 = 0.9;

/// A file whose original was removed.
#[derive(Debug, Default)]
struct Replacement {
    pid: i32,
    comm: Text,
    path: Text,
    example: Option<Example>,
}

#[derive(Debug, Default)]
pub(super) struct Originals {
    /// Which process opened a file last to read it.
    readers: Bounded<FileId, i32>,
    /// The file that a process made last.
    made: Bounded<i32, Option<(FileId, Text)>>,
    replacements: Bounded<FileId, Replacement>,
}

impl Originals {
    pub(super) fn opens(&mut self, call: &Call) {
        let Some(id) = call.file.filter(|_| call.kind == Kind::Open) else { return };
        if call.has_flag("O_CREAT") {
            *self.made.entry(call.pid) = (!call.has_flag("O_APPEND")).then(|| (id, call.path_text()));
        } else if !call.has_flag("O_WRONLY") {
            *self.readers.entry(id) = call.pid;
        }
    }

    /// A file is removed: the original of the one that its process has just made?
    pub(super) fn removes(&mut self, call: &Call, context: &Context) {
        let (Some(path), Some(key)) = (call.path, call.path_key()) else { return };
        let Some((new, to)) = self.made.get(&call.pid).and_then(Option::as_ref) else { return };
        let files = &context.state.files;
        let Some(old) = files.at_key(key).or(call.file).filter(|old| old != new) else { return };
        let (Some(was), Some(is)) = (files.get(old), files.get(*new)) else { return };
        let named = match directory(path) == directory(to) {
            true => adds_suffix(path, to) || adds_suffix(to, path),
            false => file_name(path) == file_name(to),
        };
        let size = was.size.unwrap_or(0);
        let taken = size > 0 && was.read.max(is.written) as f64 >= size as f64 * MIN_TAKEN;
        let kept = is_kept(was, path) && is_kept(is, to);
        let unsafe_now = was.dirty.is_empty() && !is.dirty.is_empty();
        if named && taken && kept && unsafe_now && self.readers.get(&old) == Some(&call.pid) {
            *self.replacements.entry(*new) = Replacement {
                pid: call.pid,
                comm: call.comm_text(),
                path: to.clone(),
                example: Some(Example::of(call)),
            };
        }
    }

    pub(super) fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut programs: BTreeMap<&str, Vec<(&Replacement, &FileState)>> = BTreeMap::new();
        for (id, replacement) in self.replacements.iter() {
            let file = run.state.files.get(*id).filter(|file| !file.was_synced() && !file.unlinked);
            if let Some(file) = file {
                programs.entry(&replacement.comm).or_default().push((replacement, file));
            }
        }
        for (comm, mut files) in programs.into_iter().filter(|(_, files)| files.len() >= MIN_FILES) {
            files.sort_by_key(|(file, _)| file.example.as_ref().map(|example| example.rid));
            let Some((first, _)) = files.first() else { continue };
            let place = directory(&first.path);
            let one = files.iter().all(|(file, _)| directory(&file.path) == place);
            let subject = Subject::process(first.pid, comm);
            out.push(Found {
                severity: Some(Severity::Medium),
                title: format!(
                    "{comm} removes {} files as soon as it has written the new ones{}, which it never makes durable: after a crash both can be gone",
                    units::count(files.len() as i64),
                    if one { format!(" in {place}") } else { String::new() },
                ),
                subject: if one { subject.with_path(place) } else { subject },
                evidence: vec![
                    number("files_replaced", files.len() as i64),
                    number("unsynced_bytes", files.iter().fold(0, |all: i64, (_, file)| all.saturating_add(file.dirty.len()))),
                ],
                examples: files.iter().filter_map(|(file, _)| file.example.clone()).take(EXAMPLES).collect(),
                query: calls!("comm = {} AND (syscall IN ('unlink', 'unlinkat') OR syscall LIKE '%sync%' OR flags LIKE '%O_CREAT%')", sql::quote(comm)),
                advice: Some(
                    "Call fsync on the new file and on its directory before the original is removed (`gzip --synchronous`; xz does so \
                     since 5.8); or keep the originals (`-k`), and remove them all after one `sync -f`."
                        .to_owned(),
                ),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

/// Whether a user would miss a file of this name.
pub(super) fn is_kept(file: &FileState, path: &str) -> bool {
    file.is_regular() && !file.is_volatile() && !is_rebuilt(path) && !is_pid_or_lock(path)
}

/// Whether a name is another one plus a suffix, as `file.xz` is.
fn adds_suffix(path: &str, longer: &str) -> bool {
    let name = file_name(path);
    !name.is_empty() && file_name(longer).strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}
