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

/// The kind of facts about programs and users that the values of a column may give away. A redacted
/// copy of a session treats each kind by a rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Words of the kernel and of fathom: names of calls, flags, states, devices; ids that say
    /// nothing by themselves.
    Words,
    /// A path, or the name of what is in place of one.
    Path,
    /// Name of a thread, program, or service.
    Name,
    /// A command line, quoted for a shell.
    Command,
    /// Arguments of a call, as `name=value`.
    Arguments,
    /// Name of an operation: a statement or an address without its values.
    Query,
    /// Free text that an application gave.
    Attributes,
    /// Bytes that a program moved, or a number that follows from them.
    Content,
    /// Address on a network.
    Address,
    /// Name of a function, or id of the file that contains it.
    Symbol,
    /// Name or id of a host or container.
    Host,
}

/// The form in which Parquet files contain a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Its values under its name.
    AsIs,
    /// The differences from the sum of other columns of the row, under another name: times that
    /// follow each other take less room. Where the value is null, so is the difference. Only of
    /// [`ColumnType::I64`].
    Less {
        /// The name in Parquet.
        name: &'static str,
        /// The sum.
        terms: &'static [Term],
    },
    /// Its values under its name, for readers of the files only: SQL shows them as rows of another
    /// table.
    Hidden,
}

/// A part of a sum: another column of the row, which is stored as it is. Null counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Name of the column, of type [`ColumnType::I64`].
    pub column: &'static str,
    /// Whether it is subtracted.
    pub minus: bool,
    /// Number by which it is divided before, rounded toward zero.
    pub divisor: i64,
}

impl Term {
    /// A column that is added.
    pub const fn plus(column: &'static str) -> Self {
        Self {
            column,
            minus: false,
            divisor: 1,
        }
    }

    /// A column that is subtracted.
    pub const fn minus(column: &'static str) -> Self {
        Self {
            minus: true,
            ..Self::plus(column)
        }
    }

    /// The same, divided by `divisor`, which is not 0.
    pub const fn over(self, divisor: i64) -> Self {
        Self { divisor, ..self }
    }
}

/// One column of a [`Table`].
#[derive(Debug)]
pub struct Column {
    /// Name in SQL; see [`Column::stored_name`] for Parquet.
    pub name: &'static str,
    /// Its type.
    pub ty: ColumnType,
    /// Whether it can be null.
    pub nullable: bool,
    /// Its meaning, with unit and source.
    pub doc: &'static str,
    /// Its kind for redaction; `None` for a number that says nothing about the contents of files.
    pub holds: Option<Holds>,
    /// Its form in Parquet.
    pub stored: Stored,
}

impl Column {
    /// Name in Parquet.
    pub fn stored_name(&self) -> &'static str {
        match self.stored {
            Stored::Less { name, .. } => name,
            Stored::AsIs | Stored::Hidden => self.name,
        }
    }

    /// For a column that is stored as differences: its value from the columns in Parquet, as in
    /// SQL if they are not null.
    pub fn formula(&self) -> Option<String> {
        let Stored::Less { name, terms } = self.stored else {
            return None;
        };
        let mut formula = name.to_owned();
        for term in terms {
            formula.push_str(if term.minus { " - " } else { " + " });
            formula.push_str(term.column);
            if term.divisor != 1 {
                formula.push_str(&format!(" // {}", term.divisor));
            }
        }
        Some(formula)
    }
}

/// A column of type [`ColumnType::I64`] that the files do not contain: the difference of two others,
/// null if one of them is. It follows the columns in SQL.
#[derive(Debug)]
pub struct Difference {
    /// Name in SQL.
    pub name: &'static str,
    /// Its meaning, with unit.
    pub doc: &'static str,
    /// Name of the column from which is subtracted.
    pub minuend: &'static str,
    /// Name of the column that is subtracted.
    pub subtrahend: &'static str,
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

impl Table {
    /// The columns that SQL shows.
    pub fn shown(&self) -> impl Iterator<Item = &'static Column> + Clone {
        let columns = self.columns.iter();
        columns.filter(|column| column.stored != Stored::Hidden)
    }
}
