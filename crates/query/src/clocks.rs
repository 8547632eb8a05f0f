//! Clocks as functions of SQL.
//!
//! Written out, the lines of a clock would be in every statement, for each column with a time of each table
//! that a view reads: to prepare that took seconds.

use std::error::Error;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use duckdb::Connection;
use duckdb::vscalar::{ArrowFunctionSignature, VArrowScalar};
use fathom_model::set::ClockMap;

use crate::QueryError;
use crate::error::message;

/// The function of a clock: [`ClockMap::apply`].
struct OnClock;

impl VArrowScalar for OnClock {
    type State = ClockMap;

    fn invoke(clock: &ClockMap, rows: RecordBatch) -> Result<Arc<dyn Array>, Box<dyn Error>> {
        let times = rows.columns().first().ok_or("no time")?;
        let times = times.as_primitive_opt::<Int64Type>().ok_or("no BIGINT")?;
        Ok(Arc::new(
            times.unary::<_, Int64Type>(|time| clock.apply(time)),
        ))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        vec![ArrowFunctionSignature::exact(
            vec![DataType::Int64],
            DataType::Int64,
        )]
    }
}

/// Its name: equal clocks share one.
fn function(clock: &ClockMap) -> String {
    let mut hasher = DefaultHasher::new();
    for segment in &clock.segments {
        (segment.from_ns, segment.to_ns, segment.rate.to_bits()).hash(&mut hasher);
    }
    let mut name = String::from("on_clock_");
    let _ = write!(name, "{:016x}", hasher.finish());
    name
}

/// Makes the function that [`on_clock`] calls for `clock` in the database of `connection`.
pub(crate) fn create(connection: &Connection, clock: &ClockMap) -> Result<(), QueryError> {
    if clock.segments.is_empty() {
        return Ok(());
    }
    let failed = |e: duckdb::Error| QueryError::Sql(message(&e));
    let name = function(clock);
    let is_there = "SELECT count(*) FROM duckdb_functions() WHERE function_name = ?";
    let there: i64 = connection
        .query_row(is_there, [&name], |row| row.get(0))
        .map_err(failed)?;
    if there > 0 {
        return Ok(());
    }
    connection
        .register_scalar_function_with_state::<OnClock>(&name, clock)
        .map_err(failed)
}

/// The SQL of a time, a BIGINT, on the clock that `clock` leads to.
pub(crate) fn on_clock(clock: &ClockMap, time: &str) -> String {
    match clock.segments.is_empty() {
        true => time.to_owned(),
        false => format!("{}({time})", function(clock)),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::set::Segment;

    use super::*;

    #[test]
    fn sql_has_the_times_of_the_clock() {
        let segment = |from_ns, to_ns, rate| Segment {
            from_ns,
            to_ns,
            rate,
        };
        let clock = ClockMap {
            segments: vec![segment(1_000, 5_000, 1e-3), segment(9_000, 13_008, -0.25)],
        };
        let connection = crate::engine::plain();
        // Twice is once.
        create(&connection, &clock).unwrap();
        create(&connection, &clock).unwrap();
        let select = format!(
            "SELECT {} FROM (VALUES (-7::BIGINT, 0), (1000, 1), (8999, 2), (9000, 3), (NULL, 4), \
             (9223372036854775807, 5), (-9223372036854775808, 6)) v(t, i) ORDER BY i",
            on_clock(&clock, "t")
        );
        let mut statement = connection.prepare(&select).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, Option<i64>>(0));
        let rows: Vec<_> = rows.unwrap().collect::<Result<_, _>>().unwrap();
        let mut wanted =
            [-7, 1000, 8999, 9000, 0, i64::MAX, i64::MIN].map(|t| Some(clock.apply(t)));
        wanted[4] = None;
        assert_eq!(rows, wanted);
        assert_eq!(on_clock(&ClockMap::default(), "t"), "t");
    }
}
