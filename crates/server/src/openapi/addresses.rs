//! The text of each address: what it is for, and what its answer holds beyond its types.

use std::borrow::Cow;

use fathom_model::tables::{MACHINE, SYSCALLS, Table};

use super::{Answer, Described};
use crate::api::types::{metas as m, params as p};
use crate::selection::SelectionParams;

/// Columns of a table, as in the table's own description.
fn of_table(table: &Table, without: &[&str]) -> String {
    let columns = table.columns.iter();
    let columns = columns.filter(|c| !without.contains(&c.name));
    let lines = columns.map(|c| format!("{}: {}\n", c.name, c.doc.replace('\n', " ")));
    lines.collect()
}

/// Most addresses take a window, and a filter.
fn windowed(
    address: &'static str,
    summary: &'static str,
    text: impl Into<Cow<'static, str>>,
) -> Described {
    Described::new(address, summary, text).takes::<SelectionParams>()
}

/// The questions, each with its parameters and its rows.
fn questions() -> String {
    let mut text = "Each question is one statement, with the limits of `POST /sessions/{id}/sql`. A question takes the parameters named \
        with it, and the window unless it is about the whole recording. Times are since the start of the \
        recording.\n"
        .to_owned();
    for question in crate::api::questions::all() {
        let takes = question.takes.iter().map(|take| format!("`{}`", take.0));
        let takes = takes.collect::<Vec<_>>().join(", ");
        let takes = if takes.is_empty() {
            takes
        } else {
            format!(" ({takes})")
        };
        text += &format!("\n- `{}`{takes}: {}", question.name, question.about);
    }
    text
}

/// The addresses, in the order of the document.
pub(super) fn all() -> Vec<Described> {
    let mut all = of_sessions();
    all.extend(of_calls());
    all.extend(of_single_requests());
    all.extend(of_the_layers_below());
    all.extend(of_diagnoses());
    all
}

fn of_sessions() -> Vec<Described> {
    vec![
        Described::new(
            "get /access",
            "Say what the client may do",
            "The role of the token, or of the user whom the reverse proxy names, and what this server can do for it.",
        )
        .json::<m::AccessAnswer>(),
        Described::new(
            "get /sessions",
            "List the sessions that are served",
            "All sessions of the directory, or the one session that is served. A session that cannot be opened, or that \
             takes seconds to open, has an `error` in place of its numbers.",
        )
        .json::<Vec<crate::api::sessions::SessionSummary>>(),
        Described::new(
            "get /sessions/{id}",
            "Describe a session",
            "The members of the list, and times, tables with rows, layers (whether each was recorded, and why not), losses, options, and views.",
        )
        .takes::<p::DescribeParams>()
        .json::<crate::api::sessions::SessionDescription>(),
        Described::new(
            "get /sessions/{id}/live",
            "Follow a recording in progress",
            "One line of JSON at once, and one whenever rows have become visible, at most ten a second. The stream ends when the \
             recording does. Without changes a line comes every ten seconds. A line with `error` is the last one.",
        )
        .answer(Answer::lines::<m::LiveState>()),
        Described::new(
            "get /sessions/{id}/schema",
            "List the tables and views that SQL can read",
            "Tables and views, with the types and meanings of their columns.",
        )
        .json::<Vec<m::Relation>>(),
        Described::new(
            "get /sessions/{id}/glance",
            "Sum a session up for its row in the list",
            "Time in calls over the recording by purpose, percentiles, devices, and the worst finding. Sessions with more than two \
             million calls are not diagnosed for it.",
        )
        .json::<m::Glance>(),
        Described::new(
            "post /sessions/{id}/sql",
            "Run a SELECT",
            "The statement runs in a process of its own with limits of time (30 s) and memory, which is killed when the connection \
             closes. Numbers that a double holds exactly are doubles, lists of numbers are lists of doubles, truth values are kept, and \
             everything else is text. Times are as in the tables: subtract `started_at_ns` of the session.",
        )
        .body::<m::SqlRequest>()
        .answer(Answer::arrow::<m::SqlMeta>("*: the columns of the statement")),
        windowed(
            "get /sessions/{id}/questions/{question}",
            "Answer a question of the page",
            questions(),
        )
        .takes::<p::QuestionParams>()
        .answer(Answer::arrow::<m::SqlMeta>("*: the columns of the question")),
        Described::new(
            "get /panels",
            "List panels that are files",
            "First the panels that the user wrote as files of SQL (`~/.config/fathom/panels`, or the directory of `--extensions`), if there \
             are any, as one entry. Then the files of the directory that `fathom ui --panels` was given.",
        )
        .json::<Vec<m::PanelFile>>(),
        Described::new(
            "post /sessions/{id}/save",
            "Save a recording in progress",
            "Its recorder saves what it keeps as a session next to it, as `fathom snapshot` does, and continues. The status is 409 if the \
             session is not being recorded, or if another recording is being saved.",
        )
        .json::<m::SavedAnswer>(),
        Described::new(
            "post /sessions/{id}/stop",
            "Stop the recording of this server",
            "The recording ends as it does after `--duration`: a recorded command continues. Only `fathom record --ui` can be asked, and only \
             about its own session; otherwise the status is 409.",
        )
        .json::<m::StoppedAnswer>(),
        Described::new(
            "post /share",
            "Make a file that shows the session without a server",
            "The answer is one HTML file with the page and the answers to the questions: at most 1,000 questions, and about 48 MiB before \
             compression. The file holds no token.",
        )
        .body::<crate::share::ShareRequest>()
        .answer(Answer::File),
    ]
}

fn of_calls() -> Vec<Described> {
    vec![
        windowed(
            "get /sessions/{id}/tiles",
            "Sum calls by bucket and key",
            "Rows are ordered by key, those with the most time first, then by time. Without `busy=1` only buckets with calls have rows. A \
             bucket is wider than requested (`coarser`) where more than a million rows would have had to be read.",
        )
        .takes::<p::TilesParams>()
        .answer(Answer::arrow::<m::TilesMeta>(
            "t: begin of the bucket\n\
             key: name, or id as a text; null when by=none, for the rest, and for calls without a file or process\n\
             label: name of the key: path, name of the thread or process\n\
             rest: whether the row is all other keys together\n\
             calls: calls, or visits with by=layer\n\
             errors: calls that returned an error\n\
             bytes: bytes that were moved\n\
             bytes_read: the part that was read; null where the pyramid answers by thread, process, or file, which knows the sum only\n\
             bytes_written: the part that was written; null as `bytes_read`\n\
             time_ns: sum of the durations\n\
             max_ns: the longest duration\n\
             busy_ns: with busy=1, time of calls within the bucket; with faults=1 also of page faults\n\
             faults: with by=file or faults=1, page faults on mapped files, which are no calls\n\
             fault_ns: with by=file or faults=1, the time of these page faults\n\
             at_least: the pyramid keeps at most 64 keys a bucket, and had no place for this key in this time: some of its calls may be in the rest\n\
             latency: with latency=1, a list of counts: element i is the number of calls that took from 2^i ns to less than 2^(i+1) ns; zeros at the end are left out",
        )),
        windowed(
            "get /sessions/{id}/timeline",
            "Show calls in lanes of threads",
            "Mode `events` has all calls that took place in the window, including calls that started before it, as long as there are fewer \
             than 20,000. Mode `density` has sums of the calls that began in a bucket.",
        )
        .takes::<p::TimelineParams>()
        .answer(Answer::arrow::<m::TimelineMeta>(
            "lane: id of the thread\n\
             t: begin of the call, or of the bucket\n\
             dur: events: duration\n\
             rid: events: id of the request\n\
             syscall: events: name of the call\n\
             class: events: class of the call\n\
             errno: events: name of the error\n\
             file: events: id of the file\n\
             label: events: path or arguments, short\n\
             depth: events: overlapping operations have increasing depths\n\
             bytes: bytes that were moved\n\
             calls: density: calls\n\
             errors: density: calls that returned an error\n\
             time_ns: density: sum of the durations\n\
             max_ns: density: the longest duration",
        )),
        windowed(
            "get /sessions/{id}/threads",
            "List threads with calls in the window",
            "Most time first, at most 5,000. `exact` is false for windows with tens of millions of calls, whose least busy threads may be \
             missing.",
        )
        .takes::<p::ThreadsParams>()
        .json::<m::Threads>(),
        windowed(
            "get /sessions/{id}/top",
            "Rank files, calls, threads, processes, or errors",
            "In windows with more than two million calls the pyramid answers, and percentiles come from histograms by powers of two: `exact` \
             is false, and a file or thread may lack calls of buckets in which it was not among the 64 with the most time.",
        )
        .takes::<p::TopParams>()
        .answer(Answer::arrow::<m::TopMeta>(
            "key: name, or id as a text; null: calls without one, such as successful calls with by=errno\n\
             file: with by=path, the file that had the path during its longest call\n\
             files: with by=path, the number of files that had it; 0: only calls on the path itself\n\
             label: name of the key\n\
             directory: with together=1, of a row for several paths the deepest directory that contains nearly all of them, `/` if they are in many; \
             such a row has no key\n\
             paths: with together=1, the number of paths in the row\n\
             elsewhere: with together=1, how many of them are not in the directory\n\
             calls: calls\n\
             errors: calls that returned an error\n\
             failures: errors that are no answers to a question; null where the pyramid answers\n\
             bytes: bytes that were moved\n\
             bytes_read: the part that was read\n\
             bytes_written: the part that was written\n\
             time_ns: sum of the durations\n\
             p50_ns: median duration\n\
             p99_ns: 99th percentile of the durations\n\
             max_ns: the longest duration\n\
             faults: with by=file or faults=1, page faults on mapped files; a key may have these alone\n\
             fault_ns: with by=file or faults=1, sum of their durations, which `time_ns` does not include\n\
             type: with by=file, the type of the file, as in table files",
        )),
        windowed(
            "get /sessions/{id}/errors",
            "Count calls that returned an error",
            "Rows by bucket, call, and error.",
        )
        .answer(Answer::arrow::<m::ErrorsMeta>(
            "t: begin of the bucket\n\
             syscall: name of the call\n\
             errno: name of the error\n\
             calls: calls\n\
             failed: false for an error that answers a question, such as ENOENT of a look-up",
        )),
        windowed(
            "get /sessions/{id}/events",
            "Read rows of table syscalls",
            "Rows of the calls that began in the window. Times are relative to the start.",
        )
        .takes::<p::EventsParams>()
        .answer(Answer::arrow::<m::EventsMeta>(&of_table(&SYSCALLS, &["content"]))),
        windowed(
            "get /sessions/{id}/flame",
            "Break the time of calls down",
            "The rows add up to the sum of the durations of the calls that began in the window. `layers` is false with more than ten million \
             calls: all time counts as layer `syscall`.",
        )
        .answer(Answer::arrow::<m::FlameMeta>(
            "process: name of the process\n\
             file: path; null: none\n\
             syscall: name of the call\n\
             layer: name of the layer\n\
             ahead: layers block and device: the program that had submitted most of the bytes that the device still had to move when the request arrived\n\
             ns: time",
        )),
        windowed(
            "get /sessions/{id}/difference",
            "Compare the calls of a box with all others",
            "The box is a range of starts and of durations. The answer has shares of each side by call, file, thread, size, and error, shares of \
             their time by layer, and the longest calls in the box.",
        )
        .takes::<p::BoxParams>()
        .json::<m::DifferenceAnswer>(),
        windowed(
            "get /sessions/{id}/offsets",
            "Show where files were read and written",
            "Reads and writes that moved bytes at a known offset, and page faults on mappings of the files, as far as the filter needs nothing \
             that only calls have. Mode `points` has single ones, below 20,000; mode `grid` has cells, and a call counts in the cell that it \
             begins in. The order of access (`read_sequential` and others) is null where no thread has two calls, and for a grid with unique=0.",
        )
        .takes::<p::OffsetsParams>()
        .answer(Answer::arrow::<m::OffsetsMeta>(
            "t: points: begin\n\
             dur: points: duration\n\
             file_offset: points: offset in the file\n\
             bytes: points: bytes that were moved; null of a page fault\n\
             write: points: whether it wrote\n\
             fault: points: whether it is a page fault\n\
             file: points: id of the file\n\
             rid: points: id of the request\n\
             tid: id of the thread; in a cell, of the thread with most\n\
             x: grid: number of the cell in time, from 0\n\
             y: grid: number of the cell in offsets, from 0\n\
             reads: grid: reads, with page faults by reads\n\
             writes: grid: writes, with page faults by writes\n\
             faults: grid: page faults\n\
             max_ns: grid: the longest duration",
        )),
    ]
}

fn of_single_requests() -> Vec<Described> {
    vec![
        Described::new(
            "get /sessions/{id}/requests/{rid}",
            "Read one request through all layers",
            "Its row and the rows that belong to it in the other tables, with ten calls of the thread before and after it. The requests ahead in the \
             queue are determined for at most 16 block requests.",
        )
        .json::<m::RequestAnswer>(),
        Described::new(
            "get /sessions/{id}/requests/{rid}/meanwhile",
            "Read what else happened during a request",
            "The devices that it waited for (or the busiest ones) with the processes that used them, and other threads that were in calls.",
        )
        .json::<m::Meanwhile>(),
        Described::new(
            "get /sessions/{id}/requests/{rid}/path",
            "Follow the critical path of a request",
            "As `fathom critical-path --request RID` has it. `segments` (the 1,000 longest) and `rest` are contiguous and add up to the duration. \
             `why_not` says why there is none. The status is 422 if the request has more than two million waits.",
        )
        .json::<m::PathAnswer>(),
    ]
}

fn of_the_layers_below() -> Vec<Described> {
    let machine = of_table(&MACHINE, &["ts_ns", "ended_at_ns"]);
    vec![
        windowed(
            "get /sessions/{id}/visits",
            "Show the layers below the calls of threads",
            "Mode `visits` has single ones (at most 20,000) that took place in the window, including visits of calls that started before it, \
             without the calls themselves. Mode `sums` has buckets. Mode `many` has no rows: the window has more than about two million calls. \
             Ordered by `lane` and `layer`.",
        )
        .takes::<p::VisitsParams>()
        .answer(Answer::arrow::<m::VisitsMeta>(
            "lane: id of the thread\n\
             layer: name of the layer\n\
             t: begin of the visit, or of the bucket\n\
             name: visits: name of the visit\n\
             dur: visits: duration\n\
             self_ns: visits: the layer's own time\n\
             rid: visits: id of the request\n\
             visits: sums: visits\n\
             time_ns: sums: the layer's own time, which counts where the visit began\n\
             max_ns: sums: the longest visit",
        )),
        windowed(
            "get /sessions/{id}/states",
            "Show the states of threads",
            "From table `waits`; the filter does not count. Mode `periods` covers the life of each thread in the window without gaps or overlaps, \
             with at most 6,000 waits. Mode `sums` has time by state and bucket. Mode `many` (above two million waits) and `none` (the session has \
             no waits) have no rows. Ordered by `lane` and time.",
        )
        .takes::<p::StatesParams>()
        .answer(Answer::arrow::<m::StatesMeta>(
            "lane: id of the thread\n\
             t: begin of the period within the window, or of the bucket\n\
             state: running, runnable, blocked, or unknown\n\
             reason: as in view thread_states; of an unknown state also no_waits, not_recorded, not_ended, and dropped\n\
             dur: periods: duration within the window\n\
             whole: periods: length of the whole period; null if not known\n\
             began: periods: begin of the wait\n\
             rid: periods: the request that waited\n\
             in_syscall: periods: whether the thread was in a system call\n\
             waker: periods: name of the thread that ended the wait\n\
             waker_tid: periods: its id\n\
             woken: periods: when it ended the wait\n\
             cause: periods: kind of the cause\n\
             cause_id: periods: id of the cause\n\
             time_ns: sums: time",
        )),
        windowed(
            "get /sessions/{id}/machine",
            "Read the counters of the machine over time",
            "Table `machine`. Where buckets are wider than a second, each row is a bucket: times are added up, levels are the mean. No rows if the \
             table is empty.",
        )
        .answer(Answer::arrow::<m::MachineMeta>(&format!(
            "t: begin of the row\ndur: its length\n{machine}"
        ))),
        windowed(
            "get /sessions/{id}/machine/devices",
            "Read how busy devices were",
            "Buckets without requests have no rows. With more than two million block requests in the window there are none (`many`).",
        )
        .answer(Answer::arrow::<m::MachineMeta>(
            "t: begin of the bucket\n\
             key: name of the device\n\
             busy: share of the bucket in which the device had at least one request",
        )),
        windowed(
            "get /sessions/{id}/layers",
            "Read the time of each layer",
            "Calls without visits below them count as layer `syscall`.",
        )
        .takes::<p::LayersParams>()
        .answer(Answer::arrow::<m::LayersMeta>(
            "t: begin of the bucket, or of the call\n\
             layer: name of the layer\n\
             self_ns: time of the layer\n\
             rid: requests: id of the request\n\
             dur: requests: duration of the call",
        )),
        windowed(
            "get /sessions/{id}/devices",
            "List devices",
            "With a filter: the block requests that the chosen calls caused.",
        )
        .json::<Vec<m::Device>>(),
        windowed(
            "get /sessions/{id}/devices/{name}",
            "Read the requests of a device over time",
            "One row per bucket, or per bucket and thread name.",
        )
        .takes::<p::DeviceParams>()
        .answer(Answer::arrow::<m::DeviceMeta>(
            "t: begin of the bucket\n\
             key: with by=comm, name of the thread that submitted\n\
             requests: block requests\n\
             bytes: bytes that were moved\n\
             depth_mean: requests at once, mean\n\
             depth_max: requests at once, most\n\
             queue_ns: time in the queue\n\
             device_ns: time in the device\n\
             latency: list of 40 counts by powers of two of the time in the device",
        )),
        windowed(
            "get /sessions/{id}/devices/{name}/at_once",
            "Read the requests at once in a device by thread",
            "Mean of each bucket, by the thread that submitted.",
        )
        .answer(Answer::arrow::<m::DeviceMeta>(
            "t: begin of the bucket\n\
             key: name of the thread; empty: not known\n\
             device: requests in the device\n\
             queue: requests that waited for it",
        )),
        windowed(
            "get /sessions/{id}/cache",
            "Read the page cache over time",
            "One row per bucket.",
        )
        .answer(Answer::arrow::<m::CacheMeta>(
            "t: begin of the bucket\n\
             pages: pages that calls touched\n\
             hits: pages that were in the cache\n\
             misses: pages that were not\n\
             readahead: pages that were read ahead\n\
             added: pages that were added to the cache\n\
             dirtied: pages that were made dirty",
        )),
    ]
}

fn of_diagnoses() -> Vec<Described> {
    vec![
        windowed(
            "get /sessions/{id}/why",
            "Explain where the time went",
            "At most three sentences with their numbers, as `fathom why --format json` has them.",
        )
        .takes::<p::WhyParams>()
        .json::<fathom_why::Story>(),
        Described::new(
            "get /sessions/{id}/findings",
            "List findings",
            "As `fathom diagnose --format json` has them. The first request for a large session takes long, because all calls are read; the findings \
             are then cached in the session if it is writable. Other requests do not wait for it. Findings of a session in progress may be slightly out \
             of date.",
        )
        .json::<fathom_diagnose::Diagnosis>(),
        Described::new(
            "get /compare",
            "Compare sessions",
            "As `fathom diff --format json` has it.",
        )
        .takes::<p::Sides>()
        .json::<fathom_diff::Diff>(),
        Described::new(
            "get /fleet",
            "Sum sessions up",
            "Sums of all sessions, as `fathom sessions --by` has them. The first request reads each session, and diagnoses those without \
             kept findings that are not large, if findings are asked for or nothing divides the sessions.",
        )
        .takes::<p::FleetParams>()
        .json::<m::FleetAnswer>(),
        Described::new(
            "get /set",
            "Relate the hosts of a set",
            "As `fathom set --format json` has it: the sessions of a set, the relation of their clocks, and the messages between them. \
             Null when the server shows no set. The ids of a set's sessions are the names of its hosts, and critical paths lead from \
             one host to another.",
        )
        .json::<Option<fathom_set::Summary>>(),
    ]
}
