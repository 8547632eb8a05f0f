//! Which pods of Kubernetes `--pod` and `--namespace` mean.

use fathom_model::abi::{RULE_LEAVES, RULE_TAKES};

use super::{FilterError, contradiction, split, wrong};
use crate::containers::Pod;

/// Patterns of names, each with whether it takes or leaves.
type Patterns = Vec<(String, u32)>;

/// The values of both options. They hold for pods that exist and for pods that start later.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodFilter {
    /// `NAME` or `NAMESPACE/NAME`.
    pods: Patterns,
    namespaces: Patterns,
}

impl PodFilter {
    pub fn parse(pods: &[String], namespaces: &[String]) -> Result<Self, FilterError> {
        Ok(Self {
            pods: patterns("pod", pods, 2)?,
            namespaces: patterns("namespace", namespaces, 1)?,
        })
    }

    /// The option that was given, and its first value.
    pub fn given(&self) -> Option<(&'static str, &str)> {
        let of_pods = self.pods.first().map(|(value, _)| ("pod", value.as_str()));
        let of_namespaces = self.namespaces.first();
        of_pods.or(of_namespaces.map(|(value, _)| ("namespace", value.as_str())))
    }

    /// Whether only tasks of pods pass.
    pub fn takes(&self) -> bool {
        let mut all = self.pods.iter().chain(&self.namespaces);
        all.any(|(_, sign)| *sign == RULE_TAKES)
    }

    /// The sign of the rules for the cgroups of the pod; `None` if it needs no rules.
    pub fn sign(&self, pod: &Pod) -> Option<u32> {
        let of_pod = passes(&self.pods, |pattern| match pattern.split_once('/') {
            Some((namespace, name)) => is(namespace, &pod.namespace) && is(name, &pod.name),
            None => is(pattern, &pod.name),
        });
        let of_namespace = passes(&self.namespaces, |pattern| is(pattern, &pod.namespace));
        match (of_pod && of_namespace, self.takes()) {
            (true, true) => Some(RULE_TAKES),
            (false, false) => Some(RULE_LEAVES),
            _ => None,
        }
    }
}

/// As `passes` in `bpf/include/filter.h`.
fn passes(patterns: &Patterns, matches: impl Fn(&str) -> bool) -> bool {
    let has = |sign| {
        let mut of_sign = patterns.iter().filter(|(_, of)| *of == sign);
        of_sign.any(|(pattern, _)| matches(pattern))
    };
    let takes = patterns.iter().any(|(_, sign)| *sign == RULE_TAKES);
    !has(RULE_LEAVES) && (!takes || has(RULE_TAKES))
}

fn is(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// The patterns of an option, of `most` names with `/` between them at most.
fn patterns(option: &'static str, lists: &[String], most: usize) -> Result<Patterns, FilterError> {
    let mut patterns = Patterns::new();
    for (value, sign) in split(option, lists)? {
        let names: Vec<&str> = value.split('/').collect();
        // Otherwise it would match no pod, however long the recording waits for one.
        if names.len() > most || !names.iter().all(|name| is_pattern(name)) {
            let problem = match most {
                1 => "no name of a namespace, such as 'shop' or 'team-*'",
                _ => "no name of a pod, such as 'shop/web-7f9c', 'web-*', or 'shop/*'",
            };
            return Err(wrong(option, value, problem.into()));
        }
        if patterns
            .iter()
            .any(|(other, of)| other == value && *of != sign)
        {
            return Err(contradiction(option, value));
        }
        patterns.push((value.to_owned(), sign));
    }
    Ok(patterns)
}

/// Names consist of lowercase letters, digits, `-`, and `.`; a `*` at the end stands for anything.
fn is_pattern(text: &str) -> bool {
    let beginning = text.strip_suffix('*').unwrap_or(text);
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !text.is_empty() && beginning.chars().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pods: &[&str], namespaces: &[&str]) -> Result<PodFilter, FilterError> {
        let owned = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        PodFilter::parse(&owned(pods), &owned(namespaces))
    }

    /// The pods that pass, of three.
    fn passing(pods: &[&str], namespaces: &[&str]) -> Vec<&'static str> {
        let filter = filter(pods, namespaces).unwrap();
        let all = [
            ("shop", "db-0"),
            ("shop", "web-1"),
            ("kube-system", "web-2"),
        ];
        let all = all.into_iter().filter(|(namespace, name)| {
            let pod = Pod {
                namespace: (*namespace).into(),
                name: (*name).into(),
            };
            let sign = filter.sign(&pod);
            match filter.takes() {
                true => sign == Some(RULE_TAKES),
                false => sign != Some(RULE_LEAVES),
            }
        });
        all.map(|(_, name)| name).collect()
    }

    #[test]
    fn pods_and_namespaces_must_both_let_a_pod_pass() {
        assert_eq!(passing(&["db-0"], &[]), ["db-0"]);
        assert_eq!(passing(&["shop/*"], &[]), ["db-0", "web-1"]);
        assert_eq!(passing(&["*/web-2", "db-0"], &[]), ["db-0", "web-2"]);
        assert_eq!(passing(&[], &["shop"]), ["db-0", "web-1"]);
        assert_eq!(passing(&[], &["kube-*"]), ["web-2"]);
        assert_eq!(passing(&["web-*"], &["shop"]), ["web-1"]);
        assert_eq!(passing(&["!db-0"], &["shop"]), ["web-1"]);
        assert_eq!(passing(&["web-*"], &["!shop"]), ["web-2"]);
        assert_eq!(passing(&["!web-*"], &[]), ["db-0"]);
        assert_eq!(passing(&["!db-0"], &["!kube-system"]), ["web-1"]);
        assert_eq!(passing(&["shop"], &[]), [""; 0]);
    }

    #[test]
    fn values_that_match_nothing_are_refused() {
        for (pods, namespaces, part) in [
            (&["Web"][..], &[][..], "--pod Web: no name of a pod"),
            (&["a/b/c"], &[], "no name of a pod"),
            (&["/web"], &[], "no name of a pod"),
            (&["w*b"], &[], "no name of a pod"),
            (
                &[],
                &["shop/web"],
                "--namespace shop/web: no name of a namespace",
            ),
            (&["web,!web"], &[], "both included and excluded"),
            (&[], &["!"], "--namespace: the value is empty"),
        ] {
            let error = filter(pods, namespaces).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
