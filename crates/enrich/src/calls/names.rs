//! The files and paths of a call.

use fathom_model::StrId;
use fathom_model::abi::{
    ARG_CREATED, ARG_STRING1_NULL, CALL_HAS_STAT, CALL_STRING1_PARTIAL, CALL_STRING2_PARTIAL,
};
use fathom_model::batch::NULL_I64;
use fathom_model::kind::Kind as Purpose;

use super::call::Call;
use super::plan::{Plan, String1, String2};
use super::structs;
use crate::files::{Files, paths};
use crate::strings::{FileMemo, Known, Strings};

const ENOENT: i64 = 2;
/// IORING_ENTER_REGISTERED_RING
const ENTER_REGISTERED_RING: u64 = 16;
/// IORING_REGISTER_USE_REGISTERED_RING
const REGISTER_USE_REGISTERED_RING: u64 = 1 << 31;

/// The columns of a row for files and paths.
pub(crate) struct Names {
    pub file_id: i64,
    pub path: StrId,
    pub path2: StrId,
    pub path_arg: StrId,
    pub path_arg2: StrId,
}

impl Names {
    fn of(file: FileMemo) -> Self {
        Names {
            file_id: file.file_id,
            path: file.path,
            path2: StrId::NULL,
            path_arg: StrId::NULL,
            path_arg2: StrId::NULL,
        }
    }
}

/// The names of a call that failed with `error`. `buffer` is memory for a path.
#[inline]
pub(crate) fn of(
    plan: &Plan,
    call: &Call<'_>,
    error: Option<i64>,
    known: &mut Known,
    strings: &mut Strings,
    buffer: &mut Vec<u8>,
) -> Names {
    if plan.has_ring {
        of_ring(plan, call, known, strings)
    } else if plan.string1 == String1::None && call.wide.is_none() {
        Names::of(strings.file(call.record.file, call.ended_at_ns(), known))
    } else {
        of_paths(plan, call, error, known, strings, buffer)
    }
}

/// For a call on an io_uring: the file of its descriptor, unless it is the index of a registered
/// one. Operations on the io_uring itself concern no file.
fn of_ring(plan: &Plan, call: &Call<'_>, known: &mut Known, strings: &mut Strings) -> Names {
    let set = |name: &str, bit: u64| {
        plan.value(name)
            .and_then(|v| call.value(v.place))
            .is_some_and(|value| value & bit != 0)
    };
    let registered =
        set("flags", ENTER_REGISTERED_RING) || set("opcode", REGISTER_USE_REGISTERED_RING);
    let handle = if registered { 0 } else { call.record.file };
    Names {
        file_id: NULL_I64,
        ..Names::of(strings.file(handle, call.ended_at_ns(), known))
    }
}

/// Of a call with strings or a second file.
#[inline(never)]
fn of_paths(
    plan: &Plan,
    call: &Call<'_>,
    error: Option<i64>,
    known: &mut Known,
    strings: &mut Strings,
    buffer: &mut Vec<u8>,
) -> Names {
    let r = call.record;
    let now = call.ended_at_ns();
    let (dir1, dir2, file2) = call.wide.map_or((0, 0, 0), |w| (w.dir1, w.dir2, w.file2));
    let root = call.wide.map_or(0, |w| w.root);
    let partial1 = call.has(CALL_STRING1_PARTIAL);
    let partial2 = call.has(CALL_STRING2_PARTIAL);
    // A path that is empty (AT_EMPTY_PATH) is the directory's descriptor.
    let empty = plan.string1 == String1::Path
        && r.file == 0
        && call.wide.is_some()
        && call.string1.is_empty()
        && !partial1
        && error != Some(ENOENT);
    let mut names = Names::of(strings.file(if empty { dir1 } else { r.file }, now, known));
    if plan.string1 != String1::None
        && !(partial1 && call.string1.is_empty())
        && !call.passed(ARG_STRING1_NULL)
    {
        names.path_arg = strings.text(call.string1);
    }
    let mut resolved = false;
    // One that is empty leads nowhere otherwise.
    if plan.string1 == String1::Path && !partial1 && (empty || !call.string1.is_empty()) {
        let (root, base) = (known.files.path_of(root), known.files.path_of(dir1));
        resolved = paths::absolute(root, base, call.string1, buffer);
    }
    // A call by path that has a file opened it, or went there (chdir).
    let own = r.file != 0 && names.path != StrId::NULL;
    if resolved && own {
        learn(plan, call, buffer, known);
    } else if resolved {
        follow(changes_first(plan, error), r.tid, buffer, known);
    }
    if call.has(CALL_HAS_STAT)
        && plan.string1 == String1::Path
        && r.file == 0
        && !empty
        && error.is_none()
        && let Some(wide) = call.wide
    {
        let path = resolved.then_some(buffer.as_slice());
        let mode = structs::mode(plan.structure, call.structure);
        names.file_id = known
            .files
            .by_stat((wide.stat_dev, wide.stat_ino), mode, path, now);
    }
    names.path = match plan.string1 {
        String1::Path if resolved && !own => strings.text(buffer),
        String1::Path | String1::None => names.path,
        String1::Target => StrId::NULL,
    };
    match plan.string2 {
        String2::Path => {
            if !(partial2 && call.string2.is_empty()) {
                names.path_arg2 = strings.text(call.string2);
            }
            let (root, base) = (known.files.path_of(root), known.files.path_of(dir2));
            let leads = !(partial2 || call.string2.is_empty() && error.is_some());
            if leads && paths::absolute(root, base, call.string2, buffer) {
                follow(changes_second(plan, error), r.tid, buffer, known);
                names.path2 = strings.text(buffer);
            }
        }
        String2::None | String2::Text if file2 != 0 => {
            names.path2 = strings.file(file2, now, known).path;
        }
        String2::None | String2::Text => {}
    }
    names
}

/// Whether a call has removed its first path, or given it to something else.
fn changes_first(plan: &Plan, error: Option<i64>) -> bool {
    let changes = matches!(
        plan.purpose,
        Purpose::Rename | Purpose::Unlink | Purpose::Rmdir
    );
    changes && error.is_none()
}

/// The same for the second one.
fn changes_second(plan: &Plan, error: Option<i64>) -> bool {
    matches!(plan.purpose, Purpose::Rename | Purpose::Symlink) && error.is_none()
}

/// Makes `path`, which a call was given, the path of the name in its directory. `changes`: the name stands for
/// something else now.
fn follow(changes: bool, tid: u32, path: &mut Vec<u8>, known: &mut Known) {
    let links = &mut known.files.symlinks;
    if links.is_empty() {
        return;
    }
    let mnt_ns = known.tasks.mount_namespace(tid);
    if changes {
        links.changed(mnt_ns, path);
    }
    links.follow(mnt_ns, path);
    if changes {
        links.changed(mnt_ns, path);
    }
}

/// Remembers where symbolic links lead, as a call shows that was given `path` and has a file.
fn learn(plan: &Plan, call: &Call<'_>, path: &[u8], known: &mut Known) {
    // Where a relative path started is looked up as the call returns: the new directory then.
    let enters = plan.name == "chdir" && call.string1.starts_with(b"/");
    if plan.purpose == Purpose::Open || enters {
        let (record, created) = (call.record, call.passed(ARG_CREATED));
        let mnt_ns = || known.tasks.mount_namespace(record.tid);
        known.files.reached(record.file, created, path, mnt_ns);
    }
}

/// Paths of what the descriptors before the paths of a call stand for.
pub(crate) fn directories<'a>(files: &'a Files, call: &Call<'_>) -> [Option<&'a [u8]>; 2] {
    let Some(wide) = call.wide else {
        return [None; 2];
    };
    // Of operations only the directory is known that a relative path starts from.
    let of = |at: u32, dir: u32, path: &[u8]| match at {
        0 if path.starts_with(b"/") => None,
        0 => files.path_of(dir),
        at => files.path_of(at),
    };
    [
        of(wide.at1, wide.dir1, call.string1),
        of(wide.at2, wide.dir2, call.string2),
    ]
}
