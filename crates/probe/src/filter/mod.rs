//! The filters of `fathom record`, other than the choice of calls, as rules for the kernel side
//! (`bpf/include/filter.h`).
//!
//! Filters of different kinds must all let a call pass; of one kind a value that
//! is named suffices; a value behind `!` takes away.

mod cgroups;
mod hash;
mod literal;
mod paths;
mod pods;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::abi::{
    COMM_BYTES, FilterConfig, RULE_BEGINNING, RULE_CGROUP, RULE_COMM, RULE_CONTAINER, RULE_LEAVES,
    RULE_PATH, RULE_PID, RULE_POD, RULE_TAKES, RULE_TID, RULE_UID, RULE_UNIT, RULE_WHOLE, RuleKey,
};

use crate::User;
use crate::containers::NAMES_OF_PODS;
pub(crate) use cgroups::{hierarchy as cgroup_hierarchy, names_of_pod};
use hash::Hasher;
use literal::Literal;
pub(crate) use pods::PodFilter;

/// Most rules of all filters together.
const MAX_RULES: usize = 65_536;

/// Filters as given. A value that begins with `!` takes away.
#[derive(Clone, Debug, Default)]
pub struct FilterArgs {
    /// Files and directories, with all below them: whole names, no patterns.
    pub path: Vec<OsString>,
    /// Names of threads; a `*` at the end stands for anything.
    pub comm: Vec<OsString>,
    /// Processes.
    pub pid: Vec<String>,
    pub tid: Vec<String>,
    /// Users, by name or number.
    pub uid: Vec<String>,
    /// Cgroups, with all below them.
    pub cgroup: Vec<String>,
    /// Containers, by id, beginning of an id, or name.
    pub container: Vec<String>,
    /// Units of systemd, with all below them.
    pub unit: Vec<String>,
    /// Pods of Kubernetes: `NAMESPACE/NAME`, or a name.
    pub pod: Vec<String>,
    /// Namespaces of Kubernetes, with all their pods.
    pub namespace: Vec<String>,
    /// Types of files.
    pub file_type: Vec<String>,
    pub errors_only: bool,
    /// Only calls that take at least so long.
    pub min_duration: Option<Duration>,
}

/// Why a filter makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Nothing, or nothing behind `!`.
    #[error("--{option}: the value is empty")]
    Empty { option: &'static str },
    #[error("--{option} {value}: {problem}")]
    Value {
        option: &'static str,
        value: String,
        /// The problem and its solution.
        problem: String,
    },
    /// One value is asked for and taken away.
    #[error("--{option}: {value} is both included and excluded ('!{value}')")]
    Contradiction { option: &'static str, value: String },
    /// The types asked for are all taken away.
    #[error("--file-type: the values exclude every type")]
    NoType,
    /// There are too many.
    #[error("the filters have {0} values; the maximum is {MAX_RULES}")]
    TooMany(usize),
    /// The system gave no random numbers.
    #[error("cannot get random numbers for the filters: {0}")]
    Random(String),
}

/// Filters that make sense, as the kernel side takes them.
#[derive(Clone, Debug)]
pub struct Filters {
    pub(crate) config: FilterConfig,
    rules: BTreeMap<(u32, u32, u64), u32>,
    pods: PodFilter,
    hasher: Hasher,
    pids: Vec<u32>,
    tids: Vec<u32>,
}

/// Names of types of files, and the type in st_mode; anonymous files have none.
const FILE_TYPES: [(&str, u32); 8] = [
    ("regular", 8),
    ("directory", 4),
    ("symlink", 10),
    ("block", 6),
    ("char", 2),
    ("fifo", 1),
    ("socket", 12),
    ("anonymous", 0),
];
/// Types that are recorded only when asked for.
const NOT_STORAGE: [&str; 3] = ["fifo", "socket", "anonymous"];

impl Filters {
    /// The types of files that a filter can name.
    pub fn type_names() -> impl Iterator<Item = &'static str> {
        FILE_TYPES.iter().map(|(name, _)| *name)
    }

    pub fn none() -> Self {
        Self {
            config: FilterConfig {
                seed: 0,
                factor: 1,
                min_dur_ns: 0,
                path_depths: 0,
                container_lengths: 0,
                given: 0,
                takes: 0,
                file_types: 0,
                path_types: 0,
                known_types: 0,
                errors_only: 0,
                comm_lengths: 0,
                reserved: 0,
            },
            rules: BTreeMap::new(),
            pods: PodFilter::default(),
            hasher: Hasher { seed: 0, factor: 1 },
            pids: Vec::new(),
            tids: Vec::new(),
        }
    }

    /// Checks filters and makes rules of them. `all_file_types`: sockets, pipes
    /// and anonymous files are recorded unless taken away.
    pub fn parse(args: &FilterArgs, all_file_types: bool) -> Result<Self, FilterError> {
        let mut filters = Self::none();
        filters.hasher = Hasher::random().map_err(|e| FilterError::Random(e.to_string()))?;
        filters.config.seed = filters.hasher.seed;
        filters.config.factor = filters.hasher.factor;
        filters.config.errors_only = args.errors_only.into();
        filters.config.min_dur_ns = args
            .min_duration
            .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        for value in &args.path {
            filters.path(value)?;
        }
        for value in &args.comm {
            filters.comm(value)?;
        }
        filters.numbers(args)?;
        for value in &args.cgroup {
            filters.cgroup(value)?;
        }
        for value in &args.container {
            filters.container(value)?;
        }
        for (value, sign) in split("unit", &args.unit)? {
            filters.unit(value, sign)?;
        }
        filters.pods(args)?;
        filters.file_types(&args.file_type, all_file_types)?;
        if filters.rules.len() > MAX_RULES {
            return Err(FilterError::TooMany(filters.rules.len()));
        }
        Ok(filters)
    }

    /// Processes that are named, the targets of a recording.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Whether tasks may match that do not exist yet, with any parent: the recording does not end
    /// when the existing ones have ended.
    pub fn open_ended(&self) -> bool {
        self.pids.is_empty() && self.tids.is_empty()
    }

    /// Whether paths are filtered, which needs paths to be read.
    pub fn by_path(&self) -> bool {
        self.given(RULE_PATH)
    }

    /// Whether tasks are filtered by their user.
    pub(crate) fn by_user(&self) -> bool {
        self.given(RULE_UID)
    }

    /// Whether calls whose file is not known are left out: `nothing_passes` in
    /// `bpf/include/call_filter.h`.
    pub(crate) fn need_a_file(&self) -> bool {
        self.config.known_types != 0 || self.config.takes & 1 << RULE_PATH != 0
    }

    /// Whether no call is left out.
    pub(crate) fn leave_nothing_out(&self) -> bool {
        let FilterConfig {
            given,
            min_dur_ns,
            file_types,
            errors_only,
            known_types,
            ..
        } = self.config;
        given == 0 && min_dur_ns == 0 && file_types | errors_only | known_types == 0
    }

    /// An option that only kernels with loops can serve, if one was given.
    pub(crate) fn needing_loops(&self) -> Option<&'static str> {
        [
            (RULE_PATH, "--path"),
            (RULE_CGROUP, "--cgroup"),
            (RULE_CONTAINER, "--container"),
            (RULE_UNIT, "--unit"),
            (RULE_POD, "--pod"),
        ]
        .into_iter()
        .find_map(|(kind, option)| self.given(kind).then_some(option))
        .map(|option| match self.pods.given() {
            Some(("namespace", _)) if option == "--pod" => "--namespace",
            _ => option,
        })
    }

    fn given(&self, kind: u32) -> bool {
        self.config.given & 1 << kind != 0
    }

    /// The rules: keys and values of the kernel side's map.
    pub(crate) fn rules(&self) -> impl ExactSizeIterator<Item = (RuleKey, u32)> {
        self.rules
            .iter()
            .map(|(&(kind, form, hash), &sign)| (RuleKey { kind, form, hash }, sign))
    }

    fn add(
        &mut self,
        (option, kind): (&'static str, u32),
        (form, hash): (u32, u64),
        sign: u32,
        value: &str,
    ) -> Result<(), FilterError> {
        let before = self.rules.insert((kind, form, hash), sign);
        if before.is_some_and(|before| before != sign) {
            return Err(FilterError::Contradiction {
                option,
                value: value.to_string(),
            });
        }
        self.config.given |= 1 << kind;
        if sign == RULE_TAKES {
            self.config.takes |= 1 << kind;
        }
        Ok(())
    }

    fn path(&mut self, given: &OsStr) -> Result<(), FilterError> {
        const OPTION: &str = "path";
        let (value, sign) = split_sign(OPTION, given.as_bytes())?;
        let shown = text(value);
        let wrong = |problem: String| wrong(OPTION, &shown, problem);
        let exists = || {
            Path::new(OsStr::from_bytes(value))
                .symlink_metadata()
                .is_ok()
        };
        let name = match literal::read(value, b"*?[") {
            Literal::Name(name) => name,
            // Shells and programs write such names without a thought.
            Literal::Pattern('[') if exists() => value.to_vec(),
            Literal::Pattern(c) => {
                return Err(wrong(format!(
                    "'{c}' makes this a pattern, but the kernel can compare only whole names of \
                     files and directories; record the directory, and select by path \
                     afterwards: fathom query SESSION \"SELECT * FROM syscalls WHERE path \
                     GLOB '...'\"; for a name that contains the character write '\\{c}'"
                )));
            }
        };
        let forms =
            paths::forms(OsStr::from_bytes(&name)).map_err(|e| wrong(format!("no path: {e}")))?;
        for form in forms {
            if paths::too_long(&form) {
                return Err(wrong(
                    "too long: the limits are 4095 bytes for a path and 255 for a name".into(),
                ));
            }
            let (hash, depth) = self.hasher.path(&form);
            self.config.path_depths |= 1 << depth.min(63);
            self.add((OPTION, RULE_PATH), (RULE_WHOLE, hash), sign, &shown)?;
        }
        Ok(())
    }

    fn comm(&mut self, given: &OsStr) -> Result<(), FilterError> {
        const OPTION: &str = "comm";
        let (value, sign) = split_sign(OPTION, given.as_bytes())?;
        let shown = text(value);
        // The kernel keeps so many bytes of a name.
        let longest = COMM_BYTES as usize - 1;
        let is_escaped =
            |text: &[u8]| text.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1;
        let beginning = value.strip_suffix(b"*").filter(|text| !is_escaped(text));
        let Literal::Name(name) = literal::read(beginning.unwrap_or(value), b"*") else {
            let problem = "'*' stands for anything at the end of a name only; for a name that has \
                           the character itself write '\\*'";
            return Err(wrong(OPTION, &shown, problem.into()));
        };
        let (form, name) = match beginning {
            Some(_) if name.len() <= longest => {
                self.config.comm_lengths |= 1 << name.len();
                (RULE_BEGINNING, name.as_slice())
            }
            // Bytes beyond that cannot be compared.
            _ => (RULE_WHOLE, name.get(..longest).unwrap_or(&name)),
        };
        let hash = self.hasher.text(name);
        self.add((OPTION, RULE_COMM), (form, hash), sign, &shown)
    }

    fn numbers(&mut self, args: &FilterArgs) -> Result<(), FilterError> {
        for (value, sign) in split("pid", &args.pid)? {
            let pid = number("pid", value)?;
            let targets = self.pids.contains(&pid);
            if sign == RULE_TAKES {
                if self.rules.contains_key(&(RULE_PID, RULE_WHOLE, pid.into())) {
                    return Err(contradiction("pid", value));
                }
                self.pids.push(pid);
            } else if targets {
                return Err(contradiction("pid", value));
            } else {
                self.add(("pid", RULE_PID), (RULE_WHOLE, pid.into()), sign, value)?;
            }
        }
        for (value, sign) in split("tid", &args.tid)? {
            let tid = number("tid", value)?;
            if sign == RULE_TAKES {
                if !Path::new("/proc").join(tid.to_string()).exists() {
                    return Err(wrong("tid", value, "no such thread".into()));
                }
                self.tids.push(tid);
            }
            self.add(("tid", RULE_TID), (RULE_WHOLE, tid.into()), sign, value)?;
        }
        for (value, sign) in split("uid", &args.uid)? {
            let uid = match value.parse::<u32>() {
                Ok(uid) => uid,
                Err(_) => User::named(value)
                    .map_err(|_| {
                        wrong(
                            "uid",
                            value,
                            "no such user; `getent passwd` lists users".into(),
                        )
                    })?
                    .uid(),
            };
            self.add(("uid", RULE_UID), (RULE_WHOLE, uid.into()), sign, value)?;
        }
        Ok(())
    }

    fn cgroup(&mut self, given: &str) -> Result<(), FilterError> {
        const OPTION: &str = "cgroup";
        let (value, sign) = split_sign(OPTION, given.as_bytes())?;
        let value = text(value);
        let path = cgroups::path_of(&hierarchy(OPTION, &value)?, &value).ok_or_else(|| {
            wrong(
                OPTION,
                &value,
                "no such cgroup (v2); /proc/PID/cgroup shows the path after '0::'".into(),
            )
        })?;
        let (hash, _) = self.hasher.path(&path);
        self.add((OPTION, RULE_CGROUP), (RULE_WHOLE, hash), sign, &value)
    }

    fn container(&mut self, given: &str) -> Result<(), FilterError> {
        const OPTION: &str = "container";
        for value in given.split(',') {
            let (value, sign) = split_sign(OPTION, value.as_bytes())?;
            let value = text(value);
            let wrong = |problem: String| wrong(OPTION, &value, problem);
            let kind = (OPTION, RULE_CONTAINER);
            if let Some(beginning) = value.strip_suffix('*') {
                // Existing and future containers.
                if !cgroups::is_digits(beginning) {
                    return Err(wrong(
                        "only hexadecimal digits of an ID (0-9, a-f) can precede '*'".into(),
                    ));
                }
                let rule = self.container_id(beginning);
                self.add(kind, rule, sign, &value)?;
                continue;
            }
            let running = cgroups::running(&hierarchy(OPTION, &value)?);
            let mut matching: Vec<_> = running.iter().filter(|c| c.id == value).collect();
            if matching.is_empty() && cgroups::is_digits(&value) {
                matching = running
                    .iter()
                    .filter(|c| cgroups::is_id(&c.id) && c.id.starts_with(&value))
                    .collect();
            }
            matching.dedup_by_key(|c| &c.id);
            let rules: Vec<(u32, u64)> = match matching.as_slice() {
                [] => {
                    let id = cgroups::id_of_name(Path::new("/"), &value)
                        .ok_or_else(|| wrong("no running container has this name or ID".into()))?;
                    if !running.iter().any(|c| c.id == id) {
                        return Err(wrong(format!("the container ({id}) is not running")));
                    }
                    vec![self.container_id(&id)]
                }
                [one] if cgroups::is_id(&one.id) => vec![self.container_id(&one.id)],
                // Without an ID the container is identified by its cgroup's path.
                [one] => running
                    .iter()
                    .filter(|c| c.id == one.id)
                    .map(|c| (RULE_WHOLE, self.hasher.path(c.cgroup.as_bytes()).0))
                    .collect(),
                several => {
                    return Err(wrong(format!(
                        "the IDs of {} containers begin with this; give more digits, or '{value}*' for \
                         all of them",
                        several.len()
                    )));
                }
            };
            for rule in rules {
                self.add(kind, rule, sign, &value)?;
            }
        }
        Ok(())
    }

    /// The name of the unit is the name of its cgroup: it also matches units that start later.
    fn unit(&mut self, value: &str, sign: u32) -> Result<(), FilterError> {
        const OPTION: &str = "unit";
        let wrong = |problem: &str| wrong(OPTION, value, problem.into());
        if value.contains('*') {
            return Err(wrong(
                "patterns are not supported: the kernel can compare only whole names; repeat the option for \
                 several units, or give --cgroup for a slice",
            ));
        }
        if value.contains('/') {
            return Err(wrong("a path of a cgroup: use --cgroup"));
        }
        hierarchy(OPTION, value)?;
        let rule = self.cgroup_name(&cgroups::unit_name(value));
        self.add((OPTION, RULE_UNIT), rule, sign, value)
    }

    /// Pods may start later: their rules are made while the recording runs ([`crate::pod_rules`]).
    fn pods(&mut self, args: &FilterArgs) -> Result<(), FilterError> {
        self.set_pods(args)?;
        let Some((option, value)) = self.pods.given() else {
            return Ok(());
        };
        hierarchy(option, value)?;
        if !NAMES_OF_PODS.iter().any(|name| Path::new(name).is_dir()) {
            return Err(wrong(
                option,
                value,
                "no kubelet names pods here: there is neither /var/log/pods nor /var/log/containers; a recorder in a \
                 container needs them of the node"
                    .into(),
            ));
        }
        Ok(())
    }

    pub(crate) fn set_pods(&mut self, args: &FilterArgs) -> Result<(), FilterError> {
        self.pods = PodFilter::parse(&args.pod, &args.namespace)?;
        if self.pods.given().is_some() {
            self.config.given |= 1 << RULE_POD;
        }
        if self.pods.takes() {
            self.config.takes |= 1 << RULE_POD;
        }
        Ok(())
    }

    /// The filter of pods, if there is one.
    pub(crate) fn by_pod(&self) -> Option<&PodFilter> {
        self.given(RULE_POD).then_some(&self.pods)
    }

    /// The rule for a cgroup of a pod.
    pub(crate) fn pod_rule(&self, cgroup: &str) -> RuleKey {
        let (form, hash) = self.cgroup_name(cgroup);
        RuleKey {
            kind: RULE_POD,
            form,
            hash,
        }
    }

    fn cgroup_name(&self, name: &str) -> (u32, u64) {
        (RULE_WHOLE, self.hasher.component(name.as_bytes()))
    }

    fn container_id(&mut self, digits: &str) -> (u32, u64) {
        self.config.container_lengths |= 1 << (digits.len() - 1);
        (RULE_BEGINNING, self.hasher.text(digits.as_bytes()))
    }

    fn file_types(&mut self, given: &[String], all: bool) -> Result<(), FilterError> {
        const OPTION: &str = "file-type";
        let (mut taken, mut left) = (0, 0);
        for (value, sign) in split(OPTION, given)? {
            let known = FILE_TYPES.iter().find(|(name, _)| *name == value);
            let (_, bit) = known.ok_or_else(|| {
                let names: Vec<_> = FILE_TYPES.iter().map(|(name, _)| *name).collect();
                wrong(
                    OPTION,
                    value,
                    format!("no such type; choose from {}", names.join(", ")),
                )
            })?;
            let (to, other) = if sign == RULE_TAKES {
                (&mut taken, left)
            } else {
                (&mut left, taken)
            };
            if other & 1 << bit != 0 {
                return Err(contradiction(OPTION, value));
            }
            *to |= 1 << bit;
        }
        if taken == 0 && left == 0 {
            return Ok(());
        }
        let storage = |(name, _): &&(&str, u32)| all || !NOT_STORAGE.contains(name);
        let bits = |sum: u32, (_, bit): &(&str, u32)| sum | 1 << bit;
        let config = &mut self.config;
        config.known_types = (taken != 0).into();
        (config.file_types, config.path_types) = if taken != 0 {
            (taken, taken)
        } else {
            (
                FILE_TYPES.iter().filter(storage).fold(0, bits) & !left,
                FILE_TYPES.iter().fold(0, bits) & !left,
            )
        };
        if config.file_types == 0 || config.path_types == 0 {
            return Err(FilterError::NoType);
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wrong(option: &'static str, value: &str, problem: String) -> FilterError {
    FilterError::Value {
        option,
        value: value.escape_debug().to_string(),
        problem,
    }
}

fn contradiction(option: &'static str, value: &str) -> FilterError {
    FilterError::Contradiction {
        option,
        value: value.to_string(),
    }
}

/// A value and whether it takes or leaves.
fn split_sign<'a>(option: &'static str, value: &'a [u8]) -> Result<(&'a [u8], u32), FilterError> {
    let (value, sign) = match value.strip_prefix(b"!") {
        Some(rest) => (rest, RULE_LEAVES),
        None => (value, RULE_TAKES),
    };
    if value.is_empty() {
        return Err(FilterError::Empty { option });
    }
    Ok((value, sign))
}

/// The values of lists, each with whether it takes or leaves.
fn split<'a>(
    option: &'static str,
    lists: &'a [String],
) -> Result<Vec<(&'a str, u32)>, FilterError> {
    let values = lists.iter().flat_map(|list| list.split(','));
    values
        .map(|value| {
            let (rest, sign) = split_sign(option, value.trim().as_bytes())?;
            Ok((std::str::from_utf8(rest).unwrap_or_default(), sign))
        })
        .collect()
}

fn number(option: &'static str, value: &str) -> Result<u32, FilterError> {
    value
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| wrong(option, value, "not a process or thread ID".into()))
}

fn hierarchy(option: &'static str, value: &str) -> Result<PathBuf, FilterError> {
    cgroups::hierarchy().ok_or_else(|| {
        wrong(
            option,
            value,
            "no cgroup v2 hierarchy is mounted; mount -t cgroup2 none /sys/fs/cgroup".into(),
        )
    })
}

#[cfg(test)]
mod tests;
