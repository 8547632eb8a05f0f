//! The recorder's own mounts: the recorder's path of a file that was reached in another mount
//! namespace.

use std::sync::Arc;

use fathom_model::abi::{MOUNT_FIRST, MountRecord};
use hashbrown::HashMap;

/// Root of the mount inside its file system, and where it is mounted.
type Mount = (Box<[u8]>, Box<[u8]>);

/// The latest list of mounts.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    mnt_ns: u32,
    by_device: HashMap<u32, Vec<Mount>>,
    changed: bool,
}

impl Mounts {
    /// Takes one mount of the list.
    pub(crate) fn event(&mut self, record: &MountRecord, root: &[u8], point: &[u8]) {
        if u32::from(record.flags) & MOUNT_FIRST != 0 {
            self.by_device.clear();
        }
        self.mnt_ns = record.mnt_ns;
        self.changed = true;
        self.by_device
            .entry(record.fs_dev)
            .or_default()
            .push((root.into(), point.into()));
    }

    /// Whether the list has changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether files reached through mount namespace `mnt_ns` have the paths
    /// that the recorder has for them.
    pub(crate) fn is_own(&self, mnt_ns: u32) -> bool {
        mnt_ns == self.mnt_ns
    }

    /// The recorder's path of `path` inside the file system on device `fs_dev`: through a volume of
    /// Kubernetes, whose mount point contains its name; otherwise through the mount that shows most of
    /// the file system, the earliest if there are several.
    pub(crate) fn path(&self, fs_dev: u32, path: &[u8]) -> Option<Arc<[u8]>> {
        let mounts = self.by_device.get(&fs_dev)?.iter();
        let mounts = mounts.filter_map(|(root, point)| {
            Some((
                !is_volume(point),
                root.len(),
                &point[..],
                below(path, root)?,
            ))
        });
        let (_, _, point, below) = mounts.min_by_key(|(other, length, ..)| (*other, *length))?;
        let point = if point == b"/" { b"" } else { point };
        let whole = [point, below].concat();
        Some(if whole.is_empty() {
            Arc::from(&b"/"[..])
        } else {
            whole.into()
        })
    }
}

/// Whether a volume is mounted there: `/var/lib/kubelet/pods/UID/volumes/PLUGIN/NAME`, with
/// or without a directory in it.
fn is_volume(point: &[u8]) -> bool {
    let parts = point
        .strip_prefix(b"/var/lib/kubelet/pods/")
        .map(|rest| rest.split(|byte| *byte == b'/'));
    parts.is_some_and(|mut parts| parts.nth(1) == Some(b"volumes") && parts.count() >= 2)
}

/// The rest of `path` below `root`, with its slash; `None` if `path` is not below it.
fn below<'a>(path: &'a [u8], root: &[u8]) -> Option<&'a [u8]> {
    if root == b"/" {
        return Some(if path == b"/" { b"" } else { path });
    }
    path.strip_prefix(root)
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(list: &[(u32, &str, &str)]) -> Mounts {
        let mut mounts = Mounts::default();
        for (i, (fs_dev, root, point)) in list.iter().enumerate() {
            let record = MountRecord {
                flags: if i == 0 { MOUNT_FIRST as u8 } else { 0 },
                fs_dev: *fs_dev,
                mnt_ns: 9,
                ..MountRecord::parse(&[0; MountRecord::SIZE]).unwrap()
            };
            mounts.event(&record, root.as_bytes(), point.as_bytes());
        }
        mounts
    }

    #[test]
    fn the_widest_mount_tells() {
        let mut mounts = mounts(&[
            (1, "/srv/data", "/mnt/data"),
            (1, "/", "/"),
            (1, "/", "/later"),
            (2, "/sub/below", "/closer"),
            (2, "/sub", "/only/a/part"),
        ]);
        let path = |dev, path: &str| {
            mounts
                .path(dev, path.as_bytes())
                .map(|p| String::from_utf8(p.to_vec()).unwrap())
        };
        assert_eq!(path(1, "/etc/x").as_deref(), Some("/etc/x"));
        assert_eq!(path(1, "/").as_deref(), Some("/"));
        assert_eq!(path(1, "/srv/data/x").as_deref(), Some("/srv/data/x"));
        assert_eq!(path(2, "/sub/x").as_deref(), Some("/only/a/part/x"));
        assert_eq!(path(2, "/sub").as_deref(), Some("/only/a/part"));
        assert_eq!(path(2, "/subway"), None);
        assert_eq!(path(2, "/other"), None);
        assert_eq!(path(3, "/x"), None);
        assert!(mounts.is_own(9) && !mounts.is_own(8));
        assert!(mounts.take_changed() && !mounts.take_changed());
    }

    #[test]
    fn volumes_tell_their_names() {
        let volume = "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~csi/pvc-7/mount";
        let mounts = mounts(&[
            (
                1,
                "/",
                "/var/lib/kubelet/plugins/kubernetes.io/csi/x/globalmount",
            ),
            (1, "/", volume),
            (2, "/", "/"),
            (
                2,
                "/disks/a",
                "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~local-volume/a",
            ),
            (
                2,
                "/disks",
                "/var/lib/kubelet/pods/u-1/volume-subpaths/a/db/0",
            ),
        ]);
        let path = |dev, path: &str| {
            let path = mounts.path(dev, path.as_bytes()).unwrap();
            String::from_utf8(path.to_vec()).unwrap()
        };
        assert_eq!(path(1, "/db/x"), format!("{volume}/db/x"));
        let local = "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~local-volume/a/x";
        assert_eq!(path(2, "/disks/a/x"), local);
        assert_eq!(path(2, "/disks/b/x"), "/disks/b/x");
    }

    #[test]
    fn a_new_list_replaces_the_old() {
        let mut mounts = mounts(&[(1, "/", "/"), (2, "/", "/gone")]);
        let record = MountRecord {
            flags: MOUNT_FIRST as u8,
            fs_dev: 1,
            ..MountRecord::parse(&[0; MountRecord::SIZE]).unwrap()
        };
        mounts.event(&record, b"/", b"/");
        assert!(mounts.path(2, b"/x").is_none());
        assert!(mounts.path(1, b"/x").is_some());
    }
}
