//! Rules, views, and panels that a user wrote, as files of SQL in a directory of the user's.
//!
//! `views/NAME.sql` is a view next to fathom's own, `rules/NAME.sql` a rule, `panels/NAME.sql` a panel of
//! the page (docs/how-to/write-a-rule.md). All run where all SQL of users runs: in a process that can read its session and nothing else
//! ([`fathom_query::worker`]). Files that another user could have written are refused.

mod files;
mod head;
mod panel;
mod rule;
mod run;
mod template;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_query::{Limits, UserView, is_taken, names_findings};
use fathom_session::config_dir;

use crate::files::SqlFile;
use crate::rule::Rule;

pub use crate::panel::UserPanel;

/// Longest time of the SQL of one rule.
const RULE_TIME: Duration = Duration::from_secs(60);

/// Why rules, views, and panels cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    /// A file or directory cannot be read, or is not trusted.
    #[error(
        "cannot use rules, views, and panels of {}: {reason}; `--extensions none` works without them",
        path.display()
    )]
    Refused { path: PathBuf, reason: String },
    /// A file is not as it must be.
    #[error("{}: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    /// A view is refused or wrong.
    #[error(transparent)]
    View(#[from] fathom_query::QueryError),
    /// The code of examples cannot be read.
    #[error(transparent)]
    Diagnose(#[from] fathom_diagnose::DiagnoseError),
}

/// Rules, views, and panels of a user.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// Each uses earlier ones only.
    views: Vec<UserView>,
    /// Names of the views that read table `findings`.
    of_findings: Vec<String>,
    rules: Vec<Rule>,
    panels: Vec<UserPanel>,
    /// The directory that they are from.
    dir: PathBuf,
    limits: Limits,
}

impl Extensions {
    /// The rules, views, and panels of the default directory, if it exists.
    ///
    /// # Errors
    /// The errors of [`Extensions::load`].
    pub fn load_default() -> Result<Self, ExtensionError> {
        // A directory that cannot be read is an error, not a missing one. Where this user may not
        // even look, as with the home of root that `sudo -u` kept, there is none of the user's.
        let there = |dir: &PathBuf| match dir.try_exists() {
            Ok(there) => there,
            Err(error) => error.kind() != ErrorKind::PermissionDenied,
        };
        match config_dir().filter(there) {
            Some(dir) => Self::load(&dir),
            None => Ok(Self::default()),
        }
    }

    /// The rules, views, and panels in `dir`.
    ///
    /// # Errors
    /// [`ExtensionError::Refused`], [`ExtensionError::Wrong`].
    pub fn load(dir: &Path) -> Result<Self, ExtensionError> {
        let [views, rules, panels] = files::read(dir)?;
        let panels = panels.iter().map(UserPanel::parse);
        let panels = panels.collect::<Result<_, _>>()?;
        Ok(Self {
            panels,
            dir: dir.to_owned(),
            ..Self::of(views, rules)?
        })
    }

    fn of(views: Vec<SqlFile>, rules: Vec<SqlFile>) -> Result<Self, ExtensionError> {
        for view in &views {
            check_view_name(view)?;
        }
        let views = in_order(views)?;
        let mut of_findings: Vec<String> = Vec::new();
        for view in &views {
            let body = without_comments(&view.text);
            if names_findings(&body) || of_findings.iter().any(|name| uses(&body, name)) {
                of_findings.push(view.name.clone());
            }
        }
        let rules = rules.into_iter().map(|file| {
            let rule = Rule::parse(&file)?;
            // The table is made of what rules find, this one among them.
            let body = without_comments(&rule.sql);
            match names_findings(&body) || of_findings.iter().any(|name| uses(&body, name)) {
                true => Err(file.wrong("a rule cannot read table findings")),
                false => Ok(rule),
            }
        });
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            views: views
                .into_iter()
                .map(|view| UserView {
                    file: view.path.to_string_lossy().into_owned(),
                    name: view.name,
                    sql: view.text,
                })
                .collect(),
            of_findings,
            panels: Vec::new(),
            dir: PathBuf::new(),
            limits: Limits {
                time: Some(RULE_TIME),
                ..Limits::default()
            },
        })
    }

    /// The views, each after the ones that it uses.
    pub fn views(&self) -> &[UserView] {
        &self.views
    }

    /// Whether there are any rules.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The panels of the page, by the names of their files.
    pub fn panels(&self) -> &[UserPanel] {
        &self.panels
    }

    /// The directory that all are from; empty if there is none.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether a statement may read table `findings`, by itself or through a view.
    pub fn names_findings(&self, sql: &str) -> bool {
        names_findings(sql) || self.of_findings.iter().any(|name| uses(sql, name))
    }
}

fn check_view_name(view: &SqlFile) -> Result<(), ExtensionError> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let name = &view.name;
    if !name.chars().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(view.wrong(
            "the name of a view consists of lowercase letters, digits, and _, and starts with no \
             digit; rename the file",
        ));
    }
    match is_taken(name) {
        true => Err(view.wrong(format!(
            "view {name} has the name of fathom's own {name}; rename the file"
        ))),
        false => Ok(()),
    }
}

/// Views such that each uses earlier ones only.
fn in_order(mut left: Vec<SqlFile>) -> Result<Vec<SqlFile>, ExtensionError> {
    let mut out = Vec::new();
    while !left.is_empty() {
        let free = |view: &SqlFile| {
            let body = without_comments(&view.text);
            let mut others = left.iter().filter(|other| other.name != view.name);
            !others.any(|other| uses(&body, &other.name))
        };
        match left.iter().position(free) {
            Some(next) => out.push(left.remove(next)),
            None => {
                let names: Vec<_> = left.iter().map(|view| view.name.as_str()).collect();
                let why = format!("views use each other in a circle: {}", names.join(", "));
                return Err(left.remove(0).wrong(why));
            }
        }
    }
    Ok(out)
}

/// Whether a statement names a view; a word in a text is enough.
fn uses(sql: &str, view: &str) -> bool {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word.eq_ignore_ascii_case(view))
}

/// A statement without the lines that are comments.
fn without_comments(sql: &str) -> String {
    let lines = sql
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
