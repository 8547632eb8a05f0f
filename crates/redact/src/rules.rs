//! The action for each kind of text: a file of JSON, and the key of hashes.

use std::io::Read;
use std::path::Path;

use fathom_model::tables::Holds;
use fathom_session::open_regular;
use hmac::{Hmac, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::error::RedactError;

/// Most that a file of rules or a key may have.
const MAX_BYTES: u64 = 1 << 20;
/// Shortest key.
const MIN_KEY: usize = 16;
/// The letters of hashes, one for four bits: no hash contains a word by which rules recognize
/// files, or ends in a digit.
const LETTERS: &[u8; 16] = b"bcdfghjklnqrsvwz";
/// Letters of a hash after the x, by which a reader knows one.
const LENGTH: usize = 14;

/// The action for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It goes: null, or the empty text where a column has no null.
    Drop,
    /// It is replaced by a hash with the key; what is in [`Rules`] to be kept of it stays.
    Hash,
    /// It stays, except for passwords and keys in it.
    Keep,
}

/// Rules of redaction. A member that a file lacks has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Paths, by component.
    pub path: Action,
    /// Names of threads, programs, and services.
    pub name: Action,
    /// Command lines, by word.
    pub command: Action,
    /// Texts among the arguments of calls.
    pub arguments: Action,
    /// Names of operations, such as statements without their values.
    pub query: Action,
    /// Attributes of spans, and texts of errors in them.
    pub attributes: Action,
    /// Bytes that calls moved, and hashes of them.
    pub content: Action,
    /// Addresses on the network, without ports.
    pub address: Action,
    /// Names of functions, and build ids.
    pub symbol: Action,
    /// Names and ids of the host, of its installation, and of containers.
    pub host: Action,
    /// Names of users and groups in options of the recording.
    pub user: Action,
    /// Values of labels.
    pub label: Action,
    /// Directories of the system: with `path` or `command` hashed, paths below them stay.
    #[serde(skip_serializing)]
    pub system: Vec<String>,
    /// Directories below these in which users put files of their own.
    #[serde(skip_serializing)]
    pub private: Vec<String>,
}

impl Default for Rules {
    /// For a reader who knows nothing of the host.
    fn default() -> Self {
        let all = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Self {
            path: Action::Hash,
            name: Action::Hash,
            command: Action::Hash,
            arguments: Action::Hash,
            query: Action::Hash,
            attributes: Action::Drop,
            content: Action::Drop,
            address: Action::Hash,
            symbol: Action::Keep,
            host: Action::Hash,
            user: Action::Hash,
            label: Action::Hash,
            system: all(&[
                "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/rustc", "/sbin", "/sys",
                "/usr",
            ]),
            private: all(&["/sys/fs/cgroup", "/usr/home", "/usr/local", "/usr/src"]),
        }
    }
}

impl Rules {
    /// The rules in one line, for `session.json`: without directories, which may be private.
    pub(crate) fn in_words(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    /// [`RedactError::Io`]; [`RedactError::Rules`] with the line if it is not as documented.
    pub fn read(path: &Path) -> Result<Self, RedactError> {
        let text = read(path)?;
        let wrong = |reason: String| RedactError::Rules {
            path: path.to_owned(),
            reason,
        };
        let rules: Rules =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let directories = rules.system.iter().chain(&rules.private);
        for directory in directories {
            if !directory.starts_with('/') || directory.ends_with('/') {
                return Err(wrong(format!(
                    "line {}: {directory:?} is not a directory as /usr is: it begins with / and does \
                     not end with it",
                    line_of(&text, directory)
                )));
            }
        }
        Ok(rules)
    }

    /// The action for the texts of a column.
    pub fn action(&self, holds: Holds) -> Action {
        match holds {
            Holds::Words => Action::Keep,
            Holds::Path => self.path,
            Holds::Name => self.name,
            Holds::Command => self.command,
            Holds::Arguments => self.arguments,
            Holds::Query => self.query,
            Holds::Attributes => self.attributes,
            Holds::Content => self.content,
            Holds::Address => self.address,
            Holds::Symbol => self.symbol,
            Holds::Host => self.host,
        }
    }
}

/// The line of a file of JSON in which a text is.
fn line_of(json: &[u8], text: &str) -> usize {
    let json = String::from_utf8_lossy(json);
    let at = json.find(&format!("\"{text}\"")).unwrap_or(0);
    let before = json.get(..at).unwrap_or_default();
    before.matches('\n').count() + 1
}

fn read(path: &Path) -> Result<Vec<u8>, RedactError> {
    let mut bytes = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(RedactError::io("read", path))?;
    Ok(bytes)
}

/// The key of hashes. It is in no copy.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A random one: no other copy has the same hashes.
    ///
    /// # Errors
    /// [`RedactError::NoKey`].
    pub fn random() -> Result<Self, RedactError> {
        // Up to 256 bytes the kernel gives all or none.
        let mut bytes = [0; 32];
        match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
            Ok(filled) if filled == bytes.len() => Self::new(&bytes),
            _ => Err(RedactError::NoKey),
        }
    }

    /// The bytes of a file: copies with the same key have the same hashes.
    ///
    /// # Errors
    /// [`RedactError::Io`]; [`RedactError::ShortKey`].
    pub fn read(path: &Path) -> Result<Self, RedactError> {
        let bytes = read(path)?;
        if bytes.len() < MIN_KEY {
            return Err(RedactError::ShortKey {
                path: path.to_owned(),
                minimum: MIN_KEY,
            });
        }
        Self::new(&bytes)
    }

    pub(crate) fn new(bytes: &[u8]) -> Result<Self, RedactError> {
        let key = Hmac::new_from_slice(bytes).map_err(|_| RedactError::NoKey)?;
        Ok(Self(key))
    }

    /// A word that follows from the key: equal for equal keys.
    pub fn fingerprint(&self) -> String {
        self.word("fathom key")
    }

    fn tag(&self, text: &[u8]) -> [u8; 32] {
        let hmac = self.0.clone().chain_update(text);
        hmac.finalize().into_bytes().into()
    }

    /// A word in place of a text.
    pub(crate) fn word(&self, text: impl AsRef<[u8]>) -> String {
        let tag = self.tag(text.as_ref());
        let nibbles = tag.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let letters = nibbles.take(LENGTH).map(|nibble| {
            let letter = LETTERS.get(usize::from(nibble)).copied();
            char::from(letter.unwrap_or(b'x'))
        });
        std::iter::once('x').chain(letters).collect()
    }

    /// 32 hexadecimal digits in place of an id.
    pub(crate) fn id(&self, text: &str) -> String {
        let tag = self.tag(text.as_bytes());
        let bytes = tag.iter().take(16);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// A number in place of a number.
    pub(crate) fn number(&self, number: i64) -> i64 {
        let tag = self.tag(&number.to_le_bytes());
        let first = tag.first_chunk();
        first.map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: &str) -> Result<Rules, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules.json");
        std::fs::write(&path, json).unwrap();
        Rules::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_changes_what_it_names() {
        let given = rules(r#"{"path": "keep", "system": []}"#).unwrap();
        let expected = Rules {
            path: Action::Keep,
            system: Vec::new(),
            ..Rules::default()
        };
        assert_eq!(given, expected);
        assert_eq!(rules("{}").unwrap(), Rules::default());
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_line() {
        for (json, reason) in [
            ("{\n\"paths\": \"keep\"}", "unknown field `paths`"),
            ("{\n\"path\": \"remove\"}", "unknown variant `remove`"),
            ("{\n\"path\" \"keep\"}", "expected `:`"),
            (
                "{\"path\": \"keep\",\n\"system\": [\"usr\"]}",
                "\"usr\" is not a directory",
            ),
            (
                "{\"path\": \"keep\",\n\"private\": [\"/\"]}",
                "\"/\" is not a directory",
            ),
        ] {
            let refused = rules(json).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
            assert!(refused.contains("line 2"), "{refused}");
        }
    }

    #[test]
    fn hashes_depend_on_the_key_and_the_text() {
        let (one, other) = (
            Key::new(b"one key of bytes").unwrap(),
            Key::new(b"another key, too").unwrap(),
        );
        assert_eq!(one.word("a"), one.word("a"));
        assert_ne!(one.word("a"), one.word("b"));
        assert_ne!(one.word("a"), other.word("a"));
        assert_ne!(one.number(7), other.number(7));
        assert_eq!(one.word("a").len(), LENGTH + 1);
        assert!(Key::random().unwrap().word("a") != Key::random().unwrap().word("a"));
    }

    #[test]
    fn short_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(
            Key::read(&path),
            Err(RedactError::ShortKey { .. })
        ));
        std::fs::write(&path, [7; MIN_KEY]).unwrap();
        assert_eq!(
            Key::read(&path).unwrap().word("a"),
            Key::new(&[7; MIN_KEY]).unwrap().word("a")
        );
    }
}
