//! Sets: sessions of several hosts as one, with all times on one clock.
//!
//! Messages between the hosts relate their clocks: TCP sends and receives, which table `flows` and
//! the positions in streams join. [`clocks`] turns messages into a relation with a bound of its error,
//! [`build`] finds for each session the chain of relations that leads to the first one.

#![warn(missing_docs)]

mod build;
mod clocks;
mod summary;

pub use build::{Named, SetError, build};
pub use summary::{MemberSummary, Summary, Traffic};
