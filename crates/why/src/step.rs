//! A request of an application below another one that caused it.

use serde::Serialize;

/// Requests with one name, of one program, for one request above them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Step {
    /// How many requests are above them, one in the other.
    pub depth: i64,
    /// Id of the longest.
    pub span_id: String,
    /// The program that answered.
    pub service: String,
    /// Its process; null if there are several, or if it is not known.
    pub pid: Option<i64>,
    /// The name.
    pub name: String,
    /// How many there are.
    pub requests: i64,
    /// Sum of their durations, nanoseconds: as long as the program above them waited, if that was recorded.
    pub total_ns: i64,
    /// The part of it outside of the requests below.
    pub own_ns: i64,
}
