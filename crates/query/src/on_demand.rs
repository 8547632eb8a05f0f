//! The tables and views of a session, created when a statement names them. The database resolves them when they
//! are created, a table down to the columns of its first part, a view down to the columns of its tables: all of them
//! take longer than most statements do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use duckdb::Connection;

use fathom_model::tables::TABLES;

use crate::error::message;
use crate::relations::{UNSTORED, UNSTORED_OF};
use crate::tables::sources;
use crate::views::{VIEWS, View, create_view, query_of};
use crate::{QueryError, members};

/// Words of statements that list what there is, which is everything then.
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

/// Names of tables, and numbers of views in [`VIEWS`].
#[derive(Debug, Default)]
struct Wanted {
    tables: BTreeSet<&'static str>,
    views: BTreeSet<usize>,
}

/// Tables and views that the database does not have yet.
struct Missing {
    /// The statement that makes a table of each member.
    tables: BTreeMap<&'static str, Vec<String>>,
    views: BTreeSet<usize>,
}

/// The tables and views that the database does not have yet. Its connections share them.
pub(crate) struct OnDemand {
    missing: Mutex<Missing>,
    /// Names of the members of a set, each of which has tables and views for itself; empty for one session.
    hosts: Vec<String>,
    /// Schema of the statements of a set.
    home: &'static str,
}

impl OnDemand {
    /// Tables, by the statements that make them for each member, and views of a session, or of a set of `hosts` whose
    /// statements are run in schema `home`. None has been created.
    pub fn new(
        tables: BTreeMap<&'static str, Vec<String>>,
        hosts: &[&str],
        home: &'static str,
    ) -> Self {
        Self {
            missing: Mutex::new(Missing {
                tables,
                views: every().views,
            }),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            home,
        }
    }

    /// Runs `prepare` with the tables and views that `sql` names. A statement can name one in ways that the text
    /// does not show, and messages suggest names: if it fails, it is run again with all of them. `home` is the
    /// schema of the connection's statements, if it is another one.
    ///
    /// # Errors
    /// [`QueryError::Table`], and the messages of the database as `failed` makes them errors.
    pub fn with_relations<T>(
        &self,
        connection: &Connection,
        home: Option<&str>,
        sql: &str,
        prepare: impl Fn() -> duckdb::Result<T>,
        failed: impl Fn(&duckdb::Error) -> QueryError,
    ) -> Result<T, QueryError> {
        self.create(connection, home, &named(sql), &failed)?;
        prepare().or_else(
            |error| match self.create(connection, home, &every(), &failed) {
                Ok(true) => prepare().map_err(|error| failed(&error)),
                // Nothing was missing, or it cannot be read, or the statement was interrupted.
                Ok(false) | Err(_) => Err(failed(&error)),
            },
        )
    }

    /// Creates every table.
    ///
    /// # Errors
    /// [`QueryError::Table`]: a part cannot be read, or lacks a column.
    pub fn create_tables(&self, connection: &Connection) -> Result<(), QueryError> {
        let wanted = Wanted {
            tables: every().tables,
            views: BTreeSet::new(),
        };
        let failed = |e: &duckdb::Error| QueryError::Sql(message(e));
        let created = self.create(connection, Some(members::MAIN), &wanted, &failed);
        created.map(|_| ())
    }

    /// Runs `change`, which replaces what views are made of, while nothing is created.
    pub fn locked<T>(&self, change: impl FnOnce() -> T) -> T {
        let _missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        change()
    }

    /// Creates what is missing of `wanted`. Returns whether anything was.
    fn create(
        &self,
        connection: &Connection,
        home: Option<&str>,
        wanted: &Wanted,
        failed: &dyn Fn(&duckdb::Error) -> QueryError,
    ) -> Result<bool, QueryError> {
        if wanted.tables.is_empty() && wanted.views.is_empty() {
            return Ok(false);
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let home = home.unwrap_or(self.home);
        let mut created = false;
        // The view over tables that others use comes after them.
        let names = TABLES.iter().map(|table| table.name).chain([UNSTORED]);
        for name in names.filter(|name| wanted.tables.contains(name)) {
            let Some(statements) = missing.tables.get(name) else {
                continue;
            };
            self.create_table(connection, home, name, statements)
                .map_err(|e| match name {
                    UNSTORED => failed(&e),
                    table => QueryError::Table {
                        table,
                        detail: message(&e),
                    },
                })?;
            missing.tables.remove(name);
            created = true;
        }
        let views: Vec<usize> = wanted.views.intersection(&missing.views).copied().collect();
        for number in views {
            let Some(view) = VIEWS.get(number) else {
                continue;
            };
            self.create_view(connection, home, view)
                .map_err(|e| failed(&e))?;
            missing.views.remove(&number);
            created = true;
        }
        Ok(created)
    }

    fn create_table(
        &self,
        connection: &Connection,
        home: &str,
        name: &str,
        statements: &[String],
    ) -> duckdb::Result<()> {
        if self.hosts.is_empty() {
            return statements
                .iter()
                .try_for_each(|statement| connection.execute_batch(statement));
        }
        members::create_in_each(connection, self.hosts.len(), home, |member| {
            statements.get(member).map_or("", String::as_str)
        })?;
        match name {
            UNSTORED => Ok(()),
            name => connection.execute_batch(&members::of_all(name, &self.hosts)),
        }
    }

    fn create_view(&self, connection: &Connection, home: &str, view: &View) -> duckdb::Result<()> {
        let create = create_view(view);
        if self.hosts.is_empty() {
            return connection.execute_batch(&create);
        }
        members::create_in_each(connection, self.hosts.len(), home, |_| &create)?;
        connection.execute_batch(&members::of_all(view.name, &self.hosts))
    }
}

fn every() -> Wanted {
    Wanted {
        tables: TABLES
            .iter()
            .map(|table| table.name)
            .chain([UNSTORED])
            .collect(),
        views: (0..VIEWS.len()).collect(),
    }
}

/// The words of a text in lower case.
fn words(sql: &str) -> impl Iterator<Item = String> {
    sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}

/// The tables whose rows a statement may read, by the names in its text and in the views that it names.
pub(crate) fn tables_read(sql: &str) -> BTreeSet<&'static str> {
    let mut read = by_name(sql).tables;
    let tables = TABLES.iter().filter(|table| read.contains(table.name));
    let of: Vec<&'static str> = tables.flat_map(|table| sources(table)).copied().collect();
    read.extend(of);
    read.remove(UNSTORED);
    read
}

/// The tables and views that a statement names, with all that those use; every one if it lists what there is.
fn named(sql: &str) -> Wanted {
    match words(sql).any(|word| LISTING.contains(&word.as_str())) {
        true => every(),
        false => by_name(sql),
    }
}

fn by_name(sql: &str) -> Wanted {
    let mut wanted = Wanted::default();
    let mut left: Vec<String> = words(sql).collect();
    while let Some(word) = left.pop() {
        if word == UNSTORED {
            wanted.tables.insert(UNSTORED);
            wanted.tables.extend(UNSTORED_OF);
        } else if let Some(table) = TABLES.iter().find(|table| table.name == word) {
            wanted.tables.insert(table.name);
        } else if let Some(number) = VIEWS.iter().position(|view| view.name == word)
            && wanted.views.insert(number)
        {
            left.extend(words(&query_of(&word)));
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<&'static str> {
        let views = VIEWS.iter().enumerate();
        let found = named(sql).views;
        let of = views.filter(|(number, _)| found.contains(number));
        of.map(|(_, view)| view.name).collect()
    }

    #[test]
    fn tables_are_found_wherever_a_statement_names_them() {
        let read = |sql| Vec::from_iter(tables_read(sql));
        assert_eq!(read("SELECT 1"), Vec::<&str>::new());
        assert_eq!(read("SELECT comm FROM Processes"), ["processes"]);
        assert_eq!(read("SELECT * FROM \"bios\""), ["bios", "block"]);
        assert_eq!(
            read("SELECT * FROM read_parquet(['/proc/self/fd/7/syscalls/part-00000000.parquet'])"),
            ["syscalls"]
        );
        assert_eq!(read("FROM unstored"), ["counters", "losses"]);
        let by_file = ["counters", "files", "losses", "syscalls"];
        assert!(
            by_file
                .iter()
                .all(|table| read("FROM by_file").contains(table))
        );
        assert!(!read("FROM by_file").contains(&"spans"));
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
