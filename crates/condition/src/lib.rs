//! Conditions on the rows of a table, in SQL's words, evaluated on batches as they
//! come: without a database, which a recorder need not have.
//!
//! Understood are the table's columns, numbers, 'text', comparisons (`=`, `<>`, `!=`,
//! `<`, `<=`, `>`, `>=`), `BETWEEN`, `IN`, `LIKE`, `IS NULL`, `AND`, `OR`, `NOT` and
//! parentheses, with SQL's meaning of null: a comparison with it is neither true
//! nor false.

mod evaluate;
mod parse;
mod words;

use fathom_model::Batch;
use fathom_model::tables::Table;

pub use parse::ConditionError;

/// A condition that was understood.
#[derive(Clone, Debug)]
pub struct Condition {
    table: &'static Table,
    text: String,
    root: parse::Node,
}

impl Condition {
    /// Understands `text` as a condition on the rows of `table`.
    ///
    /// # Errors
    /// When it is none: says what is wrong, and where.
    pub fn parse(text: &str, table: &'static Table) -> Result<Self, ConditionError> {
        Ok(Self {
            table,
            text: text.to_owned(),
            root: parse::parse(text, table)?,
        })
    }

    /// The condition as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first row of `batch` for which the condition is true; none in a batch
    /// of another table.
    pub fn first(&self, batch: &Batch) -> Option<usize> {
        if batch.table.name != self.table.name {
            return None;
        }
        (0..batch.len()).find(|row| evaluate::node(&self.root, batch, *row) == Some(true))
    }
}

#[cfg(test)]
mod tests;
