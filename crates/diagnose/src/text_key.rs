//! Numbers for paths, so that rules that follow very many need not keep their text.

use std::hash::{BuildHasher, RandomState};

/// Makes a number of a text: equal for equal texts, different for others but for
/// one in 2^64. Keyed at random, so that names cannot be chosen to collide.
#[derive(Debug, Default)]
pub(crate) struct TextKey(RandomState);

impl TextKey {
    pub(crate) fn of(&self, text: &str) -> u64 {
        self.0.hash_one(text)
    }
}
