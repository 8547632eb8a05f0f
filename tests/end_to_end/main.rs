//! Records real programs with the `fathom` binary and compares what it stored
//! with what they did.
//!
//! The tests run side by side, each with its own directories and its own
//! recorder; nothing may depend on time. Those that load programs into the
//! kernel need root and are noted as skipped without it.
// A step that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command;
mod damage;
mod filters;
mod fio;
mod ground_truth;
mod losses;
mod names;
mod processes;
mod running;
mod stored;
mod strace_compared;
mod waiting;
