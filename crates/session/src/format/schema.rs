//! Parquet schemas of the tables.

use std::path::Path;
use std::sync::Arc;

use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::{Column, ColumnType, SCHEMA_VERSION, TABLES, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::error::SessionError;

/// Under this key the footers of some parts have `session.json` as it was at the
/// start of the recording.
pub const SESSION_KEY: &str = "fathom.session";

/// The properties that the parts of a table share.
#[derive(Clone)]
pub(crate) struct TableSchema {
    pub(crate) table: &'static Table,
    pub(crate) root: TypePtr,
    pub(crate) descr: SchemaDescPtr,
    /// For parts as they are recorded: short.
    pub(crate) plain: WriterPropertiesPtr,
    /// For the first part: with what the session says of itself.
    pub(crate) first: WriterPropertiesPtr,
    /// For merged parts: with that, and the documentation of the columns.
    pub(crate) documented: WriterPropertiesPtr,
}

impl TableSchema {
    /// `session` is what [`crate::format::meta`] makes `session.json` from when it is
    /// gone.
    fn new(table: &'static Table, session: &str) -> Result<Self> {
        let mut fields = Vec::with_capacity(table.columns.len());
        for column in table.columns {
            fields.push(Arc::new(field(column)?));
        }
        let root = Arc::new(
            Type::group_type_builder(table.name)
                .with_fields(fields)
                .build()?,
        );
        let mut metadata = vec![
            KeyValue::new("fathom.table".to_owned(), table.name.to_owned()),
            KeyValue::new(
                "fathom.schema_version".to_owned(),
                SCHEMA_VERSION.to_string(),
            ),
        ];
        let plain = properties(metadata.clone())?;
        metadata.push(KeyValue::new(SESSION_KEY.to_owned(), session.to_owned()));
        let first = properties(metadata.clone())?;
        metadata.push(KeyValue::new("fathom.doc".to_owned(), one_line(table.doc)));
        for column in table.columns {
            let key = format!("fathom.doc.{}", column.stored_name());
            metadata.push(KeyValue::new(key, documented(column)));
        }
        Ok(Self {
            table,
            descr: Arc::new(SchemaDescriptor::new(root.clone())),
            root,
            plain,
            first,
            documented: properties(metadata)?,
        })
    }
}

/// The schemas of all tables, for a session that says `meta` of itself.
pub(crate) fn all(dir: &Path, meta: &SessionMeta) -> Result<Vec<TableSchema>, SessionError> {
    let session = for_footers(meta);
    let schemas = TABLES.iter().map(|table| TableSchema::new(table, &session));
    schemas
        .collect::<Result<_, _>>()
        .map_err(SessionError::parquet(dir))
}

/// The contents of the footers of each table's first part and of merged parts.
fn for_footers(meta: &SessionMeta) -> String {
    let mut start = meta.clone();
    start.state = State::Recording;
    start.hooks.clear();
    start.totals = Default::default();
    serde_json::to_string(&start).unwrap_or_default()
}

fn properties(metadata: Vec<KeyValue>) -> Result<WriterPropertiesPtr> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("fathom version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(metadata))
        .set_offset_index_disabled(true)
        .build();
    Ok(Arc::new(properties))
}

/// The meaning of a column as it is stored.
fn documented(column: &Column) -> String {
    let meaning = one_line(column.doc);
    match column.formula() {
        Some(formula) => format!("{} = {formula}. {meaning}", column.name),
        None => meaning,
    }
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type in which the values of a column are stored.
pub(crate) fn physical(ty: ColumnType) -> Physical {
    match ty {
        ColumnType::I64 | ColumnType::ListI64 => Physical::INT64,
        ColumnType::I32 => Physical::INT32,
        ColumnType::Bool => Physical::BOOLEAN,
        ColumnType::Str | ColumnType::Blob => Physical::BYTE_ARRAY,
    }
}

fn field(column: &Column) -> Result<Type> {
    let repetition = if column.nullable {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    if column.ty == ColumnType::ListI64 {
        let element = Type::primitive_type_builder("element", Physical::INT64)
            .with_repetition(Repetition::REQUIRED)
            .build()?;
        let list = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(element)])
            .build()?;
        return Type::group_type_builder(column.stored_name())
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(list)])
            .build();
    }
    Type::primitive_type_builder(column.stored_name(), physical(column.ty))
        .with_repetition(repetition)
        .with_logical_type((column.ty == ColumnType::Str).then_some(LogicalType::String))
        .build()
}
