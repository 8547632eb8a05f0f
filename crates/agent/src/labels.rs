//! Labels of the metrics of calls: properties of the process and of the file.

use std::path::Path;

use fathom_model::batch::{Batch, ColumnData, NULL_I32, NULL_I64, Null};
use fathom_model::strings::StrId;
use fathom_model::{escape, tables};
use hashbrown::{HashMap, HashSet};
use serde::Deserialize;

/// The longest value of a label, in characters.
const MAX_VALUE: usize = 120;
/// Processes and files that are remembered.
const MAX_REMEMBERED: usize = 1 << 18;
/// Different values of processes, and of files, that are remembered.
const MAX_VALUES: usize = 1 << 16;
/// Containers that are remembered, and processes of one that has no name yet.
const MAX_CONTAINERS: usize = 4096;
const MAX_WAITING: usize = 256;
/// The value of every label beyond the limit.
const OTHER: &str = "other";

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Name of the process.
    Command,
    /// User id.
    User,
    /// Path of the control group.
    Cgroup,
    /// The systemd unit: the innermost service or scope in that path.
    Unit,
    /// Id of the container.
    Container,
    /// Namespace of the Kubernetes pod.
    Namespace,
    /// Name of the pod; its UID while the kubelet has not named it.
    Pod,
    /// UID of the pod.
    PodUid,
    /// Name of the container in its pod.
    ContainerName,
    /// Type of the file system: ext4, tmpfs.
    FileSystem,
    /// regular, directory, fifo, socket.
    FileType,
    /// The device that the file is on.
    Device,
}

impl Label {
    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Label::Command => "command",
            Label::User => "user",
            Label::Cgroup => "cgroup",
            Label::Unit => "unit",
            Label::Container => "container",
            Label::Namespace => "namespace",
            Label::Pod => "pod",
            Label::PodUid => "pod_uid",
            Label::ContainerName => "container_name",
            Label::FileSystem => "file_system",
            Label::FileType => "file_type",
            Label::Device => "device",
        }
    }

    /// Whether the value is a name that the kubelet gives.
    fn is_of_pods(self) -> bool {
        matches!(self, Label::Namespace | Label::Pod | Label::ContainerName)
    }

    fn is_of_files(self) -> bool {
        matches!(self, Label::FileSystem | Label::FileType | Label::Device)
    }
}

/// Different values, as numbers: 0 has no values, 1 is [`OTHER`]. They have no place among the
/// metrics before a call has them.
struct Values {
    numbers: HashMap<Vec<String>, u32>,
    all: Vec<Vec<String>>,
    free: Vec<u32>,
    most: usize,
}

const UNKNOWN: u32 = 0;
const OVERFLOW: u32 = 1;

impl Values {
    fn new(labels: usize, most: usize) -> Self {
        Self {
            numbers: HashMap::new(),
            all: vec![vec![String::new(); labels], vec![OTHER.into(); labels]],
            free: Vec::new(),
            most,
        }
    }

    fn number(&mut self, values: Vec<String>) -> u32 {
        if self.all.first() == Some(&values) {
            return UNKNOWN;
        }
        if let Some(number) = self.numbers.get(&values) {
            return *number;
        }
        if self.are_many() {
            return OVERFLOW;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.all[number as usize].clone_from(&values);
                number
            }
            None => {
                self.all.push(values.clone());
                self.all.len() as u32 - 1
            }
        };
        self.numbers.insert(values, number);
        number
    }

    fn get(&self, number: u32) -> &[String] {
        self.all.get(number as usize).map_or(&[], Vec::as_slice)
    }

    fn are_many(&self) -> bool {
        self.numbers.len() >= self.most
    }

    /// Forgets the values whose numbers are not in use.
    fn retain(&mut self, used: &HashSet<u32>) {
        let free = &mut self.free;
        self.numbers.retain(|_, number| {
            let keep = used.contains(number);
            if !keep {
                free.push(*number);
            }
            keep
        });
    }
}

/// Numbers of values by key, the latest ones of many.
#[derive(Default)]
struct Recent<K> {
    young: HashMap<K, u32>,
    old: HashMap<K, u32>,
}

impl<K: std::hash::Hash + Eq + Copy> Recent<K> {
    fn insert(&mut self, key: K, value: u32) {
        if self.young.len() >= MAX_REMEMBERED / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    fn get(&mut self, key: K) -> Option<u32> {
        if let Some(value) = self.young.get(&key) {
            return Some(*value);
        }
        let value = self.old.remove(&key)?;
        self.insert(key, value);
        Some(value)
    }

    fn values(&self) -> impl Iterator<Item = u32> {
        self.young.values().chain(self.old.values()).copied()
    }
}

/// How the kubelet names a container.
#[derive(Clone, Debug, Default)]
struct Names {
    namespace: String,
    pod: String,
    name: String,
}

/// Names of containers by id, and processes in containers that have none yet: the kubelet names a
/// container some milliseconds after it has started.
#[derive(Default)]
struct Containers {
    names: HashMap<String, Names>,
    waiting: HashMap<String, Vec<(i32, Vec<String>)>>,
    nameless: Names,
}

impl Containers {
    fn names(&self, id: &str) -> &Names {
        self.names.get(id).unwrap_or(&self.nameless)
    }

    /// A process with these values is in a container without a name.
    fn wait(&mut self, id: String, pid: i32, values: Vec<String>) {
        // Containers of other engines never get one.
        if self.waiting.len() >= MAX_CONTAINERS {
            self.waiting.clear();
        }
        let waiting = self.waiting.entry(id).or_default();
        if waiting.len() < MAX_WAITING {
            waiting.push((pid, values));
        }
    }

    /// The processes that waited for these names.
    fn name(&mut self, id: String, names: Names) -> Vec<(i32, Vec<String>)> {
        if self.names.len() >= MAX_CONTAINERS {
            self.names.clear();
        }
        let waiting = self.waiting.remove(&id).unwrap_or_default();
        self.names.insert(id, names);
        waiting
    }
}

/// A combination of values: of the process, of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSet(u32, u32);

impl LabelSet {
    /// The labels of calls beyond the limit.
    pub const OTHER: LabelSet = LabelSet(OVERFLOW, OVERFLOW);

    /// Whether a value is missing because there are too many.
    pub fn is_overflow(self) -> bool {
        self.0 == OVERFLOW || self.1 == OVERFLOW
    }
}

/// Values of labels by process and file.
pub struct Labels {
    by: Vec<Label>,
    of_process: Values,
    of_file: Values,
    processes: Recent<i32>,
    containers: Containers,
    files: Recent<i64>,
    devices: HashMap<i64, String>,
}

impl Labels {
    /// Labels `by`.
    pub fn new(by: &[Label]) -> Self {
        let files = by.iter().filter(|label| label.is_of_files()).count();
        Self {
            by: by.to_vec(),
            of_process: Values::new(by.len() - files, MAX_VALUES),
            of_file: Values::new(files, MAX_VALUES),
            processes: Recent::default(),
            containers: Containers::default(),
            files: Recent::default(),
            devices: HashMap::new(),
        }
    }

    /// Forgets processes and files, whose ids mean others in another recording.
    pub fn forget(&mut self) {
        self.processes = Recent::default();
        self.containers = Containers::default();
        self.files = Recent::default();
    }

    /// If there are many values, forgets the values that no process, no file, and none of `sets` has.
    pub fn make_room(&mut self, sets: impl Iterator<Item = LabelSet> + Clone) {
        if self.of_process.are_many() {
            let used = sets.clone().map(|set| set.0);
            self.of_process
                .retain(&used.chain(self.processes.values()).collect());
        }
        if self.of_file.are_many() {
            let used = sets.map(|set| set.1);
            self.of_file
                .retain(&used.chain(self.files.values()).collect());
        }
    }

    /// Takes rows of table processes.
    pub fn processes(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.i32s("pid").zip(of.i32s("tid"));
        let rows = rows.zip(of.strings("comm")).zip(of.strings("cgroup"));
        let rows = rows.zip(of.strings("container_id")).zip(of.i64s("uid"));
        for (((((pid, tid), comm), cgroup), container), uid) in rows {
            // A thread's name is not its process's, if that is known.
            if pid == NULL_I32 || (pid != tid && self.processes.get(pid).is_some()) {
                continue;
            }
            let text = |id: StrId| batch.strings.get(id);
            let cgroup = text(cgroup);
            let container = value(text(container));
            let names = self.containers.names(&container);
            let labels = self.by.iter().filter(|label| !label.is_of_files());
            let values = labels.map(|label| match label {
                Label::User if uid == NULL_I64 => String::new(),
                Label::User => uid.to_string(),
                Label::Cgroup => value(cgroup),
                Label::Unit => value(unit(cgroup)),
                Label::Container => container.clone(),
                Label::PodUid => pod_uid(cgroup),
                Label::Pod if names.pod.is_empty() => pod_uid(cgroup),
                Label::Pod => names.pod.clone(),
                Label::Namespace => names.namespace.clone(),
                Label::ContainerName => names.name.clone(),
                _ => value(text(comm)),
            });
            let values: Vec<String> = values.collect();
            let unnamed = !container.is_empty() && names.pod.is_empty();
            let number = self.of_process.number(values.clone());
            self.processes.insert(pid, number);
            if unnamed && self.by.iter().any(|label| label.is_of_pods()) {
                self.containers.wait(container, pid, values);
            }
        }
    }

    /// Takes rows of table containers.
    pub fn containers(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.strings("container_id").zip(of.strings("namespace"));
        let rows = rows.zip(of.strings("pod")).zip(of.strings("name"));
        for (((id, namespace), pod), name) in rows {
            let text = |id: StrId| value(batch.strings.get(id));
            let names = Names {
                namespace: text(namespace),
                pod: text(pod),
                name: text(name),
            };
            for (pid, mut values) in self.containers.name(text(id), names.clone()) {
                // The id may be another process's by now.
                let number = self.of_process.number(values.clone());
                if self.processes.get(pid) != Some(number) {
                    continue;
                }
                let labels = self.by.iter().filter(|label| !label.is_of_files());
                for (label, value) in labels.zip(&mut values) {
                    match label {
                        Label::Namespace => value.clone_from(&names.namespace),
                        Label::Pod => value.clone_from(&names.pod),
                        Label::ContainerName => value.clone_from(&names.name),
                        _ => {}
                    }
                }
                let number = self.of_process.number(values);
                self.processes.insert(pid, number);
            }
        }
    }

    /// Takes rows of table files.
    pub fn files(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.i64s("file_id").zip(of.i64s("dev"));
        let rows = rows.zip(of.strings("file_type")).zip(of.strings("fs_type"));
        for (((file, dev), file_type), fs_type) in rows {
            let text = |id: StrId| batch.strings.get(id);
            let labels = self.by.iter().filter(|label| label.is_of_files());
            let values = labels.map(|label| match label {
                Label::FileSystem => value(text(fs_type)),
                Label::FileType => value(text(file_type)),
                _ => self
                    .devices
                    .entry(dev)
                    .or_insert_with(|| device(dev))
                    .clone(),
            });
            let number = self.of_file.number(values.collect());
            self.files.insert(file, number);
        }
    }

    /// The labels of a call.
    pub fn of_call(&mut self, pid: i32, file: i64) -> LabelSet {
        let process = self.processes.get(pid).unwrap_or(UNKNOWN);
        let file = match file {
            NULL_I64 => UNKNOWN,
            file => self.files.get(file).unwrap_or(UNKNOWN),
        };
        LabelSet(process, file)
    }

    /// Names and values of the labels of a set.
    pub fn get(&self, set: LabelSet) -> impl Iterator<Item = (&'static str, &str)> {
        let mut of_process = self.of_process.get(set.0).iter();
        let mut of_file = self.of_file.get(set.1).iter();
        self.by.iter().map(move |label| {
            let values = match label.is_of_files() {
                true => &mut of_file,
                false => &mut of_process,
            };
            (label.name(), values.next().map_or("", String::as_str))
        })
    }
}

/// A program chooses its name: made safe to show, and short.
fn value(bytes: &[u8]) -> String {
    escape::shorten(&escape::bytes(bytes), MAX_VALUE)
}

/// The innermost service or scope of a control group's path.
fn unit(cgroup: &[u8]) -> &[u8] {
    cgroup
        .rsplit(|byte| *byte == b'/')
        .find(|part| part.ends_with(b".service") || part.ends_with(b".scope"))
        .unwrap_or_default()
}

/// The UID of the pod in a control group's path, as the kubelet writes it with the drivers
/// systemd (`kubepods-burstable-pod1a2b_...slice`) and cgroupfs (`kubepods/burstable/pod1a2b-...`).
fn pod_uid(cgroup: &[u8]) -> String {
    let Ok(cgroup) = std::str::from_utf8(cgroup) else {
        return String::new();
    };
    let parts = cgroup
        .split('/')
        .skip_while(|part| !part.starts_with("kubepods"));
    parts
        .filter_map(|part| {
            let part = part.strip_suffix(".slice").unwrap_or(part);
            let (before, uid) = part.rsplit_once("pod")?;
            let whole = before.is_empty() || before.ends_with('-');
            let uid = uid.replace('_', "-");
            let is_uid = uid.len() == 36 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            // Pods that the kubelet reads from files have 32 digits.
            let is_hash = uid.len() == 32 && uid.bytes().all(|b| b.is_ascii_hexdigit());
            (whole && (is_uid || is_hash)).then_some(uid)
        })
        .next()
        .unwrap_or_default()
}

/// The name of a device as the kernel has it; its numbers where it has none, as file systems
/// without a device.
fn device(dev: i64) -> String {
    let Ok(dev) = u64::try_from(dev) else {
        return String::new();
    };
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    if major == 0 {
        return String::new();
    }
    let link = std::fs::read_link(Path::new("/sys/dev/block").join(format!("{major}:{minor}")));
    let name = link.ok().and_then(|link| {
        let name = link.file_name()?;
        Some(name.to_string_lossy().into_owned())
    });
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

/// The columns of a batch by name: a value for each row, null where there is no column.
pub struct Columns<'a>(pub &'a Batch);

impl<'a> Columns<'a> {
    fn column(&self, name: &str) -> Option<&'a ColumnData> {
        let at = self.0.table.columns.iter().position(|c| c.name == name)?;
        self.0.columns.get(at)
    }

    fn rows<T: Copy + Null>(&self, values: &'a [T]) -> impl Iterator<Item = T> + use<'a, T> {
        let nulls = std::iter::repeat(T::NULL);
        values.iter().copied().chain(nulls).take(self.0.len())
    }

    /// A column of 64-bit integers.
    pub fn i64s(&self, name: &str) -> impl Iterator<Item = i64> + use<'a> {
        self.rows(match self.column(name) {
            Some(ColumnData::I64(values)) => values,
            _ => &[],
        })
    }

    /// A column of 32-bit integers.
    pub fn i32s(&self, name: &str) -> impl Iterator<Item = i32> + use<'a> {
        self.rows(match self.column(name) {
            Some(ColumnData::I32(values)) => values,
            _ => &[],
        })
    }

    /// A column of strings.
    pub fn strings(&self, name: &str) -> impl Iterator<Item = StrId> + use<'a> {
        self.rows(match self.column(name) {
            Some(ColumnData::Str(values)) => values,
            _ => &[],
        })
    }

    /// A column of lists, which is never null; empty when there is none.
    pub fn lists(&self, name: &str) -> &'a [Vec<i64>] {
        match self.column(name) {
            Some(ColumnData::ListI64(values)) => values,
            _ => &[],
        }
    }
}

/// Whether a batch is of a table.
pub fn is_of(batch: &Batch, table: &tables::Table) -> bool {
    batch.table.name == table.name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_pods_from_control_groups() {
        let unit = |cgroup: &'static str| unit(cgroup.as_bytes());
        assert_eq!(unit("/system.slice/redis.service"), b"redis.service");
        assert_eq!(
            unit("/user.slice/user-0.slice/session-3.scope"),
            b"session-3.scope"
        );
        assert_eq!(unit("/system.slice/a.service/worker"), b"a.service");
        assert_eq!(unit("/"), b"");
        let pod = |cgroup: &str| pod_uid(cgroup.as_bytes());
        let uid = "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1";
        assert_eq!(
            pod(&format!("/kubepods/burstable/pod{uid}/4f8a")),
            uid,
            "cgroupfs"
        );
        let slice = uid.replace('-', "_");
        assert_eq!(
            pod(&format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-4f8a.scope"
            )),
            uid,
            "systemd"
        );
        assert_eq!(
            pod("/kubepods/podb4a88f7d2d4b1a3d5e6f708192a3b4c5/x"),
            "b4a88f7d2d4b1a3d5e6f708192a3b4c5",
            "from a file"
        );
        assert_eq!(pod("/system.slice/podman.service"), "");
        assert_eq!(pod(&format!("/user.slice/pod{uid}")), "");
    }

    #[test]
    fn pods_get_their_names_when_the_kubelet_tells_them() {
        use fathom_model::StringTable;
        use fathom_model::tables::{ContainerRow, ContainerRows, ProcessRow, ProcessRows};

        let process = |pid: i32, comm: &str, id: &str| {
            let mut strings = StringTable::new();
            let uid = "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1";
            let mut rows = ProcessRows::default();
            rows.push(ProcessRow {
                pid,
                tid: pid,
                comm: strings.intern(comm.as_bytes()),
                cgroup: strings.intern(format!("/kubepods/pod{uid}/{id}").as_bytes()),
                container_id: strings.intern(id.as_bytes()),
                ..Default::default()
            });
            rows.into_batch(strings)
        };
        let mut labels = Labels::new(&[Label::Command, Label::Namespace, Label::Pod]);
        let of = |labels: &mut Labels, pid| {
            let set = labels.of_call(pid, NULL_I64);
            let values = labels.get(set).map(|(_, value)| value.to_owned());
            values.collect::<Vec<_>>().join("|")
        };
        labels.processes(&process(7, "postgres", "c1"));
        labels.processes(&process(8, "sh", "c1"));
        let early = of(&mut labels, 7);
        assert_eq!(early, "postgres||0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1");
        // Process 8 is another one by now.
        labels.processes(&process(8, "cron", ""));
        let mut strings = StringTable::new();
        let mut rows = ContainerRows::default();
        rows.push(ContainerRow {
            container_id: strings.intern(b"c1"),
            namespace: strings.intern(b"shop"),
            pod: strings.intern(b"db-0"),
            ..Default::default()
        });
        labels.containers(&rows.into_batch(strings));
        labels.processes(&process(9, "psql", "c1"));
        assert_eq!(of(&mut labels, 7), "postgres|shop|db-0");
        assert_eq!(of(&mut labels, 9), "psql|shop|db-0");
        assert!(of(&mut labels, 8).starts_with("cron||"));
    }

    #[test]
    fn values_are_bounded() {
        let mut values = Values::new(1, 2);
        let of = |text: &str| vec![text.to_owned()];
        assert_eq!(values.number(of("")), UNKNOWN);
        let (a, b) = (values.number(of("a")), values.number(of("b")));
        assert_eq!(values.number(of("c")), OVERFLOW);
        assert_eq!((values.number(of("a")), values.number(of("b"))), (a, b));
        assert_eq!(values.get(OVERFLOW), [OTHER]);
        assert_eq!(values.get(b), ["b"]);
        values.retain(&HashSet::from([b]));
        assert_eq!(
            values.number(of("c")),
            a,
            "the place of a value that was forgotten"
        );
        assert_eq!((values.get(a), values.get(b)), (&of("c")[..], &of("b")[..]));
        assert_eq!(values.number(of("a")), OVERFLOW);
    }

    #[test]
    fn what_is_in_use_is_remembered() {
        let mut recent = Recent::default();
        for key in 0..2 * MAX_REMEMBERED as i64 {
            recent.insert(key, 7);
            assert_eq!(recent.get(0), Some(7), "{key}");
        }
        assert_eq!(recent.get(1), None);
        assert!(recent.young.len() + recent.old.len() <= MAX_REMEMBERED);
    }
}
