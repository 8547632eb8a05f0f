//! `GET /sessions` and `GET /sessions/ID`: what there is, and what it is.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use fathom_model::meta::RecordedLayer;
use fathom_model::meta::{SessionMeta, State as Recorded};
use fathom_model::tables::TABLES;
use fathom_query::escape::shell_words;
use fathom_session::Session;
use serde::{Deserialize, Serialize};

use super::{Json, Shared};
use crate::error::{ApiError, Problem};
use crate::job::{Lane, Stop};
use crate::selection::Params;
use crate::view::Reader;

/// A session in the list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct SessionSummary {
    /// Name of its folder: the ID in addresses.
    pub id: String,
    /// Command that was traced, quoted for a shell; null when running targets were.
    pub command: Option<String>,
    /// The recorded target, in words: `-p 12`, `--all`; empty for a command.
    pub target: String,
    /// Name of the machine.
    pub host: String,
    /// When the recording began, milliseconds since 1970.
    pub started_unix_ms: f64,
    /// How long it took; null while it goes on and when its recorder was killed.
    pub duration_ns: Option<i64>,
    /// Rows of all tables.
    pub rows: u64,
    /// Size on disk.
    pub bytes: u64,
    /// Calls that were seen: stored, lost, expired, counted and missing together.
    pub seen: u64,
    /// Calls with a row.
    pub stored: u64,
    /// Calls without, for which there was no room.
    pub lost: u64,
    /// Whether it is being recorded.
    pub live: bool,
    /// Whether its recorder ended without closing it.
    pub killed: bool,
    /// How the command ended; null when it is not known.
    pub exit_status: Option<i32>,
    /// strace or dio, for a log that was imported; null when it was recorded.
    pub source: Option<String>,
    /// Labels of the recording (`--label KEY=VALUE`).
    pub labels: BTreeMap<String, String>,
    /// Why it cannot be opened; all else says nothing then.
    pub error: Option<Problem>,
}

/// The description of a session.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct SessionDescription {
    /// As in the list.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Start of the recording, CLOCK_MONOTONIC: subtract it from times in tables to get times as in
    /// the other addresses.
    pub started_at_ns: i64,
    /// Times of the first and the last call; null without calls.
    pub span: Option<Span>,
    /// Tables, with their rows.
    pub tables: Vec<TableRows>,
    /// Layers, and whether they were recorded.
    pub layers: Vec<LayerState>,
    /// Losses, by stage, layer, and call.
    pub losses: Vec<Loss>,
    /// Counts of all kinds.
    pub totals: Counted,
    /// Missing or damaged data, one sentence each.
    pub problems: Vec<String>,
    /// Whether all rows were compared with their checksums. Until then a part with damaged rows is not in `problems`.
    pub checked: bool,
    /// Options of the recording, as given.
    pub options: OptionsGiven,
    /// The machine.
    pub machine: Machine,
    /// Hooks that are missing, and what for.
    pub missing_hooks: Vec<MissingHook>,
    /// The cost of the recording.
    pub cost: RecordingCost,
    /// Data that an imported log lacks.
    pub not_observable: Vec<String>,
    /// Views for SQL.
    pub views: Vec<String>,
    /// Version of the fathom that wrote it.
    pub fathom_version: String,
}

/// From a time to another, nanoseconds since the start.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Span {
    pub from: i64,
    pub to: i64,
}

/// A table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct TableRows {
    pub name: String,
    pub rows: u64,
}

/// A layer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct LayerState {
    pub name: String,
    /// Whether it was recorded; not whether anything of it took place.
    pub recorded: bool,
    /// Why it was not; empty when it was.
    pub reason: String,
}

/// Losses of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Loss {
    pub stage: String,
    pub layer: String,
    pub syscall: String,
    pub count: f64,
    pub bytes: f64,
}

/// Counts of calls: seen = stored + lost + expired + counted + missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Counted {
    pub seen: u64,
    pub stored: u64,
    pub lost: u64,
    pub expired: u64,
    pub counted: u64,
    pub missing: u64,
    /// Calls of 32-bit programs, which are not recorded.
    pub compat: u64,
    /// Records of the layers below the calls that found no room.
    pub layers_lost: u64,
}

/// Options of the recording.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct OptionsGiven {
    pub detail: String,
    pub syscalls: Vec<String>,
    pub filters: Vec<String>,
    pub other: Vec<String>,
    pub ring_mib: u32,
    /// hash or plain; null when no content was recorded.
    pub content: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Machine {
    pub name: String,
    pub kernel: String,
    pub arch: String,
    pub distribution: String,
    pub cpus: u32,
    pub memory_bytes: u64,
}

/// A hook that is missing.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct MissingHook {
    pub name: String,
    pub note: String,
}

/// The cost of a recording.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct RecordingCost {
    pub probe_ns_per_call: Option<f64>,
    pub recorder_cpu_ns: Option<u64>,
    pub target_cpu_ns: Option<u64>,
    pub recorder_peak_rss_bytes: Option<u64>,
}

pub(crate) async fn list(State(app): State<Shared>) -> Result<Json<Vec<SessionSummary>>, ApiError> {
    let state = app.clone();
    let work = move |stop: &crate::job::Stop| state.summaries.all(&state.library, || stop.check());
    app.jobs.run(Lane::Quick, work).await.map(Json)
}

/// Parameters of a description.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DescribeParams {
    /// With 1: compares all rows with their checksums first, so that `problems` names each damaged part.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    checked: Option<u8>,
}

/// `GET /sessions/ID`.
pub(crate) async fn describe(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(params): Params<DescribeParams>,
) -> Result<Json<SessionDescription>, ApiError> {
    let checked = params.checked.unwrap_or(0) != 0;
    let query = move |reader: &Reader, _: &Stop| {
        if checked {
            reader.db().check_rows()?;
        }
        description(reader)
    };
    let lane = if checked { Lane::Long } else { Lane::Quick };
    app.jobs.query(id, lane, query).await.map(Json)
}

pub(crate) fn summary(id: &str, session: &Session) -> SessionSummary {
    let meta = session.meta();
    let tables = || TABLES.iter().map(|t| session.part_infos(t.name));
    let live = session.is_live();
    let totals = totals(session);
    SessionSummary {
        id: id.to_string(),
        command: (!meta.command.is_empty()).then(|| shell_words(&meta.command)),
        target: meta.target.clone(),
        host: meta.host.name.clone(),
        started_unix_ms: meta.clock.start_realtime_ns as f64 / 1e6,
        duration_ns: duration(meta),
        rows: TABLES.iter().map(|t| session.rows(t.name)).sum(),
        bytes: tables().flatten().map(|part| part.bytes).sum(),
        seen: totals.seen,
        stored: totals.stored,
        lost: totals.lost,
        live,
        killed: session.was_killed(),
        exit_status: meta.exit_status,
        source: meta.source.as_ref().map(|s| s.format.clone()),
        labels: meta.labels.clone(),
        error: None,
    }
}

fn duration(meta: &SessionMeta) -> Option<i64> {
    let end = meta
        .clock
        .end_monotonic_ns
        .filter(|_| meta.state == Recorded::Complete);
    end.map(|end| end.saturating_sub(meta.clock.start_monotonic_ns))
}

pub(crate) fn unreadable(id: &str, error: Problem) -> SessionSummary {
    SessionSummary {
        id: id.to_string(),
        command: None,
        target: String::new(),
        host: String::new(),
        started_unix_ms: 0.0,
        duration_ns: None,
        rows: 0,
        bytes: 0,
        seen: 0,
        stored: 0,
        lost: 0,
        live: false,
        killed: false,
        exit_status: None,
        source: None,
        labels: BTreeMap::new(),
        error: Some(error),
    }
}

/// The counts; in a session in progress, of the visible rows.
pub(crate) fn totals(session: &Session) -> Counted {
    let totals = &session.meta().totals;
    let stored = match session.is_live() {
        true => session.rows("syscalls"),
        false => totals.stored,
    };
    let seen = match session.is_live() {
        true => stored + totals.lost + totals.expired + totals.counted,
        false => totals.seen,
    };
    Counted {
        seen,
        stored,
        lost: totals.lost,
        expired: totals.expired,
        counted: totals.counted,
        missing: totals.missing,
        compat: totals.compat,
        layers_lost: totals.layers.lost,
    }
}

fn description(reader: &Reader) -> Result<SessionDescription, ApiError> {
    let session = &reader.session;
    let meta = session.meta();
    let start = reader.started_at_ns();
    Ok(SessionDescription {
        summary: summary(&reader.id, session),
        started_at_ns: start,
        span: reader.span().map(|(first, last)| Span {
            from: first.saturating_sub(start),
            to: last.saturating_add(1).saturating_sub(start),
        }),
        tables: TABLES
            .iter()
            .map(|t| TableRows {
                name: t.name.to_string(),
                rows: session.rows(t.name),
            })
            .collect(),
        layers: layers(session),
        losses: losses(reader)?,
        totals: totals(session),
        problems: session.problems().to_vec(),
        checked: reader.is_checked(),
        options: OptionsGiven {
            detail: meta.options.detail.clone(),
            syscalls: meta.options.syscalls.clone(),
            filters: meta.options.filters.clone(),
            other: meta.options.other.clone(),
            ring_mib: meta.options.ring_mib,
            content: meta.content.as_ref().map(|c| c.mode.clone()),
        },
        machine: Machine {
            name: meta.host.name.clone(),
            kernel: meta.host.kernel.clone(),
            arch: meta.host.arch.clone(),
            distribution: meta.host.distribution.clone(),
            cpus: meta.host.cpus,
            memory_bytes: meta.host.memory_bytes,
        },
        missing_hooks: meta
            .hooks
            .iter()
            .filter(|hook| !hook.attached)
            .map(|hook| MissingHook {
                name: hook.name.clone(),
                note: hook.note.clone(),
            })
            .collect(),
        cost: RecordingCost {
            probe_ns_per_call: meta.cost.probe_ns_per_call,
            recorder_cpu_ns: meta.cost.recorder_cpu_ns,
            target_cpu_ns: meta.cost.target_cpu_ns,
            recorder_peak_rss_bytes: meta.cost.recorder_peak_rss_bytes,
        },
        not_observable: meta
            .source
            .as_ref()
            .map(|s| s.not_observable.clone())
            .unwrap_or_default(),
        views: fathom_query::view_names().map(str::to_string).collect(),
        fathom_version: meta.fathom_version.clone(),
    })
}

fn layers(session: &Session) -> Vec<LayerState> {
    let state = |layer: &RecordedLayer| LayerState {
        name: layer.name.name().to_owned(),
        recorded: layer.recorded,
        reason: layer.reason.clone(),
    };
    session.meta().layers.iter().map(state).collect()
}

fn losses(reader: &Reader) -> Result<Vec<Loss>, ApiError> {
    use crate::columns::{collect, numbers, texts};
    // Most sessions have none: nothing is looked for then.
    if reader.session.rows("losses") == 0 {
        return Ok(Vec::new());
    }
    let rows = collect(reader.db().run(
        "SELECT stage, layer, syscall, sum(count)::DOUBLE AS count, sum(bytes)::DOUBLE AS bytes \
         FROM losses GROUP BY ALL ORDER BY count DESC, stage, layer, syscall \
         LIMIT 200",
    )?)?;
    let (stage, layer) = (texts(&rows, "stage")?, texts(&rows, "layer")?);
    let call = texts(&rows, "syscall")?;
    let (count, bytes) = (numbers(&rows, "count")?, numbers(&rows, "bytes")?);
    let loss = |i| Loss {
        stage: stage.value(i).to_string(),
        layer: layer.value(i).to_string(),
        syscall: call.value(i).to_string(),
        count: count.value(i),
        bytes: bytes.value(i),
    };
    Ok((0..rows.num_rows()).map(loss).collect())
}
