//! Kubernetes without Kubernetes: real cgroups, mounts and links, made as the kubelet makes them, in a
//! mount namespace of the recorder's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_tests::certificates::certificate;
use fathom_tests::environment::fathom;
use fathom_tests::page::Page;
use fathom_tests::serve::serve;
use fathom_tests::session::Row;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};
use rustix::process::Signal;
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

/// The names of the groups are the same in each test, and the machine has one hierarchy.
static HIERARCHY: Mutex<()> = Mutex::new(());

/// A hierarchy of cgroup v2 with the groups of two containers.
struct Groups {
    _alone: MutexGuard<'static, ()>,
    mounted: std::path::PathBuf,
    made: Vec<std::path::PathBuf>,
}

impl Groups {
    fn new(scratch: &Scratch, paths: [String; 2]) -> Option<Groups> {
        let alone = HIERARCHY.lock().unwrap_or_else(PoisonError::into_inner);
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
            _alone: alone,
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

const ONE: &str = "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246";
const TWO: &str = "4c1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246";

/// The control groups of the two containers.
fn groups(scratch: &Scratch) -> Option<Groups> {
    let slice = DATABASE.replace('-', "_");
    let paths = [
        format!("kubepods.slice/kubepods-pod{slice}.slice/cri-containerd-{ONE}.scope"),
        format!(
            "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SHIPPER}.slice/crio-{TWO}.scope"
        ),
    ];
    Groups::new(scratch, paths)
}

#[test]
fn bytes_of_pods_and_volumes_are_those_of_fio() {
    need_root!();
    need_program!("unshare", "mount", "mkfs.ext4", "fio");
    let scratch = Scratch::new();
    let (one, two) = (ONE, TWO);
    let Some(_groups) = groups(&scratch) else {
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
    filters_have_the_sums_of_the_views(&recording, written + read);
    let units = recording.rows("SELECT unit FROM by_unit WHERE unit LIKE 'cri%'");
    assert_eq!(
        units[0].text("unit"),
        Some(&*format!("cri-containerd-{one}.scope"))
    );
}

/// Calls and bytes that `fathom zoom` finds with an option.
fn summed(recording: &Recording, option: &[&str]) -> [i64; 2] {
    let out = Command::new(fathom())
        .args(["zoom", "--pixels", "1", "--format", "json"])
        .args(option)
        .arg(&recording.session)
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let rows: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    ["calls", "bytes"].map(|name| rows.iter().map(|row| row[name].as_i64().unwrap()).sum())
}

/// `fathom zoom` by tenant, and the page's filter. `of_fio`: the bytes that fio moved on the volume.
fn filters_have_the_sums_of_the_views(recording: &Recording, of_fio: i64) {
    assert_eq!(
        summed(recording, &["--volume", "pvc-77", "--class", "data"])[1],
        of_fio
    );
    let page = Page::serve(&recording.session);
    let id = &recording.session;
    let id = id.file_name().unwrap().to_str().unwrap();
    let one = format!("cri-containerd-{ONE}.scope");
    let of_volume = |volume: &str| {
        format!(
            "(SELECT count(*) AS calls, sum(bytes) AS bytes FROM syscalls JOIN volume_files USING (file_id) WHERE volume = '{volume}')"
        )
    };
    let (claimed, cache) = (of_volume("pvc-77"), of_volume("cache"));
    for (field, value, view) in [
        ("pod", "shop/db-0", "by_pod WHERE pod = 'db-0'"),
        ("pod", "shipper-*", "by_pod WHERE pod = 'shipper-x7'"),
        (
            "namespace",
            "kube-system",
            "by_pod WHERE namespace = 'kube-system'",
        ),
        ("container", "postgres", "by_pod WHERE pod = 'db-0'"),
        ("container", &TWO[..12], "by_pod WHERE pod = 'shipper-x7'"),
        ("unit", &one, "by_unit WHERE unit LIKE 'cri-%'"),
        ("volume", "pvc-77", &claimed),
        ("volume", "kubernetes.io~empty-dir/cache", &cache),
        (
            "cgroup",
            "/kubepods.slice/",
            "by_cgroup WHERE cgroup LIKE '/kubepods.slice/%'",
        ),
    ] {
        let sum =
            |column: &str| recording.number(&format!("SELECT sum({column})::BIGINT FROM {view}"));
        let expected = [sum("calls"), sum("bytes")];
        assert!(expected[0] > 0, "{field} {value}");
        let option = format!("--{field}");
        assert_eq!(
            summed(recording, &[&option, value]),
            expected,
            "{field} {value}"
        );
        let all = recording.number("SELECT count(*) FROM syscalls");
        let others = summed(recording, &[&option, &format!("!{value}")]);
        assert_eq!(others[0], all - expected[0], "{field} not {value}");
        let filter = serde_json::json!({ field: [value] }).to_string();
        let threads = page.json(&format!("/sessions/{id}/threads?f={}", encoded(&filter)));
        let calls = threads["threads"].as_array().unwrap().iter();
        let calls: f64 = calls.map(|thread| thread["calls"].as_f64().unwrap()).sum();
        assert_eq!(calls as i64, expected[0], "{field} {value}");
    }
    let requests = |options: &[&str]| {
        let out = Command::new(fathom())
            .args(["why", "--format", "json"])
            .args(options)
            .arg(&recording.session)
            .output()
            .unwrap();
        let story: Value = serde_json::from_slice(&out.stdout).unwrap();
        story["facts"]["requests"].as_i64().unwrap()
    };
    let of_pod = requests(&["--pod", "db-0"]);
    assert!(of_pod > 0);
    assert_eq!(of_pod + requests(&["--pod", "!db-0"]), requests(&[]));
    let out = Command::new(fathom())
        .args(["zoom", "--unit", "nginx"])
        .arg(&recording.session)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(errors.contains("no unit nginx"), "{errors}");
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
#[ignore = "long"]
fn a_pod_is_recorded_alone() {
    need_root!();
    need_program!("unshare", "mount", "mkfs.ext4", "fio");
    let scratch = Scratch::new();
    let Some(_groups) = groups(&scratch) else {
        return;
    };
    let root = scratch.root().display().to_string();
    let work = scratch.work().display().to_string();
    for (number, (options, pods)) in [
        (&["--pod=shop/db-0"][..], &["db-0"][..]),
        (&["--pod=shipper*"], &["shipper-x7"]),
        (
            &["--pod=kube-system/*", "--pod=db-0"],
            &["db-0", "shipper-x7"],
        ),
        // The shell was recorded until it moved into the pod.
        (&["--pod=!db-0"], &["db-0", "null", "shipper-x7"]),
        (&["--namespace=shop"], &["db-0"]),
        (&["--namespace=kube-*", "--pod=!db-0"], &["shipper-x7"]),
        // The volume, where the container has mounted it.
        (&["--pod=db-0", "--path=/tmp/data"], &["db-0"]),
    ]
    .into_iter()
    .enumerate()
    {
        let recording = Record::named(&scratch, &format!("pod-{number}"))
            .by([
                "unshare", "-m", "sh", "-c", KUBELET, "sh", &root, DATABASE, SHIPPER, ONE, TWO,
            ])
            .options(options)
            .command([
                "sh", "-c", CONTAINERS, "sh", &work, DATABASE, SHIPPER, &root,
            ])
            .run()
            .must_exit(0);
        let rows = recording.rows("SELECT coalesce(pod, 'null') AS pod FROM by_pod ORDER BY pod");
        let found: Vec<_> = rows.iter().map(|row| row.text("pod").unwrap()).collect();
        assert_eq!(found, pods, "{options:?}");
        let (written, read) = (fio_bytes(&scratch, "write"), fio_bytes(&scratch, "read"));
        let volume = "SELECT coalesce(max(bytes), 0) FROM by_volume WHERE volume = 'pvc-77'";
        let included = pods.contains(&"db-0") && !options.contains(&"--pod=!db-0");
        let expected = if included { written + read } else { 0 };
        assert_eq!(recording.number(volume), expected, "{options:?}");
        if options.contains(&"--path=/tmp/data") {
            let others = "SELECT count(*) FROM syscalls WHERE path NOT LIKE '/tmp/data%'";
            assert_eq!(recording.number(others), 0);
        }
    }
}

/// A node on which pods start while the recorder runs: one that the kubelet names before its container starts, and
/// one whose container runs when its link appears.
const STARTING: &str = r#"set -e
work=$1 groups=$2 database=$3 shipper=$4 two=$5 session=$6
shift 6
mount -t tmpfs none /var/log
mkdir -p /var/log/pods /var/log/containers
(
    until [ -e "$session/session.json" ]; do sleep 0.1; done
    sleep 1
    mkdir "/var/log/pods/shop_db-0_$database"
    sleep 0.5
    sh -c 'echo $$ > "$1/database/cgroup.procs"; exec dd if=/dev/zero of="$2/late" bs=1000 count=50 2> /dev/null' \
        sh "$groups" "$work"
    sh -c 'echo $$ > "$1/shipper/cgroup.procs"
        n=0; while [ $n -lt 50 ]; do echo $n >> "$2/running"; n=$((n + 1)); sleep 0.05; done' sh "$groups" "$work" &
    sleep 1
    ln -s "/var/log/pods/kube-system_shipper-x7_$shipper/ship/3.log" "/var/log/containers/shipper-x7_kube-system_ship-$two.log"
    wait
    touch "$work/over"
) &
exec "$@"
"#;

#[test]
#[ignore = "long"]
fn pods_that_start_later_are_recorded() {
    need_root!();
    need_program!("unshare", "mount", "dd");
    let scratch = Scratch::new();
    let Some(_groups) = groups(&scratch) else {
        return;
    };
    let root = scratch.root().display().to_string();
    let work = scratch.work().display().to_string();
    let over = scratch.root().join("over");
    for (number, (option, is_late, is_running)) in [
        ("--pod=db-*", true, false),
        ("--namespace=shop", true, false),
        ("--pod=shipper-x7", false, true),
        ("--namespace=!shop", false, true),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("later-{number}");
        let session = scratch.session(&name).display().to_string();
        let mut running = Record::named(&scratch, &name)
            .by([
                "unshare", "-m", "sh", "-c", STARTING, "sh", &root, &work, DATABASE, SHIPPER, TWO,
                &session,
            ])
            .options([option, "--path", &root])
            .options(if option.contains('!') {
                &["--all"][..]
            } else {
                &[]
            })
            .spawn();
        running.until("the end of both pods", || over.exists());
        running.signal(Signal::INT);
        let warned = running
            .errors()
            .contains("no pod that --pod and --namespace ask for");
        assert_eq!(warned, !option.contains('!'), "{}", running.errors());
        let recording = running.wait();
        fs::remove_file(&over).unwrap();
        let writes = |file: &str| {
            recording.number(&format!(
                "SELECT count(*) FROM syscalls WHERE syscall = 'write' AND path = '{root}/{file}'"
            ))
        };
        assert_eq!(writes("late"), if is_late { 50 } else { 0 }, "{option}");
        let of_running = writes("running");
        match (is_running, option.contains('!')) {
            (false, _) => assert_eq!(of_running, 0, "{option}"),
            (true, true) => assert_eq!(of_running, 50, "{option}"),
            // From the link on, also in the shell that ran already.
            (true, false) => assert!((5..50).contains(&of_running), "{option}: {of_running}"),
        }
        for file in ["late", "running"] {
            fs::remove_file(scratch.root().join(file)).unwrap();
        }
    }
}

/// Two claims of one pod, a volume of its own in another pod that has the name of a PersistentVolume,
/// and one that Kubernetes does not know.
const CLAIMED: &str = r#"set -e
work=$1 database=$2 shipper=$3 one=$4 two=$5
shift 5
mount -t tmpfs none /var/log
mount -t tmpfs none /var/lib
mkdir -p /var/log/containers
pods=/var/lib/kubelet/pods
volume() {
    mkdir -p "$1"
    truncate -s 32M "$work/$2"
    mkfs.ext4 -q -F "$work/$2"
    mount -o loop "$work/$2" "$1"
}
volume "$pods/$database/volumes/kubernetes.io~csi/pvc-77/mount" image-77
volume "$pods/$database/volumes/kubernetes.io~csi/pvc-88/mount" image-88
volume "$pods/$database/volumes/kubernetes.io~csi/inline/mount" image-inline
volume "$pods/$shipper/volumes/kubernetes.io~nfs/pvc-77" image-nfs
ln -s "/var/log/pods/shop_db-0_$database/postgres/0.log" "/var/log/containers/db-0_shop_postgres-$one.log"
ln -s "/var/log/pods/kube-system_shipper-x7_$shipper/ship/3.log" "/var/log/containers/shipper-x7_kube-system_ship-$two.log"
exec "$@"
"#;

/// fio on both claims, and dd on the other volumes.
const CLAIMANTS: &str = r#"set -e
groups=$1 database=$2 shipper=$3 work=$4
pods=/var/lib/kubelet/pods
sh -c 'echo $$ > "$1/database/cgroup.procs"; exec unshare -m sh -c '\''
    mkdir -p /tmp/data /tmp/log
    mount --bind "$1/pvc-77/mount" /tmp/data && mount --bind "$1/pvc-88/mount" /tmp/log
    fio --name=write --directory=/tmp/data --filename=table --rw=write --bs=16k --size=4M --fallocate=none \
        --output-format=json --output="$2/write.json"
    fio --name=write --directory=/tmp/log --filename=wal --rw=write --bs=8k --size=2M --fallocate=none --fsync=8 \
        --output-format=json --output="$2/log.json"
    fio --name=read --directory=/tmp/data --filename=table --rw=randread --bs=4k --io_size=1M --size=4M \
        --output-format=json --output="$2/read.json"
    dd if=/dev/zero of="$1/inline/mount/x" bs=1000 count=7 2> /dev/null
'\'' sh "$2" "$3"' sh "$groups" "$pods/$database/volumes/kubernetes.io~csi" "$work"
sh -c 'echo $$ > "$1/shipper/cgroup.procs"; dd if=/dev/zero of="$2/spool" bs=1000 count=50 2> /dev/null' \
    sh "$groups" "$pods/$shipper/volumes/kubernetes.io~nfs/pvc-77"
"#;

/// Kubernetes' API of PersistentVolumes; a line of its log is a request. The last argument is what it does
/// wrong.
const API: &str = r#"
import http.server, json, ssl, sys, time
certificate, key, log, token, wrong = sys.argv[1:]
CLAIMS = {'pvc-77': ('shop', 'data-db-0'), 'pvc-88': ('shop', 'wal-db-0')}
class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        with open(log, 'a') as file:
            file.write(self.path + '\n')
        status, name = 200, self.path.rsplit('/', 1)[1]
        if wrong == 'stalls':
            time.sleep(60)
        if wrong == 'drips':
            self.send_response(200)
            self.send_header('Content-Length', '1000000')
            self.end_headers()
            while True:
                self.wfile.write(b' ')
                time.sleep(0.1)
        if wrong == 'redirects':
            self.send_response(302)
            self.send_header('Location', 'https://127.0.0.1:1/stolen')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        if self.headers.get('Authorization') != 'Bearer ' + token:
            status, answer = 401, {'kind': 'Status', 'reason': 'Unauthorized'}
        elif not self.path.startswith('/api/v1/persistentvolumes/') or name not in CLAIMS:
            status, answer = 404, {'kind': 'Status', 'reason': 'NotFound'}
        else:
            namespace, claim = CLAIMS[name]
            reference = {'kind': 'PersistentVolumeClaim', 'namespace': namespace, 'name': claim}
            answer = {'kind': 'PersistentVolume', 'apiVersion': 'v1', 'metadata': {'name': name},
                      'spec': {'claimRef': reference}, 'status': {'phase': 'Bound'}}
        body = json.dumps(answer).encode()
        if wrong == 'floods':
            body = b'[' * (64 << 20)
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Api)
server.handle_error = lambda *_: None
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

const TOKEN: &str = "eyJhbGciOi.J9.x_y-z";

/// A fake API, and the files that a client of it has.
struct Api {
    child: Child,
    url: String,
    certificate: String,
    token: PathBuf,
    log: PathBuf,
}

impl Api {
    fn new(scratch: &Scratch, wrong: &str) -> Api {
        let [certificate, key] = certificate(scratch, "api");
        let token = scratch.root().join("token");
        fs::write(&token, format!("{TOKEN}\n")).unwrap();
        let log = scratch.root().join("requests");
        fs::write(&log, "").unwrap();
        let mut api = Command::new("python3");
        api.args(["-c", API, &certificate, &key]).arg(&log);
        let (child, port) = serve(api.args([TOKEN, wrong]));
        Api {
            child,
            url: format!("https://127.0.0.1:{port}"),
            certificate,
            token,
            log,
        }
    }

    fn options(&self, token: &Path) -> Vec<String> {
        let token = token.to_str().unwrap();
        let options = [
            "--kubernetes",
            &self.url,
            "--kubernetes-ca",
            &self.certificate,
        ];
        let options = options.into_iter().chain(["--kubernetes-token", token]);
        options.map(str::to_owned).collect()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn bytes_of_claims_are_those_of_fio() {
    need_root!();
    need_program!("unshare", "mount", "mkfs.ext4", "fio", "openssl", "python3");
    let scratch = Scratch::new();
    let Some(_groups) = groups(&scratch) else {
        return;
    };
    let api = Api::new(&scratch, "");
    let root = scratch.root().display().to_string();
    let work = scratch.work().display().to_string();
    let recording = Record::new(&scratch)
        .options(api.options(&api.token))
        .by([
            "unshare", "-m", "sh", "-c", CLAIMED, "sh", &root, DATABASE, SHIPPER, ONE, TWO,
        ])
        .command(["sh", "-c", CLAIMANTS, "sh", &work, DATABASE, SHIPPER, &root])
        .run()
        .must_exit(0);
    recording.complete();
    assert!(
        !recording.stderr.contains("cannot ask"),
        "{}",
        recording.stderr
    );

    let written = fio_bytes(&scratch, "write");
    let text = fs::read_to_string(scratch.root().join("log.json")).unwrap();
    let log: Value = serde_json::from_str(&text).unwrap();
    let logged = log["jobs"][0]["write"]["io_bytes"].as_i64().unwrap();
    let read = fio_bytes(&scratch, "read");
    assert_eq!((written, logged, read), (4 << 20, 2 << 20, 1 << 20));
    let rows = recording.rows("SELECT * FROM by_volume ORDER BY claim NULLS LAST, volume");
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let names = texts(row, &["namespace", "claim", "plugin", "volume"]);
            (
                names,
                ["read_bytes", "written_bytes"].map(|name| row.int(name).unwrap()),
            )
        })
        .collect();
    let expected = [
        (
            vec!["shop", "data-db-0", "kubernetes.io~csi", "pvc-77"],
            [read, written],
        ),
        (
            vec!["shop", "wal-db-0", "kubernetes.io~csi", "pvc-88"],
            [0, logged],
        ),
        (
            vec!["null", "null", "kubernetes.io~csi", "inline"],
            [0, 7_000],
        ),
        // Its pod is in another namespace than the claim of the PersistentVolume of this name.
        (
            vec!["null", "null", "kubernetes.io~nfs", "pvc-77"],
            [0, 50_000],
        ),
    ];
    assert_eq!(found, expected);
    let rows = recording.rows("SELECT * FROM volume_claims ORDER BY directory");
    let directories: Vec<_> = rows
        .iter()
        .map(|row| row.text("directory").unwrap())
        .collect();
    let below = |pod: &str, volume: &str| format!("/var/lib/kubelet/pods/{pod}/volumes/{volume}");
    let expected = [
        below(DATABASE, "kubernetes.io~csi/pvc-77"),
        below(DATABASE, "kubernetes.io~csi/pvc-88"),
        below(SHIPPER, "kubernetes.io~nfs/pvc-77"),
    ];
    assert_eq!(directories, expected);

    // Each volume was asked for once.
    let asked = fs::read_to_string(&api.log).unwrap();
    let mut asked: Vec<&str> = asked.lines().collect();
    asked.sort_unstable();
    let of = |name: &str| format!("/api/v1/persistentvolumes/{name}");
    assert_eq!(asked, [of("inline"), of("pvc-77"), of("pvc-88")]);
}

#[test]
#[ignore = "long"]
fn an_api_that_fails_costs_no_recording() {
    need_root!();
    need_program!("unshare", "mount", "mkfs.ext4", "fio", "openssl", "python3");
    let names = ["", "stalls", "drips", "floods", "redirects"];
    for wrong in names {
        let scratch = Scratch::new();
        let api = Api::new(&scratch, wrong);
        let token = scratch.root().join("other");
        fs::write(&token, "other").unwrap();
        let root = scratch.root().display().to_string();
        let command = "echo x >/var/lib/kubelet/pods/$0/volumes/kubernetes.io~csi/pvc-77/mount/x";
        let recording = Record::new(&scratch)
            .options(api.options(&token))
            .by([
                "unshare", "-m", "sh", "-c", CLAIMED, "sh", &root, DATABASE, SHIPPER, ONE, TWO,
            ])
            .command(["sh", "-c", command, DATABASE])
            .run()
            .must_exit(0);
        recording.complete();
        let stderr = &recording.stderr;
        let part = match wrong {
            "" => "status 401",
            "redirects" => "status 302",
            _ => "cannot ask",
        };
        assert!(stderr.contains(part), "{wrong}: {stderr}");
        let rows = recording.rows("SELECT * FROM by_volume");
        assert_eq!(texts(&rows[0], &["volume", "claim"]), ["pvc-77", "null"]);
        assert_eq!(rows[0].int("written_bytes"), Some(2));
        let asked = fs::read_to_string(&api.log).unwrap();
        assert!(!asked.is_empty() && !asked.contains("stolen"), "{asked}");
    }
    // Another certificate is not trusted: nothing is sent.
    let scratch = Scratch::new();
    let api = Api::new(&scratch, "");
    let [other, _] = certificate(&scratch, "other");
    let root = scratch.root().display().to_string();
    let recording = Record::new(&scratch)
        .options(["--kubernetes", &api.url, "--kubernetes-ca", &other])
        .by([
            "unshare", "-m", "sh", "-c", CLAIMED, "sh", &root, DATABASE, SHIPPER, ONE, TWO,
        ])
        .command(["true"])
        .run()
        .must_exit(0);
    assert!(
        recording.stderr.contains("cannot ask"),
        "{}",
        recording.stderr
    );
    assert_eq!(fs::read_to_string(&api.log).unwrap(), "");
}
