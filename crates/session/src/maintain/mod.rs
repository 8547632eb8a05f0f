//! Maintenance of a session's existing parts.

pub(crate) mod add;
pub(crate) mod compact;
pub(crate) mod compactor;
pub(crate) mod finalize;
pub(crate) mod findings;
pub(crate) mod own;
pub(crate) mod pyramids;
pub(crate) mod relocate;
pub(crate) mod repair;
pub(crate) mod retention;
pub(crate) mod snapshot;
