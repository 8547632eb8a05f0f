//! Sessions on disk: what a recording leaves, and what everything else reads.
//!
//! A session is a directory, `NAME.fathom/`:
//!
//! ```text
//! session.json                               what the session says of itself
//! syscalls/part-00000000-00000064.parquet    a folder a table, parts in order
//! syscalls/part-00000065.parquet
//! files/...
//! syscalls.pyramid, slices.pyramid           sums over time, for zooming
//! findings.json                              what rules have found, in some sessions
//! .lock                                      locked while a recorder lives
//! ```
//!
//! Each part contains checksums, and so does `session.json`: a file in which a bit has
//! changed is named and not used.
//!
//! Each part is a whole Parquet file that appears at once, so anything that
//! reads Parquet can read `syscalls/*.parquet` at any moment. Parts are written
//! about twice a second; a recorder that is killed loses what came after the
//! last one. Small parts are merged in the background and at the end.
//!
//! A part is not flushed to the device when it is written, which could slow down
//! what is being recorded; one that was merged is, before the others go. A machine
//! that dies loses what the kernel had not written back by itself, in general
//! half a minute; with [`WriterOptions::durable`] parts are flushed, and it loses
//! a second. [`SessionWriter::finish`] flushes what it merges and `session.json`.
//!
//! [`SessionWriter`] writes a session, [`Session`] reads one.

mod batches;
mod catalog;
mod checksum;
mod clusters;
mod compact;
mod create;
mod decode;
mod dir;
mod durable;
mod encode;
mod error;
mod files;
mod findings;
mod latest;
mod layout;
mod lock;
mod losses;
mod meta_json;
mod owner;
mod page_order;
mod part;
mod pyramid;
mod queue;
mod reader;
mod rebuild;
mod repair;
mod ring;
mod save;
mod schema;
mod settle;
mod shared;
mod sizes;
mod storage;
mod worker;
mod writer;

pub use batches::Batches;
pub use catalog::PartInfo;
pub use dir::{create_private, open_regular};
pub use error::SessionError;
pub use files::{NewFile, move_session};
pub use findings::{read_findings, remove_findings, write_findings};
pub use latest::on_latest;
pub use layout::PartRange;
pub use owner::{Share, is_ours};
pub use reader::Session;
pub use repair::{Repair, repair};
pub use ring::REFRESH;
pub use save::SaveRequest;
pub use sizes::ColumnSize;
pub use writer::{Finished, SessionWriter, Stats, TableStats, WriterOptions, discard};
