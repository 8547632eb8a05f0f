//! The summary of a session: who asked storage for what, how much, how slow,
//! and whether anything was lost.
//!
//! [`Report::build`] takes the numbers from the session once; [`to_text`] and
//! [`to_html`] lay them out, and `serde` makes JSON of them.

mod costly;
mod counters;
mod error;
mod errors;
mod findings;
mod fleet;
mod gather;
mod html;
mod input;
mod layers;
mod library;
mod problems;
mod queues;
mod report;
mod sarif;
mod section;
mod text;
mod thread_states;

pub use counters::CallCounters;
pub use error::ReportError;
pub use findings::{Findings, diagnosis_in_passing};
pub use fleet::{Fleet, FleetGroup, FleetKey, FleetShares};
pub use html::to_html;
pub use input::ReportInput;
pub use layers::{CachedFile, Device, Interrupt, LayerTime, Layers, Wait};
pub use library::LibraryFunction;
pub use queues::{Queue, ReadAhead};
pub use report::{
    Bucket, Calls, CallsOnFile, Cost, ErrorCount, FileActivity, Files, Latency, Loss, LossPlace,
    NextCommand, Report, SessionSummary, Slice, State, Storage, Thread, Threads, Timeline, Totals,
};
pub use sarif::to_sarif;
pub use text::{diagnosis_to_text, diff_to_text, path_to_text, story_to_text, to_screen, to_text};
pub use thread_states::{BlockedTime, ThreadStates};
