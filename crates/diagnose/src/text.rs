//! Text that many hold at once.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use fathom_model::{StrId, units};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::names::role;
use crate::text_key::key_of;

/// A name or a path: copies share its bytes. State about files and threads keeps many of them, so a
/// text that rules take from a call costs no allocation each.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Option<Arc<str>>);

impl Text {
    /// Its characters.
    pub fn as_str(&self) -> &str {
        self
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self((!text.is_empty()).then(|| text.into()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(feature = "types")]
impl schemars::JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn counted(n: i64, one: &str, several: &str) -> String {
    format!("{} {}", units::count(n), if n == 1 { one } else { several })
}

/// How often: `once`, `2 times`.
pub(crate) fn times(n: i64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", units::count(n)),
    }
}

/// Parts of a list in a sentence: `a, b and c`.
pub(crate) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Texts of a batch by their ids, made when the first rule wants to keep one, and their numbers,
/// made when the first wants to look one up.
#[derive(Debug)]
pub(crate) struct TextCache {
    texts: Vec<OnceCell<Text>>,
    keys: Vec<OnceCell<u64>>,
    /// Of names of threads: numbers of the threads' roles.
    role_keys: Vec<OnceCell<u64>>,
}

impl TextCache {
    /// As many as a batch has strings.
    pub(crate) fn new(strings: usize) -> Self {
        Self {
            texts: vec![OnceCell::new(); strings],
            keys: vec![OnceCell::new(); strings],
            role_keys: vec![OnceCell::new(); strings],
        }
    }

    /// The number of the text with an id, which reads `text`.
    pub(crate) fn key(&self, id: StrId, text: &str) -> u64 {
        once(&self.keys, id, || key_of(text))
    }

    /// The number of the role of threads with a name.
    pub(crate) fn role_key(&self, id: StrId, comm: &str) -> u64 {
        once(&self.role_keys, id, || key_of(role(comm)))
    }

    /// The text with an id, which reads `text`.
    pub(crate) fn share(&self, id: StrId, text: &str) -> Text {
        let cell = self.texts.get(id.0 as usize);
        cell.map_or_else(
            || text.into(),
            |cell| cell.get_or_init(|| text.into()).clone(),
        )
    }
}

/// The number for an id, worked out the first time.
fn once(numbers: &[OnceCell<u64>], id: StrId, number: impl FnOnce() -> u64) -> u64 {
    match numbers.get(id.0 as usize) {
        Some(cell) => *cell.get_or_init(number),
        None => number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_batch_is_made_once() {
        let texts = TextCache::new(2);
        let (one, two) = (texts.share(StrId(1), "a"), texts.share(StrId(1), "a"));
        assert_eq!((&*one, one.as_ptr()), ("a", two.as_ptr()));
        assert_eq!(&*texts.share(StrId(7), "b"), "b");
        assert_eq!(texts.key(StrId(1), "a"), key_of("a"));
        assert_eq!(texts.key(StrId(1), "a"), texts.key(StrId(7), "a"));
        assert_eq!(&*Text::default(), "");
        assert_eq!(texts.role_key(StrId(1), "worker-3"), key_of("worker"));
    }

    #[test]
    fn one_is_one() {
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(1200, "file", "files"), "1,200 files");
        assert_eq!(
            (times(1), times(3)),
            ("once".to_owned(), "3 times".to_owned())
        );
        let parts = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&parts), "a, b and c");
        assert_eq!(list(&parts[..1]), "a");
    }
}
