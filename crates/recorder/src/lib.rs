//! Recordings: from a target to a session.
//!
//! A [`Recorder`] attaches the probes and creates the session, its [`Recording`] drains the rings
//! into the session until the [`Target`] ends, and an [`Observer`] receives events meanwhile.
//! Nothing here prints.
//!
//! ```no_run
//! use fathom_recorder::{Observer, Options, RecordError, Recorder, Signals, Target};
//!
//! struct Messages;
//!
//! impl Observer for Messages {
//!     fn warning(&mut self, text: &str) {
//!         eprintln!("{text}");
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Before other threads are started: they inherit the mask.
//!     let mut signals = Signals::block()?;
//!     let options = Options {
//!         output: Some("make.fathom".into()),
//!         ..Options::default()
//!     };
//!     let target = Target::command(["make", "-j4"]);
//!     let recorder = Recorder::open(&options, target, &signals, &mut Messages)?;
//!     let mut ended = recorder.start()?.run(&mut signals, &mut Messages);
//!     let totals = ended.summary?.totals;
//!     println!("{} calls, {} of them lost", totals.seen, totals.lost);
//!     let status = ended.target.wait(&mut signals);
//!     println!("make ended with status {status:?}");
//!     Ok(())
//! }
//! ```
//!
//! [`RowStream`] records without a session, [`replay`] makes a session of a raw capture, and
//! [`snapshot`] has another process's recorder save what it has.

#![warn(missing_docs)]

mod backlog;
mod claims;
mod drain;
mod error;
mod host;
mod machine;
mod meta;
mod observer;
mod options;
mod pace;
mod pipeline;
mod plan;
mod program;
mod recorder;
mod replay;
mod rows;
mod rules;
mod running;
mod sink;
mod snapshot;
mod source;
mod stages;
mod stalls;
mod tail;
mod trigger;

pub use claims::Kubernetes;
pub use error::RecordError;
pub use fathom_probe::{Arrived, Content, FilterArgs, Signals};
pub use host::describe as describe_host;
pub use meta::{TASK_FILTERS, filters_as_given};
pub use observer::{Control, Found, Observer, Progress, Stall, Summary};
pub use options::{
    Detail, KeepLimit, LIBRARY_CALLS_PER_SECOND, LibraryBy, Options, Rows, SAMPLE, SaveWhen, Target,
};
pub use pipeline::MEMORY_BYTES;
pub use recorder::{Ended, Recorder, Recording};
pub use replay::replay;
pub use rows::{RowStream, TakeRows};
pub use running::RunningTarget;
pub use sink::RowSink;
pub use snapshot::snapshot;
