//! The programs and files that use storage now: sums over rows as they pass, in a terminal.
//!
//! [`Tally`] adds up the rows of a recording by file, process, thread, call, layer
//! and device, and is cut into a [`Frame`] each interval. [`View`] is what the user
//! chose to see of it; [`screen`] draws both, [`print`] writes frames for programs
//! and for terminals that cannot be drawn on. Nothing here records.

mod frame;
mod group;
mod keys;
mod latency;
mod name;
mod names;
pub mod print;
mod queues;
pub mod screen;
mod tally;
mod view;

pub use frame::{Dimension, Frame, Health, Line, Numbers, Stalled};
pub use keys::Action;
pub use queues::Holdup;
pub use tally::Tally;
pub use view::{Column, Scope, View};
