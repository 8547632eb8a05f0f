//! A set of sessions in one database: a schema for each session, and above them tables and views
//! with the rows of all.
//!
//! So a view joins rows of one host only, whose ids, processes, and files mean nothing elsewhere.

use duckdb::Connection;
use fathom_model::set::MemberClock;

use crate::error::message;
use crate::escape::{sql_name, sql_string};
use crate::source::Source;
use crate::views::WITHOUT_PARTS;
use crate::{QueryError, own_tables, percentiles, relations};

/// Name of the schema of a member.
pub(crate) fn schema(member: usize) -> String {
    format!("member_{member}")
}

/// Bits of the id of a thread, and of a request, of one session; above them is the member.
const TID_BITS: u32 = 32;
const RID_BITS: u32 = 48;

/// The id of a thread of a member where threads of all members are together; `None` if no thread has
/// such an id.
pub fn joined_tid(member: usize, tid: i64) -> Option<i64> {
    (0..1 << TID_BITS)
        .contains(&tid)
        .then(|| first_tid(member) + tid)
}

/// The same of a request.
pub fn joined_rid(member: usize, rid: i64) -> Option<i64> {
    (0..1 << RID_BITS)
        .contains(&rid)
        .then(|| first_rid(member) + rid)
}

fn first_tid(member: usize) -> i64 {
    (member as i64) << TID_BITS
}

fn first_rid(member: usize) -> i64 {
    (member as i64) << RID_BITS
}

/// The member of a joined thread.
pub fn host_of(tid: i64) -> usize {
    usize::try_from(tid >> TID_BITS).unwrap_or(0)
}

/// The id of a joined thread in its session.
pub fn own_tid(tid: i64) -> i64 {
    tid & ((1 << TID_BITS) - 1)
}

/// The same of a request.
pub fn own_rid(rid: i64) -> i64 {
    rid & ((1 << RID_BITS) - 1)
}

/// Schema of the tables and views with the rows of all members.
pub(crate) const MAIN: &str = "main";
/// Schema of the tables with the threads of all members.
pub(crate) const JOINED: &str = "joined";

/// Creates tables in which threads and requests of all members have different ids, and waits for the
/// network name the sender on another member: as far as critical paths read them. `clocks` are the
/// clocks of the members.
pub(crate) fn join(
    connection: &Connection,
    hosts: &[&str],
    clocks: &[&MemberClock],
) -> Result<(), QueryError> {
    let run = |sql: &str| {
        let done = connection.execute_batch(sql);
        done.map_err(|e| QueryError::Sql(message(&e)))
    };
    let causes =
        crate::messages::causes_of_waits(hosts.iter().copied().zip(clocks.iter().copied()));
    run(&format!(
        "CREATE SCHEMA {JOINED}; CREATE TABLE {JOINED}.causes AS {causes}"
    ))?;
    let tid = |of: &str, member: usize| format!("({of}::BIGINT + {}) AS {of}", first_tid(member));
    let rid = |member: usize| format!("(rid + {}) AS rid", first_rid(member));
    for table in [
        "syscalls",
        "faults",
        "processes",
        "block",
        "losses",
        "waits",
    ] {
        let rows = hosts.iter().enumerate().map(|(member, host)| {
            let from = format!("{}.{table}", schema(member));
            let (own, rid) = (tid("tid", member), rid(member));
            match table {
                "syscalls" | "faults" => format!("SELECT * REPLACE ({own}, {rid}) FROM {from}"),
                "processes" => format!("SELECT * REPLACE ({own}) FROM {from}"),
                "waits" => {
                    let numbers = hosts.iter().enumerate().map(|(number, host)| {
                        let first = first_tid(number);
                        format!("WHEN {} THEN {first} ", sql_string(host))
                    });
                    let sender = format!("CASE from_host {}END", numbers.collect::<String>());
                    format!(
                        "SELECT w.* REPLACE ((w.tid::BIGINT + {first}) AS tid, (w.rid + {request}) AS rid,
                            (w.waker_tid::BIGINT + {first}) AS waker_tid,
                            CASE WHEN c.from_tid IS NOT NULL THEN c.from_tid + {sender}
                                WHEN w.cause IN ('thread', 'network', 'signal')
                                    THEN w.cause_id + {first}
                                ELSE w.cause_id END AS cause_id),
                            c.caused_at_ns
                        FROM {from} AS w LEFT JOIN {JOINED}.causes AS c
                            ON c.host = {host} AND c.tid = w.tid AND c.ts_ns = w.ts_ns",
                        first = first_tid(member),
                        request = first_rid(member),
                        host = sql_string(host),
                    )
                }
                _ => format!("SELECT * FROM {from}"),
            }
        });
        let rows: Vec<String> = rows.collect();
        run(&format!(
            "CREATE VIEW {JOINED}.{table} AS {}",
            rows.join(" UNION ALL ")
        ))?;
    }
    run(&format!("USE {JOINED}"))
}

/// Creates the schemas, with everything in them but tables with parts and views, and the same above them. `exact` is
/// whether percentiles are.
pub(crate) fn create(
    connection: &Connection,
    sources: &[Source<'_>],
    hosts: &[&str],
    exact: bool,
) -> Result<(), QueryError> {
    let run = |sql: &str| {
        let done = connection.execute_batch(sql);
        done.map_err(|e| QueryError::Sql(message(&e)))
    };
    for (member, source) in sources.iter().enumerate() {
        let name = schema(member);
        run(&format!("CREATE SCHEMA {name}; USE {name}"))?;
        relations::create(connection, source)?;
        relations::create_percentiles(connection, exact)?;
        own_tables::create(connection, source)?;
    }
    run(&format!("USE {MAIN}"))?;
    let wall_ns = sources.first().map_or(0, |source| source.wall_ns);
    run(&relations::macros(wall_ns))?;
    run(&percentiles::functions())?;
    run(&percentiles::of_durations("CREATE MACRO", exact))?;
    for name in WITHOUT_PARTS {
        run(&of_all(name, hosts))?;
    }
    own_tables::join(connection, sources, hosts, schema)
}

/// The statement that makes a view with the rows of all members out of one that each of them has.
pub(crate) fn of_all(name: &str, hosts: &[impl AsRef<str>]) -> String {
    let rows = hosts.iter().enumerate().map(|(member, host)| {
        let host = sql_string(host.as_ref());
        let columns = match name {
            // It has the name of the machine there, which members may share.
            "session" => format!("{host} AS host, * EXCLUDE (host), host AS machine"),
            _ => format!("{host} AS host, *"),
        };
        format!(
            "SELECT {columns} FROM {}.{}",
            schema(member),
            sql_name(name)
        )
    });
    let rows: Vec<String> = rows.collect();
    // It may be there if an earlier statement was interrupted.
    format!(
        "CREATE VIEW IF NOT EXISTS {MAIN}.{} AS {}",
        sql_name(name),
        rows.join(" UNION ALL ")
    )
}

/// Runs the statement that `create` gives for a member in the schema of each of them. `home` is the schema of the
/// connection's statements.
pub(crate) fn create_in_each<'a>(
    connection: &Connection,
    members: usize,
    home: &str,
    create: impl Fn(usize) -> &'a str,
) -> duckdb::Result<()> {
    let of_each = (0..members).try_for_each(|member| {
        connection.execute_batch(&format!("USE {};\n{}", schema(member), create(member)))
    });
    connection.execute_batch(&format!("USE {home}"))?;
    of_each
}
