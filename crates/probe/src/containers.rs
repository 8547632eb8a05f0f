//! Names of Kubernetes' containers, as records.
//!
//! The kubelet makes a link for each container that it starts:
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` to
//! `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log`. All names are names of DNS, which
//! contain no underscore. The links are read, and never followed.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fathom_model::abi::{ContainerRecord, RECORD_CONTAINER};
use fathom_model::container::is_dns_name;
use fathom_model::raw::{RawChunk, Ring};

use crate::framing::append_framed;

const DIRECTORY: &str = "/var/log/containers";
/// How often the directory is looked at. The link is there some milliseconds after the container
/// started.
const EVERY: Duration = Duration::from_secs(1);
/// Links that are looked at, of one second; a node has some hundred.
const MAX_LINKS: usize = 1 << 16;
const ID_LEN: usize = 64;

/// Follows the directory.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    looked_at: Option<Instant>,
    /// Of the directory, when it was read.
    modified: Option<SystemTime>,
    /// Ids of the containers that records were made of.
    seen: HashSet<String>,
}

impl Containers {
    /// Containers that are new, as records. `ends`: this is the last time.
    pub(crate) fn changed(&mut self, ends: bool) -> Option<RawChunk> {
        if !ends && self.looked_at.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        self.looked_at = Some(Instant::now());
        self.look(Path::new(DIRECTORY), crate::monotonic_ns())
    }

    fn look(&mut self, directory: &Path, now_ns: u64) -> Option<RawChunk> {
        let modified = std::fs::metadata(directory).ok()?.modified().ok()?;
        // Two links within the resolution of the file system's clock may have one time.
        let settled = SystemTime::now()
            .duration_since(modified)
            .is_ok_and(|age| age > 2 * EVERY);
        if settled && self.modified == Some(modified) {
            return None;
        }
        self.modified = Some(modified);
        let mut bytes = Vec::new();
        let mut present = HashSet::new();
        for entry in std::fs::read_dir(directory).ok()?.take(MAX_LINKS).flatten() {
            let name = entry.file_name();
            let Some(container) = name.to_str().and_then(Container::of_link) else {
                continue;
            };
            present.insert(container.id.to_owned());
            if self.seen.contains(container.id) {
                continue;
            }
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            let uid = target.to_str().and_then(|path| container.uid(path));
            append_framed(&mut bytes, &container.record(uid.unwrap_or(""), now_ns));
        }
        self.seen = present;
        (!bytes.is_empty()).then_some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes,
        })
    }
}

/// The UIDs of pods with containers on this machine that `name` means: `NAMESPACE/NAME`, or a name. A `*` at the
/// end stands for anything.
pub(crate) fn pod_uids(name: &str) -> Vec<String> {
    uids_in(Path::new(DIRECTORY), name)
}

fn uids_in(directory: &Path, name: &str) -> Vec<String> {
    let (namespace, pod) = match name.split_once('/') {
        Some((namespace, pod)) => (Some(namespace), pod),
        None => (None, name),
    };
    let is = |given: &str, name: &str| match given.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == given,
    };
    let mut uids = BTreeSet::new();
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    for entry in entries.take(MAX_LINKS).flatten() {
        let link = entry.file_name();
        let Some(container) = link.to_str().and_then(Container::of_link) else {
            continue;
        };
        if is(pod, container.pod) && namespace.is_none_or(|given| is(given, container.namespace)) {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            let uid = target.to_str().and_then(|path| container.uid(path));
            uids.extend(uid.map(str::to_owned));
        }
    }
    uids.into_iter().collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Container<'a> {
    id: &'a str,
    namespace: &'a str,
    pod: &'a str,
    name: &'a str,
}

impl<'a> Container<'a> {
    /// The container that a link's name stands for.
    fn of_link(link: &'a str) -> Option<Self> {
        let link = link.strip_suffix(".log")?;
        let (names, id) = link.split_at_checked(link.len().checked_sub(ID_LEN)?)?;
        let mut names = names.strip_suffix('-')?.split('_');
        let (pod, namespace, name) = (names.next()?, names.next()?, names.next()?);
        let is_id = id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let are_names = [pod, namespace, name].into_iter().all(is_dns_name);
        (is_id && are_names && names.next().is_none()).then_some(Self {
            id,
            namespace,
            pod,
            name,
        })
    }

    /// The UID in a link's target, if it is of this pod.
    fn uid<'b>(&self, target: &'b str) -> Option<&'b str> {
        target.split('/').find_map(|part| {
            let rest = part.strip_prefix(self.namespace)?.strip_prefix('_')?;
            let uid = rest.strip_prefix(self.pod)?.strip_prefix('_')?;
            is_dns_name(uid).then_some(uid)
        })
    }

    fn record(&self, uid: &str, now_ns: u64) -> Vec<u8> {
        // At most 253 each.
        let length = |text: &str| text.len() as u16;
        let record = ContainerRecord {
            kind: RECORD_CONTAINER as u8,
            reserved: 0,
            id_len: length(self.id),
            namespace_len: length(self.namespace),
            pod_len: length(self.pod),
            ts_ns: now_ns,
            uid_len: length(uid),
            name_len: length(self.name),
            reserved2: 0,
        };
        let mut bytes = record.to_bytes().to_vec();
        for text in [self.id, self.namespace, self.pod, uid, self.name] {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246";

    #[test]
    fn links_name_containers() {
        let link = format!("db-0_shop_postgres-{ID}.log");
        let container = Container::of_link(&link).unwrap();
        let expected = Container {
            id: ID,
            namespace: "shop",
            pod: "db-0",
            name: "postgres",
        };
        assert_eq!(container, expected);
        let uid = "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1";
        let target = format!("/var/log/pods/shop_db-0_{uid}/postgres/0.log");
        assert_eq!(container.uid(&target), Some(uid));
        for other in [
            "/var/log/pods/shop_db-1_u/postgres/0.log",
            "x",
            "/shop_db-0_A B/x",
        ] {
            assert_eq!(container.uid(other), None, "{other}");
        }
        for other in [
            format!("db-0_shop_postgres-{ID}"),
            format!("db-0_shop-{ID}.log"),
            format!("db-0_shop_a_b-{ID}.log"),
            format!("db-0_sh op_a-{ID}.log"),
            format!("db-0__a-{ID}.log"),
            format!("db-0_shop_a-{}.log", ID.replace('3', "x")),
            ID.into(),
            ".log".into(),
        ] {
            assert_eq!(Container::of_link(&other), None, "{other}");
        }
    }

    #[test]
    fn each_container_is_told_once() {
        let directory = std::env::temp_dir().join(format!("fathom-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let link = |pod: &str, id: &str| {
            let to = format!("/var/log/pods/shop_{pod}_u-{pod}/web/0.log");
            let name = format!("{pod}_shop_web-{id}.log");
            std::os::unix::fs::symlink(to, directory.join(name)).unwrap();
        };
        let mut containers = Containers::default();
        assert!(containers.look(&directory, 1).is_none());
        link("a", ID);
        std::fs::write(directory.join("other"), "").unwrap();
        // Records end on boundaries of eight bytes.
        let text = |chunk: RawChunk| {
            let text = String::from_utf8_lossy(&chunk.bytes).into_owned();
            text.trim_end_matches('\0').to_owned()
        };
        let first = text(containers.look(&directory, 2).unwrap());
        assert!(first.ends_with(&format!("{ID}shopau-aweb")), "{first:?}");
        assert!(containers.look(&directory, 3).is_none());
        link("b", &ID.replace('3', "4"));
        let second = text(containers.look(&directory, 4).unwrap());
        assert!(second.ends_with("shopbu-bweb"), "{second:?}");
        assert!(!second.contains("u-aw"));
        assert!(containers.look(Path::new("/nonexistent"), 5).is_none());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
