//! The rows of the sessions of a set as one batch.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use fathom_model::set::ClockMap;

/// A host, how its clock leads to the one of the reference, and its rows.
pub type OfHost<'a> = (&'a str, &'a ClockMap, Vec<RecordBatch>);

/// The rows of all hosts, with a first column `host`. Times (`ts_ns`, and columns whose names end in
/// `_at_ns`) are on the clock of the reference.
///
/// # Errors
///
/// When the rows have different columns.
pub fn of_hosts(hosts: &[OfHost<'_>]) -> Result<RecordBatch, ArrowError> {
    let mut all = Vec::new();
    for (host, clock, batches) in hosts {
        for batch in batches {
            all.push(of_host(host, clock, batch)?);
        }
    }
    let Some(schema) = all.first().map(RecordBatch::schema) else {
        return Ok(RecordBatch::new_empty(Arc::new(Schema::empty())));
    };
    // concat_batches() itself would panic.
    if all.iter().any(|batch| batch.schema() != schema) {
        let differ = "the rows of the hosts have different columns".to_owned();
        return Err(ArrowError::SchemaError(differ));
    }
    concat_batches(&schema, &all)
}

fn of_host(host: &str, clock: &ClockMap, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = vec![Arc::new(Field::new("host", DataType::Utf8, false))];
    let names = StringArray::from_iter_values((0..batch.num_rows()).map(|_| host));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(names)];
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let is_time = field.name() == "ts_ns" || field.name().ends_with("_at_ns");
        let times = column.as_any().downcast_ref::<Int64Array>();
        columns.push(match times.filter(|_| is_time) {
            Some(times) => Arc::new(times.unary::<_, Int64Type>(|at_ns| clock.apply(at_ns))),
            None => column.clone(),
        });
        fields.push(field.clone());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ts_ns: &[i64], calls: &[i64]) -> Vec<RecordBatch> {
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![int("ts_ns"), int("calls")]));
        let column = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
        vec![RecordBatch::try_new(schema, vec![column(ts_ns), column(calls)]).unwrap()]
    }

    #[test]
    fn times_are_on_the_clock_of_the_reference() {
        let same = ClockMap { segments: vec![] };
        let late = ClockMap::line(0, 1_000, 0.5);
        let all = of_hosts(&[
            ("web", &same, rows(&[10, 20], &[1, 2])),
            ("db", &late, rows(&[0, 100], &[3, 4])),
        ])
        .unwrap();
        let column = |name: &str| all.column_by_name(name).unwrap().clone();
        let ints = |name| {
            column(name)
                .as_any()
                .downcast_ref::<Int64Array>()
                .unwrap()
                .values()
                .to_vec()
        };
        assert_eq!(ints("ts_ns"), [10, 20, 1_000, 1_150]);
        assert_eq!(ints("calls"), [1, 2, 3, 4]);
        let hosts = column("host");
        let hosts = hosts.as_any().downcast_ref::<StringArray>().unwrap();
        let hosts: Vec<_> = hosts.iter().flatten().collect();
        assert_eq!(hosts, ["web", "web", "db", "db"]);
    }

    #[test]
    fn other_columns_are_refused_and_no_rows_are_none() {
        let same = ClockMap { segments: vec![] };
        assert_eq!(of_hosts(&[]).unwrap().num_rows(), 0);
        let other = rows(&[1], &[1])[0].project(&[0]).unwrap();
        let both = [("a", &same, rows(&[1], &[1])), ("b", &same, vec![other])];
        assert!(of_hosts(&both).is_err());
    }
}
