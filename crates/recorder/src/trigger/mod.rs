//! When what is kept is saved: conditions on the rows of a table, in SQL's words, evaluated on
//! batches as they come, without a database.
//!
//! Understood are the table's columns, numbers, 'text', comparisons (`=`, `<>`, `!=`,
//! `<`, `<=`, `>`, `>=`), `BETWEEN`, `IN`, `LIKE`, `IS NULL`, `AND`, `OR`, `NOT` and
//! parentheses, with SQL's meaning of null: a comparison with it is neither true
//! nor false.

mod evaluate;
mod lexer;
mod parse;

use std::time::{Duration, Instant};

use fathom_model::Batch;
use fathom_model::tables::{SYSCALLS, Table};

use crate::{RecordError, SaveWhen};
use parse::ConditionError;

/// How many saves are made, and how soon after one another.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Saves that may still be made.
    left: u64,
    pause: Duration,
    /// When the last one was asked for.
    last: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(when: &SaveWhen) -> Self {
        Self {
            left: when.max_saves,
            pause: when.pause,
            last: None,
        }
    }

    fn allows(&self) -> bool {
        self.left > 0 && self.last.is_none_or(|at| at.elapsed() >= self.pause)
    }

    /// Whether to save now; counts the save.
    pub(crate) fn take(&mut self) -> bool {
        let allowed = self.allows();
        if allowed {
            self.left -= 1;
            self.last = Some(Instant::now());
        }
        allowed
    }
}

/// Looks at rows for one that is worth saving what is kept.
#[derive(Debug)]
pub(crate) struct Trigger {
    condition: Condition,
    pace: Pace,
    held: bool,
}

impl Trigger {
    pub(crate) fn new(when: &SaveWhen) -> Result<Self, RecordError> {
        let text = &when.condition;
        let condition = Condition::parse(text, &SYSCALLS)
            .map_err(|error| RecordError::Input(format!("--save-when \"{text}\": {error}")))?;
        Ok(Self {
            condition,
            pace: Pace::new(when),
            held: false,
        })
    }

    /// Looks at a batch of any table.
    pub(crate) fn look(&mut self, batch: &Batch) {
        if self.held || !self.pace.allows() {
            return;
        }
        self.held = self.condition.first(batch).is_some();
    }

    /// Why to save now; says so once for each save.
    pub(crate) fn take(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.held) {
            return None;
        }
        self.pace.take().then(|| self.condition.text.clone())
    }
}

/// A condition that was understood.
#[derive(Clone, Debug)]
struct Condition {
    table: &'static Table,
    text: String,
    root: parse::Node,
}

impl Condition {
    fn parse(text: &str, table: &'static Table) -> Result<Self, ConditionError> {
        Ok(Self {
            table,
            text: text.to_owned(),
            root: parse::parse(text, table)?,
        })
    }

    /// The first row of `batch` for which the condition is true; none in a batch
    /// of another table.
    fn first(&self, batch: &Batch) -> Option<usize> {
        if batch.table.name != self.table.name {
            return None;
        }
        (0..batch.len()).find(|row| evaluate::node(&self.root, batch, *row) == Some(true))
    }
}

#[cfg(test)]
mod tests;
