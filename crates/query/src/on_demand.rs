//! The views of a session, created when a statement names them. The database resolves a view when it
//! is created, down to the columns of its tables: all of them take longer than most statements do.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use duckdb::Connection;

use fathom_model::tables::TABLES;

use crate::members;
use crate::tables::sources;
use crate::views::{VIEWS, View, create_view};

/// A view over tables that the others use; its statement is in `relations`.
const UNSTORED: &str = "unstored";

/// Words of statements that list what there is, which is every view then.
const LISTING: [&str; 10] = [
    "describe",
    "duckdb_columns",
    "duckdb_tables",
    "duckdb_views",
    "information_schema",
    "pg_catalog",
    "pragma_show",
    "pragma_table_info",
    "show",
    "sqlite_master",
];

/// The views that the database does not have yet. Its connections share them.
pub(crate) struct OnDemand {
    missing: Mutex<BTreeSet<usize>>,
    /// Names of the members of a set, each of which has the views for itself; empty for one session.
    hosts: Vec<String>,
    /// Schema of the statements of a set.
    home: &'static str,
}

impl OnDemand {
    /// Views of a session, or of a set of `hosts` whose statements are run in schema `home`. None has been created.
    pub fn new(hosts: &[&str], home: &'static str) -> Self {
        Self {
            missing: Mutex::new(every()),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            home,
        }
    }

    /// Runs `prepare` with the views that `sql` names. A statement can name one in ways that the text
    /// does not show, and messages suggest names: if it fails, it is run again with all of them. `home` is the
    /// schema of the connection's statements, if it is another one.
    pub fn with_views<T>(
        &self,
        connection: &Connection,
        home: Option<&str>,
        sql: &str,
        prepare: impl Fn() -> duckdb::Result<T>,
    ) -> duckdb::Result<T> {
        self.create(connection, home, &named(sql))?;
        prepare().or_else(|error| match self.create(connection, home, &every()) {
            Ok(true) => prepare(),
            // Nothing was missing, or the statement was interrupted.
            Ok(false) | Err(_) => Err(error),
        })
    }

    /// Runs `change`, which replaces what views are made of, while no view is created.
    pub fn locked<T>(&self, change: impl FnOnce() -> T) -> T {
        let _missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        change()
    }

    /// Creates what is missing of `wanted`. Returns whether anything was.
    fn create(
        &self,
        connection: &Connection,
        home: Option<&str>,
        wanted: &BTreeSet<usize>,
    ) -> duckdb::Result<bool> {
        if wanted.is_empty() {
            return Ok(false);
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted: BTreeSet<usize> = wanted.intersection(&missing).copied().collect();
        let views = VIEWS.iter().enumerate();
        let views = views.filter(|(number, _)| wanted.contains(number));
        let views: Vec<&View> = views.map(|(_, view)| view).collect();
        match self.hosts.as_slice() {
            [] => views
                .iter()
                .try_for_each(|view| connection.execute_batch(&create_view(view)))?,
            hosts => {
                members::create_views(connection, &views, hosts, home.unwrap_or(self.home))?;
            }
        }
        missing.retain(|number| !wanted.contains(number));
        Ok(!wanted.is_empty())
    }
}

fn every() -> BTreeSet<usize> {
    (0..VIEWS.len()).collect()
}

/// The tables whose rows a statement may read, by the names in its text: all if it names a view.
pub(crate) fn tables_read(sql: &str) -> Vec<&'static str> {
    let words: BTreeSet<String> = sql
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map(str::to_ascii_lowercase)
        .collect();
    let all = TABLES.iter().map(|table| table.name);
    let is_known = |word: &str| word == UNSTORED || VIEWS.iter().any(|view| view.name == word);
    if words.iter().any(|word| is_known(word)) {
        return all.collect();
    }
    let mut read: Vec<&'static str> = all.filter(|name| words.contains(*name)).collect();
    let of: Vec<&'static str> = TABLES
        .iter()
        .filter(|table| read.contains(&table.name))
        .flat_map(|table| sources(table))
        .copied()
        .collect();
    read.extend(of);
    read
}

/// The views that a statement names, with all that they use; every one if it lists what there is.
fn named(sql: &str) -> BTreeSet<usize> {
    let words = || {
        sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map(str::to_ascii_lowercase)
    };
    if words().any(|word| LISTING.contains(&word.as_str())) {
        return every();
    }
    let view = |word: String| VIEWS.iter().position(|view| view.name == word);
    let mut left: Vec<usize> = words().filter_map(view).collect();
    let mut found = BTreeSet::new();
    while let Some(number) = left.pop() {
        if found.insert(number) {
            left.extend(VIEWS.get(number).into_iter().flat_map(|view| view.uses));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<&'static str> {
        let views = VIEWS.iter().enumerate();
        let found = named(sql);
        let of = views.filter(|(number, _)| found.contains(number));
        of.map(|(_, view)| view.name).collect()
    }

    #[test]
    fn tables_are_found_wherever_a_statement_names_them() {
        let all = TABLES.len();
        assert_eq!(tables_read("SELECT 1"), Vec::<&str>::new());
        assert_eq!(tables_read("SELECT comm FROM Processes"), ["processes"]);
        assert_eq!(
            tables_read("SELECT * FROM \"bios\""),
            ["bios", "bios", "block"]
        );
        assert_eq!(
            tables_read(
                "SELECT * FROM read_parquet(['/proc/self/fd/7/syscalls/part-00000000.parquet'])"
            ),
            ["syscalls"]
        );
        assert_eq!(tables_read("FROM by_file").len(), all);
        assert_eq!(tables_read("FROM unstored").len(), all);
    }

    #[test]
    fn a_statement_names_its_views_and_theirs() {
        assert_eq!(names("SELECT count(*) FROM syscalls"), Vec::<&str>::new());
        assert_eq!(names("FROM \"By_Device\""), ["by_device"]);
        assert!(names("FROM by_span_layer").contains(&"span_calls"));
        assert_eq!(names("FROM duckdb_views()").len(), VIEWS.len());
        assert_eq!(names("FROM (SHOW ALL TABLES)").len(), VIEWS.len());
        assert!(names("FROM syscalls WHERE path LIKE '%/pg_wal/%'").is_empty());
    }

    /// Whatever the statement before it was, and however it names the view.
    #[test]
    fn every_view_is_there_when_it_is_needed() {
        for view in VIEWS {
            let db = crate::db::empty().unwrap();
            assert!(db.run(&format!("FROM {} LIMIT 0", view.name)).is_ok());
            assert!(db.run("FROM duckdb_views()").is_ok());
        }
        let db = crate::db::empty().unwrap();
        let hidden = db.run("FROM query_table('by_' || 'device')");
        assert!(hidden.is_ok());
    }

    #[test]
    fn a_view_that_is_missing_is_suggested() {
        let db = crate::db::empty().unwrap();
        let error = db.query("FROM by_devic").err().unwrap().to_string();
        assert!(error.contains("by_device"), "{error}");
    }
}
