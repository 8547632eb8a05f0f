//! Numbers for paths, so that rules that follow very many need not keep their text.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The number of a text: equal for equal texts, different for others but for one in 2^64.
/// Keyed at random, so that names cannot be chosen to collide, and the same for all rules:
/// the numbers of a call's paths are made once.
pub(crate) fn key_of(text: &str) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(text)
}
