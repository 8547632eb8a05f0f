//! The comments at the head of a file: a text, then names with values.

use fathom_query::{Doc, parse_doc};

use crate::ExtensionError;
use crate::files::SqlFile;

/// The head of a file.
pub(crate) struct Head(Doc);

impl Head {
    /// The head of `file`, in which each of `keys` may be once, and no other name.
    pub fn parse(file: &SqlFile, keys: &[&str]) -> Result<Self, ExtensionError> {
        let doc = parse_doc(&file.text);
        for (i, (key, _)) in doc.columns.iter().enumerate() {
            if !keys.contains(&key.as_str()) {
                let keys = keys.join(", ");
                return Err(file.wrong(format!("{key} is not known; its head may have {keys}")));
            }
            let mut earlier = doc.columns.iter().take(i);
            if earlier.any(|(earlier, _)| earlier == key) {
                return Err(file.wrong(format!("its head has {key} twice")));
            }
        }
        Ok(Self(doc))
    }

    /// The text before the first name.
    pub fn text(&self) -> &str {
        &self.0.row
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        let found = self.0.columns.iter().find(|(name, _)| name == key);
        found.map(|(_, text)| text.as_str())
    }

    pub fn needed(&self, file: &SqlFile, key: &str) -> Result<&str, ExtensionError> {
        self.value(key)
            .ok_or_else(|| file.wrong(format!("its head has no {key}; add a line `-- {key}: ...`")))
    }
}

/// The statement after the head; `what` is the statement that a file without one lacks.
pub(crate) fn sql_of(file: &SqlFile, what: &str) -> Result<String, ExtensionError> {
    let head = |line: &&str| line.starts_with("--") || line.trim().is_empty();
    let sql: Vec<&str> = file.text.lines().skip_while(head).collect();
    let sql = sql.join("\n").trim().trim_end_matches(';').to_owned();
    match sql.is_empty() {
        true => Err(file.wrong(format!("it has no SQL; add {what}"))),
        false => Ok(sql),
    }
}
