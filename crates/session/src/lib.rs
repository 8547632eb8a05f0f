//! Sessions on disk: what a recording leaves, and what everything else reads.
//!
//! A session is a directory, `NAME.fathom/`:
//!
//! ```text
//! session.json                               what the session says of itself
//! syscalls/part-00000000-00000064.parquet    a folder a table, parts in order
//! syscalls/part-00000065.parquet
//! files/...
//! syscalls.pyramid                           sums over time, for zooming
//! .lock                                      locked while a recorder lives
//! ```
//!
//! Each part is a whole Parquet file that appears at once, so anything that
//! reads Parquet can read `syscalls/*.parquet` at any moment. Parts are written
//! about twice a second; a recorder that is killed loses what came after the
//! last one. Small parts are merged in the background and at the end.
//!
//! Nothing is flushed to the device while recording, which would slow down
//! what is being recorded: after a power failure the last minute may be
//! missing. [`SessionWriter::finish`] flushes what it merges and
//! `session.json`.
//!
//! [`SessionWriter`] writes a session, [`Session`] reads one.

mod catalog;
mod compact;
mod create;
mod decode;
mod encode;
mod error;
mod layout;
mod lock;
mod losses;
mod part;
mod pyramid;
mod queue;
mod reader;
mod scan;
mod schema;
mod shared;
mod sizes;
mod storage;
mod worker;
mod writer;

pub use catalog::PartInfo;
pub use error::SessionError;
pub use layout::PartRange;
pub use reader::Session;
pub use sizes::ColumnSize;
pub use writer::{Finished, SessionWriter, Stats, TableStats, WriterOptions};
