//! Reading a session.
//!
//! Rows are read in two ways: the rules take them from [`session::Session::batches`], and SQL
//! takes them from DuckDB. Both read the parts that [`session::Session`] found whole, so the rows
//! of a damaged part are in neither, and [`session::Session::problems`] names the part.
//! `crates/query/tests/readers.rs` holds both to this:
//!
//! | | `batches` | SQL |
//! |---|---|---|
//! | Order | as written; calls in the order in which they ended | none without ORDER BY |
//! | Null | `NULL_I64`, `NULL_I32`, `StrId::NULL` | NULL |
//! | Rows with one key | all, the one that counts last | the one that counts |
//!
//! Merging puts the calls of a thread and kind together within a row group; `batches` brings the
//! order back, a row group at a time.

pub(crate) mod batches;
pub(crate) mod latest;
pub(crate) mod own;
pub(crate) mod pyramids;
pub(crate) mod row_check;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod sizes;
