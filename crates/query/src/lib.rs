//! SQL over a fathom session.
//!
//! [`Db::open`] gives the session's tables, the views of `sql/` and nothing
//! else: no other file can be read and none written (module `guard` says how).
//! Results stream as Arrow record batches ([`Rows`]); [`output`] writes them as
//! a table, CSV, JSON, Arrow or Parquet. Text that a user has written runs in a process of its
//! own ([`worker`]).

mod clocks;
mod db;
pub mod engine;
mod error;
pub mod escape;
pub mod fetch;
mod findings;
mod limits;
mod members;
pub mod messages;
mod mistaken;
mod moved;
mod names;
mod on_demand;
pub mod output;
mod own_tables;
mod paths;
mod percentiles;
mod place;
mod relations;
mod rows;
mod run;
mod schema;
mod session_row;
mod source;
mod sql_policy;
mod tables;
pub mod together;
mod user_views;
mod views;
mod watchdog;
pub mod worker;
pub mod zoom;

pub use arrow;
pub use db::{Db, FindPath, Interrupter, RowGate};
pub use error::QueryError;
pub use findings::names_findings;
pub use limits::Limits;
pub use members::{host_of, joined_rid, joined_tid, own_rid, own_tid};
pub use names::is_taken;
pub use own_tables::{Converted, TableFormat, convert, is_word};
pub use paths::{FORMS as PATH_FORMS, PathCall, PathRow};
pub use rows::{Batches, Rows};
pub use run::run_of;
pub use schema::{Relation, RelationColumn, relations, schema_markdown};
pub use user_views::UserView;
pub use views::{Doc, blame_between, parse_doc, view_names};
