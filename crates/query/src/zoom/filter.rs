//! Which calls an answer is about.

use std::sync::Arc;

use super::tenants::Owners;
use crate::escape::sql_string;

/// Which calls an answer is about: all that is given must hold, and of a list any.
/// An empty list leaves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub syscall: Option<Vec<String>>,
    /// Names of classes.
    pub class: Option<Vec<String>>,
    /// Processes.
    pub pid: Option<Vec<i32>>,
    pub tid: Option<Vec<i32>>,
    /// Files.
    pub file_id: Option<Vec<i64>>,
    /// Processes and threads of tenants, by [`super::Tenants::narrow`].
    pub owners: Option<Arc<Owners>>,
    /// A condition on the columns of table `syscalls` in SQL, which the pyramid knows
    /// nothing of: rows answer. Texts in it must be quoted with [`crate::escape`].
    pub condition: Option<String>,
    /// The whole filter as a condition on the columns of table `faults` and a column `path2`,
    /// instead of what is made of the lists. With a `condition` and without this no page fault
    /// passes.
    pub fault_condition: Option<String>,
}

impl Filter {
    /// The filter as an SQL condition on the columns of table `syscalls`; `None` when
    /// everything passes.
    pub fn sql(&self) -> Option<String> {
        let texts = |list: &[String]| list.iter().map(|s| sql_string(s)).collect();
        let small = |list: &[i32]| list.iter().map(i32::to_string).collect();
        let lists: [(&str, Option<Vec<String>>); 5] = [
            ("syscall", self.syscall.as_deref().map(texts)),
            ("class", self.class.as_deref().map(texts)),
            ("pid", self.pid.as_deref().map(small)),
            ("tid", self.tid.as_deref().map(small)),
            (
                "file_id",
                self.file_id
                    .as_deref()
                    .map(|list| list.iter().map(i64::to_string).collect()),
            ),
        ];
        let mut all: Vec<String> = Vec::new();
        for (column, values) in lists {
            match values.as_deref() {
                None => {}
                Some([]) => all.push("false".to_string()),
                Some([one]) => all.push(format!("{column} = {one}")),
                Some(values) => all.push(format!("{column} IN ({})", values.join(", "))),
            }
        }
        all.extend(self.owners.as_ref().map(|owners| owners.sql()));
        if let Some(condition) = &self.condition {
            all.push(format!("({condition})"));
        }
        (!all.is_empty()).then(|| all.join(" AND "))
    }

    /// The filter as an SQL condition on the columns of table `faults` and a column `path2`;
    /// `None` when no page fault passes: they are none of the calls that are asked for.
    pub fn faults_sql(&self) -> Option<String> {
        if let Some(condition) = &self.fault_condition {
            return Some(format!("({condition})"));
        }
        if self.syscall.is_some() || self.class.is_some() || self.condition.is_some() {
            return None;
        }
        Some(self.sql().unwrap_or_else(|| "true".into()))
    }
}

/// Whether a value is in a list that was given.
pub(super) fn passes<T: PartialEq<V>, V>(list: &Option<Vec<T>>, value: V) -> bool {
    list.as_ref()
        .is_none_or(|list| list.iter().any(|entry| *entry == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_conditions() {
        assert_eq!(Filter::default().sql(), None);
        let filter = Filter {
            syscall: Some(vec!["re'ad".into(), "write".into()]),
            pid: Some(vec![7]),
            tid: Some(Vec::new()),
            condition: Some("a OR b".into()),
            ..Filter::default()
        };
        assert_eq!(
            filter.sql().as_deref(),
            Some("syscall IN ('re''ad', 'write') AND pid = 7 AND false AND (a OR b)")
        );
        assert_eq!(filter.faults_sql(), None);
        assert_eq!(Filter::default().faults_sql().as_deref(), Some("true"));
        let of_file = Filter {
            file_id: Some(vec![3]),
            ..Filter::default()
        };
        assert_eq!(of_file.faults_sql().as_deref(), Some("file_id = 3"));
        let told = Filter {
            condition: Some("a".into()),
            fault_condition: Some("b".into()),
            ..Filter::default()
        };
        assert_eq!(told.faults_sql().as_deref(), Some("(b)"));
    }
}
