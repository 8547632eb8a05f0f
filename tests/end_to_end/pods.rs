//! Kubernetes without Kubernetes: real cgroups, mounts and links, made as the kubelet makes them, in a
//! mount namespace of the recorder's own.

use std::fs;

use fathom_tests::session::Row;
use fathom_tests::{Record, Scratch, need_program, need_root, skip};
use serde_json::Value;

const DATABASE: &str = "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1";
const SHIPPER: &str = "b4a88f7d2d4b1a3d5e6f708192a3b4c5";

/// What the kubelet does before a container starts; then the recorder.
const KUBELET: &str = r#"set -e
work=$1 database=$2 shipper=$3 one=$4 two=$5
shift 5
mount -t tmpfs none /var/log
mount -t tmpfs none /var/lib
pods=/var/lib/kubelet/pods
volume="$pods/$database/volumes/kubernetes.io~csi/pvc-77/mount"
global=/var/lib/kubelet/plugins/kubernetes.io/csi/ab/globalmount
cache="$pods/$shipper/volumes/kubernetes.io~empty-dir/cache"
mkdir -p "$volume" "$global" "$cache" /var/log/containers
truncate -s 64M "$work/image"
mkfs.ext4 -q -F "$work/image"
mount -o loop "$work/image" "$global"
mount --bind "$global" "$volume"
ln -s "/var/log/pods/shop_db-0_$database/postgres/0.log" "/var/log/containers/db-0_shop_postgres-$one.log"
ln -s "/var/log/pods/kube-system_shipper-x7_$shipper/ship/3.log" "/var/log/containers/shipper-x7_kube-system_ship-$two.log"
exec "$@"
"#;

/// Two containers: fio on the volume of one, dd in the directory of the other. Their files have other
/// paths in them than on the host.
const CONTAINERS: &str = r#"set -e
groups=$1 database=$2 shipper=$3 work=$4
pods=/var/lib/kubelet/pods
sh -c 'echo $$ > "$1/database/cgroup.procs"; exec unshare -m sh -c '\''
    mkdir -p /tmp/data && mount --bind "$1" /tmp/data && cd /tmp/data
    fio --name=write --filename=table --rw=write --bs=16k --size=4M --fallocate=none --fsync=32 \
        --output-format=json --output="$2/write.json"
    fio --name=read --filename=table --rw=randread --bs=4k --io_size=1M --size=4M \
        --output-format=json --output="$2/read.json"
'\'' sh "$2" "$3"' sh "$groups" "$pods/$database/volumes/kubernetes.io~csi/pvc-77/mount" "$work"
sh -c 'echo $$ > "$1/shipper/cgroup.procs"; exec unshare -m sh -c '\''
    mkdir -p /tmp/cache && mount --bind "$1" /tmp/cache
    dd if=/dev/zero of=/tmp/cache/spool bs=1000 count=50 2> /dev/null
'\'' sh "$2"' sh "$groups" "$pods/$shipper/volumes/kubernetes.io~empty-dir/cache"
"#;

/// A hierarchy of cgroup v2 with the groups of two containers.
struct Groups {
    mounted: std::path::PathBuf,
    made: Vec<std::path::PathBuf>,
}

impl Groups {
    fn new(scratch: &Scratch, paths: [String; 2]) -> Option<Groups> {
        let mounted = scratch.root().join("cgroup");
        fs::create_dir(&mounted).unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "cgroup2", "none"])
            .arg(&mounted)
            .status();
        if !mount.is_ok_and(|status| status.success()) {
            skip("cgroup v2 cannot be mounted");
            return None;
        }
        let mut groups = Groups {
            mounted,
            made: Vec::new(),
        };
        for (path, name) in paths.into_iter().zip(["database", "shipper"]) {
            let mut group = groups.mounted.clone();
            for part in path.split('/') {
                group.push(part);
                if fs::create_dir(&group).is_ok() {
                    groups.made.push(group.clone());
                }
            }
            std::os::unix::fs::symlink(&group, scratch.work().join(name)).unwrap();
        }
        Some(groups)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in self.made.iter().rev() {
            fs::remove_dir(group).ok();
        }
        let unmount = std::process::Command::new("umount")
            .arg(&self.mounted)
            .status();
        unmount.ok();
    }
}

/// The bytes that fio says it moved.
fn fio_bytes(scratch: &Scratch, direction: &str) -> i64 {
    let text = fs::read_to_string(scratch.root().join(format!("{direction}.json"))).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    report["jobs"][0][direction]["io_bytes"].as_i64().unwrap()
}

fn texts<'a>(row: &'a Row, columns: &[&str]) -> Vec<&'a str> {
    columns
        .iter()
        .map(|column| row.text(column).unwrap_or("null"))
        .collect()
}

#[test]
fn bytes_of_pods_and_volumes_are_those_of_fio() {
    need_root!();
    need_program!("unshare", "mount", "mkfs.ext4", "fio");
    let scratch = Scratch::new();
    let (one, two) = (
        "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246",
        "4c1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246",
    );
    let slice = DATABASE.replace('-', "_");
    let paths = [
        format!("kubepods.slice/kubepods-pod{slice}.slice/cri-containerd-{one}.scope"),
        format!(
            "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SHIPPER}.slice/crio-{two}.scope"
        ),
    ];
    let Some(_groups) = Groups::new(&scratch, paths) else {
        return;
    };
    let root = scratch.root().display().to_string();
    let work = scratch.work().display().to_string();
    let recording = Record::new(&scratch)
        .by([
            "unshare", "-m", "sh", "-c", KUBELET, "sh", &root, DATABASE, SHIPPER, one, two,
        ])
        .command([
            "sh", "-c", CONTAINERS, "sh", &work, DATABASE, SHIPPER, &root,
        ])
        .run()
        .must_exit(0);
    recording.complete();

    let rows = recording.rows("SELECT * FROM containers ORDER BY namespace");
    let names = ["container_id", "namespace", "pod", "pod_uid", "name"];
    let expected = [
        vec![two, "kube-system", "shipper-x7", SHIPPER, "ship"],
        vec![one, "shop", "db-0", DATABASE, "postgres"],
    ];
    let found: Vec<_> = rows.iter().map(|row| texts(row, &names)).collect();
    assert_eq!(found, expected);

    let (written, read) = (fio_bytes(&scratch, "write"), fio_bytes(&scratch, "read"));
    assert_eq!((written, read), (4 << 20, 1 << 20));
    let rows = recording.rows("SELECT * FROM by_volume ORDER BY volume");
    let names = ["plugin", "volume"];
    let numbers = |row: &Row| ["read_bytes", "written_bytes"].map(|name| row.int(name).unwrap());
    let found: Vec<_> = rows
        .iter()
        .map(|row| (texts(row, &names), numbers(row)))
        .collect();
    let expected = [
        (vec!["kubernetes.io~empty-dir", "cache"], [0, 50_000]),
        (vec!["kubernetes.io~csi", "pvc-77"], [read, written]),
    ];
    assert_eq!(found, expected);

    // Everything that happened is in some pod, or in none, once.
    let rows = recording.rows("SELECT * FROM by_pod ORDER BY namespace NULLS LAST");
    let found: Vec<_> = rows
        .iter()
        .map(|row| texts(row, &["namespace", "pod"]))
        .collect();
    let expected = [
        ["kube-system", "shipper-x7"],
        ["shop", "db-0"],
        ["null", "null"],
    ];
    assert_eq!(found, expected);
    for view in ["by_cgroup", "by_unit", "by_pod"] {
        for (column, of_calls) in [
            ("calls", "count(*)"),
            ("bytes", "sum(bytes)"),
            ("errors", "count(errno)"),
            ("total_ns", "sum(dur_ns)"),
        ] {
            let sum = recording.number(&format!("SELECT sum({column})::BIGINT FROM {view}"));
            let all = recording.number(&format!("SELECT {of_calls}::BIGINT FROM syscalls"));
            assert_eq!(sum, all, "{view}.{column}");
        }
    }
    let of_pod = recording.number("SELECT written_bytes FROM by_pod WHERE pod = 'db-0'");
    assert!(
        of_pod > written,
        "the pod also wrote fio's report: {of_pod}"
    );
    let units = recording.rows("SELECT unit FROM by_unit WHERE unit LIKE 'cri%'");
    assert_eq!(
        units[0].text("unit"),
        Some(&*format!("cri-containerd-{one}.scope"))
    );
}
