//! The members of a set and the traffic between them, for people and programs.

use fathom_model::set::{MemberClock, Method};
use fathom_model::units;
use fathom_query::{Db, Limits, QueryError, fetch, messages};
use fathom_session::SessionSet;
use serde::Serialize;

/// A set in short.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Summary {
    /// Its sessions, the reference first.
    pub members: Vec<MemberSummary>,
    /// TCP messages between members that both recorded.
    pub traffic: Vec<Traffic>,
}

/// A session of a set.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct MemberSummary {
    /// Its name in the set: column `host`.
    pub host: String,
    /// Directory of the session.
    pub session: String,
    /// Name of the machine.
    pub machine: String,
    /// Calls seen.
    pub calls: u64,
    /// Start of the recording on the clock of the reference, CLOCK_MONOTONIC nanoseconds.
    pub started_at_ns: i64,
    /// Where the relation of its clock to the reference's comes from.
    pub clock: Method,
    /// The same in words. Names in it are not escaped.
    pub relation: String,
    /// The member through whose clock the relation leads; null if none.
    pub via: Option<String>,
    /// Messages that the relation rests on.
    pub messages: u64,
    /// Bound of the error of its times while any session lasts, nanoseconds; null if none is known.
    pub error_ns: Option<i64>,
    /// The same between the first and the last message; null without messages.
    pub error_in_messages_ns: Option<i64>,
    /// By how much its clock goes slower than the reference's at the start, parts per million.
    pub rate_ppm: f64,
    /// Why the relation is no better; empty if nothing is to be said.
    pub note: String,
}

/// Messages from one member to another.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Traffic {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Receives whose send was recorded.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Shortest time from the start of a send to the end of the receive of its bytes, nanoseconds;
    /// off by at most the errors of both clocks.
    pub fastest_ns: i64,
    /// Messages that arrived before they were sent: the clocks are wrong.
    pub before_sent: u64,
}

impl Summary {
    /// The summary of a set.
    ///
    /// # Errors
    /// The errors of [`Db::open_set_latest`] and [`Db::run`].
    pub fn of(set: &mut SessionSet) -> Result<Self, QueryError> {
        let db = Db::open_set_latest(set, &Limits::default())?;
        let members = set.members().map(|(member, session)| {
            let (meta, clock) = (session.meta(), &member.clock);
            let first = clock.map.segments.first();
            MemberSummary {
                host: member.host.clone(),
                session: session.dir().to_string_lossy().into_owned(),
                machine: meta.host.name.clone(),
                calls: meta.totals.seen,
                started_at_ns: clock.map.apply(meta.clock.start_monotonic_ns),
                clock: clock.method,
                relation: relation(clock),
                via: clock.via.clone(),
                messages: clock.messages,
                error_ns: clock.error_ns,
                error_in_messages_ns: clock.error_in_messages_ns,
                rate_ppm: first.map_or(0.0, |segment| segment.rate * 1e6),
                note: clock.note.clone(),
            }
        });
        Ok(Self {
            members: members.collect(),
            traffic: traffic(&db)?,
        })
    }
}

fn relation(clock: &MemberClock) -> String {
    let mut words = clock.method.words().to_string();
    if clock.method == Method::Messages {
        let messages = i64::try_from(clock.messages).unwrap_or(i64::MAX);
        words = format!("{} {words}", units::count(messages));
    }
    match &clock.via {
        Some(via) => format!("{words}, via {via}"),
        None => words,
    }
}

/// Messages between the hosts of an opened set.
fn traffic(db: &Db) -> Result<Vec<Traffic>, QueryError> {
    let sql = format!(
        "SELECT from_host, to_host, count(*) AS messages, sum(bytes)::BIGINT AS bytes,
            min(received_ns - sent_ns) AS fastest_ns,
            count(*) FILTER (received_ns < sent_ns) AS before_sent
        FROM ({}) GROUP BY ALL ORDER BY ALL",
        messages::between_hosts()
    );
    fetch::rows(db, &sql, |row| {
        let count = |name| Ok::<_, QueryError>(u64::try_from(row.int(name)?).unwrap_or(0));
        Ok(Traffic {
            from: row.text("from_host")?,
            to: row.text("to_host")?,
            messages: count("messages")?,
            bytes: count("bytes")?,
            fastest_ns: row.int("fastest_ns")?,
            before_sent: count("before_sent")?,
        })
    })
}
