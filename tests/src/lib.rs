//! Support for the end-to-end tests: programs whose calls are known
//! ([`workload`], [`truth`]), recordings of them ([`record`], [`session`]), and
//! what other tools say about the same calls ([`strace`], [`parts`]).
//!
//! This crate serves tests only: a step that fails fails the test, so it panics
//! where library code would return an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod certificates;
pub mod environment;
pub mod fake_store;
pub mod models;
pub mod page;
pub mod parts;
pub mod process;
pub mod record;
pub mod retimed;
pub mod serve;
pub mod session;
mod statements;
pub mod strace;
pub mod tools;
pub mod truth;
pub mod workload;

pub use environment::{Scratch, is_root, skip};
pub use fathom_testkit::rounds;
pub use record::{Record, Recording, Running};
pub use workload::workload;
