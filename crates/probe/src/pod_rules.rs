//! Rules for the pods that filters mean: they come and go while the recording runs.
//!
//! The kernel side compares names of cgroups. The name of a pod's cgroup has the UID of the pod, which the kubelet
//! writes into names below `/var/log`. The directory of a pod's logs is there before its first container starts, so a
//! rule is in place in time; where only the links can be seen, tasks that have started before are taken in then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use libbpf_rs::{MapCore, MapFlags};

use crate::containers::{NAMES_OF_PODS, Pod, pods_in};
use crate::filter::{Filters, PodFilter, cgroup_hierarchy, names_of_pod};

/// Rules of pods at a time: some for each, of which a node has some hundred.
pub(crate) const ROOM: usize = 1 << 13;
/// How often the directories are looked at.
const EVERY: Duration = Duration::from_millis(50);
/// Two changes within the resolution of the file system's clock may have one time.
const SETTLED: Duration = Duration::from_secs(2);
/// How often the cgroup of a pod is looked for, whose name may have a part that only the kubelet knows. One that has ended
/// has none, but keeps its logs.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Follows the pods.
#[derive(Debug)]
pub(crate) struct PodRules {
    filters: Filters,
    directories: Vec<PathBuf>,
    looked_at: Option<Instant>,
    /// When the directories changed last, as they were read.
    modified: Vec<Option<SystemTime>>,
    /// Pods with rules, by UID.
    known: BTreeMap<String, Known>,
}

/// A pod with rules.
#[derive(Debug)]
struct Known {
    sign: u32,
    /// Names of cgroups.
    names: BTreeSet<String>,
    looks: u32,
    looked_at: Instant,
}

/// Rules to add, with their sign, and rules to remove.
#[derive(Debug, Default)]
struct Changes {
    add: Vec<(String, u32)>,
    remove: Vec<String>,
}

impl PodRules {
    /// `None` without a filter of pods.
    pub fn new(filters: &Filters) -> Option<Self> {
        filters.by_pod()?;
        Some(Self {
            filters: filters.clone(),
            directories: NAMES_OF_PODS.iter().map(PathBuf::from).collect(),
            looked_at: None,
            modified: Vec::new(),
            known: BTreeMap::new(),
        })
    }

    /// Whether the filter asks for pods, and there is none yet.
    pub fn wait(&self) -> bool {
        self.known.is_empty() && self.filters.by_pod().is_some_and(PodFilter::takes)
    }

    /// Brings the rules up to date; returns whether there are new ones, by which tasks that exist are to be judged.
    pub fn look(&mut self, rules: &impl MapCore) -> bool {
        if self.looked_at.is_some_and(|at| at.elapsed() < EVERY) {
            return false;
        }
        self.looked_at = Some(Instant::now());
        let Some(pods) = self.pods() else {
            return false;
        };
        let hierarchy = cgroup_hierarchy();
        let changes = self.changes(
            pods,
            |uid| names_of_pod(hierarchy.as_deref(), uid),
            Instant::now(),
        );
        let key = |name: &String| self.filters.pod_rule(name).to_bytes();
        for name in &changes.remove {
            rules.delete(&key(name)).ok();
        }
        for (name, sign) in &changes.add {
            // There is room for more pods than a node can have.
            rules
                .update(&key(name), &sign.to_ne_bytes(), MapFlags::ANY)
                .ok();
        }
        !changes.add.is_empty()
    }

    /// The pods, if they can be others than before, or if the cgroup of one is still to be found.
    fn pods(&mut self) -> Option<BTreeMap<String, Pod>> {
        let time = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
        let modified: Vec<_> = self.directories.iter().map(time).collect();
        let old = |time: &Option<SystemTime>| {
            time.is_none_or(|time| time.elapsed().is_ok_and(|age| age > SETTLED))
        };
        let searching = self
            .known
            .values()
            .any(|known| known.searches(Instant::now()));
        if modified == self.modified && modified.iter().all(old) && !searching {
            return None;
        }
        self.modified = modified;
        Some(pods_in(&self.directories))
    }

    /// The changes of the rules when these are the pods. `names_of` has the names of cgroups of a pod.
    fn changes(
        &mut self,
        pods: BTreeMap<String, Pod>,
        names_of: impl Fn(&str) -> BTreeSet<String>,
        now: Instant,
    ) -> Changes {
        let mut changes = Changes::default();
        self.known.retain(|uid, known| {
            let stays = pods.contains_key(uid);
            if !stays {
                changes.remove.extend(known.names.iter().cloned());
            }
            stays
        });
        let Some(filter) = self.filters.by_pod() else {
            return changes;
        };
        for (uid, pod) in pods {
            let known = match self.known.get_mut(&uid) {
                Some(known) => known,
                None => {
                    let Some(sign) = filter.sign(&pod) else {
                        continue;
                    };
                    let fresh = Known {
                        sign,
                        names: BTreeSet::new(),
                        looks: 0,
                        looked_at: now,
                    };
                    self.known.entry(uid.clone()).or_insert(fresh)
                }
            };
            if !known.searches(now) {
                continue;
            }
            known.looks += 1;
            known.looked_at = now;
            for name in names_of(&uid) {
                if known.names.insert(name.clone()) {
                    changes.add.push((name, known.sign));
                }
            }
        }
        changes
    }
}

impl Known {
    fn searches(&self, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.looked_at) >= BETWEEN_LOOKS;
        self.looks == 0 || self.looks < LOOKS && waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::FilterArgs;

    fn pod(namespace: &str, name: &str) -> Pod {
        Pod {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn rules_follow_pods() {
        let args = FilterArgs {
            namespace: vec!["shop".into()],
            ..FilterArgs::default()
        };
        // The machine of the test need not be a node.
        let mut filters = Filters::none();
        filters.set_pods(&args).unwrap();
        let mut rules = PodRules::new(&filters).unwrap();
        assert!(rules.wait());
        let names = |uid: &str| BTreeSet::from([format!("pod{uid}")]);
        let begin = Instant::now();
        let other = ("u0".to_owned(), pod("kube-system", "dns"));
        let changes = rules.changes([other.clone()].into(), names, begin);
        assert!(changes.add.is_empty() && rules.wait());
        let all = || BTreeMap::from([other.clone(), ("u1".to_owned(), pod("shop", "db-0"))]);
        let changes = rules.changes(all(), names, begin);
        assert_eq!(
            changes.add,
            [("podu1".to_owned(), fathom_model::abi::RULE_TAKES)]
        );
        assert!(!rules.wait());
        // A cgroup with a name that only the kubelet knows appears later.
        let later = |uid: &str| BTreeSet::from([format!("pod{uid}"), format!("x-pod{uid}")]);
        assert!(rules.changes(all(), later, begin).add.is_empty());
        let changes = rules.changes(all(), later, begin + BETWEEN_LOOKS);
        assert_eq!(changes.add.len(), 1);
        assert_eq!(changes.add[0].0, "x-podu1");
        // It is looked for some times only.
        for n in 2..2 * LOOKS {
            rules.changes(all(), later, begin + n * BETWEEN_LOOKS);
        }
        assert_eq!(rules.known["u1"].looks, LOOKS);
        let changes = rules.changes([other].into(), names, begin);
        assert_eq!(changes.remove, ["podu1", "x-podu1"]);
        assert!(rules.wait());
    }
}
