//! Strings of the present batch that many rows share, found without hashing or
//! formatting them again.

use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

/// Texts that are kept.
const MAX_TEXTS: usize = 8192;
const FILES: usize = 4096;
const THREADS: usize = 1024;

/// A string and the batch for which its id holds.
#[derive(Clone, Copy, Debug, Default)]
struct Interned {
    epoch: u32,
    id: StrId,
}

/// What a number stands for: decoded flags and arguments.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: HashMap<(u16, u64), (Box<str>, Interned)>,
    buffer: String,
}

impl Texts {
    /// The text for `key`, written by `write` when it is not known; null when
    /// it is empty.
    pub(crate) fn get(
        &mut self,
        key: (u16, u64),
        epoch: u32,
        strings: &mut StringTable,
        write: impl FnOnce(&mut String),
    ) -> StrId {
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
    pub(crate) fn once(
        &mut self,
        strings: &mut StringTable,
        write: impl FnOnce(&mut String),
    ) -> StrId {
        self.buffer.clear();
        write(&mut self.buffer);
        intern(&self.buffer, strings)
    }
}

fn intern(text: &str, strings: &mut StringTable) -> StrId {
    if text.is_empty() {
        StrId::NULL
    } else {
        strings.intern(text.as_bytes())
    }
}

/// Strings by a small number: names of calls, classes and errors.
#[derive(Debug)]
pub(crate) struct Small(Vec<Interned>);

impl Small {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![Interned::default(); len])
    }

    /// String `at`, given by `text` when the batch does not have it yet.
    #[inline]
    pub(crate) fn get<T: AsRef<[u8]>>(
        &mut self,
        at: usize,
        epoch: u32,
        strings: &mut StringTable,
        text: impl FnOnce() -> T,
    ) -> StrId {
        match self.0.get_mut(at) {
            Some(known) if known.epoch == epoch => known.id,
            Some(known) => {
                *known = Interned {
                    epoch,
                    id: strings.intern(text().as_ref()),
                };
                known.id
            }
            None => strings.intern(text().as_ref()),
        }
    }
}

/// A file as the rows of the present batch refer to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileMemo {
    pub file_id: i64,
    pub path: StrId,
}

/// The last value of each of many numbers, one place a number's low bits.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    places: Vec<(u32, u32, T)>,
}

impl<T: Copy + Default> Recent<T> {
    fn new(len: usize) -> Self {
        Self {
            places: vec![(0, 0, T::default()); len.next_power_of_two()],
        }
    }

    #[inline]
    fn place(&mut self, number: u32) -> Option<&mut (u32, u32, T)> {
        let at = number as usize & (self.places.len() - 1);
        self.places.get_mut(at)
    }

    /// The value of `number` in batch `epoch`.
    #[inline]
    pub(crate) fn get(&mut self, number: u32, epoch: u32) -> Option<T> {
        match self.place(number) {
            Some((n, e, value)) if *n == number && *e == epoch => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn put(&mut self, number: u32, epoch: u32, value: T) {
        if let Some(place) = self.place(number) {
            *place = (number, epoch, value);
        }
    }

    /// Forgets the value of `number`.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some((_, epoch, _)) = self.place(number) {
            *epoch = 0;
        }
    }
}

/// By handle.
pub(crate) fn recent_files() -> Recent<FileMemo> {
    Recent::new(FILES)
}

/// Names by thread id.
pub(crate) fn recent_threads() -> Recent<StrId> {
    Recent::new(THREADS)
}
