//! Names that many rows share.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A name; a copy of it takes no memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(feature = "types")]
impl schemars::JsonSchema for Name {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The names of a session, each once.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<Name>);

impl Names {
    /// `text` as a name; null and nothing have none.
    pub fn of(&mut self, text: Option<String>) -> Option<Name> {
        let text = text.filter(|text| !text.is_empty())?;
        if let Some(known) = self.0.get(text.as_str()) {
            return Some(known.clone());
        }
        let name = Name::from(text.as_str());
        self.0.insert(name.clone());
        Some(name)
    }
}
