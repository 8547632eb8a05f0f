//! The activity of a call in the page cache, as columns of its row.

use fathom_model::abi::CacheFacts;
use fathom_model::batch::{NULL_I32, Null};

use crate::id;

pub(crate) struct Cache {
    pub pages: i32,
    pub misses: i32,
    pub ahead: i32,
    pub added: i32,
    pub dirtied: i32,
    pub handles: i32,
}

impl Cache {
    const NOTHING: Self = Self {
        pages: NULL_I32,
        misses: NULL_I32,
        ahead: NULL_I32,
        added: NULL_I32,
        dirtied: NULL_I32,
        handles: NULL_I32,
    };

    /// Of a call that moved `bytes` at `offset` of its file; null where it did not, or where
    /// that is not known.
    #[inline]
    pub(crate) fn of(facts: Option<&CacheFacts>, offset: i64, bytes: i64) -> Self {
        const NONE: CacheFacts = CacheFacts {
            pages: 0,
            missed: 0,
            ahead: 0,
            added: 0,
            dirtied: 0,
            handles: 0,
        };
        let Some(facts) = facts.filter(|facts| **facts != NONE) else {
            return Self::NOTHING;
        };
        // A read looks up all requested pages, including those beyond the end of the file; its
        // return value gives the number of existing ones.
        let asked = u64::from(facts.pages);
        let pages = match (u64::try_from(offset), u64::try_from(bytes)) {
            (Ok(offset), Ok(bytes)) if asked > 0 => asked.min(pages_of(offset, bytes)),
            _ => asked,
        } as u32;
        let misses = facts.missed.min(pages);
        Self {
            pages: id(pages).when(asked > 0),
            misses: id(misses).when(asked > 0),
            ahead: id(facts.ahead.saturating_add(facts.missed - misses)),
            added: id(facts.added),
            dirtied: id(facts.dirtied),
            handles: id(facts.handles),
        }
    }
}

/// Pages that a range of bytes covers. If pages are larger than 4 KiB (some arm64 kernels), the
/// range that was looked up is the limit.
fn pages_of(offset: u64, bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    if bytes == 0 {
        return 0;
    }
    (offset.saturating_add(bytes) - 1) / PAGE - offset / PAGE + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(facts: [u32; 6], offset: i64, bytes: i64) -> [i32; 6] {
        let [pages, missed, ahead, added, dirtied, handles] = facts;
        let facts = CacheFacts {
            pages,
            missed,
            ahead,
            added,
            dirtied,
            handles,
        };
        let c = Cache::of(Some(&facts), offset, bytes);
        [c.pages, c.misses, c.ahead, c.added, c.dirtied, c.handles]
    }

    #[test]
    fn what_was_not_looked_up_is_null() {
        const N: i32 = NULL_I32;
        assert_eq!(columns([0; 6], 0, 4096), [N; 6]);
        assert_eq!(columns([0, 0, 0, 2, 3, 4], 0, 1), [N, N, 0, 2, 3, 4]);
    }

    #[test]
    fn pages_behind_what_was_read_are_ahead_of_it() {
        // Asked for 16 pages of a file that ends with the third.
        let facts = [16, 16, 8, 0, 0, 0];
        assert_eq!(columns(facts, 0, 9000), [3, 3, 21, 0, 0, 0]);
        assert_eq!(columns(facts, 4095, 2), [2, 2, 22, 0, 0, 0]);
        // Nothing is known of where, or it read nothing.
        assert_eq!(columns(facts, -1, -1), [16, 16, 8, 0, 0, 0]);
        assert_eq!(columns(facts, 0, 0), [0, 0, 24, 0, 0, 0]);
    }
}
