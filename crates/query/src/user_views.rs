//! Views that a user wrote, besides fathom's own.

use serde::{Deserialize, Serialize};

use crate::escape::{self, sql_name, sql_string};
use crate::views::parse_doc;
use crate::{Db, QueryError, Relation, RelationColumn, members, paths, sql_policy};

/// A view that a user wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserView {
    pub name: String,
    /// One SELECT.
    pub sql: String,
    /// Its file, for messages.
    pub file: String,
}

impl UserView {
    /// Its description, from the comments at its head: no types, which only the database knows.
    pub fn relation(&self) -> Relation {
        let doc = parse_doc(&self.sql);
        let columns = doc.columns.into_iter().map(|(name, doc)| RelationColumn {
            name,
            sql_type: String::new(),
            nullable: None,
            doc,
        });
        Relation {
            name: self.name.clone(),
            view: true,
            doc: doc.row,
            columns: columns.collect(),
        }
    }
}

impl Db {
    /// Adds views, each of which may use earlier ones. In a set they have the rows of all sessions
    /// and a first column `host`, like the views of fathom.
    ///
    /// The database is locked already: a view is checked as a statement is ([`Db::query`]), and
    /// reaches as little.
    ///
    /// # Errors
    /// [`QueryError::View`].
    pub fn add_views(&self, views: &[UserView]) -> Result<(), QueryError> {
        views.iter().try_for_each(|view| {
            self.add_view(view).map_err(|error| QueryError::View {
                file: escape::text(&view.file).into_owned(),
                detail: error.to_string(),
            })
        })
    }

    fn add_view(&self, view: &UserView) -> Result<(), QueryError> {
        let run = |sql: &str| self.create_view(sql);
        let checked = sql_policy::check(self.connection(), &view.sql)?;
        if !checked.paths.is_empty() {
            let name = paths::NAME;
            return Err(QueryError::CriticalPath(format!(
                "{name} is available in a statement, not in a view"
            )));
        }
        let name = sql_name(&view.name);
        // A table that the user added to the session has no say over a view of the user's.
        let create = format!("CREATE OR REPLACE VIEW {name} AS\n{}", checked.sql);
        if self.hosts().is_empty() {
            return run(&create);
        }
        let mut rows = Vec::new();
        for (member, host) in self.hosts().iter().enumerate() {
            let schema = members::schema(member);
            let created = run(&format!("USE {schema};\n{create}"));
            run(&format!("USE {}", members::MAIN))?;
            created?;
            let host = sql_string(host);
            rows.push(format!("SELECT {host} AS host, * FROM {schema}.{name}"));
        }
        let rows = rows.join(" UNION ALL ");
        run(&format!("CREATE OR REPLACE VIEW {name} AS {rows}"))
    }
}

#[cfg(test)]
mod tests {
    use super::UserView;
    use crate::QueryError;

    fn view(name: &str, sql: &str) -> UserView {
        UserView {
            name: name.into(),
            sql: sql.into(),
            file: format!("views/{name}.sql"),
        }
    }

    #[test]
    fn views_are_used_by_later_ones_and_by_statements() {
        let db = crate::db::empty().unwrap();
        db.add_views(&[
            view("slow", "-- Slow calls.\nFROM syscalls WHERE dur_ns > 1;\n"),
            view("slow_files", "SELECT path FROM slow GROUP BY path -- end"),
        ])
        .unwrap();
        let mut rows = db.query("SELECT count(*) FROM slow_files").unwrap();
        assert!(crate::Batches::next_batch(&mut rows).unwrap().is_some());
    }

    #[test]
    fn views_reach_the_session_alone() {
        let db = crate::db::empty().unwrap();
        for sql in [
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "SELECT * FROM read_text('/etc/passwd')",
            "COPY (SELECT 1) TO '/tmp/fathom-x'",
            "SELECT 1; COPY (SELECT 1) TO '/tmp/fathom-x'",
            "SELECT getenv('HOME')",
            "FROM critical_path(1)",
            "CREATE TABLE x (a INT)",
            "EXPLAIN SELECT 1",
            "SELECT nothing FROM syscalls",
            "",
        ] {
            let refused = db.add_views(&[view("mine", sql)]).unwrap_err();
            let QueryError::View { file, .. } = &refused else {
                panic!("{sql}: {refused}");
            };
            assert_eq!(file, "views/mine.sql");
        }
        assert!(!std::path::Path::new("/tmp/fathom-x").exists());
    }

    #[test]
    fn a_broken_view_shows_the_message_of_the_database() {
        let db = crate::db::empty().unwrap();
        let broken = view("mine", "SELECT nothing FROM syscalls");
        let text = db.add_views(&[broken]).unwrap_err().to_string();
        assert!(text.contains("views/mine.sql"), "{text}");
        assert!(text.contains("\"nothing\" not found"), "{text}");
    }
}
