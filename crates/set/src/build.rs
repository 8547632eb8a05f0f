//! Finds the relations between the clocks of sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_model::meta::{Clock, SessionMeta};
use fathom_model::set::{ClockMap, Member, MemberClock, Method, SET_VERSION, SetMeta};
use fathom_query::{Db, Limits, QueryError, fetch, messages};
use fathom_session::{Session, SessionError, SessionSet};

use crate::clocks::{Evidence, Unrelated};

/// A session that becomes a member.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name in the set; without one the name of its host or, if others share that, of its
    /// directory.
    pub name: Option<String>,
    /// Directory of the session.
    pub dir: PathBuf,
}

/// Why there is no set.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SetError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("a set takes at least two sessions")]
    TooFew,
    #[error("{} is a set; name its sessions in its place: {}", .0.display(), members(.0))]
    OfSets(PathBuf),
    #[error("{} is given twice", .0.display())]
    Twice(PathBuf),
    #[error("two sessions are named {0}; name them: NAME=DIR")]
    SameName(String),
}

/// The sessions of a set, for a message.
fn members(set: &Path) -> String {
    let dirs = fathom_session::dirs_of(set).unwrap_or_default();
    fathom_model::escape::shell_words(dirs.iter().map(|dir| dir.as_os_str().as_bytes()))
}

/// Makes sessions a set. The first is the reference.
///
/// # Errors
/// If a session cannot be opened or read, and if members have the same name.
pub fn build(named: &[Named]) -> Result<SessionSet, SetError> {
    if named.len() < 2 {
        return Err(SetError::TooFew);
    }
    if let Some(set) = named.iter().find(|named| SessionSet::is_set(&named.dir)) {
        return Err(SetError::OfSets(set.dir.clone()));
    }
    let sessions = named.iter().map(|named| Session::open(&named.dir));
    let sessions: Vec<Session> = sessions.collect::<Result<_, _>>()?;
    let hosts = names(named, &sessions)?;
    let mut ids = BTreeSet::new();
    for session in &sessions {
        if !ids.insert(session.meta().recording().to_owned()) {
            return Err(SetError::Twice(session.dir().to_owned()));
        }
    }
    let members = hosts.iter().zip(&sessions).map(|(host, session)| Member {
        host: host.clone(),
        path: session.dir().to_owned(),
        session: session.meta().id.clone(),
        clock: MemberClock::reference(),
    });
    let meta = SetMeta {
        set_version: SET_VERSION,
        fathom_version: env!("CARGO_PKG_VERSION").to_string(),
        members: members.collect(),
    };
    // Each on its own clock until they are related.
    let apart = SessionSet::new(meta.clone(), sessions.clone());
    let mut apart = apart;
    let (evidence, ends) = gather(&mut apart)?;
    let sessions: Vec<Session> = apart
        .members()
        .map(|(_, session)| session.clone())
        .collect();
    let windows: Vec<Window> = sessions
        .iter()
        .zip(&ends)
        .map(|(session, end)| {
            let clock = &session.meta().clock;
            let end = clock
                .end_monotonic_ns
                .or(*end)
                .unwrap_or(clock.start_monotonic_ns);
            (clock.start_monotonic_ns, end.max(clock.start_monotonic_ns))
        })
        .collect();
    // Once more, as each relation is to hold as long as any of the sessions lasts.
    let first = relate(&sessions, &hosts, &evidence, &windows);
    let all = first
        .iter()
        .zip(&windows)
        .map(|(clock, (from, until))| (clock.map.apply(*from), clock.map.apply(*until)));
    let all = all.fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let windows: Vec<Window> = first
        .iter()
        .map(|clock| {
            let back = clock.map.inverse();
            (back.apply(all.0), back.apply(all.1))
        })
        .collect();
    let clocks = relate(&sessions, &hosts, &evidence, &windows);
    let mut meta = meta;
    for (member, clock) in meta.members.iter_mut().zip(clocks) {
        member.clock = clock;
    }
    Ok(SessionSet::new(meta, sessions))
}

/// The names of the members.
fn names(named: &[Named], sessions: &[Session]) -> Result<Vec<String>, SetError> {
    let host = |session: &Session| session.meta().host.name.clone();
    let stem = |session: &Session| {
        let name = session.dir().file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let mut names = Vec::new();
    for (named, session) in named.iter().zip(sessions) {
        let own = host(session);
        let shared = sessions.iter().filter(|other| host(other) == own).count() > 1;
        names.push(match &named.name {
            Some(name) => name.clone(),
            None if own.is_empty() || shared => stem(session),
            None => own,
        });
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(SetError::SameName(
            fathom_model::escape::text(name).into_owned(),
        )),
        None => Ok(names),
    }
}

/// Times of a clock, nanoseconds: first and last.
type Window = (i64, i64);
/// The messages between pairs of members (a, b), a before b: those from a to b are forth.
type Messages = BTreeMap<(usize, usize), Evidence>;

/// The messages between members, and the last call of each member, on its own clock.
fn gather(set: &mut SessionSet) -> Result<(Messages, Vec<Option<i64>>), SetError> {
    let db = Db::open_set_latest(set, &Limits::default())?;
    let hosts: Vec<&str> = set
        .members()
        .map(|(member, _)| member.host.as_str())
        .collect();
    let place = |host: &str| hosts.iter().position(|known| *known == host);
    let mut ends = vec![None; hosts.len()];
    let last = "SELECT host, max(bounded(ts_ns::HUGEINT + coalesce(dur_ns, 0))) AS ended_at_ns
        FROM syscalls GROUP BY host";
    fetch::each(&db, last, |row| {
        let member = place(&row.text("host")?).and_then(|member| ends.get_mut(member));
        if let Some(end) = member {
            *end = row.get("ended_at_ns")?;
        }
        Ok::<_, QueryError>(())
    })?;
    let mut evidence = Messages::new();
    fetch::each(&db, &messages::between_hosts(), |row| {
        let ends = (place(&row.text("from_host")?), place(&row.text("to_host")?));
        let (sent_ns, received_ns) = (row.int("sent_ns")?, row.int("received_ns")?);
        let (Some(from), Some(to)) = ends else {
            return Ok(());
        };
        let pair = evidence.entry((from.min(to), from.max(to))).or_default();
        match from < to {
            true => pair.forth(sent_ns, received_ns),
            false => pair.back(sent_ns, received_ns),
        }
        Ok::<_, QueryError>(())
    })?;
    Ok((evidence, ends))
}

/// A relation between the clocks of two members.
struct Link {
    method: Method,
    messages: u64,
    error_ns: Option<i64>,
    error_in_messages_ns: Option<i64>,
    note: String,
    /// From the first one's clock to the second one's.
    map: ClockMap,
}

/// How good a chain of links is: the weakest method, then the sum of the errors.
type Rank = (u8, i64);

fn rank(method: Method) -> u8 {
    match method {
        Method::Reference | Method::SameBoot => 0,
        Method::Messages => 1,
        Method::WallClock => 2,
    }
}

/// The clock of each member: by the chain of links to the first one that is best.
fn relate(
    sessions: &[Session],
    hosts: &[String],
    evidence: &Messages,
    windows: &[Window],
) -> Vec<MemberClock> {
    let mut links = BTreeMap::new();
    for a in 0..sessions.len() {
        for b in a + 1..sessions.len() {
            let (Some(one), Some(other), Some(window)) =
                (sessions.get(a), sessions.get(b), windows.get(a))
            else {
                continue;
            };
            let messages = evidence.get(&(a, b));
            links.insert((a, b), link(one.meta(), other.meta(), messages, *window));
        }
    }
    let mut clocks: Vec<Option<(Rank, MemberClock)>> = vec![None; sessions.len()];
    let mut open: BTreeSet<(Rank, usize)> = BTreeSet::new();
    if let Some(first) = clocks.first_mut() {
        *first = Some(((0, 0), MemberClock::reference()));
        open.insert(((0, 0), 0));
    }
    while let Some((best, from)) = open.pop_first() {
        let Some(Some((known, near))) = clocks.get(from).cloned() else {
            continue;
        };
        if known != best {
            continue;
        }
        for (to, place) in clocks.iter_mut().enumerate() {
            let Some(link) = links.get(&(from.min(to), from.max(to))) else {
                continue;
            };
            let sum = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_add(b?));
            let error_ns = sum(near.error_ns, link.error_ns);
            let rank = (best.0.max(rank(link.method)), error_ns.unwrap_or(i64::MAX));
            if place.as_ref().is_some_and(|(known, _)| *known <= rank) {
                continue;
            }
            // From the member's clock to the clock of `from`, and on to the reference's.
            let here = match to < from {
                true => link.map.clone(),
                false => link.map.inverse(),
            };
            let weakest = match near.method {
                Method::Reference => link.method,
                method if self::rank(method) > self::rank(link.method) => method,
                _ => link.method,
            };
            let clock = MemberClock {
                method: weakest,
                via: (from != 0).then(|| hosts.get(from).cloned().unwrap_or_default()),
                messages: link.messages,
                error_ns,
                error_in_messages_ns: sum(near.error_in_messages_ns, link.error_in_messages_ns),
                note: link.note.clone(),
                map: here.then(&near.map),
            };
            *place = Some((rank, clock));
            open.insert((rank, to));
        }
    }
    clocks
        .into_iter()
        .flatten()
        .map(|(_, clock)| clock)
        .collect()
}

/// The relation between two clocks.
fn link(
    a: &SessionMeta,
    b: &SessionMeta,
    evidence: Option<&Evidence>,
    (from_ns, until_ns): Window,
) -> Link {
    let boot = &a.host.boot_id;
    if !boot.is_empty() && *boot == b.host.boot_id {
        return Link {
            method: Method::SameBoot,
            messages: evidence.map_or(0, Evidence::messages),
            error_ns: Some(0),
            error_in_messages_ns: Some(0),
            note: String::new(),
            map: ClockMap::default(),
        };
    }
    let none = Evidence::default();
    let evidence = evidence.unwrap_or(&none);
    let (first, last) = evidence.extent().unwrap_or((from_ns, until_ns));
    let note = match evidence.relate(from_ns.min(first), until_ns.max(last)) {
        Ok(relation) => {
            return Link {
                method: Method::Messages,
                messages: evidence.messages(),
                error_ns: Some(relation.error_ns),
                error_in_messages_ns: Some(relation.error_in_messages_ns),
                note: String::new(),
                map: relation.map,
            };
        }
        Err(Unrelated::NoMessages)
            if [a, b].iter().any(|meta| !meta.history.redacted.is_empty()) =>
        {
            "a session is redacted, and no TCP message between the hosts was found at both ends: the \
             addresses of redacted sessions agree only if all are redacted with one --key FILE"
        }
        Err(Unrelated::NoMessages) => {
            "no TCP message between the hosts was recorded at both ends; record both with \
             --syscalls all"
        }
        Err(Unrelated::OneDirection) => {
            "the recorded messages between the hosts were all sent in one direction"
        }
        Err(Unrelated::Contradiction) => {
            "no relation of the clocks agrees with the messages: a clock was set, or a machine \
             suspended"
        }
    };
    let length = |clock: &Clock| {
        let end = clock.end_monotonic_ns.unwrap_or(clock.start_monotonic_ns);
        end.saturating_sub(clock.start_monotonic_ns).max(0)
    };
    let wall = |clock: &Clock| {
        let rate = match length(clock) {
            0 => 0.0,
            length => clock.set_ns() as f64 / length as f64,
        };
        ClockMap::line(clock.start_monotonic_ns, clock.start_realtime_ns, rate)
    };
    // More than the kernel slews a clock by: it was set, or the machine slept, at some time.
    let was_set = |clock: &Clock| {
        clock.set_ns().unsigned_abs() > length(clock).unsigned_abs() / 1000 + 1_000_000
    };
    let errors = a.clock.wall_error_ns.zip(b.clock.wall_error_ns);
    let (error_ns, unknown) = match errors {
        _ if was_set(&a.clock) || was_set(&b.clock) => (
            None,
            "; a wall clock was set meanwhile, so no bound is known",
        ),
        Some((a, b)) => (Some(a.saturating_add(b)), ""),
        None => (
            None,
            "; no service keeps the wall clock of both in step, so no bound is known",
        ),
    };
    Link {
        method: Method::WallClock,
        messages: evidence.messages(),
        error_ns,
        error_in_messages_ns: None,
        note: format!("{note}{unknown}"),
        map: wall(&a.clock).then(&wall(&b.clock).inverse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_sessions_need_one_key() {
        let mut plain = fathom_testkit::meta();
        plain.host.boot_id.clear();
        let mut redacted = plain.clone();
        redacted.history.redacted = "{}".to_owned();
        for (a, b, expected) in [
            (&plain, &plain, false),
            (&plain, &redacted, true),
            (&redacted, &redacted, true),
        ] {
            let note = link(a, b, None, (0, 1)).note;
            assert_eq!(note.contains("--key FILE"), expected, "{note}");
        }
    }
}
