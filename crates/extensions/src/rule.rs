//! A rule: the comments at the head of its file, and its SQL.

use fathom_diagnose::{Group, Severity, UserRule, is_rule};

use crate::ExtensionError;
use crate::files::SqlFile;
use crate::head::{Head, sql_of};
use crate::template::Template;

/// The names that the head of a rule may have.
const KEYS: [&str; 5] = ["title", "severity", "group", "advice", "cost"];

/// A rule that a user wrote.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub rule: UserRule,
    /// For each row a finding.
    pub sql: String,
    pub title: Template,
    /// Advice and explanation. `fathom why` shows the first sentence.
    pub advice: Template,
    pub severity: Option<Severity>,
}

impl Rule {
    pub fn parse(file: &SqlFile) -> Result<Self, ExtensionError> {
        let id = &file.name;
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !id.starts_with(|c: char| c.is_ascii_lowercase()) || !id.chars().all(word) {
            return Err(file.wrong(
                "the name of a rule consists of lowercase letters, digits, and -, and starts with \
                 a letter; rename the file",
            ));
        }
        if is_rule(id) {
            return Err(file.wrong(format!(
                "rule {id} has the name of fathom's own rule {id}; rename the file"
            )));
        }
        let head = Head::parse(file, &KEYS)?;
        let value = |key: &str| head.value(key);
        let needed = |key: &str| head.needed(file, key);
        let template = |text: &str| Template::parse(text).map_err(|why| file.wrong(why));
        let advice = needed("advice")?;
        let severity = value("severity").map(|name| {
            severity(name).ok_or_else(|| {
                file.wrong(format!(
                    "severity {name} is not known; choose from low, medium, high"
                ))
            })
        });
        let group = match value("group") {
            None | Some("performance") => Group::Performance,
            Some("correctness") => Group::Correctness,
            Some(other) => {
                return Err(file.wrong(format!(
                    "group {other} is not known; choose from correctness, performance"
                )));
            }
        };
        let sql = sql_of(file, "a SELECT that returns one row per finding")?;
        Ok(Self {
            title: template(needed("title")?)?,
            advice: template(format!("{advice} {}", head.text()).trim_end())?,
            severity: severity.transpose()?,
            rule: UserRule {
                // Ids of rules live as long as the program. Rules are loaded once.
                id: id.clone().leak(),
                group,
                cost_how: value("cost").unwrap_or_default().to_owned(),
                page: file.path.to_string_lossy().into_owned(),
                query: sql.clone(),
            },
            sql,
        })
    }
}

pub(crate) fn severity(name: &str) -> Option<Severity> {
    let all = [Severity::Low, Severity::Medium, Severity::High];
    all.into_iter().find(|severity| severity.name() == name)
}
