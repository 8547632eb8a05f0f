//! The commit marker: the last object of a session, which names all others.

use fathom_model::meta::SessionMeta;
use serde::{Deserialize, Serialize};

/// Version of the layout.
pub const LAYOUT_VERSION: u32 = 1;

/// An object of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its table.
    pub table: String,
    /// Path below the prefix of the destination.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// The contents of a marker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// [`LAYOUT_VERSION`] of the fathom that shipped it.
    pub layout_version: u32,
    /// Id of the session.
    pub session: String,
    /// SHA-256 of everything from which the objects follow: the parts of the session, its metadata, and
    /// the rules and the key of redaction.
    pub source: String,
    /// All other objects of the session.
    pub objects: Vec<Object>,
}

/// The contents of a marker: with the metadata of the session, which only readers need.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    marker: &'a Marker,
    metadata: &'a SessionMeta,
}

impl Marker {
    /// Whether the session has objects of this table.
    pub fn has(&self, table: &str) -> bool {
        self.objects.iter().any(|object| object.table == table)
    }

    /// The contents of the object.
    pub fn to_json(&self, metadata: &SessionMeta) -> Result<Vec<u8>, serde_json::Error> {
        let marker = self;
        let mut json = serde_json::to_vec_pretty(&Written { marker, metadata })?;
        json.push(b'\n');
        Ok(json)
    }
}
