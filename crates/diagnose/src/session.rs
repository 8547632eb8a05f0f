//! The rules over a stored session.

use std::collections::HashMap;
use std::path::PathBuf;

use fathom_model::Batch;
use fathom_model::layers::{Layer, Records, records};
use fathom_model::meta::SessionMeta;
use fathom_model::tables::{
    BIOS, BLOCK, FAULTS, FILES, IRQS, LOSSES, PROCESSES, SLICES, SPANS, SYSCALLS, Table,
    USER_CALLS, WAITS,
};
use fathom_session::{Batches, Session, SessionError};

use crate::call::COLUMNS;
use crate::code;
use crate::columns::Columns;
use crate::engine::{Diagnosis, Engine};
use crate::layers::{TABLES, reaches};
use crate::rule::Input;
use crate::rules;
use crate::text::counted;
use crate::workers::{self, Workers};

/// Why a session could not be diagnosed.
#[derive(Debug, thiserror::Error)]
pub enum DiagnoseError {
    /// A table could not be read.
    #[error("cannot read table {table} of {}", session.display())]
    Read {
        table: &'static str,
        session: PathBuf,
        /// The event.
        source: SessionError,
    },
}

/// The requirements of rules: the layer, the table of its rows unless the calls' rows contain it,
/// and the hook that records it.
const INPUTS: [(Input, Layer, Option<&Table>, &str); 5] = [
    (
        Input::Cache,
        Layer::PageCache,
        None,
        "tp_btf/mm_filemap_add_to_page_cache",
    ),
    (
        Input::Faults,
        Layer::PageCache,
        Some(&FAULTS),
        "perf/major-faults",
    ),
    (
        Input::Block,
        Layer::Block,
        Some(&BLOCK),
        "tp_btf/block_rq_complete",
    ),
    (
        Input::Waits,
        Layer::Sched,
        Some(&WAITS),
        "tp_btf/sched_switch",
    ),
    (
        Input::Interrupts,
        Layer::Irq,
        Some(&IRQS),
        "tp_btf/irq_handler_entry",
    ),
];

/// Rules that also look at pipes and sockets, which are not recorded unless asked for.
const OF_STREAMS: [&str; 2] = ["busy-retry", "userspace-copy"];

/// Name of a table's lost records.
fn records_of(table: &Table) -> Option<&'static str> {
    let of_table = |records: &Records| records.table.is_some_and(|other| other.name == table.name);
    let (_, records) = records().find(|(_, records)| of_table(records))?;
    Some(records.name)
}

/// Informs the rules of missing data, from the session's metadata.
pub(crate) fn prepare(engine: &mut Engine, meta: &SessionMeta) {
    if meta.totals.lost > 0 || meta.options.leave_calls_out() {
        engine.has_gaps();
    }
    if meta.command.is_empty() {
        let clock = &meta.clock;
        let from = meta
            .history
            .keep
            .as_ref()
            .and_then(|keep| keep.complete_from_ns);
        let from = from.unwrap_or(clock.start_monotonic_ns);
        let ns = clock
            .end_monotonic_ns
            .map_or(0, |end| end.saturating_sub(from));
        // The clock of an imported log differs from the clock of its calls.
        let ns = if meta.source.is_some() { 0 } else { ns.max(0) };
        engine.recorded(ns);
    }
    if meta.options.detail == "counters" {
        engine.lacks(
            Input::Calls,
            "recorded with --detail counters, without single calls",
        );
    }
    let words = meta
        .options
        .syscalls
        .iter()
        .flat_map(|list| list.split(','));
    let streams = words
        .map(str::trim)
        .any(|word| ["socket", "all"].contains(&word));
    if !streams && meta.spans.is_none() && meta.source.is_none() {
        for rule in OF_STREAMS {
            engine.lacks_a_part(
                rule,
                "recorded without calls on pipes and sockets (--syscalls storage,socket)",
            );
        }
    }
    for (input, class) in [(Input::Stdio, "stdio"), (Input::MpiIo, "mpi-io")] {
        if !has_library(meta, class) {
            engine.lacks(input, &format!("recorded without --library {class}"));
        }
    }
    if meta.content.is_none() {
        engine.lacks(Input::Content, "recorded without --content hash");
    }
    for (input, layer, _, hook) in INPUTS {
        // A log has no hooks: it contains a layer as a whole, or not.
        if meta.source.is_some() {
            let of_layer = meta.layers.iter().find(|l| l.name == layer);
            match of_layer {
                Some(of_layer) if of_layer.recorded => {
                    if input == Input::Block {
                        engine.lacks(input, "the log does not tell which calls caused requests");
                    }
                }
                Some(of_layer) => engine.lacks(input, &of_layer.reason),
                None => engine.lacks(input, "the log does not tell"),
            }
        } else if !meta.hooks.iter().any(|h| h.name == hook && h.attached) {
            engine.lacks(
                input,
                &format!("recorded without --layers {}", layer.name()),
            );
        }
    }
}

/// Whether calls of a class of library functions were recorded.
fn has_library(meta: &SessionMeta, class: &str) -> bool {
    let lists = meta.options.other.iter();
    let mut lists = lists.filter_map(|option| option.strip_prefix("--library "));
    lists.any(|list| list.split(',').any(|name| name == class || name == "all"))
}

fn without_spans(meta: &SessionMeta) -> String {
    match meta.spans.as_ref().map(|spans| spans.unfinished) {
        Some(0) => "no request was found on the sockets (--spans)".to_owned(),
        Some(n) => format!(
            "the responses to {} on the sockets were not seen (--spans)",
            counted(i64::try_from(n).unwrap_or(i64::MAX), "request", "requests")
        ),
        None => "recorded without --spans, and no spans were imported".to_owned(),
    }
}

/// Whether a session has rows of a table that few sessions have.
fn has(session: &Session, table: &Table) -> bool {
    let rows = |table: &Table| session.rows(table.name) > 0;
    match table.name {
        // Only spans need them.
        name if name == SLICES.name => rows(&SPANS) && rows(table),
        name if name == SPANS.name || name == USER_CALLS.name => rows(table),
        _ => true,
    }
}

/// Runs all rules over a session.
///
/// # Errors
/// [`DiagnoseError::Read`] when a part cannot be read.
pub fn diagnose(session: &Session) -> Result<Diagnosis, DiagnoseError> {
    diagnose_while(session, &|| true)
}

/// The same while `wanted` returns true; data after that covers only a part of the session.
///
/// # Errors
/// [`DiagnoseError::Read`] when a part cannot be read.
pub fn diagnose_while(
    session: &Session,
    wanted: &dyn Fn() -> bool,
) -> Result<Diagnosis, DiagnoseError> {
    diagnose_with(session, wanted, workers::count())
}

/// The same by that many threads besides the one that reads.
pub(crate) fn diagnose_with(
    session: &Session,
    wanted: &dyn Fn() -> bool,
    threads: usize,
) -> Result<Diagnosis, DiagnoseError> {
    let lost = lost_events(session)?;
    let engine = |part| {
        let mut engine = Engine::new(rules::part(part, threads));
        prepare(&mut engine, session.meta());
        if session.rows(SPANS.name) == 0 {
            engine.lacks(Input::Spans, &without_spans(session.meta()));
        }
        if !session.problems().is_empty() {
            engine.has_gaps();
        }
        for (input, layer, table, _) in INPUTS {
            let records = table.and_then(records_of);
            if let Some(count) = records.and_then(|records| lost.get(records)) {
                let of = format!("{count} records of layer {} were lost", layer.name());
                engine.lacks(input, &of);
            }
        }
        engine
    };
    std::thread::scope(|scope| {
        let workers = Workers::start(scope, (0..threads.max(1)).map(engine));
        read(session, wanted, &mut |batch| workers.feed(batch))?;
        Ok(workers.finish())
    })
    .and_then(|mut diagnosis: Diagnosis| {
        let failed = |(table, source): (&'static Table, SessionError)| DiagnoseError::Read {
            table: table.name,
            session: session.dir().to_owned(),
            source,
        };
        code::add(session, &mut diagnosis.findings).map_err(failed)?;
        Ok(diagnosis)
    })
}

/// Hands all rows that rules look at to `to`, in the order that [`Engine::feed`] wants.
fn read(
    session: &Session,
    wanted: &dyn Fn() -> bool,
    to: &mut dyn FnMut(Batch),
) -> Result<(), DiagnoseError> {
    let failed = |table: &'static Table| {
        move |source: SessionError| DiagnoseError::Read {
            table: table.name,
            session: session.dir().to_owned(),
            source,
        }
    };
    for table in [&FILES, &PROCESSES] {
        for batch in session.batches(table, None) {
            to(batch.map_err(failed(table))?);
        }
    }
    let mut streams: Vec<Stream> = TABLES
        .iter()
        .filter(|(table, ..)| has(session, table))
        .map(|(table, columns, order)| Stream {
            table,
            batches: session.batches(table, Some(columns)),
            order,
            reached: i64::MIN,
        })
        .collect();
    for batch in session.batches(&SYSCALLS, Some(COLUMNS)) {
        if !wanted() {
            break;
        }
        let batch = batch.map_err(failed(&SYSCALLS))?;
        below(&mut streams, end_of(&batch), to).map_err(|(t, e)| failed(t)(e))?;
        to(batch);
    }
    // Rows after the last call.
    below(&mut streams, i64::MAX, to).map_err(|(t, e)| failed(t)(e))
}

/// A table of a layer that is being read.
struct Stream<'a> {
    table: &'static Table,
    batches: Batches<'a>,
    order: &'static str,
    /// Everything before this was fed.
    reached: i64,
}

/// Feeds the rows of layers up to a time: whole batches, as rows may come too early.
fn below(
    streams: &mut [Stream],
    until_ns: i64,
    to: &mut dyn FnMut(Batch),
) -> Result<(), (&'static Table, SessionError)> {
    // Bios have the number of their request in place of a time.
    let mut bios: Option<usize> = None;
    for i in 0..streams.len() {
        if streams.get(i).is_some_and(|s| std::ptr::eq(s.table, &BIOS)) {
            bios = Some(i);
            continue;
        }
        while let Some(batch) = next(streams, i, until_ns)? {
            if std::ptr::eq(batch.table, &BLOCK) {
                let last = reaches(&batch, "block_id").unwrap_or(i64::MIN);
                // One more, as the last one's may go on in the next batch.
                while let Some(more) = bios
                    .map(|at| next(streams, at, last))
                    .transpose()?
                    .flatten()
                {
                    to(more);
                }
            }
            to(batch);
        }
    }
    Ok(())
}

/// The next batch of a stream that has not reached so far.
fn next(
    streams: &mut [Stream],
    at: usize,
    until: i64,
) -> Result<Option<Batch>, (&'static Table, SessionError)> {
    let Some(stream) = streams
        .get_mut(at)
        .filter(|s| s.reached <= until && s.reached < i64::MAX)
    else {
        return Ok(None);
    };
    let batch = stream
        .batches
        .next()
        .transpose()
        .map_err(|e| (stream.table, e))?;
    stream.reached = batch.as_ref().map_or(i64::MAX, |b| {
        reaches(b, stream.order).unwrap_or(stream.reached)
    });
    Ok(batch)
}

/// When the last call of a batch returned.
fn end_of(calls: &Batch) -> i64 {
    let columns = Columns::new(calls, &["ts_ns", "dur_ns"]);
    let last = columns.rows().saturating_sub(1);
    let ns = |column| columns.i64(column, last).unwrap_or(0);
    ns(0).saturating_add(ns(1))
}

/// Records that were lost, by what table `losses` calls them.
fn lost_events(session: &Session) -> Result<HashMap<String, i64>, DiagnoseError> {
    let mut counts: HashMap<(String, i64, i64, i64, String), i64> = HashMap::new();
    let names = ["syscall", "cpu", "pid", "file_id", "stage", "count"];
    for batch in session.batches(&LOSSES, Some(&names)) {
        let batch = batch.map_err(|source| DiagnoseError::Read {
            table: LOSSES.name,
            session: session.dir().to_owned(),
            source,
        })?;
        let columns = Columns::new(&batch, &names);
        for row in 0..columns.rows() {
            let text = |column| columns.text(column, row).unwrap_or("").to_owned();
            let number = |column| columns.i64(column, row).unwrap_or(-1);
            // Of rows with equal keys the last one counts.
            let key = (text(0), number(1), number(2), number(3), text(4));
            counts.insert(key, number(5));
        }
    }
    let mut lost = HashMap::new();
    for ((name, ..), count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        *lost.entry(name).or_insert(0) += count;
    }
    Ok(lost)
}
