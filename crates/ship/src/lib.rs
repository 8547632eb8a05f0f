//! Sessions in an object store or a directory, in a layout that other engines read.
//!
//! ```text
//! PREFIX/syscalls/date=2026-01-31/host=db1/session=ID/part-00000000-00000064.HASH.parquet
//! PREFIX/files/...                      a directory per table, partitions as Hive has them
//! PREFIX/findings/.../part-00000000.HASH.parquet   a row per finding of the diagnosis
//! PREFIX/objects/.../part-00000000.HASH.parquet    a row per object of the session
//! PREFIX/sessions/.../part-00000000.HASH.parquet   a row: host, clock, counts
//! PREFIX/_sessions/.../session.json     the commit marker, which is written last
//! ```
//!
//! The name of an object has a part of its checksum, so an object that is there under its name is
//! whole and right: stores and directories show objects when they are complete. [`ship`] lists the
//! partition, uploads the objects that are missing, removes objects of an interrupted attempt that
//! meant other contents, and writes the row in table `sessions` and the marker. So an interrupted
//! attempt is continued, a second one changes nothing, and a query that joins table `sessions` sees
//! whole sessions only. A session that has changed since is refused or, with force, replaced: its
//! marker and its row go first.

#![warn(missing_docs)]

mod contents;
mod destination;
mod error;
mod findings;
mod layout;
mod made;
mod marker;
mod ship;

pub use destination::Destination;
pub use error::ShipError;
pub use ship::{Redaction, Shipment, Shipped};
