//! Arrow answers: columns, a description, one stream.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Float64Array, Float64Builder,
    ListBuilder, StringArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fathom_query::Rows;
use serde::Serialize;

use crate::error::ApiError;

/// Key of the description in the schema's metadata.
const META: &str = "fathom";

#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub fn add(&mut self, name: &str, array: ArrayRef) {
        let nullable = array.null_count() > 0;
        self.fields
            .push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }

    pub fn numbers(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        let values = Float64Array::from_iter_values(values);
        self.add(name, Arc::new(values));
    }

    pub fn optional_numbers(&mut self, name: &str, values: impl IntoIterator<Item = Option<f64>>) {
        self.add(name, Arc::new(Float64Array::from_iter(values)));
    }

    pub fn texts<S: AsRef<str>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Option<S>>,
    ) {
        self.add(name, Arc::new(StringArray::from_iter(values)));
    }

    /// Texts of which few are different.
    pub fn words<'a>(&mut self, name: &str, values: impl IntoIterator<Item = Option<&'a str>>) {
        let values: DictionaryArray<Int32Type> = values.into_iter().collect();
        self.add(name, Arc::new(values));
    }

    pub fn flags(&mut self, name: &str, values: impl IntoIterator<Item = bool>) {
        let values: Vec<bool> = values.into_iter().collect();
        self.add(name, Arc::new(BooleanArray::from(values)));
    }

    pub fn lists<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a [f64]>) {
        let item = Arc::new(Field::new("item", DataType::Float64, false));
        let mut lists = ListBuilder::new(Float64Builder::new()).with_field(item);
        for list in values {
            lists.values().append_slice(list);
            lists.append(true);
        }
        self.add(name, Arc::new(lists.finish()));
    }

    /// The answer, with its description.
    pub fn answer(self, meta: &impl Serialize) -> Result<ArrowAnswer, ApiError> {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays);
        encode(&batch.map_err(internal)?, meta)
    }
}

/// A batch as a stream with a description.
pub(crate) fn encode(batch: &RecordBatch, meta: &impl Serialize) -> Result<ArrowAnswer, ApiError> {
    let meta = serde_json::to_string(meta).map_err(|e| ApiError::internal(e.to_string()))?;
    let schema = batch.schema().as_ref().clone();
    let schema = Arc::new(schema.with_metadata([(META.to_string(), meta)].into()));
    let batch = batch
        .clone()
        .with_schema(schema.clone())
        .map_err(internal)?;
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &schema).map_err(internal)?;
    writer.write(&batch).map_err(internal)?;
    writer.finish().map_err(internal)?;
    drop(writer);
    Ok(ArrowAnswer(bytes))
}

/// A stream of a worker's with a description.
pub(crate) fn described(stream: &[u8], meta: &impl Serialize) -> Result<ArrowAnswer, ApiError> {
    let mut batches = StreamReader::try_new(Cursor::new(stream), None).map_err(internal)?;
    let batch = batches.next().transpose().map_err(internal)?;
    encode(
        &batch.unwrap_or_else(|| RecordBatch::new_empty(batches.schema())),
        meta,
    )
}

pub(crate) struct ArrowAnswer(Vec<u8>);

impl IntoResponse for ArrowAnswer {
    fn into_response(self) -> Response {
        let kind = "application/vnd.apache.arrow.stream";
        ([(header::CONTENT_TYPE, kind)], self.0).into_response()
    }
}

pub(crate) fn collect(mut rows: Rows<'_>) -> Result<RecordBatch, ApiError> {
    let schema = rows.schema();
    let mut batches = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        batches.push(batch);
    }
    concat_batches(&schema, &batches).map_err(internal)
}

/// A column of numbers by name; null where it is, as `f64`.
pub(crate) fn numbers(batch: &RecordBatch, name: &str) -> Result<Float64Array, ApiError> {
    let column = column(batch, name)?;
    let numbers = cast(column, &DataType::Float64).map_err(internal)?;
    let numbers = numbers
        .as_primitive_opt::<arrow::datatypes::Float64Type>()
        .ok_or_else(|| ApiError::internal(format!("column {name} holds no numbers")))?;
    Ok(numbers.clone())
}

/// A column of texts by name; numbers become texts.
pub(crate) fn texts(batch: &RecordBatch, name: &str) -> Result<StringArray, ApiError> {
    let column = column(batch, name)?;
    let texts = cast(column, &DataType::Utf8).map_err(internal)?;
    let texts = texts
        .as_string_opt::<i32>()
        .ok_or_else(|| ApiError::internal(format!("column {name} holds no texts")))?;
    Ok(texts.clone())
}

/// A column of truth values by name.
pub(crate) fn flags(batch: &RecordBatch, name: &str) -> Result<BooleanArray, ApiError> {
    let flags = column(batch, name)?.as_boolean_opt();
    let flags = flags.ok_or_else(|| ApiError::internal(format!("column {name} holds no flags")))?;
    Ok(flags.clone())
}

pub(crate) fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ApiError> {
    let missing = || ApiError::internal(format!("there is no column {name}"));
    batch.column_by_name(name).ok_or_else(missing)
}

pub(crate) fn internal(error: arrow::error::ArrowError) -> ApiError {
    ApiError::internal(fathom_query::escape::lines(&error.to_string()))
}
