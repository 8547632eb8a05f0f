//! A set of sessions in the format of another tool: all times are on the clock of the reference.
//!
//! Most formats have one session after the other, each with its host. Ids of processes and requests mean nothing
//! on other hosts, so formats that have no place for a host get numbers that are different for each session.

use std::io::Write;

use fathom_model::meta::SessionMeta;
use fathom_model::set::ClockMap;
use fathom_query::{Db, joined_rid};

use crate::error::{ExportError, Result};
use crate::{Export, Format, Make, Outcome, Selection, Sets, Text, one, profile};

/// Process ids are below: the kernel allows no more bits.
const PID_BITS: u32 = 22;

/// A session of a set.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its name in the set.
    pub host: &'a str,
    /// Its metadata, with times of its own clock.
    pub meta: &'a SessionMeta,
    /// From its clock to the clock of the reference.
    pub clock: &'a ClockMap,
}

/// The host of a session among the hosts of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host<'a> {
    pub name: &'a str,
    /// Place in the set.
    pub number: usize,
    /// Whether no session comes after it.
    pub last: bool,
}

impl Host<'_> {
    /// The number of a process or thread that is unique among all hosts. The reference keeps its own.
    pub fn joined(&self, id: i64) -> i64 {
        id.saturating_add((self.number as i64) << PID_BITS)
    }

    /// The same of a request.
    pub fn joined_rid(&self, rid: i64) -> i64 {
        joined_rid(self.number, rid).unwrap_or(rid)
    }

    /// A name with the host in front of it.
    pub fn named(&self, name: &str) -> String {
        format!("{}: {name}", self.name)
    }
}

/// A name with its host in front of it, if it is of a set.
pub(crate) fn named(host: Option<Host<'_>>, name: String) -> String {
    match host {
        Some(host) => host.named(&name),
        None => name,
    }
}

/// As [`crate::export`], of the sessions `members` of the set that `db` has. Times in `selection` are on the
/// clock of the reference, the first of them.
///
/// # Errors
/// [`ExportError::Set`] if the format cannot hold several hosts; the errors of [`crate::export`].
pub fn export_set(
    db: &Db,
    members: &[Member<'_>],
    format: Format,
    selection: &Selection,
    text: Text,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let reference = members.first().ok_or(ExportError::Column("host"))?;
    format.check_set()?;
    if matches!(format.sets, Sets::Joined) {
        let input = Export {
            db,
            meta: reference.meta,
            selection,
            text,
            host: None,
        };
        return one(&input, format, out, progress);
    }
    let dbs = (0..members.len()).map(|number| db.member(number));
    let dbs = dbs.collect::<std::result::Result<Vec<_>, _>>()?;
    let metas: Vec<SessionMeta> = members
        .iter()
        .map(|member| on_clock_of(reference.meta, member))
        .collect();
    let inputs: Vec<Export<'_>> = members
        .iter()
        .zip(dbs.iter().zip(&metas))
        .enumerate()
        .map(|(number, (member, (db, meta)))| Export {
            db,
            meta,
            selection,
            text,
            host: Some(Host {
                name: member.host,
                number,
                last: number + 1 == members.len(),
            }),
        })
        .collect();
    if let Make::Profile(kind) = format.make {
        return profile::write(&inputs, reference.meta, kind, selection, out, progress);
    }
    let mut all = Outcome::default();
    for (input, member) in inputs.iter().zip(members) {
        let before = all.rows;
        let outcome = one(input, format, out, &mut |done, total| {
            progress(before + done, before + total);
        })?;
        all.rows += outcome.rows;
        let notes = outcome.notes.iter();
        all.notes.extend(
            notes.map(|note| format!("{}: {note}", fathom_query::escape::text(member.host))),
        );
    }
    Ok(all)
}

/// The metadata of a session with its times on the clock of the reference, on which its rows are.
fn on_clock_of(reference: &SessionMeta, member: &Member<'_>) -> SessionMeta {
    let mut meta = member.meta.clone();
    let wall = |ns: i64| {
        let since = ns.saturating_sub(reference.clock.start_monotonic_ns);
        reference.clock.start_realtime_ns.saturating_add(since)
    };
    let clock = &mut meta.clock;
    clock.start_monotonic_ns = member.clock.apply(clock.start_monotonic_ns);
    clock.start_realtime_ns = wall(clock.start_monotonic_ns);
    clock.end_monotonic_ns = clock.end_monotonic_ns.map(|ns| member.clock.apply(ns));
    clock.end_realtime_ns = clock.end_monotonic_ns.map(wall);
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_an_answer_for_sets() {
        for format in Format::ALL {
            if let Sets::No(instead) = format.sets {
                assert!(instead.contains("each session of the set"), "{instead}");
            }
        }
    }

    #[test]
    fn numbers_of_hosts_do_not_overlap() {
        let host = |number| Host {
            name: "a",
            number,
            last: false,
        };
        assert_eq!(host(0).joined(812), 812);
        let most = (1 << PID_BITS) - 1;
        assert!(host(0).joined(most) < host(1).joined(0));
        assert!(host(1).joined(most) < host(2).joined(0));
        assert!(host(0).joined_rid(1 << 40) < host(1).joined_rid(0));
        // Viewers have 32 bits for them.
        assert!(host(511).joined(most) <= i64::from(i32::MAX));
    }

    #[test]
    fn times_of_a_member_are_on_the_clock_of_the_reference() {
        let mut reference = fathom_testkit::meta();
        reference.clock.start_monotonic_ns = 1_000;
        reference.clock.start_realtime_ns = 5_000_000;
        let mut other = fathom_testkit::meta();
        other.clock.start_monotonic_ns = 70_000;
        other.clock.end_monotonic_ns = Some(70_500);
        // Its own wall clock is wrong by far.
        other.clock.start_realtime_ns = 1;
        let map = ClockMap::line(70_000, 1_200, 0.0);
        let member = Member {
            host: "b",
            meta: &other,
            clock: &map,
        };
        let clock = on_clock_of(&reference, &member).clock;
        assert_eq!(clock.start_monotonic_ns, 1_200);
        assert_eq!(clock.end_monotonic_ns, Some(1_700));
        assert_eq!(clock.start_realtime_ns, 5_000_200);
        assert_eq!(clock.end_realtime_ns, Some(5_000_700));
    }
}
