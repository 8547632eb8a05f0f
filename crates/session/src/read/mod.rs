//! Reading a session.

pub(crate) mod batches;
pub(crate) mod latest;
pub(crate) mod pyramids;
pub(crate) mod session;
pub(crate) mod sizes;
