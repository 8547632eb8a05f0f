//! Filters of commands that read sessions: tenants, and the sessions of a set.

use std::collections::BTreeMap;

use clap::Args;
use fathom_model::set::Member;
use fathom_query::zoom::{Tenant, Tenants};
use fathom_session::Session;

/// Only calls of some tenants.
#[derive(Clone, Debug, Default, Args)]
#[command(
    next_help_heading = "Tenants (repeat an option to match any of its values; different options must all match; \
!VALUE excludes; * stands for anything)"
)]
pub struct TenantOptions {
    /// Only processes in a cgroup (v2) or below it: '/system.slice/nginx.service'
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Only processes of a unit of systemd or below it: nginx.service, or nginx
    #[arg(long, value_name = "NAME")]
    pub unit: Vec<String>,
    /// Only processes of a pod of Kubernetes: shop/web-7f9c, or 'web-*'
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub pod: Vec<String>,
    /// Only processes of pods in a namespace of Kubernetes
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,
    /// Only processes in a container: its ID, 12 or more digits of it, or its name in its pod
    #[arg(long, value_name = "NAME|ID")]
    pub container: Vec<String>,
    /// Only calls on files of a volume of Kubernetes: its claim, shop/data-db-0, or its name, pvc-77
    #[arg(long, value_name = "NAME")]
    pub volume: Vec<String>,
}

impl TenantOptions {
    /// The tenants in the library.
    pub fn tenants(&self) -> Tenants {
        let mut tenants = Tenants::default();
        for of in Tenant::ALL {
            let given = match of {
                Tenant::Cgroup => &self.cgroup,
                Tenant::Unit => &self.unit,
                Tenant::Pod => &self.pod,
                Tenant::Namespace => &self.namespace,
                Tenant::Container => &self.container,
                Tenant::Volume => &self.volume,
            };
            let (mut only, mut not) = (Vec::new(), Vec::new());
            for value in given {
                match value.strip_prefix('!') {
                    Some(value) => not.push(value.to_owned()),
                    None => only.push(value.clone()),
                }
            }
            for (list, not) in [(only, false), (not, true)] {
                if !list.is_empty() {
                    tenants.add(of, &list, not);
                }
            }
        }
        tenants
    }
}

/// Only some sessions of a set.
#[derive(Clone, Debug, Default, Args)]
pub struct MemberOptions {
    /// In a set: only this host; repeat it for several
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// In a set: only sessions with this label; repeat it for several, which must all match
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = label)]
    pub label: Vec<LabelFilter>,
}

impl MemberOptions {
    /// Whether the sessions of a set are not all meant.
    pub fn are_given(&self) -> bool {
        !self.host.is_empty() || !self.label.is_empty()
    }

    /// Whether a session of a set is meant.
    pub fn keep(&self, member: &Member, session: &Session) -> bool {
        let labels = &session.meta().labels;
        (self.host.is_empty() || self.host.contains(&member.host))
            && self.label.iter().all(|label| label.is_on(labels))
    }
}

/// A label that a session must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFilter {
    key: String,
    /// `None`: any.
    value: Option<String>,
}

impl LabelFilter {
    /// Whether it is one of these labels.
    pub fn is_on(&self, labels: &BTreeMap<String, String>) -> bool {
        let found = labels.get(&self.key);
        found.is_some_and(|found| self.value.as_ref().is_none_or(|value| value == found))
    }
}

/// Parses `KEY` or `KEY=VALUE`.
pub fn label(text: &str) -> Result<LabelFilter, String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    match key.is_empty() {
        true => Err("the key is missing: KEY or KEY=VALUE".to_owned()),
        false => Ok(LabelFilter {
            key: key.to_owned(),
            value,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_exclude_behind_an_exclamation_mark() {
        let given = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
        let options = TenantOptions {
            unit: given(&["a", "!b"]),
            pod: given(&["!c"]),
            ..TenantOptions::default()
        };
        let mut expected = Tenants::default();
        expected.add(Tenant::Unit, &given(&["a"]), false);
        expected.add(Tenant::Unit, &given(&["b"]), true);
        expected.add(Tenant::Pod, &given(&["c"]), true);
        assert_eq!(options.tenants(), expected);
    }

    #[test]
    fn labels_have_a_key_and_perhaps_a_value() {
        let labels = BTreeMap::from([("job".to_owned(), "17=b".to_owned())]);
        let is_on = |text: &str| label(text).unwrap().is_on(&labels);
        assert!(is_on("job") && is_on("job=17=b"));
        assert!(!is_on("job=17") && !is_on("job=") && !is_on("run"));
        assert!(label("").is_err() && label("=x").is_err());
    }
}
