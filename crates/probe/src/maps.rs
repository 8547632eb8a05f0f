//! The maps of the loaded programs.

use libbpf_rs::{MapCore, Object};

use crate::error::ProbeError;

pub(crate) fn map<'a>(
    object: &'a Object,
    name: &'static str,
) -> Result<libbpf_rs::Map<'a>, ProbeError> {
    object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(ProbeError::Object(name))
}
