//! What a session says of itself, from its parts when `session.json` is gone.

use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::{SCHEMA_VERSION, TABLES};

use crate::dir::Dir;
use crate::layout::PartRange;
use crate::reader;
use crate::schema::SESSION_KEY;

/// What goes into the footers of the first part of each table and of merged
/// parts.
pub(crate) fn for_footers(meta: &SessionMeta) -> String {
    let mut start = meta.clone();
    start.state = State::Recording;
    start.hooks.clear();
    start.totals = Default::default();
    serde_json::to_string(&start).unwrap_or_default()
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
    let footer = reader::footer(dir, name).ok()?;
    let values = footer.metadata.file_metadata().key_value_metadata()?;
    let json = values.iter().find(|v| v.key == SESSION_KEY)?;
    let meta: SessionMeta = serde_json::from_str(json.value.as_ref()?).ok()?;
    (meta.schema_version == SCHEMA_VERSION).then_some(meta)
}
