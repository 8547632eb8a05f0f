//! Sessions on disk: what a recording leaves, and what everything else reads.
//!
//! A session is a directory, `NAME.fathom/`:
//!
//! ```text
//! session.json                               metadata and totals
//! syscalls/part-00000000-00000064.parquet    one folder per table, parts in order
//! syscalls/part-00000065.parquet
//! files/...
//! syscalls.pyramid, slices.pyramid, ...      sums over time, for zooming
//! own/NAME-CHECKSUM.parquet                  tables that the user added
//! findings.json                              cached findings, in some sessions
//! .lock                                      locked while a recorder runs
//! ```
//!
//! Each part contains checksums, and so does `session.json`: a file in which a bit has
//! changed is named and not used.
//!
//! Each part is a whole Parquet file that appears at once, so any Parquet reader can read
//! `syscalls/*.parquet` at any time. Parts are written about twice per second; a recorder that is
//! killed loses the rows after the last one. Small parts are merged in the background and at the
//! end.
//!
//! A part is not flushed to the device when it is written, which could slow down
//! what is being recorded; one that was merged is, before the others go. A machine
//! that dies loses what the kernel had not written back by itself, in general
//! half a minute; with [`WriterOptions::durable`] parts are flushed, and it loses
//! a second. [`SessionWriter::finish`] flushes what it merges and `session.json`.
//!
//! [`SessionWriter`] writes a session, [`Session`] reads one.

#![warn(missing_docs)]

mod disk;
mod error;
mod format;
mod maintain;
mod read;
mod threads;
mod transfer;
mod write;
mod writer;

pub use disk::dir::{create_private, open_regular};
pub use disk::new_dir::NewDir;
pub use disk::new_file::NewFile;
pub use disk::owner::{Share, is_ours};
pub use disk::trusted::{
    Distrust, config_dir, open_trusted_dir, open_trusted_folder, read_trusted, resolve_trusted,
};
pub use error::SessionError;
pub use format::layout::{PartInfo, PartRange, is_own_name};
pub use format::lock::FolderLock;
pub use format::schema::SESSION_KEY;
pub use maintain::add::Addition;
pub use maintain::findings::{read_findings, remove_findings, write_findings};
pub use maintain::own::{MOST_OWN_BYTES, MOST_OWN_TABLES, OwnAddition};
pub use maintain::relocate::move_session;
pub use maintain::repair::{Repair, repair};
pub use maintain::retention::REFRESH;
pub use read::batches::Batches;
pub use read::latest::on_latest;
pub use read::own::Own;
pub use read::row_check::RowCheck;
pub use read::session::Session;
pub use read::set::{SessionSet, dirs_of, write_set};
pub use read::sizes::ColumnSize;
pub use transfer::{
    Frame, FrameReader, FrameWriter, Pass, Received, Receiver, TransferError, parse, send,
};
pub use write::create::{create_folder, discard};
pub use write::options::WriterOptions;
pub use write::queue::SaveRequest;
pub use writer::{Finished, SessionWriter, Stats, TableStats};
