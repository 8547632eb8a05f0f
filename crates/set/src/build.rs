//! Finds the relations between the clocks of sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_model::meta::{Clock, SessionMeta};
use fathom_model::set::{ClockMap, ErrorStep, Member, MemberClock, Method, SET_VERSION, SetMeta};
use fathom_query::{Db, Limits, QueryError, fetch, messages};
use fathom_session::{Session, SessionError, SessionSet};

use crate::clocks::{Evidence, MOST_RATES, Unrelated};

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
/// The messages between pairs of clocks (a, b), a before b: those from a to b are forth. A clock has the
/// number of the first member that has it.
type Messages = BTreeMap<(usize, usize), Evidence>;

/// The clock of each member.
fn clocks_of(sessions: &[Session]) -> Vec<usize> {
    let boots = sessions.iter().map(|session| &session.meta().host.boot_id);
    let first = |(member, boot): (usize, &String)| {
        let found = boots.clone().position(|other| other == boot);
        found.filter(|_| !boot.is_empty()).unwrap_or(member)
    };
    boots.clone().enumerate().map(first).collect()
}

/// The messages between members, and the last call of each member, on its own clock.
fn gather(set: &mut SessionSet) -> Result<(Messages, Vec<Option<i64>>), SetError> {
    let db = Db::open_set_latest(set, &Limits::default())?;
    let hosts: Vec<&str> = set
        .members()
        .map(|(member, _)| member.host.as_str())
        .collect();
    let sessions: Vec<Session> = set.members().map(|(_, session)| session.clone()).collect();
    let clocks = clocks_of(&sessions);
    let place = |host: &str| hosts.iter().position(|known| *known == host);
    let clock = |host: &str| clocks.get(place(host)?).copied();
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
        let ends = (clock(&row.text("from_host")?), clock(&row.text("to_host")?));
        let (sent_ns, received_ns) = (row.int("sent_ns")?, row.int("received_ns")?);
        let (Some(from), Some(to)) = ends else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
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
    /// On the first one's clock.
    errors: Vec<ErrorStep>,
    /// By how much the rates of the clocks may differ.
    most_rate: f64,
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
    let of_member = clocks_of(sessions);
    for a in 0..sessions.len() {
        for b in a + 1..sessions.len() {
            // Members that share a clock are related to others by the first of them.
            let [clock_a, clock_b] = [a, b].map(|member| of_member.get(member).copied());
            if clock_a != Some(a) || clock_b != Some(b) && clock_b != Some(a) {
                continue;
            }
            let (Some(one), Some(other), Some(window)) =
                (sessions.get(a), sessions.get(b), windows.get(a))
            else {
                continue;
            };
            let messages = evidence.get(&(a, b));
            links.insert((a, b), link(one.meta(), other.meta(), messages, *window));
        }
    }
    // With the clock, how much longer than a time of it the same time of the reference's may be.
    let mut clocks: Vec<Option<(Rank, MemberClock, f64)>> = vec![None; sessions.len()];
    let mut open: BTreeSet<(Rank, usize)> = BTreeSet::new();
    if let Some(first) = clocks.first_mut() {
        *first = Some(((0, 0), MemberClock::reference(), 1.0));
        open.insert(((0, 0), 0));
    }
    let mut placed = Vec::new();
    while let Some((best, from)) = open.pop_first() {
        let Some(Some((known, mut near, mut stretch))) = clocks.get(from).cloned() else {
            continue;
        };
        if known != best {
            continue;
        }
        let window = windows.get(from).copied().unwrap_or_default();
        if let Some((clock, most_rate)) = together(from, &near, &placed, evidence, window) {
            (near, stretch) = (clock, 1.0 + most_rate);
            if let Some(place) = clocks.get_mut(from) {
                *place = Some((known, near.clone(), stretch));
            }
        }
        placed.push((from, near.clone()));
        for (to, place) in clocks.iter_mut().enumerate() {
            let Some(link) = links.get(&(from.min(to), from.max(to))) else {
                continue;
            };
            let sum = |near: Option<i64>, link: Option<i64>| match (near?, link?) {
                (0, link) if stretch == 1.0 => Some(link),
                (near, 0) => Some(near),
                (near, link) => {
                    // Times are rounded once more.
                    let there = (link as f64 * stretch).ceil() as i64;
                    Some(near.saturating_add(there).saturating_add(2))
                }
            };
            let error_ns = sum(near.error_ns, link.error_ns);
            let rank = (best.0.max(rank(link.method)), error_ns.unwrap_or(i64::MAX));
            if place.as_ref().is_some_and(|(known, ..)| *known <= rank) {
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
            let map = here.then(&near.map);
            // The steps of the link are on the clock of the member with the lower number.
            let of_link = if to < from { &map } else { &near.map };
            let starts = link.errors.iter().map(|step| ErrorStep {
                from_ns: of_link.apply(step.from_ns),
                ..*step
            });
            let own = MemberClock {
                error_ns: link.error_ns,
                errors: starts.collect(),
                ..MemberClock::reference()
            };
            let times = own.errors.iter().chain(&near.errors);
            let times: BTreeSet<i64> = times.map(|step| step.from_ns).collect();
            let errors = times.iter().map(|from_ns| {
                let at = |clock: &MemberClock| clock.error_between(*from_ns, *from_ns);
                Some(ErrorStep {
                    from_ns: *from_ns,
                    error_ns: sum(at(&near), at(&own))?,
                })
            });
            let errors = errors.collect::<Option<Vec<_>>>().unwrap_or_default();
            let clock = MemberClock {
                method: weakest,
                via: (from != 0).then(|| hosts.get(from).cloned().unwrap_or_default()),
                messages: match link.method {
                    Method::SameBoot => near.messages,
                    _ => link.messages,
                },
                error_ns,
                error_in_messages_ns: sum(near.error_in_messages_ns, link.error_in_messages_ns),
                errors,
                note: link.note.clone(),
                map,
            };
            *place = Some((rank, clock, stretch * (1.0 + link.most_rate)));
            open.insert((rank, to));
        }
    }
    clocks
        .into_iter()
        .flatten()
        .map(|(_, clock, _)| clock)
        .collect()
}

/// The clock of member `of` by its messages with all members in `placed`, the clocks of which are known, so that
/// none of these messages arrives before it was sent; and by how much its rate may differ. `None` if
/// one link has them all, or no relation agrees with them.
fn together(
    of: usize,
    by_link: &MemberClock,
    placed: &[(usize, MemberClock)],
    evidence: &Messages,
    (from_ns, until_ns): Window,
) -> Option<(MemberClock, f64)> {
    let mut all = Evidence::default();
    let mut with = 0;
    for (other, clock) in placed {
        let Some(messages) = evidence.get(&(of.min(*other), of.max(*other))) else {
            continue;
        };
        clock.error_ns?;
        all.add(messages, of < *other, |at_ns| {
            let shown_ns = clock.map.apply(at_ns);
            let error_ns = clock.error_between(shown_ns, shown_ns);
            (shown_ns, error_ns.unwrap_or(i64::MAX))
        });
        with += 1;
    }
    if by_link.method != Method::Messages || with < 2 {
        return None;
    }
    let (first, last) = all.extent()?;
    let relation = all.relate(from_ns.min(first), until_ns.max(last)).ok()?;
    let errors = relation.errors.iter().map(|step| ErrorStep {
        from_ns: relation.map.apply(step.from_ns),
        ..*step
    });
    let clock = MemberClock {
        messages: all.messages(),
        error_ns: Some(relation.error_ns),
        error_in_messages_ns: Some(relation.error_in_messages_ns),
        errors: errors.collect(),
        map: relation.map,
        // It is that member's no more if the reference is one of the others.
        via: match placed.iter().any(|(other, _)| *other == 0) && evidence.contains_key(&(0, of)) {
            true => None,
            false => by_link.via.clone(),
        },
        ..by_link.clone()
    };
    Some((clock, relation.most_rate))
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
            errors: Vec::new(),
            most_rate: 0.0,
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
                errors: relation.errors,
                most_rate: relation.most_rate,
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
        errors: Vec::new(),
        most_rate: MOST_RATES[0],
        note: format!("{note}{unknown}"),
        map: wall(&a.clock).then(&wall(&b.clock).inverse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hosts that all talk to each other: a relation to the first one alone would let messages between
    /// the others arrive too early.
    #[test]
    fn messages_between_any_two_of_three_hosts_arrive_after_they_were_sent() {
        const SECOND: i64 = 1_000_000_000;
        let mut alone = 0;
        for seed in 0..40 {
            let mut random = fastrand::Rng::with_seed(seed);
            let rates = [0.0, 3e-5, -2e-4].map(|rate| rate * random.f64());
            let clock =
                |of: usize, at: i64| at + of as i64 * 77 * SECOND + (at as f64 * rates[of]) as i64;
            let mut evidence = Messages::new();
            let mut sent = Vec::new();
            for _ in 0..3000 {
                let mut hosts = [0, 1, 2];
                random.shuffle(&mut hosts);
                let [from, to, _] = hosts;
                // Those between the last two are the fastest.
                let fastest = if from.min(to) == 0 { 200_000 } else { 5_000 };
                let at = random.i64(0..30 * SECOND);
                let there = at + fastest + random.i64(0..fastest) * random.i64(1..9);
                let ends = (clock(from, at), clock(to, there));
                let pair = evidence.entry((from.min(to), from.max(to))).or_default();
                match from < to {
                    true => pair.forth(ends.0, ends.1),
                    false => pair.back(ends.0, ends.1),
                }
                sent.push((from, to, ends));
            }
            let member = |of: usize| {
                let relation = evidence[&(0, of)].relate(0, 30 * SECOND).unwrap();
                MemberClock {
                    method: Method::Messages,
                    error_ns: Some(relation.error_ns),
                    map: relation.map.inverse(),
                    ..MemberClock::reference()
                }
            };
            let early = |clocks: &[MemberClock]| {
                let shown = |(of, at): (usize, i64)| clocks[of].map.apply(at);
                let early = sent.iter().filter(|(from, to, (sent, received))| {
                    shown((*from, *sent)) > shown((*to, *received))
                });
                early.count()
            };
            let mut clocks = vec![MemberClock::reference(), member(1), member(2)];
            alone += early(&clocks);
            let placed: Vec<_> = clocks[..2].iter().cloned().enumerate().collect();
            let window = (clock(2, 0), clock(2, 30 * SECOND));
            let (better, _) = together(2, &clocks[2], &placed, &evidence, window).unwrap();
            clocks[2] = better;
            assert_eq!(early(&clocks), 0, "seed {seed}");
            for step in 0..=300 {
                let at = 30 * SECOND / 300 * step;
                let off = (clocks[2].map.apply(clock(2, at)) - at).abs();
                let bound = clocks[2].error_between(at, at).unwrap();
                assert!(off <= bound, "seed {seed}: off by {off}, bound {bound}");
            }
        }
        assert!(alone > 0);
    }

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
