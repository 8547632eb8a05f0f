//! From the bytes that the kernel side wrote to events in order of time.
//!
//! [`decode()`] reads one record, [`Merge`] brings the rings of all CPUs into
//! one order, [`capture`] keeps the bytes in a file so that a recording can be
//! replayed without privileges. Nothing in here trusts the bytes: whatever they
//! are, the outcome is an event or an error, never a panic.

pub mod capture;
mod event;
mod merge;
mod path;
mod record;

pub use event::{DecodeError, Event, bios};
pub use merge::{DecodeStats, Merge, RingStats};
pub use path::{absolute_path, append_absolute_path};
pub use record::decode;
