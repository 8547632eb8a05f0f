//! Descriptions of tables.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// Truth value.
    Bool,
    /// UTF-8 text. Bytes of a name that are not UTF-8 stand as `\xHH`.
    Str,
    /// Bytes.
    Blob,
    /// List of 64-bit signed integers.
    ListI64,
}

/// One column of a [`Table`].
#[derive(Debug)]
pub struct Column {
    /// Name in SQL and in Parquet.
    pub name: &'static str,
    /// Its type.
    pub ty: ColumnType,
    /// Whether it can be null.
    pub nullable: bool,
    /// Its meaning, with unit and source.
    pub doc: &'static str,
}

/// One table of a session.
#[derive(Debug)]
pub struct Table {
    /// Name in SQL and of the folder.
    pub name: &'static str,
    /// The meaning of a row.
    pub doc: &'static str,
    /// Columns in order.
    pub columns: &'static [Column],
    /// Columns that identify a row of a table whose rows are written again
    /// when they change: of equal rows the last one written counts. Empty for
    /// tables whose rows never change.
    pub key: &'static [&'static str],
}
