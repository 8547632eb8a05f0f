//! Names of Kubernetes' containers, as records.
//!
//! The kubelet makes a link for each container that it starts:
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` to
//! `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log`. All names are names of DNS, which
//! contain no underscore. The links are read, and never followed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
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

/// A pod of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub namespace: String,
    pub name: String,
}

/// Where the kubelet names pods: the directories of their logs, which it makes before the first container of a
/// pod starts, and the links, which it makes when a container has started.
pub(crate) const NAMES_OF_PODS: [&str; 2] = ["/var/log/pods", DIRECTORY];

/// The pods in these directories, by UID.
pub(crate) fn pods_in(directories: &[PathBuf]) -> BTreeMap<String, Pod> {
    let mut pods = BTreeMap::new();
    for directory in directories {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        for entry in entries.take(MAX_LINKS).flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            let found = match Container::of_link(name) {
                None => of_directory(name),
                Some(container) => {
                    let target = std::fs::read_link(entry.path()).unwrap_or_default();
                    let uid = target.to_str().and_then(|path| container.uid(path));
                    uid.map(|uid| (uid.to_owned(), container.pod()))
                }
            };
            pods.extend(found);
        }
    }
    pods
}

/// The pod with a directory of logs, `NAMESPACE_NAME_UID`.
fn of_directory(directory: &str) -> Option<(String, Pod)> {
    let mut names = directory.split('_');
    let (namespace, name, uid) = (names.next()?, names.next()?, names.next()?);
    let are_names = [namespace, name, uid].into_iter().all(is_dns_name);
    let pod = || Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    (are_names && names.next().is_none()).then(|| (uid.to_owned(), pod()))
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

    fn pod(&self) -> Pod {
        Pod {
            namespace: self.namespace.to_owned(),
            name: self.pod.to_owned(),
        }
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
    fn pods_by_their_logs_and_by_their_links() {
        let root = std::env::temp_dir().join(format!("fathom-pods-in-{}", std::process::id()));
        let [logs, links] = ["pods", "containers"].map(|name| root.join(name));
        let (first, second) = (
            "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1",
            "b4a88f7d2d4b1a3d5e6f708192a3b4c5",
        );
        for name in [
            &format!("shop_db-0_{first}"),
            "x",
            "a_b",
            "a_b_c_d",
            "Shop_db_u",
        ] {
            std::fs::create_dir_all(logs.join(name)).unwrap();
        }
        std::fs::create_dir_all(&links).unwrap();
        let link = links.join(format!("web_shop_nginx-{}.log", "3b1e5c0f".repeat(8)));
        std::os::unix::fs::symlink(format!("/var/log/pods/shop_web_{second}/nginx/0.log"), link)
            .unwrap();
        let found = pods_in(&[logs, links, root.join("none")]);
        std::fs::remove_dir_all(&root).unwrap();
        let pod = |name: &str| Pod {
            namespace: "shop".into(),
            name: name.into(),
        };
        let expected = [
            (first.to_owned(), pod("db-0")),
            (second.to_owned(), pod("web")),
        ];
        assert_eq!(found, BTreeMap::from(expected));
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
