//! The contents of a shared file of a whole session: the answers that the page requests when its
//! views open, and answers about the slowest calls.
//!
//! The test of the page in a browser opens such a file and finds every view complete.

use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;

use fathom_extensions::Extensions;
use fathom_model::tables::SYSCALLS;
use fathom_query::Limits;
use fathom_session::Session;

use super::{Question, ShareRequest, file};
use crate::access::{Caller, Role};
use crate::api::{self, App};
use crate::columns::{collect, texts};
use crate::error::{ApiError, Problem};
use crate::job::{Jobs, Lane, Stop};
use crate::library::Library;
use crate::view::Reader;
use crate::{QUERY_TIME, ServerError};

/// Number of calls with full details: the longest ones. Each takes half a second to explain.
const SLOWEST: usize = 16;
/// Files of which the accesses are kept: of those with any, the ones with the most time.
const FILES: usize = 6;
/// Devices that are kept.
const DEVICES: usize = 4;

/// Names of spans, those with the most time, and the longest spans of each, with their calls.
const NAMES: usize = 12;
const SPANS: usize = 4;

/// Calls of a session up to which questions are asked together: to plan them takes the time, and one processor. The
/// queries of larger sessions use all processors, and the memory.
const FEW_CALLS: u64 = 1 << 20;
/// Questions that are asked together at most.
const MOST_TOGETHER: usize = 8;

/// Views that the file has tabs for, as far as the session has rows for them.
const VIEWS: [&str; 11] = [
    "overview", "flame", "timeline", "request", "table", "file", "threads", "layers", "devices",
    "blame", "spans",
];

/// The requests of these views, independent of the session.
const ALWAYS: [&str; 28] = [
    // Before the others: they leave out what is damaged, and the description says so.
    "?checked=1",
    "",
    "/why",
    "/why?findings=1",
    "/findings",
    "/tiles?by=syscall&top=5&busy=1&faults=1",
    "/tiles?by=layer&top=5&busy=1&faults=1",
    "/tiles?by=thread&top=5&busy=1&faults=1",
    "/tiles?by=purpose&latency=1&busy=1&faults=1&pixels=600",
    "/errors?pixels=600",
    "/flame",
    "/top?by=path&sort=time_ns&limit=12&faults=1&together=1",
    "/top?by=syscall&sort=time_ns&limit=12&faults=1",
    "/top?by=thread&sort=time_ns&limit=12&faults=1",
    "/top?by=file&sort=time_ns&limit=300&named=1",
    "/threads",
    "/timeline?pixels=2048",
    "/machine?pixels=500",
    "/machine/devices?pixels=500",
    "/tiles?by=thread&top=200&latency=1&busy=1&pixels=400",
    "/layers?mode=windows&pixels=500",
    "/layers?mode=requests&limit=4000&sort=-dur_ns",
    "/devices",
    "/cache?pixels=400",
    "/questions/blame-processes",
    "/questions/blame-threads",
    SLOWEST_ROWS,
    FIRST_ROWS,
];

/// The first rows of the table, in its two orders.
const SLOWEST_ROWS: &str = "/events?sort=-dur_ns&columns=ts_ns,dur_ns,comm,tid,syscall,errno,path,\
    file_offset,bytes,flags,rid&offset=0&limit=256";
const FIRST_ROWS: &str = "/events?sort=ts_ns&columns=ts_ns,dur_ns,comm,tid,syscall,errno,path,\
    file_offset,bytes,flags,rid&offset=0&limit=256";

/// A session as one HTML file: the page with what its views show, to open without a server. Its
/// findings include the ones of the user's rules.
///
/// # Errors
/// When the session cannot be read, or the page is not built into this program.
pub fn shared_page(
    session: &Path,
    memory_bytes: u64,
    extensions: Extensions,
) -> Result<String, ServerError> {
    let limits = Limits {
        memory_bytes,
        threads: 0,
        time: Some(QUERY_TIME),
    };
    let failed = |source| ServerError::Root {
        path: session.to_path_buf(),
        source,
    };
    let library = Library::new(session, limits, extensions).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let at_once = together(session);
    let mut app = App::new(library, None, None);
    app.jobs = Jobs::of_one_client(app.library.clone(), at_once);
    let made = runtime.block_on(make(&Arc::new(app), at_once));
    runtime.shutdown_background();
    made.map_err(|error| {
        let Problem {
            what,
            subject,
            next,
        } = error.problem;
        ServerError::Share(format!("{what} ({subject}); {next}"))
    })
}

/// Questions about `session` that are asked together.
fn together(session: &Path) -> usize {
    let calls = Session::open(session).map_or(u64::MAX, |session| session.rows(SYSCALLS.name));
    match calls <= FEW_CALLS {
        true => available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_TOGETHER),
        false => 1,
    }
}

async fn make(app: &Arc<App>, at_once: usize) -> Result<String, ApiError> {
    let missing = || ApiError::not_found("the session", "give the directory of one session");
    let [id] = <[String; 1]>::try_from(app.library.ids()?).map_err(|_| missing())?;
    let own = format!("/sessions/{}", encoded(&id));
    let mut paths: Vec<String> = ALWAYS.iter().map(|path| format!("{own}{path}")).collect();
    let some = |sql: String| {
        let query = move |reader: &Reader, _: &Stop| {
            let rows = collect(reader.db().run(&sql)?)?;
            let found = texts(&rows, "value")?;
            Ok(found
                .iter()
                .flatten()
                .map(str::to_owned)
                .collect::<Vec<_>>())
        };
        app.jobs.query(id.clone(), Lane::Quick, query)
    };
    let devices = "SELECT device AS value FROM block WHERE device <> ''";
    let devices = format!("{devices} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {DEVICES}");
    for device in some(devices).await? {
        let device = format!("{own}/devices/{}", encoded(&device));
        paths.push(format!("{device}?pixels=400"));
        paths.push(format!("{device}?by=comm&pixels=400"));
        paths.push(format!("{device}/at_once?pixels=200"));
    }
    let slowest = "SELECT rid AS value FROM syscalls WHERE dur_ns IS NOT NULL";
    for rid in some(format!("{slowest} ORDER BY dur_ns DESC LIMIT {SLOWEST}")).await? {
        paths.push(format!("{own}/requests/{rid}"));
        paths.push(format!("{own}/requests/{rid}/meanwhile"));
        paths.push(format!("{own}/requests/{rid}/path"));
        paths.push(format!("{own}/why?rid={rid}"));
    }
    let files = "SELECT file_id AS value FROM ( \
        SELECT file_id, dur_ns, file_offset IS NOT NULL AND bytes > 0 AS placed FROM syscalls \
        UNION ALL SELECT file_id, dur_ns, true FROM faults) WHERE file_id IS NOT NULL";
    let files = format!(
        "{files} GROUP BY 1 HAVING bool_or(placed) ORDER BY sum(dur_ns) DESC, 1 LIMIT {FILES}"
    );
    for file in some(files).await? {
        let filter = encoded(&format!("{{\"file\":[{file}]}}"));
        paths.push(format!(
            "{own}/offsets?file={file}&unique=0&width=384&height=256"
        ));
        paths.push(format!(
            "{own}/offsets?file={file}&unique=1&width=1&height=1"
        ));
        paths.push(format!(
            "{own}/top?by=file&sort=bytes&limit=1000&f={filter}"
        ));
        paths.push(format!("{own}/top?by=file&limit=1&f={filter}"));
    }
    let names = "SELECT to_json([service, name, kind])::VARCHAR AS value FROM spans";
    let names =
        format!("{names} GROUP BY service, name, kind ORDER BY sum(dur_ns) DESC, 1 LIMIT {NAMES}");
    let names = some(names).await?;
    for counting in ["all", "own"] {
        if !names.is_empty() {
            paths.push(format!("{own}/questions/spans?counting={counting}"));
        }
        for name in &names {
            let name = asked_name(name)?;
            paths.push(format!(
                "{own}/questions/slowest-spans?counting={counting}{name}"
            ));
        }
    }
    let longest = format!(
        "SELECT to_json([trace_id, span_id])::VARCHAR AS value FROM spans WHERE dur_ns IS NOT NULL \
         QUALIFY row_number() OVER (PARTITION BY service, name, kind ORDER BY dur_ns DESC, trace_id, span_id) <= {SPANS} \
         ORDER BY dur_ns DESC LIMIT {}",
        NAMES * SPANS
    );
    for span in some(longest).await? {
        let [trace, span] = parts(&span)?.map(|part| encoded(&part.unwrap_or_default()));
        paths.push(format!("{own}/questions/trace?trace={trace}"));
        paths.push(format!(
            "{own}/questions/span-calls?counting=all&trace={trace}&span={span}"
        ));
    }
    let library = format!(
        "SELECT DISTINCT user_call AS value FROM (SELECT user_call FROM syscalls WHERE dur_ns IS NOT NULL \
         ORDER BY dur_ns DESC LIMIT {SLOWEST}) WHERE user_call IS NOT NULL"
    );
    for call in some(library).await? {
        paths.push(format!("{own}/questions/library-call?call={call}"));
        paths.push(format!("{own}/questions/library-call-made?call={call}"));
    }
    let functions = "SELECT function AS value FROM user_calls LIMIT 1".to_owned();
    if !some(functions).await?.is_empty() {
        paths.push(format!("{own}/questions/library-functions"));
    }
    let question = |path| Question { path, body: None };
    let request = ShareRequest {
        title: format!("{id} · fathom"),
        start: format!("?s={}&view=overview", encoded(&id)),
        views: VIEWS.map(str::to_string).to_vec(),
        questions: paths.into_iter().map(question).collect(),
    };
    let caller = Caller {
        role: Role::Query,
        name: None,
    };
    // Answers are taken in order: some wait, so that one that takes long leaves no processor idle.
    file(&api::routes(app.clone()), &request, &caller, 4 * at_once).await
}

/// A list of texts in JSON.
fn parts<const N: usize>(json: &str) -> Result<[Option<String>; N], ApiError> {
    serde_json::from_str::<Vec<Option<String>>>(json)
        .ok()
        .and_then(|parts| parts.try_into().ok())
        .ok_or_else(|| ApiError::internal("a list of texts has other members"))
}

/// Service, name, and kind of spans in an address; null is left out.
fn asked_name(json: &str) -> Result<String, ApiError> {
    let names = ["service", "name", "kind"]
        .into_iter()
        .zip(parts::<3>(json)?);
    let given = names.filter_map(|(name, value)| Some(format!("&{name}={}", encoded(&value?))));
    Ok(given.collect())
}

/// Text in an address, as `encodeURIComponent` writes it.
fn encoded(text: &str) -> String {
    let mut made = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => made.push(byte as char),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => {
                made.push(byte as char)
            }
            _ => made.push_str(&format!("%{byte:02X}")),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::{asked_name, encoded, parts};

    #[test]
    fn names_of_spans_are_those_that_they_have() {
        let asked = asked_name(r#"["shop",null,"a&b"]"#).unwrap();
        assert_eq!(asked, "&service=shop&kind=a%26b");
        assert!(parts::<2>("[1, 2]").is_err());
    }

    #[test]
    fn addresses_are_as_the_page_writes_them() {
        assert_eq!(encoded("a b.fathom"), "a%20b.fathom");
        assert_eq!(encoded("{\"file\":[3]}"), "%7B%22file%22%3A%5B3%5D%7D");
        assert_eq!(encoded("ä/?"), "%C3%A4%2F%3F");
    }
}
