//! The filter bar: JSON to a condition.

use std::fmt::Display;

use fathom_model::syscalls::SYSCALLS;
use fathom_query::escape::sql_string;
use fathom_query::zoom::{self, Tenant, Tenants};
use fathom_query::{Db, QueryError};
use serde::Deserialize;

use crate::error::ApiError;

const MAX_TEXT: usize = 64 << 10;

/// Which calls are meant: all members that are there must hold, of a list any.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[cfg_attr(test, ts(optional_fields))]
pub(crate) struct Filter {
    /// Processes.
    pub pid: Option<Vec<i32>>,
    /// Threads.
    pub tid: Option<Vec<i32>>,
    /// Names of threads.
    pub comm: Option<Vec<String>>,
    /// Calls.
    pub syscall: Option<Vec<String>>,
    /// Classes of calls.
    pub class: Option<Vec<String>>,
    /// Files, by their ids.
    pub file: Option<Vec<i64>>,
    /// Paths at the time of the call, whole.
    pub full_path: Option<Vec<String>>,
    /// A part of the path.
    pub path: Option<String>,
    /// Whether and how they failed.
    pub error: Option<Errors>,
    /// Shortest and longest duration, nanoseconds.
    pub dur: Option<(Option<f64>, Option<f64>)>,
    /// Layers that they spent time in.
    pub layer: Option<Vec<String>>,
    /// Paths of cgroups (`*` in these and the following texts stands for anything), each with all below it.
    pub cgroup: Option<Vec<String>>,
    /// Units of systemd, each with all below it.
    pub unit: Option<Vec<String>>,
    /// Pods of Kubernetes: NAMESPACE/NAME, or a name.
    pub pod: Option<Vec<String>>,
    /// Kubernetes' namespaces of pods.
    pub namespace: Option<Vec<String>>,
    /// Containers: ids, 12 or more of their digits, or names in their pods.
    pub container: Option<Vec<String>>,
    /// Volumes of Kubernetes, by their files: NAMESPACE/CLAIM, a claim, PLUGIN/NAME, or a name.
    pub volume: Option<Vec<String>>,
    /// Excluded processes.
    pub not_pid: Option<Vec<i32>>,
    /// Excluded threads.
    pub not_tid: Option<Vec<i32>>,
    /// Excluded thread names.
    pub not_comm: Option<Vec<String>>,
    /// Excluded calls.
    pub not_syscall: Option<Vec<String>>,
    /// Excluded classes.
    pub not_class: Option<Vec<String>>,
    /// Excluded files.
    pub not_file: Option<Vec<i64>>,
    /// Excluded paths, whole.
    pub not_full_path: Option<Vec<String>>,
    /// Not with this in the path.
    pub not_path: Option<String>,
    /// Excluded errors.
    pub not_error: Option<Vec<String>>,
    /// No time in these layers.
    pub not_layer: Option<Vec<String>>,
    /// Excluded cgroups, with all below them.
    pub not_cgroup: Option<Vec<String>>,
    /// Excluded units, with all below them.
    pub not_unit: Option<Vec<String>>,
    /// Excluded pods.
    pub not_pod: Option<Vec<String>>,
    /// Excluded namespaces.
    pub not_namespace: Option<Vec<String>>,
    /// Excluded containers.
    pub not_container: Option<Vec<String>>,
    /// Excluded volumes.
    pub not_volume: Option<Vec<String>>,
}

/// Errors that a filter asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum Errors {
    /// Any, or none.
    Some(AnyOrNone),
    /// Any of the names.
    Named(Vec<String>),
}

/// Whether calls failed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum AnyOrNone {
    /// They failed.
    Any,
    /// They did not.
    None,
}

impl Filter {
    /// The filter in parameter `f`.
    pub fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let text = text.unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_TEXT {
            return Err(ApiError::parameter("f", "the filter is too long"));
        }
        // A list would be taken for the members in their order.
        if !text.trim_start().starts_with('{') {
            return Err(ApiError::parameter("f", "the filter is no JSON object"));
        }
        serde_json::from_str(text)
            .map_err(|e| ApiError::parameter("f", format!("the filter is wrong: {e}")))
    }

    /// The filter for calls of the session of `db` that started at `from_ns` or later: lists for keys of
    /// the pyramid, and a condition for the rest.
    pub fn for_calls(&self, db: &Db, from_ns: i64) -> Result<zoom::Filter, QueryError> {
        self.tenants().narrow(db, self.of_any_tenant(from_ns))
    }

    /// The filter as a condition on the columns of table `faults` and a column `path2`; `None`
    /// when it asks for what page faults do not have (a call, a class, the name of an error), so
    /// that none passes.
    pub fn for_faults(&self, db: &Db, from_ns: i64) -> Result<Option<String>, QueryError> {
        Ok(self.for_calls(db, from_ns)?.faults_sql())
    }

    fn tenants(&self) -> Tenants {
        let mut tenants = Tenants::default();
        for of in Tenant::ALL {
            let (only, not) = match of {
                Tenant::Cgroup => (&self.cgroup, &self.not_cgroup),
                Tenant::Unit => (&self.unit, &self.not_unit),
                Tenant::Pod => (&self.pod, &self.not_pod),
                Tenant::Namespace => (&self.namespace, &self.not_namespace),
                Tenant::Container => (&self.container, &self.not_container),
                Tenant::Volume => (&self.volume, &self.not_volume),
            };
            for (list, not) in [(only, false), (not, true)] {
                if let Some(list) = list {
                    tenants.add(of, list, not);
                }
            }
        }
        tenants
    }

    /// The filter without its tenants.
    fn of_any_tenant(&self, from_ns: i64) -> zoom::Filter {
        let mut filter = zoom::Filter {
            syscall: self.syscall.clone(),
            class: self.class.clone(),
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            file_id: self.file.clone(),
            ..zoom::Filter::default()
        };
        // The calls that remain after the exclusion are a list as well.
        if self.not_syscall.is_some() || self.not_class.is_some() {
            let has = |list: &Option<Vec<String>>, name: &str| {
                list.as_ref()
                    .is_some_and(|list| list.iter().any(|n| n == name))
            };
            let asked = self.syscall.as_ref();
            let left = SYSCALLS.iter().filter(|s| {
                asked.is_none_or(|list| list.iter().any(|n| n == s.name))
                    && !has(&self.not_syscall, s.name)
                    && !has(&self.not_class, s.class.name())
            });
            filter.syscall = Some(left.map(|s| s.name.to_string()).collect());
        }
        let conditions = self.conditions(from_ns);
        if !conditions.is_empty() {
            filter.condition = Some(conditions.join(" AND "));
        }
        if !self.is_empty() {
            filter.fault_condition = self.of_faults(from_ns);
        }
        filter
    }

    /// The same as a condition on page faults.
    fn of_faults(&self, from_ns: i64) -> Option<String> {
        if self.syscall.is_some() || self.class.is_some() {
            return None;
        }
        let failed = match &self.error {
            None => None,
            Some(Errors::Some(AnyOrNone::Any)) => Some("kind IS NOT DISTINCT FROM 'failed'"),
            Some(Errors::Some(AnyOrNone::None)) => Some("kind IS DISTINCT FROM 'failed'"),
            Some(Errors::Named(_)) => return None,
        };
        let lists = zoom::Filter {
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            file_id: self.file.clone(),
            ..zoom::Filter::default()
        };
        let others = Self {
            error: None,
            not_error: None,
            ..self.clone()
        };
        let lists = lists.sql();
        let others = others.conditions(from_ns);
        let others = others.iter().map(String::as_str);
        let all = failed.into_iter().chain(lists.as_deref()).chain(others);
        let all: Vec<&str> = all.collect();
        Some(match all.is_empty() {
            true => "true".into(),
            false => all.join(" AND "),
        })
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn conditions(&self, from_ns: i64) -> Vec<String> {
        let mut all = Vec::new();
        let quoted = |list: &[String]| list_of(list.iter().map(|s| sql_string(s)));
        if let Some(list) = &self.comm {
            all.push(format!("comm IN {}", quoted(list)));
        }
        if let Some(list) = &self.full_path {
            all.push(format!("path IN {}", quoted(list)));
        }
        if let Some(part) = &self.path {
            all.push(has_path(part));
        }
        match &self.error {
            None => {}
            Some(Errors::Some(AnyOrNone::Any)) => all.push("errno IS NOT NULL".into()),
            Some(Errors::Some(AnyOrNone::None)) => all.push("errno IS NULL".into()),
            Some(Errors::Named(list)) => all.push(format!("errno IN {}", quoted(list))),
        }
        if let Some((least, most)) = self.dur {
            // Beyond what a duration can be, any number will do.
            let whole = |ns: f64| ns.clamp(0.0, 9e18) as i64;
            if let Some(least) = least {
                all.push(format!("dur_ns >= {}", whole(least.ceil())));
            }
            if let Some(most) = most {
                all.push(format!("dur_ns <= {}", whole(most.floor())));
            }
        }
        let in_layers = |list: &[String]| {
            // A visit of a layer is not earlier than its request.
            format!(
                "rid IN (SELECT rid FROM slices WHERE layer IN {} AND ts_ns >= {from_ns})",
                quoted(list)
            )
        };
        if let Some(list) = &self.layer {
            all.push(in_layers(list));
        }
        let mut not = |column: &str, list: String| {
            all.push(format!("NOT coalesce({column} IN {list}, false)"));
        };
        if let Some(list) = &self.not_pid {
            not("pid", list_of(list));
        }
        if let Some(list) = &self.not_tid {
            not("tid", list_of(list));
        }
        if let Some(list) = &self.not_file {
            not("file_id", list_of(list));
        }
        if let Some(list) = &self.not_full_path {
            not("path", quoted(list));
        }
        if let Some(list) = &self.not_comm {
            not("comm", quoted(list));
        }
        if let Some(list) = &self.not_error {
            not("errno", quoted(list));
        }
        if let Some(part) = &self.not_path {
            all.push(format!("NOT coalesce({}, false)", has_path(part)));
        }
        if let Some(list) = &self.not_layer {
            all.push(format!("NOT coalesce({}, false)", in_layers(list)));
        }
        all
    }
}

/// Whether one of the paths of a call has `part` in it.
fn has_path(part: &str) -> String {
    let part = sql_string(part);
    format!("(contains(path, {part}) OR coalesce(contains(path2, {part}), false))")
}

/// Values in brackets; an empty list holds nothing, which SQL has no way to write.
fn list_of<V: Display>(values: impl IntoIterator<Item = V>) -> String {
    let values: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
    match values.is_empty() {
        true => "(NULL)".to_string(),
        false => format!("({})", values.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(json: &str) -> String {
        let filter = Filter::parse(Some(json)).unwrap();
        filter.of_any_tenant(5).sql().unwrap_or_default()
    }

    #[test]
    fn members_become_conditions() {
        assert_eq!(sql(""), "");
        assert_eq!(sql("{}"), "");
        assert_eq!(
            sql(r#"{"pid":[1],"tid":[1,2]}"#),
            "pid = 1 AND tid IN (1, 2)"
        );
        assert_eq!(
            sql(r#"{"comm":["a'b"],"error":"any","dur":[1.5,null]}"#),
            "(comm IN ('a''b') AND errno IS NOT NULL AND dur_ns >= 2)"
        );
        assert_eq!(
            sql(r#"{"error":["EIO"],"dur":[null,1e99]}"#),
            "(errno IN ('EIO') AND dur_ns <= 9000000000000000000)"
        );
        assert_eq!(
            sql(r#"{"not_pid":[3]}"#),
            "(NOT coalesce(pid IN (3), false))"
        );
        assert_eq!(sql(r#"{"comm":[]}"#), "(comm IN (NULL))");
        assert_eq!(
            sql(r#"{"layer":["block"]}"#),
            "(rid IN (SELECT rid FROM slices WHERE layer IN ('block') AND ts_ns >= 5))"
        );
    }

    #[test]
    fn what_is_not_wanted_leaves_the_other_calls() {
        let filter = Filter::parse(Some(r#"{"not_syscall":["read"],"not_class":["metadata"]}"#));
        let filter = filter.unwrap().of_any_tenant(0);
        assert_eq!(filter.condition, None);
        let left = filter.syscall.unwrap();
        assert!(left.iter().any(|n| n == "write"));
        assert!(!left.iter().any(|n| n == "read" || n == "stat"));
        assert_eq!(
            sql(r#"{"syscall":["read"],"not_syscall":["read"]}"#),
            "false"
        );
    }

    #[test]
    fn faults_pass_what_is_not_about_calls() {
        let sql = |json: &str| Filter::parse(Some(json)).unwrap().of_faults(5);
        assert_eq!(sql("").as_deref(), Some("true"));
        assert_eq!(
            sql(r#"{"pid":[1],"file":[3],"error":"none"}"#).as_deref(),
            Some("kind IS DISTINCT FROM 'failed' AND pid = 1 AND file_id = 3")
        );
        // They are neither excluded calls nor have excluded errors.
        assert_eq!(
            sql(r#"{"not_syscall":["read"],"not_class":["data"],"not_error":["EIO"]}"#).as_deref(),
            Some("true")
        );
        for calls in [
            r#"{"syscall":["read"]}"#,
            r#"{"class":["data"]}"#,
            r#"{"error":["EIO"]}"#,
        ] {
            assert_eq!(sql(calls), None, "{calls}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "[",
            "[]",
            "1",
            r#"{"pids":[1]}"#,
            r#"{"pid":1}"#,
            r#"{"pid":["1 OR true"]}"#,
            r#"{"error":"some"}"#,
            r#"{"dur":[1]}"#,
            r#"{"file":[1.5]}"#,
        ] {
            assert!(Filter::parse(Some(bad)).is_err(), "{bad}");
        }
        assert!(Filter::parse(Some(&format!("{{}}{}", " ".repeat(70_000)))).is_err());
    }
}
