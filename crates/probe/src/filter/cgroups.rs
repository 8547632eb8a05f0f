//! Cgroups and containers that filters name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_model::container;

/// Digits of a container's id.
const ID_DIGITS: usize = 64;

/// The hierarchy of cgroup v2: where it is mounted.
pub(crate) fn hierarchy() -> Option<PathBuf> {
    let text = fs::read("/proc/self/mountinfo").ok()?;
    text.split(|b| *b == b'\n').find_map(mount_point)
}

/// The mount point in a line of /proc/self/mountinfo, if it is cgroup v2.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    if *fields.get(separator + 1)? != b"cgroup2" {
        return None;
    }
    Some(PathBuf::from(OsStr::from_bytes(fields.get(4)?)))
}

/// The path in the hierarchy of the cgroup that is called `given`: below the
/// mount point, or as /proc/PID/cgroup shows it. `None` when there is none.
pub(super) fn path_of(hierarchy: &Path, given: &str) -> Option<Vec<u8>> {
    let given = Path::new(given);
    let inside = given.strip_prefix(hierarchy).unwrap_or(given);
    let inside = inside.strip_prefix("/").unwrap_or(inside);
    let plain = inside
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_)));
    if !plain || !hierarchy.join(inside).join("cgroup.procs").exists() {
        return None;
    }
    Some([b"/", inside.as_os_str().as_bytes()].concat())
}

/// A container with a cgroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Running {
    /// Its id, or its name where the engine has no ids.
    pub id: String,
    /// The path of its cgroup.
    pub cgroup: String,
}

/// The containers that have cgroups, by id; of one with several the topmost.
pub(super) fn running(hierarchy: &Path) -> Vec<Running> {
    let mut found: Vec<Running> = Vec::new();
    each_below(hierarchy, |inside| {
        let cgroup = format!("/{}", inside.display());
        if let Some(id) = container::id(&cgroup)
            && !found
                .iter()
                .any(|c| c.id == id && cgroup.starts_with(&format!("{}/", c.cgroup)))
        {
            found.push(Running { id, cgroup });
        }
    });
    found.sort();
    found
}

/// The names that the cgroup of the pod with this UID can have: as the kubelet writes it with its drivers
/// `cgroupfs` and `systemd`, for each class of service. A kubelet with a cgroup root puts that in front of the
/// name, which is only known once the cgroup exists.
pub(crate) fn names_of_pod(hierarchy: Option<&Path>, uid: &str) -> BTreeSet<String> {
    let [plain, slice] = [
        format!("pod{uid}"),
        format!("pod{}.slice", uid.replace('-', "_")),
    ];
    let mut names = BTreeSet::from([plain.clone()]);
    for class in ["", "burstable-", "besteffort-"] {
        names.insert(format!("kubepods-{class}{slice}"));
    }
    if let Some(hierarchy) = hierarchy {
        each_below(hierarchy, |inside| {
            let name = inside.file_name().and_then(OsStr::to_str);
            let ends = |name: &&str, with: &str| {
                let before = name.strip_suffix(with);
                before.is_some_and(|before| before.is_empty() || before.ends_with('-'))
            };
            let name = name.filter(|name| ends(name, &plain) || ends(name, &slice));
            names.extend(name.map(str::to_owned));
        });
    }
    names
}

/// The name of a unit, which is a service if the name has no suffix.
pub(super) fn unit_name(given: &str) -> String {
    let is_whole = [".service", ".scope", ".slice"]
        .iter()
        .any(|suffix| given.ends_with(suffix));
    match is_whole {
        true => given.to_owned(),
        false => format!("{given}.service"),
    }
}

/// Hands over the path in the hierarchy of each cgroup.
fn each_below(hierarchy: &Path, mut each: impl FnMut(&Path)) {
    let mut waiting = vec![PathBuf::new()];
    while let Some(inside) = waiting.pop() {
        each(&inside);
        for entry in fs::read_dir(hierarchy.join(&inside))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(inside.join(entry.file_name()));
            }
        }
    }
}

/// Whether `text` can be the beginning of an id.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_DIGITS
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether `text` is a whole id.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && is_digits(text)
}

/// The id that an engine gave to the container called `name`: from the state
/// files of Docker, Podman and containerd below `root`, else from the engines'
/// own programs.
pub(super) fn id_of_name(root: &Path, name: &str) -> Option<String> {
    in_docker(root, name)
        .or_else(|| in_podman(root, name))
        .or_else(|| in_containerd(root, name))
        .or_else(|| {
            ["docker", "podman", "nerdctl"]
                .iter()
                .find_map(|engine| ask(engine, name))
        })
}

fn json(path: &Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn folders(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

/// Docker: a folder a container, named by its id.
fn in_docker(root: &Path, name: &str) -> Option<String> {
    folders(&root.join("var/lib/docker/containers")).find_map(|folder| {
        let state = json(&folder.join("config.v2.json"))?;
        (state.get("Name")?.as_str()?.trim_start_matches('/') == name)
            .then(|| state.get("ID")?.as_str().map(str::to_string))
            .flatten()
    })
}

/// Podman, of root: one list.
fn in_podman(root: &Path, name: &str) -> Option<String> {
    let list = json(&root.join("var/lib/containers/storage/overlay-containers/containers.json"))?;
    list.as_array()?.iter().find_map(|container| {
        let names = container.get("names")?.as_array()?;
        names
            .iter()
            .any(|known| known.as_str() == Some(name))
            .then(|| container.get("id")?.as_str().map(str::to_string))
            .flatten()
    })
}

/// containerd: a folder a container in the folder of its namespace; Kubernetes
/// and nerdctl keep the name in an annotation.
fn in_containerd(root: &Path, name: &str) -> Option<String> {
    let tasks = root.join("run/containerd/io.containerd.runtime.v2.task");
    folders(&tasks)
        .flat_map(|namespace| folders(&namespace))
        .find_map(|folder| {
            let state = json(&folder.join("config.json"))?;
            let notes = state.get("annotations")?;
            let id = folder.file_name()?.to_str()?.to_string();
            ["io.kubernetes.cri.container-name", "nerdctl/name"]
                .iter()
                .any(|key| notes.get(key).and_then(|n| n.as_str()) == Some(name))
                .then_some(id)
        })
}

/// Asks an engine's program, when it is there.
fn ask(engine: &str, name: &str) -> Option<String> {
    let output: io::Result<_> = Command::new(engine)
        .args([
            "inspect",
            "--type",
            "container",
            "--format",
            "{{.Id}}",
            "--",
            name,
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = String::from_utf8(output.ok().filter(|o| o.status.success())?.stdout).ok()?;
    let id = text.trim();
    is_id(id).then(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246";

    #[test]
    fn mount_points() {
        let line = b"32 23 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(
            mount_point(line),
            Some(PathBuf::from("/sys/fs/cgroup/unified"))
        );
        let line = b"32 23 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu";
        assert_eq!(mount_point(line), None);
        assert_eq!(mount_point(b""), None);
    }

    #[test]
    fn cgroups_of_a_pod() {
        let root = std::env::temp_dir().join(format!("fathom-pods-{}", std::process::id()));
        let known = [
            "kubepods-besteffort-podab_1.slice",
            "kubepods-burstable-podab_1.slice",
            "kubepods-podab_1.slice",
            "podab-1",
        ];
        let names = |root| names_of_pod(root, "ab-1").into_iter().collect::<Vec<_>>();
        assert_eq!(names(None), known);
        // As `kind` has it.
        for path in [
            "kubelet.slice/kubelet-kubepods-podab_1.slice/x",
            "xpodab-1",
            "kubepods/podab-10",
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let found = names(Some(&root));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found[0], "kubelet-kubepods-podab_1.slice");
        assert_eq!(found[1..], known);
    }

    #[test]
    fn names_in_state_files() {
        let root = std::env::temp_dir().join(format!("fathom-engines-{}", std::process::id()));
        let write = |path: String, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let [docker, podman, kube] = ['a', 'b', 'c'].map(|c| ID.replace('3', &c.to_string()));
        write(
            format!("var/lib/docker/containers/{docker}/config.v2.json"),
            format!(r#"{{"ID":"{docker}","Name":"/web"}}"#),
        );
        write(
            "var/lib/docker/containers/x/config.v2.json".into(),
            "{".into(),
        );
        write(
            "var/lib/containers/storage/overlay-containers/containers.json".into(),
            format!(r#"[{{"id":"1"}},{{"id":"{podman}","names":["db","other"]}}]"#),
        );
        write(
            format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{kube}/config.json"),
            r#"{"annotations":{"io.kubernetes.cri.container-name":"api"}}"#.into(),
        );
        assert_eq!(in_docker(&root, "web"), Some(docker));
        assert_eq!(in_podman(&root, "db"), Some(podman));
        assert_eq!(in_containerd(&root, "api"), Some(kube));
        for name in ["", "we", "webs"] {
            assert_eq!(in_docker(&root, name), None);
            assert_eq!(in_podman(&root, name), None);
            assert_eq!(in_containerd(&root, name), None);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn containers_by_their_cgroups() {
        let root = std::env::temp_dir().join(format!("fathom-cgroups-{}", std::process::id()));
        let other = ID.replace('3', "4");
        for path in [
            format!("system.slice/docker-{ID}.scope/init"),
            format!("kubepods/burstable/pod1/{other}"),
            "lxc/web1/sub".to_string(),
            "user.slice".to_string(),
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let found: Vec<_> = running(&root)
            .into_iter()
            .map(|c| (c.id, c.cgroup))
            .collect();
        assert_eq!(
            found,
            [
                (ID.to_string(), format!("/system.slice/docker-{ID}.scope")),
                (other.clone(), format!("/kubepods/burstable/pod1/{other}")),
                ("web1".to_string(), "/lxc/web1".to_string()),
            ]
        );
        fs::remove_dir_all(root).unwrap();
    }
}
