//! A session on disk: names, `session.json`, parts and what is in them.

pub(crate) mod checksum;
pub(crate) mod codec;
pub(crate) mod footer;
pub(crate) mod layout;
pub(crate) mod lock;
pub(crate) mod meta;
pub(crate) mod part;
pub(crate) mod schema;
