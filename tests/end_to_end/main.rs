//! Records real programs with the `fathom` binary and compares what it stored
//! with what they did.
//!
//! The tests run side by side, each with its own directories and its own
//! recorder; nothing may depend on time. Those that load programs into the
//! kernel need root and are noted as skipped without it.
// A step that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod aio;
mod always_on;
mod command;
mod content;
mod counters;
mod damage;
mod databases;
mod detail;
mod devices;
mod diagnosis;
mod diff;
mod examples;
mod exports;
mod filters;
mod fio;
mod fio_engines;
mod ground_truth;
mod imports;
mod kept_findings;
mod kernel;
mod large;
mod layers;
mod live;
mod losses;
mod mapped;
mod media;
mod names;
mod page;
mod places;
mod processes;
mod queries;
mod running;
mod stacks;
mod starved;
mod stored;
mod strace_compared;
mod suites;
mod top;
mod uring;
mod waiting;
mod workloads;
