//! Many sessions at a glance: their sums by command, day, host, label, finding, tenant, volume, or device.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fathom_extensions::Extensions;
use fathom_model::escape::{self, shell_words};
use fathom_model::meta::SessionMeta;
use fathom_model::units;
use fathom_query::fetch::{Row, rows};
use fathom_query::{Db, Limits, QueryError};
use fathom_session::Session;
use serde::Serialize;

use crate::error::ReportError;
use crate::findings::diagnosis_in_passing;

/// Characters of a day in a time.
const DAY: usize = 10;

/// A property by which sessions are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetKey {
    /// The recorded command, or the target in words.
    Command,
    /// Day on which the recording started, UTC.
    Day,
    /// Name of the host.
    Host,
    /// Value of a label, whose key [`Fleet::new`] gets.
    Label,
    /// Rule that found a problem.
    Finding,
    /// Pod, otherwise unit of systemd, otherwise cgroup.
    Tenant,
    /// Volume of Kubernetes.
    Volume,
    /// Block device.
    Device,
}

impl FleetKey {
    /// All of them, in the order of [`FleetGroup`]'s members.
    pub const ALL: [FleetKey; 8] = [
        FleetKey::Command,
        FleetKey::Day,
        FleetKey::Host,
        FleetKey::Label,
        FleetKey::Finding,
        FleetKey::Tenant,
        FleetKey::Volume,
        FleetKey::Device,
    ];

    /// Its name in options and addresses.
    pub fn name(self) -> &'static str {
        match self {
            FleetKey::Command => "command",
            FleetKey::Day => "day",
            FleetKey::Host => "host",
            FleetKey::Label => "label",
            FleetKey::Finding => "finding",
            FleetKey::Tenant => "tenant",
            FleetKey::Volume => "volume",
            FleetKey::Device => "device",
        }
    }

    /// The keys in a list such as `day,label:job`, and the key of the label.
    ///
    /// # Errors
    /// A sentence, when there is none of that name, or more than one can be asked for at a time.
    pub fn list(text: &str) -> Result<(Vec<Self>, String), String> {
        let (mut keys, mut label) = (Vec::new(), String::new());
        for name in text.split(',').filter(|name| !name.is_empty()) {
            let known = Self::ALL.into_iter().find(|key| key.name() == name);
            let key = match (known, name.strip_prefix("label:")) {
                (Some(key), _) if key != Self::Label => key,
                (_, Some(of)) if !of.is_empty() => {
                    if !label.is_empty() && label != of {
                        return Err("one label can be asked for at a time".to_owned());
                    }
                    of.clone_into(&mut label);
                    Self::Label
                }
                _ => {
                    let names = Self::ALL.map(|key| match key {
                        Self::Label => "label:KEY",
                        key => key.name(),
                    });
                    return Err(format!("{name:?} is none of {}", names.join(", ")));
                }
            };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            return Err("sums need something to sum up by".to_owned());
        }
        if keys.iter().filter(|key| key.is_detail()).count() > 1 {
            let one = "of finding, tenant, volume, and device one can be asked for at a time";
            return Err(one.to_owned());
        }
        Ok((keys, label))
    }

    /// Whether it divides a session. Sessions can be summed up by one such key.
    pub fn is_detail(self) -> bool {
        !matches!(
            self,
            FleetKey::Command | FleetKey::Day | FleetKey::Host | FleetKey::Label
        )
    }

    /// The value of a group.
    pub fn of(self, group: &FleetGroup) -> Option<&str> {
        let value = match self {
            FleetKey::Command => &group.command,
            FleetKey::Day => &group.day,
            FleetKey::Host => &group.host,
            FleetKey::Label => &group.label,
            FleetKey::Finding => &group.finding,
            FleetKey::Tenant => &group.tenant,
            FleetKey::Volume => &group.volume,
            FleetKey::Device => &group.device,
        };
        value.as_deref()
    }
}

/// Sums of the sessions that have the same values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct FleetGroup {
    /// With command: the recorded command, or the target in words.
    pub command: Option<String>,
    /// With day: the day on which the recordings started, UTC.
    pub day: Option<String>,
    /// With host: name of the host.
    pub host: Option<String>,
    /// With label:KEY: the value of that label; null if a session has none.
    pub label: Option<String>,
    /// With finding: id of the rule.
    pub finding: Option<String>,
    /// With tenant: NAMESPACE/POD, otherwise the unit of systemd, otherwise the cgroup; null if unknown.
    pub tenant: Option<String>,
    /// With volume: NAMESPACE/CLAIM of the volume of Kubernetes; PLUGIN/NAME where no claim is known.
    pub volume: Option<String>,
    /// With device: name of the block device.
    pub device: Option<String>,
    /// Sessions.
    pub sessions: u64,
    /// Hosts of these sessions.
    pub hosts: u64,
    /// Calls; with device, requests. Null with finding.
    pub calls: Option<i64>,
    /// Bytes that they moved; null with finding.
    pub bytes: Option<i64>,
    /// Their total duration, nanoseconds; with finding, its cost.
    pub time_ns: i64,
    /// Findings of these sessions; with tenant, volume, or device null.
    pub findings: Option<u64>,
    /// The session with most of the time.
    pub session: String,
    /// Its time, nanoseconds.
    #[serde(skip)]
    most_ns: i64,
}

/// Values of a group, in the order of [`FleetKey::ALL`].
type Values = [Option<String>; 8];

/// The share of a session in the groups.
#[derive(Clone, Debug)]
pub struct FleetShares {
    command: String,
    day: String,
    host: String,
    labels: BTreeMap<String, String>,
    machine_id: String,
    recording: String,
    problems: Vec<String>,
    /// `None`: findings are wanted, and it is not diagnosed.
    shares: Option<Vec<Share>>,
}

/// The share of a session in one group.
#[derive(Clone, Debug)]
struct Share {
    /// Finding, tenant, volume, or device.
    detail: Option<String>,
    calls: Option<i64>,
    bytes: Option<i64>,
    time_ns: i64,
    findings: Option<u64>,
}

impl FleetShares {
    /// Reads a session. `detail`: what divides it, if anything does. Sessions that are large and not
    /// diagnosed have no findings.
    ///
    /// # Errors
    /// When the session cannot be read, or a view of `extensions` is wrong.
    pub fn read(
        session: &Session,
        detail: Option<FleetKey>,
        extensions: &Extensions,
        limits: Limits,
    ) -> Result<Self, ReportError> {
        let meta = session.meta();
        let day = units::wall_time(meta.clock.start_realtime_ns);
        Ok(Self {
            command: command(meta),
            day: day.get(..DAY).unwrap_or(&day).to_owned(),
            host: meta.host.name.clone(),
            labels: meta.labels.clone(),
            machine_id: meta.host.machine_id.clone(),
            recording: meta.recording().to_owned(),
            problems: session.problems().to_vec(),
            shares: shares(session, detail, extensions, limits)?,
        })
    }
}

impl FleetShares {
    /// Whether the session has the findings that were asked for: a diagnosis may come later.
    pub fn is_diagnosed(&self) -> bool {
        let shares = self.shares.iter().flatten();
        self.shares.is_some() && shares.into_iter().all(|share| share.findings.is_some())
    }
}

fn command(meta: &SessionMeta) -> String {
    match meta.command.is_empty() {
        true => meta.target.clone(),
        false => shell_words(&meta.command),
    }
}

/// Sums of sessions.
#[derive(Debug)]
pub struct Fleet<'a> {
    by: &'a [FleetKey],
    /// The key of the label, with [`FleetKey::Label`].
    label: &'a str,
    groups: BTreeMap<Values, (FleetGroup, BTreeSet<[String; 2]>)>,
    notes: Vec<String>,
    recordings: BTreeMap<String, u64>,
    undiagnosed: u64,
}

impl<'a> Fleet<'a> {
    /// Sums by `by`, of which one at most divides sessions. `label` is the key of the label, with
    /// [`FleetKey::Label`].
    pub fn new(by: &'a [FleetKey], label: &'a str) -> Self {
        Self {
            by,
            label,
            groups: BTreeMap::new(),
            notes: Vec::new(),
            recordings: BTreeMap::new(),
            undiagnosed: 0,
        }
    }

    /// The key that divides sessions, if there is one.
    pub fn detail(&self) -> Option<FleetKey> {
        self.by.iter().copied().find(|by| by.is_detail())
    }

    /// A session cannot be read.
    pub fn leave_out(&mut self, session: &str, error: &str) {
        self.notes.push(format!(
            "{} is left out: {}",
            escape::text(session),
            escape::text(error)
        ));
    }

    /// Adds a session.
    pub fn add(&mut self, session: &str, of: &FleetShares) {
        let problems = of.problems.iter();
        let name = escape::text(session);
        self.notes
            .extend(problems.map(|problem| format!("{name}: {problem}")));
        *self.recordings.entry(of.recording.clone()).or_default() += 1;
        let Some(shares) = &of.shares else {
            self.undiagnosed += 1;
            return;
        };
        if self.detail().is_none() && shares.iter().any(|share| share.findings.is_none()) {
            self.undiagnosed += 1;
        }
        for share in shares {
            let values = FleetKey::ALL.map(|key| {
                let value = match key {
                    FleetKey::Command => Some(&of.command),
                    FleetKey::Day => Some(&of.day),
                    FleetKey::Host => Some(&of.host),
                    FleetKey::Label => of.labels.get(self.label),
                    _ => share.detail.as_ref(),
                };
                value.filter(|_| self.by.contains(&key)).cloned()
            });
            let (group, hosts) = self.groups.entry(values).or_default();
            // Machines can have one name, such as localhost.
            hosts.insert([of.host.clone(), of.machine_id.clone()]);
            group.add(share, session);
        }
    }

    /// The groups by day, and of each day the `top` groups with most time, 0 for all; and what is to be
    /// said of them.
    pub fn finish(self, top: usize) -> (Vec<FleetGroup>, Vec<String>) {
        let number = self.groups.len();
        let mut notes = self.notes;
        if self.undiagnosed > 0 {
            notes.push(format!(
                "not diagnosed, because they are large: {} sessions; run fathom diagnose on each, \
                 which keeps its findings",
                self.undiagnosed
            ));
        }
        let shared = self.recordings.values().filter(|sessions| **sessions > 1);
        let shared: u64 = shared.sum();
        if shared > 0 {
            notes.push(format!(
                "{shared} sessions were saved of the same recordings as others: calls that several of them have \
                 count in each"
            ));
        }
        let groups = self.groups.into_iter().map(|(values, (group, hosts))| {
            let [command, day, host, label, finding, tenant, volume, device] = values;
            FleetGroup {
                command,
                day,
                host,
                label,
                finding,
                tenant,
                volume,
                device,
                hosts: hosts.len() as u64,
                ..group
            }
        });
        let groups = most(groups.collect(), top);
        if groups.len() < number {
            notes.push(format!(
                "{} further sums with less time are left out",
                number - groups.len()
            ));
        }
        (groups, notes)
    }
}

fn most(mut groups: Vec<FleetGroup>, top: usize) -> Vec<FleetGroup> {
    groups.sort_by(|a, b| {
        let rank = |group: &FleetGroup| Reverse(group.time_ns);
        (&a.day, rank(a)).cmp(&(&b.day, rank(b)))
    });
    let mut of_day = BTreeMap::new();
    groups.retain(|group| {
        let count: &mut usize = of_day.entry(group.day.clone()).or_default();
        *count += 1;
        top == 0 || *count <= top
    });
    groups
}

impl FleetGroup {
    fn add(&mut self, share: &Share, session: &str) {
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (None, b) => b,
            (a, None) => a,
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
        };
        self.sessions += 1;
        self.calls = sum(self.calls, share.calls);
        self.bytes = sum(self.bytes, share.bytes);
        self.time_ns = self.time_ns.saturating_add(share.time_ns);
        if let Some(findings) = share.findings {
            *self.findings.get_or_insert(0) += findings;
        }
        if self.session.is_empty() || share.time_ns > self.most_ns {
            self.most_ns = share.time_ns;
            session.clone_into(&mut self.session);
        }
    }
}

/// The shares of a session; none if it is not diagnosed and findings are wanted.
fn shares(
    session: &Session,
    detail: Option<FleetKey>,
    extensions: &Extensions,
    limits: Limits,
) -> Result<Option<Vec<Share>>, ReportError> {
    let findings = match detail {
        None | Some(FleetKey::Finding) => diagnosis_in_passing(session, extensions)?.ok(),
        Some(_) => None,
    };
    if detail == Some(FleetKey::Finding) {
        let shares = findings.map(|diagnosis| {
            let mut by_rule: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
            for finding in &diagnosis.findings {
                let (count, cost_ns) = by_rule.entry(finding.rule).or_default();
                *count += 1;
                *cost_ns = cost_ns.saturating_add(finding.cost_ns.unwrap_or(0));
            }
            let share = |(rule, (count, cost_ns)): (&str, (u64, i64))| Share {
                detail: Some(rule.to_owned()),
                calls: None,
                bytes: None,
                time_ns: cost_ns,
                findings: Some(count),
            };
            by_rule.into_iter().map(share).collect()
        });
        return Ok(shares);
    }
    let findings = findings.map(|diagnosis| diagnosis.findings.len() as u64);
    let db = Db::open(session, limits)?;
    let shares = rows(&db, statement(detail), |row| share(&row, findings))?;
    Ok(Some(shares))
}

/// The SQL of the shares of a session.
fn statement(detail: Option<FleetKey>) -> &'static str {
    match detail {
        Some(FleetKey::Tenant) => {
            "SELECT coalesce(namespace || '/' || pod, unit, cgroup) AS detail, sum(calls)::BIGINT AS calls,
                sum(bytes)::BIGINT AS bytes, sum(total_ns)::BIGINT AS time_ns
            FROM by_cgroup GROUP BY ALL"
        }
        Some(FleetKey::Volume) => {
            "SELECT coalesce(namespace || '/' || claim, plugin || '/' || volume) AS detail, sum(calls)::BIGINT AS calls,
                sum(bytes)::BIGINT AS bytes, sum(total_ns)::BIGINT AS time_ns
            FROM by_volume GROUP BY ALL"
        }
        Some(FleetKey::Device) => {
            "SELECT device AS detail, sum(requests)::BIGINT AS calls, sum(bytes)::BIGINT AS bytes,
                sum(device_ns)::BIGINT AS time_ns
            FROM by_device GROUP BY ALL"
        }
        _ => {
            "SELECT NULL::VARCHAR AS detail, sum(calls)::BIGINT AS calls, sum(bytes)::BIGINT AS bytes,
                sum(total_ns)::BIGINT AS time_ns
            FROM by_syscall"
        }
    }
}

fn share(row: &Row<'_>, findings: Option<u64>) -> Result<Share, QueryError> {
    Ok(Share {
        detail: row.get("detail")?,
        calls: Some(row.int("calls")?),
        bytes: Some(row.int("bytes")?),
        time_ns: row.int("time_ns")?,
        findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(day: &str, host: &str, time_ns: i64) -> FleetGroup {
        FleetGroup {
            day: Some(day.to_owned()),
            host: Some(host.to_owned()),
            time_ns,
            ..FleetGroup::default()
        }
    }

    #[test]
    fn keys_are_names_and_a_label() {
        let list = |text: &str| FleetKey::list(text);
        assert_eq!(
            list("day,label:job").unwrap(),
            (vec![FleetKey::Day, FleetKey::Label], "job".to_owned())
        );
        assert_eq!(list("host,host").unwrap().0, [FleetKey::Host]);
        for (wrong, why) in [
            ("", "something"),
            ("label", "label:KEY"),
            ("label:", "label:KEY"),
            ("hosts", "none of command"),
            ("label:a,label:b", "one label"),
            ("tenant,device", "one can be asked"),
        ] {
            assert!(list(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn each_day_has_the_groups_with_most_time() {
        let all = vec![
            group("2", "a", 1),
            group("1", "a", 5),
            group("1", "b", 9),
            group("2", "b", 2),
            group("1", "c", 7),
        ];
        let hosts = |top| -> Vec<String> {
            let groups = most(all.clone(), top).into_iter();
            groups.map(|g| g.day.unwrap() + &g.host.unwrap()).collect()
        };
        assert_eq!(hosts(2), ["1b", "1c", "2b", "2a"]);
        assert_eq!(hosts(0).len(), 5);
    }

    #[test]
    fn the_session_with_most_time_is_named() {
        let mut group = FleetGroup::default();
        for (name, time_ns) in [("a", 5), ("b", 9), ("c", 7)] {
            let share = Share {
                detail: None,
                calls: Some(1),
                bytes: None,
                time_ns,
                findings: Some(2),
            };
            group.add(&share, name);
        }
        assert_eq!((group.session.as_str(), group.time_ns), ("b", 21));
        assert_eq!(
            (group.calls, group.bytes, group.findings),
            (Some(3), None, Some(6))
        );
    }
}
