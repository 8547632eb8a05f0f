//! Table `session`: the session's metadata as one row.

use duckdb::{Connection, params};
use fathom_model::meta::{SessionMeta, State};

use crate::escape;

/// The statement that creates the table; its comments document it.
pub(crate) const SQL: &str = include_str!("../sql/tables/session.sql");

/// Creates and fills the table.
pub(crate) fn create(connection: &Connection, meta: &SessionMeta) -> duckdb::Result<()> {
    connection.execute_batch(SQL)?;
    insert(connection, meta)
}

pub(crate) fn insert(connection: &Connection, meta: &SessionMeta) -> duckdb::Result<()> {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let command = (!meta.command.is_empty()).then(|| escape::shell_words(&meta.command));
    let clock = &meta.clock;
    let cost = &meta.cost;
    let known = |id: &str| (!id.is_empty()).then(|| id.to_string());
    let labels = (!meta.labels.is_empty()).then(|| serde_json::to_string(&meta.labels));
    let labels = labels.transpose().unwrap_or_default();
    connection.execute(
        "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?::JSON::MAP(VARCHAR, VARCHAR), ?, ?, ?, ?, ?, \
         make_timestamp_ns(?), \
         make_timestamp_ns(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            meta.id,
            match meta.state {
                State::Recording => "recording",
                State::Complete => "complete",
            },
            command,
            meta.target,
            meta.exit_status,
            meta.host.name,
            known(&meta.host.machine_id),
            known(&meta.host.boot_id),
            labels,
            meta.host.kernel,
            meta.host.arch,
            meta.host.distribution,
            i64::from(meta.host.cpus),
            signed(meta.host.memory_bytes),
            clock.start_realtime_ns,
            clock.end_realtime_ns,
            clock.start_monotonic_ns,
            clock.end_monotonic_ns,
            clock
                .end_monotonic_ns
                .map(|end| end.saturating_sub(clock.start_monotonic_ns)),
            signed(meta.totals.seen),
            signed(meta.totals.stored),
            signed(meta.totals.lost),
            signed(meta.totals.compat),
            meta.options.detail,
            meta.options.syscalls.join(","),
            meta.content.as_ref().map_or("none", |c| c.mode.as_str()),
            meta.content.as_ref().map(|c| i64::from(c.max_bytes)),
            meta.options.filters.join(" "),
            i64::from(meta.options.ring_mib),
            cost.probe_ns_per_call,
            cost.recorder_cpu_ns.map(signed),
            cost.target_cpu_ns.map(signed),
            cost.recorder_peak_rss_bytes.map(signed),
            cost.recorder_limit_bytes.map(signed),
            meta.fathom_version,
        ],
    )?;
    Ok(())
}
