//! `session.json`, with a checksum over all of it, and what the footers of parts repeat of it.
//!
//! The first key is `checksum`: XXH64 (seed 0) of the file with its 16 digits as zeros.

use std::io::{ErrorKind, Read};

use fathom_model::meta::SessionMeta;
use fathom_model::tables::{SCHEMA_VERSION, TABLES};
use twox_hash::XxHash64;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::footer;
use crate::format::layout::{META_FILE, PartRange};
use crate::format::schema::SESSION_KEY;

/// More than any `session.json` has.
const MAX_META_BYTES: u64 = 16 << 20;

const BEFORE: &str = "{\n  \"checksum\": \"";
const ZEROS: &str = "0000000000000000";
const AFTER: &str = "\",";
const END: &str = "\n}\n";

/// The file that says `meta`.
pub(crate) fn to_json(meta: &SessionMeta) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string_pretty(meta)?;
    let inner = json.strip_prefix('{').and_then(|j| j.strip_suffix("\n}"));
    let mut text = [BEFORE, ZEROS, AFTER, inner.unwrap_or_default(), END].concat();
    let digits = digits(text.as_bytes());
    text.replace_range(BEFORE.len()..BEFORE.len() + ZEROS.len(), &digits);
    Ok(text.into_bytes())
}

fn is_as_written(json: &[u8]) -> bool {
    let place = BEFORE.len()..BEFORE.len() + ZEROS.len();
    let mut zeroed = json.to_vec();
    let Some(found) = zeroed.get_mut(place.clone()) else {
        return false;
    };
    found.copy_from_slice(ZEROS.as_bytes());
    json.get(place) == Some(digits(&zeroed).as_bytes())
}

fn digits(file: &[u8]) -> String {
    format!("{:016x}", XxHash64::oneshot(0, file))
}

/// The contents of `session.json`.
pub(crate) fn read(dir: &Dir) -> Result<SessionMeta, SessionError> {
    let path = dir.path().join(META_FILE);
    let file = match dir.open_file(META_FILE) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(SessionError::NotASession {
                path: dir.path().to_owned(),
                reason: "it holds no session.json",
            });
        }
        Err(e) if e.kind() == ErrorKind::InvalidInput => {
            return Err(SessionError::Damaged {
                path,
                reason: e.to_string(),
            });
        }
        result => result.map_err(SessionError::io("open", &path))?,
    };
    let mut json = Vec::new();
    file.take(MAX_META_BYTES)
        .read_to_end(&mut json)
        .map_err(SessionError::io("read", &path))?;
    let damaged = |e: serde_json::Error| SessionError::Damaged {
        path: path.clone(),
        reason: e.to_string(),
    };
    // Only the version is sure to be understood in what another fathom wrote.
    let value: serde_json::Value = serde_json::from_slice(&json).map_err(damaged)?;
    let version = value
        .get("schema_version")
        .and_then(serde_json::Value::as_u64);
    if let Some(version) = version.filter(|v| *v != u64::from(SCHEMA_VERSION)) {
        let writer = value
            .get("fathom_version")
            .and_then(|v| v.as_str())
            .unwrap_or("?");
        return Err(SessionError::OtherVersion {
            path,
            found: u32::try_from(version).unwrap_or(u32::MAX),
            known: SCHEMA_VERSION,
            writer: writer.escape_debug().to_string(),
        });
    }
    if !is_as_written(&json) {
        return Err(SessionError::Damaged {
            path,
            reason: "its checksum is another".to_owned(),
        });
    }
    serde_json::from_value(value).map_err(damaged)
}

/// `session.json` as it was when the recording began, without the hooks: from
/// the first part that has it. `None` when none has.
pub(crate) fn from_parts(dir: &Dir) -> Option<SessionMeta> {
    TABLES.iter().find_map(|table| {
        let dir = dir.dir(table.name).ok()?;
        let names = dir.names().ok()?;
        let mut parts: Vec<_> = names
            .iter()
            .filter_map(|name| PartRange::parse(name.to_str()?))
            .collect();
        parts.sort();
        parts
            .iter()
            .find_map(|part| of_part(&dir, &part.to_string()))
    })
}

fn of_part(dir: &Dir, name: &str) -> Option<SessionMeta> {
    let footer = footer::read(dir, name).ok()?;
    let values = footer.metadata.file_metadata().key_value_metadata()?;
    let json = values.iter().find(|v| v.key == SESSION_KEY)?;
    let meta: SessionMeta = serde_json::from_str(json.value.as_ref()?).ok()?;
    (meta.schema_version == SCHEMA_VERSION).then_some(meta)
}
