//! Interned byte strings of one batch.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A string of a [`StringTable`]. [`StrId::NULL`] stands for SQL's null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

impl StrId {
    /// No string.
    pub const NULL: StrId = StrId(0);
}

/// Byte strings, each stored once. Ids count up from 1 in order of first use.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    bytes: Vec<u8>,
    /// Where string `id` ends; `ends[0]` is 0, for null.
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl StringTable {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            ends: vec![0],
            ..Self::default()
        }
    }

    /// The id of `string`, which is added when it is new.
    pub fn intern(&mut self, string: &[u8]) -> StrId {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        let hash = self.hasher.hash_one(string);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&id) = self
            .index
            .find(hash, |&id| slice(bytes, ends, id) == string)
        {
            return StrId(id);
        }
        let id = self.ends.len() as u32;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.index
            .insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        StrId(id)
    }

    /// The string `id`; empty for null and for an id of another table.
    pub fn get(&self, id: StrId) -> &[u8] {
        slice(&self.bytes, &self.ends, id.0)
    }

    /// Strings in the table, null not counted: ids run from 1 to `len()`.
    pub fn len(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }

    /// Whether no string was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the strings take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all strings, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.ends.push(0);
        self.index.clear();
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    match (id.checked_sub(1).and_then(|i| ends.get(i)), ends.get(id)) {
        (Some(&from), Some(&to)) => &bytes[from..to],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::new();
        let a = table.intern(b"a");
        let empty = table.intern(b"");
        assert_eq!((a, empty), (StrId(1), StrId(2)));
        assert_eq!(table.intern(b"a"), a);
        assert_eq!(table.get(a), b"a");
        assert_eq!(table.get(StrId::NULL), b"");
        assert_eq!(table.get(StrId(99)), b"");
        assert_eq!(table.len(), 2);
        table.clear();
        assert_eq!(table.intern(b"b"), StrId(1));
        assert_eq!(table.get(StrId(1)), b"b");
    }
}
