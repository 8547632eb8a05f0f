//! The recorder's work while rows arrive.

pub(crate) mod catalog;
pub(crate) mod create;
pub(crate) mod flush;
pub(crate) mod gathered;
pub(crate) mod losses;
pub(crate) mod options;
pub(crate) mod pyramids;
pub(crate) mod queue;
pub(crate) mod shared;
pub(crate) mod storage;
pub(crate) mod worker;
