//! Strings of the present batch that many rows share, found without hashing or
//! formatting them again.

use fathom_model::batch::NULL_I64;
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

use crate::files::Files;
use crate::tasks::Tasks;

/// TextCache that are kept.
const MAX_TEXTS: usize = 8192;
const FILES: usize = 4096;
const THREADS: usize = 1024;
const WORDS: usize = 128;
const NAMES: usize = 128;

/// Files, threads, and strings that rows of all tables refer to.
#[derive(Debug)]
pub(crate) struct Known {
    pub files: Files,
    pub tasks: Tasks,
}

/// The names of threads.
pub(crate) trait ThreadNames {
    /// The name of a thread at a time; null if it is not known.
    fn thread_name(&mut self, tid: u32, at_ns: u64, strings: &mut Strings) -> StrId;
}

impl ThreadNames for Known {
    #[inline]
    fn thread_name(&mut self, tid: u32, at_ns: u64, strings: &mut Strings) -> StrId {
        strings.comm(tid, at_ns, self)
    }
}

/// The strings of the present batch of a table, and the files and threads that its rows
/// have named.
#[derive(Debug)]
pub(crate) struct Strings {
    pub table: StringTable,
    /// Number of the batch. 0 stands for no batch in what is remembered.
    epoch: u32,
    files: DirectMappedCache<FileMemo>,
    threads: DirectMappedCache<StrId>,
    words: Vec<(Word, Interned)>,
    names: Vec<(Name, Interned)>,
}

/// Where a text of the program itself is in memory.
type Word = (usize, usize);

/// The bytes of a record that a text is made of, and what they are: [`Strings::name`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    kind: u64,
    bytes: [u64; 2],
}

impl Name {
    /// Names of the same bytes differ by their `kind`.
    pub(crate) fn new(kind: u64, bytes: &[u8; 16]) -> Self {
        let all = u128::from_le_bytes(*bytes);
        Name {
            kind,
            bytes: [all as u64, (all >> 64) as u64],
        }
    }

    fn place(&self) -> usize {
        let [a, b] = self.bytes;
        let kind = self.kind.wrapping_mul(SPREAD).rotate_left(32);
        let mixed = (a ^ b.rotate_left(29) ^ kind).wrapping_mul(SPREAD);
        (mixed >> 32) as usize % NAMES
    }
}

/// Spreads numbers that differ in few bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for Strings {
    fn default() -> Self {
        Self {
            table: StringTable::new(),
            epoch: 1,
            files: DirectMappedCache::new(FILES),
            threads: DirectMappedCache::new(THREADS),
            words: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl Strings {
    /// Bytes that a program chose, as text.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> StrId {
        self.table.intern(escape_invalid_utf8(bytes).as_bytes())
    }

    /// A text of the program itself: looked up by where it is.
    #[inline]
    pub(crate) fn word(&mut self, word: &'static str) -> StrId {
        let key = (word.as_ptr() as usize, word.len());
        let place = (key.0 as u64).wrapping_mul(SPREAD) >> 32;
        let epoch = self.epoch;
        match self.words.get(place as usize % WORDS) {
            Some((known, text)) if *known == key && text.epoch == epoch => text.id,
            _ => self.intern_word(key, place as usize % WORDS, word),
        }
    }

    #[inline(never)]
    fn intern_word(&mut self, key: Word, place: usize, word: &str) -> StrId {
        let (id, epoch) = (self.table.intern(word.as_bytes()), self.epoch);
        self.words.resize_with(WORDS, Default::default);
        if let Some(slot) = self.words.get_mut(place) {
            *slot = (key, Interned { epoch, id });
        }
        id
    }

    /// The text that `text` makes of `name`, and of nothing else.
    #[inline]
    pub(crate) fn name<T: AsRef<str>>(&mut self, name: Name, text: impl FnOnce() -> T) -> StrId {
        let epoch = self.epoch;
        match self.names.get(name.place()) {
            Some((known, text)) if *known == name && text.epoch == epoch => text.id,
            _ => self.intern_name(name, text().as_ref()),
        }
    }

    #[inline(never)]
    fn intern_name(&mut self, name: Name, text: &str) -> StrId {
        let (id, epoch) = (self.table.intern(text.as_bytes()), self.epoch);
        self.names.resize_with(NAMES, Default::default);
        if let Some(slot) = self.names.get_mut(name.place()) {
            *slot = (name, Interned { epoch, id });
        }
        id
    }

    /// The file behind a handle, to which a row refers at `now_ns`.
    #[inline]
    pub(crate) fn file(&mut self, handle: u32, now_ns: u64, known: &mut Known) -> FileMemo {
        if handle == 0 {
            return FileMemo::NONE;
        }
        match self.files.get(handle, self.epoch) {
            Some(memo) => memo,
            None => self.look_up_file(handle, now_ns, known),
        }
    }

    #[inline(never)]
    fn look_up_file(&mut self, handle: u32, now_ns: u64, known: &mut Known) -> FileMemo {
        let file = known.files.by_handle(handle, now_ns);
        let memo = FileMemo {
            file_id: file.id,
            path: file.path.map_or(StrId::NULL, |path| self.text(&path)),
        };
        self.files.put(handle, self.epoch, memo);
        memo
    }

    /// The name of a thread, to which a row refers at `now_ns`.
    #[inline]
    pub(crate) fn comm(&mut self, tid: u32, now_ns: u64, known: &mut Known) -> StrId {
        match self.threads.get(tid, self.epoch) {
            Some(comm) => comm,
            None => self.look_up_comm(tid, now_ns, known),
        }
    }

    #[inline(never)]
    fn look_up_comm(&mut self, tid: u32, now_ns: u64, known: &mut Known) -> StrId {
        let comm = match known.tasks.used(tid, now_ns) {
            Some(comm) => self.table.intern(comm.as_bytes()),
            None => StrId::NULL,
        };
        self.threads.put(tid, self.epoch, comm);
        comm
    }

    /// The record of a file came: what is remembered of it may be old.
    pub(crate) fn forget_file(&mut self, handle: u32) {
        self.files.forget(handle);
    }

    /// The same for a thread.
    pub(crate) fn forget_thread(&mut self, tid: u32) {
        self.threads.forget(tid);
    }

    /// The strings of the batch; the next one begins with `empty`.
    pub(crate) fn take(&mut self, empty: StringTable) -> StringTable {
        self.epoch = self.epoch.wrapping_add(1).max(1);
        std::mem::replace(&mut self.table, empty)
    }
}

/// A string and the batch for which its id holds.
#[derive(Clone, Copy, Debug, Default)]
struct Interned {
    epoch: u32,
    id: StrId,
}

/// Meaning of a number: decoded flags and arguments.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    texts: HashMap<(u16, u64), (Box<str>, Interned)>,
    buffer: String,
}

impl TextCache {
    /// The text for `key`, written by `write` when it is not known; null when
    /// it is empty.
    pub(crate) fn get(
        &mut self,
        key: (u16, u64),
        strings: &mut Strings,
        write: impl FnOnce(&mut String),
    ) -> StrId {
        let epoch = strings.epoch;
        if let Some((text, interned)) = self.texts.get_mut(&key) {
            if interned.epoch != epoch {
                *interned = Interned {
                    epoch,
                    id: intern(text, strings),
                };
            }
            return interned.id;
        }
        self.buffer.clear();
        write(&mut self.buffer);
        let id = intern(&self.buffer, strings);
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        self.texts
            .insert(key, (self.buffer.as_str().into(), Interned { epoch, id }));
        id
    }

    /// The same for a text that is unlikely to come again.
    pub(crate) fn once(&mut self, strings: &mut Strings, write: impl FnOnce(&mut String)) -> StrId {
        self.buffer.clear();
        write(&mut self.buffer);
        intern(&self.buffer, strings)
    }
}

fn intern(text: &str, strings: &mut Strings) -> StrId {
    if text.is_empty() {
        StrId::NULL
    } else {
        strings.table.intern(text.as_bytes())
    }
}

/// Strings by a small number, and the batch for which they hold.
#[derive(Debug)]
pub(crate) struct BatchMemo<T>(Vec<(u32, T)>);

impl<T: Copy + Default> BatchMemo<T> {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![(0, T::default()); len])
    }

    /// The string at `at`, made by `intern` if the batch does not have it yet.
    #[inline]
    pub(crate) fn get(
        &mut self,
        at: usize,
        strings: &mut Strings,
        intern: impl FnOnce(&mut StringTable) -> T,
    ) -> T {
        match self.0.get_mut(at) {
            Some((epoch, value)) if *epoch == strings.epoch => *value,
            Some(known) => {
                *known = (strings.epoch, intern(&mut strings.table));
                known.1
            }
            None => intern(&mut strings.table),
        }
    }
}

/// A file as the rows of the present batch refer to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileMemo {
    pub file_id: i64,
    pub path: StrId,
}

impl FileMemo {
    const NONE: FileMemo = FileMemo {
        file_id: NULL_I64,
        path: StrId::NULL,
    };
}

/// The last value of each of many numbers, one place a number's low bits.
#[derive(Debug)]
struct DirectMappedCache<T> {
    /// None before the first value.
    places: Vec<(u32, u32, T)>,
    len: usize,
}

impl<T: Copy + Default> DirectMappedCache<T> {
    fn new(len: usize) -> Self {
        Self {
            places: Vec::new(),
            len: len.next_power_of_two(),
        }
    }

    #[inline]
    fn place(&mut self, number: u32) -> Option<&mut (u32, u32, T)> {
        let at = number as usize & (self.len - 1);
        self.places.get_mut(at)
    }

    /// The value of `number` in batch `epoch`.
    #[inline]
    fn get(&mut self, number: u32, epoch: u32) -> Option<T> {
        match self.place(number) {
            Some((n, e, value)) if *n == number && *e == epoch => Some(*value),
            _ => None,
        }
    }

    fn put(&mut self, number: u32, epoch: u32, value: T) {
        self.places.resize(self.len, (0, 0, T::default()));
        if let Some(place) = self.place(number) {
            *place = (number, epoch, value);
        }
    }

    /// Forgets the value of `number`.
    fn forget(&mut self, number: u32) {
        if let Some((_, epoch, _)) = self.place(number) {
            *epoch = 0;
        }
    }
}
