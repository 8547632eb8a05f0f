//! Calls of libraries' functions: table `user_calls`.
//!
//! The first record that names a library call gives it its id: its own record, the record of a
//! call that it made, or the record before its first system call. Its thread and the time at which
//! it began identify it.

use fathom_model::{StrId, StringTable};
use std::sync::LazyLock;

use fathom_model::abi::{
    FunctionRecord, LIBRARY_CALL_ABANDONED, LIBRARY_CALL_BEGUN, LIBRARY_CALL_NONE,
    LIBRARY_CALL_PENDING, LibraryCallRecord, LibraryCountRecord, MAX_FUNCTIONS,
};
use fathom_model::batch::{Batch, NULL_I64, Null};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::library::{Function, Returns, Role};
use fathom_model::meta::CountedFunction;
use fathom_model::tables::{UserCallCounterRow, UserCallCounterRows, UserCallRow, UserCallRows};
use hashbrown::{HashMap, HashSet};

use super::descriptors::Descriptors;
use crate::strings::{Known, Strings};
use crate::{id, signed};

/// Threads whose library calls are remembered. Beyond that all are forgotten: calls in progress
/// then have no parents, and their system calls no library call.
const MAX_THREADS: usize = 1 << 16;

/// The function of a call whose function is in no record.
static UNKNOWN: LazyLock<Function> = LazyLock::new(|| Function::unknown("", ""));

/// The function with a number.
fn function_of(functions: &[Option<Function>], number: u16) -> &Function {
    let known = functions.get(usize::from(number));
    known.and_then(Option::as_ref).unwrap_or(&UNKNOWN)
}

/// Rows that were not taken yet, and the calls in progress.
#[derive(Debug, Default)]
pub(crate) struct LibraryCalls {
    functions: Vec<Option<Function>>,
    /// Class, name, and library of functions that the rows have already.
    words: HashMap<u16, [StrId; 3]>,
    rows: UserCallRows,
    strings: Strings,
    counts: UserCallCounterRows,
    count_strings: StringTable,
    counted: Vec<CountedFunction>,
    /// By thread: the calls in progress that were heard of, outermost first.
    open: HashMap<u32, Vec<Open>>,
    made: i64,
    /// Numbers of functions whose records do not name files.
    by_descriptor: HashSet<u16>,
    pub(crate) descriptors: Descriptors,
}

/// A call in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    began_ns: u64,
    depth: u8,
    id: i64,
    /// Handle of the file behind its descriptor when it began, if its own record does not name it.
    file: u32,
}

impl LibraryCalls {
    /// A function was found.
    pub(crate) fn function(&mut self, record: &FunctionRecord, [library, class, name]: [&[u8]; 3]) {
        let number = usize::from(record.function);
        if number >= MAX_FUNCTIONS as usize {
            return;
        }
        if self.functions.len() <= number {
            self.functions.resize(number + 1, None);
        }
        let roles = record.roles;
        self.words.remove(&record.function);
        if record.by_descriptor != 0 {
            self.descriptors.want();
            self.by_descriptor.insert(record.function);
        }
        if let Some(place) = self.functions.get_mut(number) {
            *place = Some(Function {
                library: escape_invalid_utf8(library).into_owned(),
                class: escape_invalid_utf8(class).into_owned(),
                name: escape_invalid_utf8(name).into_owned(),
                returns: Returns::numbered(record.result).unwrap_or(Returns::Value),
                roles: roles.map(|role| Role::numbered(role).unwrap_or(Role::Other)),
                in_registers: true,
            });
        }
    }

    /// Takes the record of a library call that `cpu` wrote.
    pub(crate) fn call(
        &mut self,
        cpu: u32,
        record: &LibraryCallRecord,
        path: &[u8],
        known: &mut Known,
    ) {
        let flags = u32::from(record.flags);
        if flags & LIBRARY_CALL_NONE != 0 {
            self.open.remove(&record.tid);
            return;
        }
        let (user_call, parent) = self.ids(record);
        if flags & LIBRARY_CALL_BEGUN != 0 {
            self.note_file(record);
            return;
        }
        let open = self.open.get_mut(&record.tid).and_then(Vec::pop);
        let file = match self.by_descriptor.contains(&record.function) {
            // Of a file that the call opened it is known now.
            true => match open.map_or(0, |call| call.file) {
                0 => self.descriptors.file(record.pid, record.fd),
                file => file,
            },
            false => record.file,
        };
        let function = function_of(&self.functions, record.function);
        let ended_at_ns = record.ts_ns.saturating_add(record.dur_ns);
        let abandoned = flags & LIBRARY_CALL_ABANDONED != 0;
        let returned = !abandoned && flags & LIBRARY_CALL_PENDING == 0;
        let ret = function.returns.number(record.ret).filter(|_| returned);
        let failed = ret.is_some_and(|ret| function.returns.is_failure(ret));
        let (size, items, bytes) = sizes(function, record, ret);
        let strings = &mut self.strings;
        let words = self.words.entry(record.function).or_insert_with(|| {
            let Function {
                class,
                name,
                library,
                ..
            } = function;
            [class, name, library].map(|word| strings.table.intern(word.as_bytes()))
        });
        let [class, name, library] = *words;
        let row = UserCallRow {
            user_call,
            ts_ns: signed(record.ts_ns),
            dur_ns: signed(record.dur_ns).when(!abandoned),
            pid: id(record.pid),
            tid: id(record.tid),
            comm: strings.comm(record.tid, ended_at_ns, known),
            cpu: id(cpu),
            class,
            function: name,
            library,
            ret: ret.unwrap_or(NULL_I64),
            failed,
            fd: record.fd.when(record.fd >= 0),
            file_id: match file {
                0 => NULL_I64,
                handle => known.files.by_handle(handle, ended_at_ns).id,
            },
            path_arg: match path {
                [] => StrId::NULL,
                path => strings.table.intern(escape_invalid_utf8(path).as_bytes()),
            },
            file_offset: argument(function, record, Role::Offset).unwrap_or(NULL_I64),
            size: size.unwrap_or(NULL_I64),
            items: items.unwrap_or(NULL_I64),
            bytes: bytes.unwrap_or(NULL_I64),
            parent,
            depth: i32::from(record.depth),
        };
        self.rows.push(row);
    }

    /// Calls that were counted, or the beginning of that.
    pub(crate) fn count(&mut self, record: &LibraryCountRecord) {
        let function = function_of(&self.functions, record.function);
        let ended_at_ns = signed(record.ts_ns.saturating_add(record.dur_ns));
        if record.begins != 0 {
            if self.counted.len() < MAX_FUNCTIONS as usize {
                self.counted.push(CountedFunction {
                    class: function.class.clone(),
                    function: function.name.clone(),
                    library: function.library.clone(),
                    at_ns: ended_at_ns,
                    calls: record.count,
                    in_ns: record.dur_ns,
                });
            }
            return;
        }
        let mut word = |word: &str| self.count_strings.intern(word.as_bytes());
        self.counts.push(UserCallCounterRow {
            ts_ns: signed(record.ts_ns),
            ended_at_ns,
            pid: id(record.pid),
            class: word(&function.class),
            function: word(&function.name),
            library: word(&function.library),
            count: signed(record.count),
        });
    }

    /// The functions whose calls are counted.
    pub(crate) fn counted_functions(&self) -> &[CountedFunction] {
        &self.counted
    }

    /// The counts since the last time.
    pub(crate) fn take_counts(&mut self) -> Batch {
        let rows = std::mem::take(&mut self.counts);
        rows.into_batch(std::mem::take(&mut self.count_strings))
    }

    /// Remembers the file of a call that begins: the call may close it.
    fn note_file(&mut self, record: &LibraryCallRecord) {
        if record.fd < 0 || !self.by_descriptor.contains(&record.function) {
            return;
        }
        let file = self.descriptors.file(record.pid, record.fd);
        let open = self.open.get_mut(&record.tid);
        let call = open.and_then(|open| open.iter_mut().find(|c| c.began_ns == record.ts_ns));
        if let Some(call) = call {
            call.file = file;
        }
    }

    /// The innermost library call that thread `tid` was in at `ts_ns`.
    #[inline]
    pub(crate) fn around(&self, tid: u32, ts_ns: u64) -> i64 {
        if self.open.is_empty() {
            return NULL_I64;
        }
        let open = self.open.get(&tid).map_or(&[][..], Vec::as_slice);
        let inner = open.iter().rev().find(|call| call.began_ns <= ts_ns);
        inner.map_or(NULL_I64, |call| call.id)
    }

    /// The thread is new, has ended, or executes another program.
    pub(crate) fn forget_calls(&mut self, tid: u32) {
        self.open.remove(&tid);
    }

    /// The thread may have another name.
    pub(crate) fn forget_name(&mut self, tid: u32) {
        self.strings.forget_thread(tid);
    }

    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.len() + self.counts.len()
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.strings.table.bytes()
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        self.words.clear();
        let rows = std::mem::take(&mut self.rows);
        rows.into_batch(self.strings.take(fathom_model::StringTable::new()))
    }

    /// The id of a call, and of the one that made it.
    fn ids(&mut self, record: &LibraryCallRecord) -> (i64, i64) {
        if self.open.len() >= MAX_THREADS && !self.open.contains_key(&record.tid) {
            self.open.clear();
        }
        let made = &mut self.made;
        let open = self.open.entry(record.tid).or_default();
        let (began_ns, depth) = (record.ts_ns, record.depth);
        // Others that were in progress as deep, or deeper, have ended or will never return.
        open.retain(|call| {
            call.began_ns == began_ns || call.began_ns < began_ns && call.depth < depth
        });
        let mut id_of = |began_ns: u64, depth: u8| {
            let at = open.partition_point(|call| call.began_ns < began_ns);
            match open.get(at) {
                Some(call) if call.began_ns == began_ns => call.id,
                _ => {
                    *made += 1;
                    let id = *made;
                    open.insert(
                        at,
                        Open {
                            began_ns,
                            depth,
                            id,
                            file: 0,
                        },
                    );
                    id
                }
            }
        };
        let parent = match record.parent_ns {
            0 => NULL_I64,
            began_ns => id_of(began_ns, depth.saturating_sub(1)),
        };
        (id_of(began_ns, depth), parent)
    }
}

/// The argument with this role, as a signed number.
fn argument(function: &Function, record: &LibraryCallRecord, role: Role) -> Option<i64> {
    let value = *record.args.get(function.place(role)?)? as i64;
    Some(match role {
        Role::Size32 | Role::Items32 => i64::from(value as i32),
        _ => value,
    })
}

/// Bytes and items that were asked for, and bytes that were moved.
fn sizes(
    function: &Function,
    record: &LibraryCallRecord,
    ret: Option<i64>,
) -> (Option<i64>, Option<i64>, Option<i64>) {
    let either = |a, b| argument(function, record, a).or_else(|| argument(function, record, b));
    let size = either(Role::Size, Role::Size32);
    let items = either(Role::Items, Role::Items32);
    let whole = match (size, items) {
        (Some(size), Some(items)) => size.checked_mul(items),
        (size, _) => size,
    };
    let moved = match function.returns {
        Returns::Bytes | Returns::Bytes32 => ret.filter(|ret| *ret >= 0),
        Returns::Items => ret.and_then(|ret| ret.checked_mul(size?)),
        _ => None,
    };
    (whole, items, moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, Limit};
    use crate::tasks::Tasks;

    fn known() -> Known {
        let limit = Limit {
            files: 10,
            bytes: 1 << 20,
        };
        Known {
            files: Files::new(limit),
            tasks: Tasks::new(10),
        }
    }

    fn fread() -> LibraryCalls {
        let mut calls = LibraryCalls::default();
        let record = FunctionRecord {
            kind: 0,
            result: Returns::Items as u8,
            function: 2,
            by_descriptor: 0,
            ts_ns: 0,
            roles: [
                Role::Other as u8,
                Role::Size as u8,
                Role::Items as u8,
                Role::Stream as u8,
                0,
                0,
            ],
            library_len: 0,
            class_len: 0,
            name_len: 0,
            reserved2: 0,
        };
        calls.function(&record, [b"/lib/libc.so.6", b"stdio", b"fread"]);
        calls
    }

    fn record(
        flags: u32,
        (ts_ns, dur_ns): (u64, u64),
        (depth, parent_ns): (u8, u64),
    ) -> LibraryCallRecord {
        LibraryCallRecord {
            kind: 0,
            flags: flags as u8,
            function: 2,
            tid: 7,
            ts_ns,
            dur_ns,
            pid: 7,
            file: 0,
            fd: 3,
            depth,
            reserved: 0,
            path_len: 0,
            parent_ns,
            args: [0, 10, 4, 0, 0, 0],
            ret: 3,
        }
    }

    fn rows(calls: &mut LibraryCalls) -> UserCallRows {
        UserCallRows::from_batch(calls.take()).unwrap().0
    }

    #[test]
    fn a_call_keeps_the_id_that_it_had_in_progress() {
        let (mut calls, mut known) = (fread(), known());
        // The inner one of two makes a system call, then the outer one.
        calls.call(
            0,
            &record(LIBRARY_CALL_BEGUN, (120, 5), (1, 100)),
            b"",
            &mut known,
        );
        assert_eq!(calls.around(7, 123), 2);
        assert_eq!(calls.around(8, 123), NULL_I64);
        calls.call(0, &record(0, (120, 10), (1, 100)), b"", &mut known);
        assert_eq!(calls.around(7, 135), 1);
        calls.call(0, &record(0, (100, 50), (0, 0)), b"", &mut known);
        assert_eq!(calls.around(7, 160), NULL_I64);
        let rows = rows(&mut calls);
        assert_eq!(rows.user_call, [2, 1]);
        assert_eq!(rows.parent, [1, NULL_I64]);
        assert_eq!((rows.size[0], rows.items[0], rows.bytes[0]), (40, 4, 30));
        assert_eq!((rows.ret[0], rows.fd[0], rows.failed[0]), (3, 3, false));
    }

    #[test]
    fn a_call_that_never_returns_is_not_around_others() {
        let (mut calls, mut known) = (fread(), known());
        calls.call(
            0,
            &record(LIBRARY_CALL_BEGUN, (100, 5), (0, 0)),
            b"",
            &mut known,
        );
        calls.call(
            0,
            &record(LIBRARY_CALL_ABANDONED, (100, 9), (0, 0)),
            b"",
            &mut known,
        );
        assert_eq!(calls.around(7, 109), NULL_I64);
        // No record says so of this call, but the next one is as deep.
        calls.call(
            0,
            &record(LIBRARY_CALL_BEGUN, (200, 5), (0, 0)),
            b"",
            &mut known,
        );
        calls.call(0, &record(0, (300, 5), (0, 0)), b"", &mut known);
        assert_eq!(calls.around(7, 310), NULL_I64);
        calls.call(
            0,
            &record(LIBRARY_CALL_BEGUN, (400, 5), (0, 0)),
            b"",
            &mut known,
        );
        calls.call(
            0,
            &record(LIBRARY_CALL_NONE, (400, 6), (0, 0)),
            b"",
            &mut known,
        );
        assert_eq!(calls.around(7, 410), NULL_I64);
        let rows = rows(&mut calls);
        assert_eq!(rows.user_call, [1, 3]);
        assert_eq!((rows.dur_ns[0], rows.ret[0]), (NULL_I64, NULL_I64));
    }

    #[test]
    fn a_pending_call_has_its_time_so_far() {
        let (mut calls, mut known) = (fread(), known());
        calls.call(
            0,
            &record(LIBRARY_CALL_PENDING, (100, 9), (0, 0)),
            b"/x",
            &mut known,
        );
        // A call of a function without a record.
        let unknown = LibraryCallRecord {
            function: 900,
            ..record(0, (200, 9), (0, 0))
        };
        calls.call(0, &unknown, b"", &mut known);
        let rows = rows(&mut calls);
        assert_eq!(
            (rows.dur_ns[0], rows.ret[0], rows.bytes[0]),
            (9, NULL_I64, NULL_I64)
        );
        assert_eq!((rows.ret[1], rows.size[1]), (3, NULL_I64));
    }

    #[test]
    fn counted_calls_of_an_unknown_function_have_a_row() {
        let mut calls = fread();
        for function in [2, 3] {
            calls.count(&LibraryCountRecord {
                kind: 0,
                begins: 0,
                function,
                pid: 7,
                ts_ns: 10,
                dur_ns: 5,
                count: 100,
            });
        }
        assert_eq!(calls.take_counts().len(), 2);
    }
}
