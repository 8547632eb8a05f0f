//! The text of `session.json`, with a checksum over all of it.
//!
//! The first key is `checksum`: XXH64 (seed 0) of the file with its 16 digits as zeros. The last
//! one, `has_checksum`, says that it is there, so that a bit that changes in the name of one of
//! them does not make the file look like those of earlier versions, which have neither.

use fathom_model::meta::SessionMeta;
use serde_json::Value;
use twox_hash::XxHash64;

const BEFORE: &str = "{\n  \"checksum\": \"";
const ZEROS: &str = "0000000000000000";
const AFTER: &str = "\",";
const END: &str = ",\n  \"has_checksum\": true\n}\n";

/// The file that says `meta`.
pub(crate) fn write(meta: &SessionMeta) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string_pretty(meta)?;
    let inner = json.strip_prefix('{').and_then(|j| j.strip_suffix("\n}"));
    let mut text = [BEFORE, ZEROS, AFTER, inner.unwrap_or_default(), END].concat();
    let digits = digits(text.as_bytes());
    text.replace_range(BEFORE.len()..BEFORE.len() + ZEROS.len(), &digits);
    Ok(text.into_bytes())
}

/// Whether the file is as it was written, as far as it says: `value` is what `json` holds.
pub(crate) fn is_as_written(json: &[u8], value: &Value) -> bool {
    let keys = ["checksum", "has_checksum"];
    if keys.iter().all(|key| value.get(key).is_none()) {
        return true;
    }
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
