//! `fathom sessions --by`: many sessions at a glance, by day, host, finding, tenant, volume, or device.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use fathom_extensions::Extensions;
use fathom_model::{escape, units};
use fathom_query::fetch::{Row, rows};
use fathom_query::{Db, Limits, QueryError};
use fathom_report::diagnosis_in_passing;
use fathom_session::{Session, on_latest};
use serde::Serialize;

use crate::analysis;
use crate::args::{SessionsArgs, SessionsBy, SessionsFormat};
use crate::exit::Failure;
use crate::output::{aligned, json};
use crate::sessions;

/// Sums of the sessions that have the same values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// With day: the day on which the recordings started, UTC.
    day: Option<String>,
    /// With host: name of the host.
    host: Option<String>,
    /// With finding: id of the rule.
    finding: Option<String>,
    /// With tenant: NAMESPACE/POD, otherwise the unit of systemd, otherwise the cgroup; null if unknown.
    tenant: Option<String>,
    /// With volume: PLUGIN/NAME of the volume of Kubernetes.
    volume: Option<String>,
    /// With device: name of the block device.
    device: Option<String>,
    /// Sessions.
    sessions: u64,
    /// Hosts of these sessions.
    hosts: u64,
    /// Calls; with device, requests. Null with finding.
    calls: Option<i64>,
    /// Bytes that they moved; null with finding.
    bytes: Option<i64>,
    /// Their total duration, nanoseconds; with finding, its cost.
    time_ns: i64,
    /// Findings of these sessions; with tenant, volume, or device null.
    findings: Option<u64>,
    /// The session with most of the time.
    session: String,
    /// Its time, nanoseconds.
    #[serde(skip)]
    most_ns: i64,
}

/// Values of the groups of a session, in the order of [`Group`]'s members.
type Key = [Option<String>; 6];

/// A session's share of a group.
struct Share {
    /// Finding, tenant, volume, or device.
    detail: Option<String>,
    calls: Option<i64>,
    bytes: Option<i64>,
    time_ns: i64,
    findings: Option<u64>,
}

/// Groups of sessions, and what is to be said of them.
struct Fleet {
    groups: Vec<Group>,
    notes: Vec<String>,
}

/// Runs `sessions --by` and returns the exit status.
pub fn run(args: &SessionsArgs) -> Result<u8, Failure> {
    analysis::no_set(&args.dir)?;
    let details = args.by.iter().filter(|by| by.is_detail()).count();
    if details > 1 {
        return Err(Failure::input(anyhow::anyhow!(
            "--by takes one of finding, tenant, volume, and device; run fathom sessions for each"
        )));
    }
    let fleet = gather(args)?;
    for note in &fleet.notes {
        eprintln!("fathom: {note}");
    }
    let text = match args.format {
        SessionsFormat::Json => json(&fleet.groups)?,
        SessionsFormat::Text if fleet.groups.is_empty() => format!(
            "no session in {} has a row for this table\n",
            escape::text(&args.dir.to_string_lossy())
        ),
        SessionsFormat::Text => table(&fleet.groups, &args.by),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Failure::input)?;
    Ok(0)
}

fn gather(args: &SessionsArgs) -> Result<Fleet, Failure> {
    let by = &args.by;
    let extensions = args.extensions.load()?;
    let detail = by.iter().copied().find(|by| by.is_detail());
    let mut groups: BTreeMap<Key, (Group, BTreeSet<[String; 2]>)> = BTreeMap::new();
    let mut notes = Vec::new();
    let mut recordings: BTreeMap<String, u64> = BTreeMap::new();
    let mut undiagnosed = 0;
    for dir in sessions::directories(&args.dir).map_err(Failure::input)? {
        let name = sessions::name(&dir);
        let read = Session::open(&dir)
            .map_err(anyhow::Error::from)
            .and_then(|mut session| {
                let shares = on_latest(&mut session, |session| read(session, detail, &extensions))?;
                Ok((session, shares))
            });
        let (session, shares) = match read {
            Ok(read) => read,
            Err(error) => {
                let error = error.to_string();
                notes.push(format!(
                    "{} is left out: {}",
                    escape::text(&name),
                    escape::text(&error)
                ));
                continue;
            }
        };
        let problems = session.problems();
        let problems = problems.iter();
        notes.extend(problems.map(|problem| format!("{}: {problem}", escape::text(&name))));
        let meta = session.meta();
        *recordings.entry(meta.recording().to_owned()).or_default() += 1;
        let Some(shares) = shares else {
            undiagnosed += 1;
            continue;
        };
        if shares.iter().any(|share| share.findings.is_none()) && detail.is_none() {
            undiagnosed += 1;
        }
        for share in shares {
            let wants = |wanted| by.contains(&wanted);
            let of = |wanted| share.detail.clone().filter(|_| wants(wanted));
            let day = units::wall_time(meta.clock.start_realtime_ns);
            let day = day.get(..DAY).unwrap_or(&day).to_owned();
            let key = [
                wants(SessionsBy::Day).then_some(day),
                wants(SessionsBy::Host).then(|| meta.host.name.clone()),
                of(SessionsBy::Finding),
                of(SessionsBy::Tenant),
                of(SessionsBy::Volume),
                of(SessionsBy::Device),
            ];
            let (group, hosts) = groups.entry(key).or_default();
            // Machines can have one name, such as localhost.
            hosts.insert([meta.host.name.clone(), meta.host.machine_id.clone()]);
            group.add(&share, &name);
        }
    }
    if undiagnosed > 0 {
        notes.push(format!(
            "not diagnosed, because they are large: {undiagnosed} sessions; run fathom diagnose on each, \
             which keeps its findings"
        ));
    }
    let shared = recordings.values().filter(|sessions| **sessions > 1);
    let shared: u64 = shared.sum();
    if shared > 0 {
        notes.push(format!(
            "{shared} sessions were saved of the same recordings as others: calls that several of them have count \
             in each"
        ));
    }
    let groups = groups.into_iter().map(|(key, (group, hosts))| {
        let [day, host, finding, tenant, volume, device] = key;
        Group {
            day,
            host,
            finding,
            tenant,
            volume,
            device,
            hosts: hosts.len() as u64,
            ..group
        }
    });
    let groups = most(groups.collect(), args.top);
    Ok(Fleet { groups, notes })
}

/// Characters of a day in a time.
const DAY: usize = 10;

/// By day, and of each day the groups with most time; all of them with 0.
fn most(mut groups: Vec<Group>, top: usize) -> Vec<Group> {
    groups.sort_by(|a, b| {
        let rank = |group: &Group| Reverse(group.time_ns);
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

impl Group {
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
fn read(
    session: &Session,
    detail: Option<SessionsBy>,
    extensions: &Extensions,
) -> anyhow::Result<Option<Vec<Share>>> {
    let findings = match detail {
        None | Some(SessionsBy::Finding) => diagnosis_in_passing(session, extensions)?.ok(),
        Some(_) => None,
    };
    if detail == Some(SessionsBy::Finding) {
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
    let db = Db::open(session, Limits::default())?;
    let shares = rows(&db, statement(detail), |row| share(&row, findings))?;
    Ok(Some(shares))
}

/// The SQL of the shares of a session.
fn statement(detail: Option<SessionsBy>) -> &'static str {
    match detail {
        Some(SessionsBy::Tenant) => {
            "SELECT coalesce(namespace || '/' || pod, unit, cgroup) AS detail, sum(calls)::BIGINT AS calls,
                sum(bytes)::BIGINT AS bytes, sum(total_ns)::BIGINT AS time_ns
            FROM by_cgroup GROUP BY ALL"
        }
        Some(SessionsBy::Volume) => {
            "SELECT plugin || '/' || volume AS detail, calls, bytes, total_ns AS time_ns FROM by_volume"
        }
        Some(SessionsBy::Device) => {
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

/// Width of a name in the table.
const NAME: usize = 48;

fn table(groups: &[Group], by: &[SessionsBy]) -> String {
    const SUMS: [&str; 7] = [
        "SESSIONS",
        "HOSTS",
        "FINDINGS",
        "CALLS",
        "BYTES",
        "TIME",
        "SESSION WITH MOST",
    ];
    let dash = || "-".to_string();
    let shown = |text: &Option<String>| match text {
        Some(text) => escape::shorten(&escape::text(text), NAME),
        None => dash(),
    };
    let titles = by.iter().map(|by| by.title()).chain(SUMS);
    let mut rows: Vec<Vec<String>> = vec![titles.map(str::to_owned).collect()];
    for group in groups {
        let mut row: Vec<String> = by.iter().map(|by| shown(by.of(group))).collect();
        row.extend([
            units::count(signed(group.sessions)),
            units::count(signed(group.hosts)),
            group.findings.map_or_else(dash, |n| n.to_string()),
            group.calls.map_or_else(dash, units::count),
            group.bytes.map_or_else(dash, units::bytes),
            units::duration(group.time_ns),
            escape::text(&group.session).into_owned(),
        ]);
        rows.push(row);
    }
    aligned(&rows)
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl SessionsBy {
    /// Whether it splits a session.
    fn is_detail(self) -> bool {
        !matches!(self, Self::Day | Self::Host)
    }

    fn title(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Host => "HOST",
            Self::Finding => "FINDING",
            Self::Tenant => "TENANT",
            Self::Volume => "VOLUME",
            Self::Device => "DEVICE",
        }
    }

    fn of(self, group: &Group) -> &Option<String> {
        match self {
            Self::Day => &group.day,
            Self::Host => &group.host,
            Self::Finding => &group.finding,
            Self::Tenant => &group.tenant,
            Self::Volume => &group.volume,
            Self::Device => &group.device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(day: &str, host: &str, time_ns: i64) -> Group {
        Group {
            day: Some(day.to_owned()),
            host: Some(host.to_owned()),
            time_ns,
            ..Group::default()
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
        let mut group = Group::default();
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

    #[test]
    fn names_of_others_are_escaped() {
        let text = table(&[group("1", "a\u{1b}[2J\nb", 0)], &[SessionsBy::Host]);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
