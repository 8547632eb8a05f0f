//! The tools: what each takes, and how it makes its answer. The numbers and sentences are from the
//! same code as `--format json` of the command of the same name.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Error, anyhow, bail};
use fathom_diagnose::{CachedDiagnosis, Diagnosis, Finding};
use fathom_extensions::ExtensionError;
use fathom_model::escape;
use fathom_query::worker::{Form, Program, Statement, Worker};
use fathom_query::{Db, Limits, QueryError, UserView};
use fathom_server::rows_of;
use fathom_session::{Session, on_latest};
use serde_json::{Map, Value, json};

use super::arguments::{Arguments, Kind, Parameter, optional, required, schema};
use super::bounded::{Answer, MOST};
use super::protocol::Call;
use super::server::Server;
use super::text;
use crate::args::id::Id;
use crate::args::{CriticalPathArgs, CriticalPathFormat, DiffArgs, DiffFormat, WhyArgs, WhyFormat};
use crate::exit::Failure;
use crate::{critical_path, diff, sessions, why};

/// Time of a statement.
const PATIENCE: Duration = Duration::from_secs(30);
/// Segments of a critical path that are shown.
const SEGMENTS: usize = 40;
/// Rows of each table of a report.
const ROWS: usize = 10;

/// A tool.
pub struct Tool {
    pub name: &'static str,
    title: &'static str,
    /// For the model: what it does, and when to use it.
    doc: &'static str,
    parameters: &'static [Parameter],
    run: fn(&Server, &Arguments<'_>) -> Result<Answer, Error>,
}

const SESSION: Parameter = required(
    "session",
    Kind::Text,
    "Name of the session, as list_sessions has it",
);
const FROM: Parameter = optional(
    "from",
    Kind::Text,
    "Start of the window: 1.5s, 250ms since the start of the recording; 2026-01-31T12:00:05Z; or \
     @NANOSECONDS, a value of column ts_ns",
);
const UNTIL: Parameter = optional("until", Kind::Text, "End of the window, as from");
const ID: Kind = Kind::Integer(0, i64::MAX);

/// All tools, in the order in which a client may use them.
pub const TOOLS: [Tool; 8] = [
    Tool {
        name: "list_sessions",
        title: "List recordings",
        doc: "List the recordings, the newest first: name, state, start, duration, command, number \
              of calls. The other tools take the name.",
        parameters: &[],
        run: list_sessions,
    },
    Tool {
        name: "report",
        title: "Summarize a recording",
        doc: "Summarize a session: target, sums by call, file and thread, errors, losses, time by \
              layer, and the titles of the worst findings. diagnose has the findings in full.",
        parameters: &[SESSION],
        run: report,
    },
    Tool {
        name: "diagnose",
        title: "Find problems",
        doc: "Find the I/O problems of a session by all rules: per finding its rule, severity, \
              cost, subject, evidence, and advice, the worst first. Findings have numbers; with \
              `finding` you get one in full, with example requests and the SQL that lists its \
              calls. Use this first when something is slow or unsafe.",
        parameters: &[
            SESSION,
            optional(
                "finding",
                Kind::Integer(1, i64::MAX),
                "Only this finding, in full: its number in the list",
            ),
            optional(
                "minor",
                Kind::Flag,
                "Also list patterns that cost less than a finding",
            ),
        ],
        run: diagnose,
    },
    Tool {
        name: "why",
        title: "Explain where time went",
        doc: "Explain in sentences where the time of requests went: which took it, what they \
              waited for, what to change. Of the whole session, or of one request, a file, a \
              thread, a window of time.",
        parameters: &[
            SESSION,
            optional(
                "request",
                ID,
                "Explain this request alone: column rid, or an example of a finding",
            ),
            optional(
                "file",
                Kind::Text,
                "Explain requests on this file: its path, or the end of its path",
            ),
            optional("thread", ID, "Explain requests of this thread: its TID"),
            optional(
                "span",
                Kind::Text,
                "Explain a request of an application (table spans): the id of its span, or its name \
                 for the longest of that name",
            ),
            FROM,
            UNTIL,
        ],
        run: explain,
    },
    Tool {
        name: "critical_path",
        title: "Show what a thread waited for",
        doc: "Show the chain of work and waits that the time of a request or of a thread consists \
              of, across threads and devices. Takes one of request and thread. The answer has the \
              longest segments, in order of time, and the sums of all.",
        parameters: &[
            SESSION,
            optional("request", ID, "From the begin of this request to its end"),
            optional(
                "thread",
                ID,
                "The recorded time of this thread, or the window: its TID",
            ),
            FROM,
            UNTIL,
        ],
        run: path,
    },
    Tool {
        name: "query",
        title: "Query a recording with SQL",
        doc: "Run one SELECT (DuckDB's dialect) on the tables and views of a session; see schema. \
              Aggregate and use ORDER BY and LIMIT: an answer has few rows. SQL reaches this \
              session and nothing else, and is stopped after 30 s.",
        parameters: &[
            SESSION,
            required(
                "sql",
                Kind::Text,
                "One SELECT, such as FROM by_file ORDER BY total_ns DESC LIMIT 10",
            ),
            optional(
                "max_rows",
                Kind::Integer(1, 1000),
                "Rows of the answer at most [default: 100]",
            ),
        ],
        run: query,
    },
    Tool {
        name: "schema",
        title: "Describe tables and views",
        doc: "Describe the tables and views that query can read: without `relation` what a row of \
              each is, with it the columns of one, their types and meanings.",
        parameters: &[
            SESSION,
            optional("relation", Kind::Text, "Name of a table or view"),
        ],
        run: describe,
    },
    Tool {
        name: "diff",
        title: "Compare recordings",
        doc: "Compare two sessions, or two sets of sessions of the same work: what got worse or \
              better by more than noise, by call, file, layer, and finding. With three or more \
              per side durations are tested as well.",
        parameters: &[
            required("before", Kind::Texts, "Names of the sessions before"),
            required("after", Kind::Texts, "Names of the sessions after"),
        ],
        run: compare,
    },
];

/// The answer to `tools/list`.
pub fn list() -> Vec<Value> {
    let described = |tool: &Tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.doc,
            "inputSchema": schema(tool.parameters),
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    };
    TOOLS.iter().map(described).collect()
}

/// Runs a call. A failure is a result as well, so that the model reads it.
pub fn call(server: &Server, call: &Call) -> Value {
    let answer = Arguments::check(&call.arguments, call.tool.parameters)
        .and_then(|arguments| (call.tool.run)(server, &arguments))
        .and_then(Answer::bounded);
    match answer {
        Ok(answer) => json!({
            "content": [{"type": "text", "text": text(&answer)}],
            "structuredContent": answer,
        }),
        Err(error) => {
            let said = escape::lines(&Failure::input(error).to_string());
            json!({
                "content": [{"type": "text", "text": escape::shorten(&said, 4000)}],
                "isError": true,
            })
        }
    }
}

fn list_sessions(server: &Server, _: &Arguments<'_>) -> Result<Answer, Error> {
    let sessions = sessions::list(server.folder().root(), &[])?;
    Answer::of(&json!({"sessions": sessions}))
}

fn report(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let mut session = server.open(arguments.session())?;
    let report = on_latest(&mut session, |session| {
        let db = Db::open(session, Limits::default())?;
        Ok::<_, Error>(fathom_report::Report::build_with(
            &db,
            session,
            server.extensions(),
        )?)
    })?;
    let mut answer = Answer::of(&report)?;
    // Plots, what other tools have in full, and commands of a shell.
    for name in ["timeline", "latency", "next", "storage", "cost"] {
        answer.fields.remove(name);
    }
    let sentences = report.why.sentences.iter().map(|sentence| sentence.text());
    let sentences: Vec<_> = sentences.collect();
    answer.fields.insert("why".into(), sentences.into());
    if let Some(findings) = &report.findings {
        let top = findings.top.iter().zip(1..).map(|(finding, number)| {
            json!({
                "finding": number,
                "rule": finding.rule,
                "severity": finding.severity,
                "cost_ns": finding.cost_ns,
                "title": finding.title,
            })
        });
        answer.fields["findings"]["top"] = top.collect();
    }
    let left_out = "timeline, latency histograms, storage, and cost; rows of a table after the \
                    first 10: query has them";
    answer.cut.push(left_out.into());
    answer.fields.values_mut().for_each(shorten);
    Ok(answer)
}

/// Shortens the tables in a value.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(ROWS);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

fn diagnose(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let mut session = server.open(arguments.session())?;
    let diagnosis = diagnosis(server, &mut session)?;
    let all = diagnosis.findings.iter().chain(&diagnosis.minor);
    if let Some(number) = arguments.integer("finding") {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(finding) = all.clone().nth(at.saturating_sub(1)) else {
            bail!("no finding {number}: the list ends at {}", all.count());
        };
        return Answer::of(&json!({"number": number, "finding": finding}));
    }
    let numbered = |(finding, number): (&Finding, usize)| {
        json!({
            "finding": number,
            "rule": finding.rule,
            "group": finding.group,
            "severity": finding.severity,
            "confidence": finding.confidence,
            "cost_ns": finding.cost_ns,
            "title": finding.title,
            "subject": finding.subject,
            "evidence": evidence(finding),
            "advice": finding.advice,
            "caveats": finding.caveats,
            "also": finding.also,
        })
    };
    let found = diagnosis.findings.len();
    let numbers = || all.clone().zip(1..).map(numbered);
    let mut answer = Answer::of(&json!({
        "summary": diagnosis.summary,
        "span_ns": diagnosis.span_ns,
        "calls": diagnosis.calls,
        "rules": diagnosis.rules,
        "not_observable": diagnosis.not_observable,
        "partly_observable": diagnosis.partly_observable,
        "more": diagnosis.more,
        "problems": session.problems(),
        "findings": numbers().take(found).collect::<Vec<_>>(),
    }))?;
    match arguments.flag("minor") {
        true => {
            let minor: Vec<_> = numbers().skip(found).collect();
            answer.fields.insert("minor".into(), minor.into());
        }
        false if diagnosis.minor.is_empty() => {}
        false => answer.cut.push(format!(
            "{} minor patterns: ask with minor",
            diagnosis.minor.len()
        )),
    }
    Ok(answer)
}

/// Numbers of the evidence by their names.
fn evidence(finding: &Finding) -> Map<String, Value> {
    let pairs = finding.evidence.iter();
    pairs
        .map(|evidence| (evidence.name.to_string(), evidence.value.into()))
        .collect()
}

/// The findings of a session: cached ones, or new ones, which are not cached, as the server writes
/// nothing.
fn diagnosis(server: &Server, session: &mut Session) -> Result<Diagnosis, ExtensionError> {
    on_latest(session, |session| {
        let mut diagnosis = match fathom_diagnose::cached(session) {
            CachedDiagnosis::Findings(diagnosis) => diagnosis,
            CachedDiagnosis::Nothing | CachedDiagnosis::Unusable(_) => {
                fathom_diagnose::diagnose(session)?
            }
        };
        let extensions = server.extensions();
        extensions.diagnose(session, &mut diagnosis, &|| true)?;
        Ok(diagnosis)
    })
}

fn explain(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let others = ["file", "thread", "from", "until"];
    let with = others.iter().find(|name| arguments.get(name).is_some());
    let alone = |one: &&str| arguments.get(one).is_some();
    match (["request", "span"].into_iter().find(alone), with) {
        (Some(one), Some(name)) => {
            bail!("argument {name} cannot be combined with {one}, which is one request alone")
        }
        (Some("request"), None) if alone(&"span") => {
            bail!("request and span cannot be combined: each is one request alone")
        }
        _ => {}
    }
    let mut session = server.open(arguments.session())?;
    let args = WhyArgs {
        session: PathBuf::new(),
        request: arguments.integer("request").map(Id::from),
        span: arguments.text("span").map(str::to_owned),
        file: arguments.text("file").map(str::to_owned),
        thread: arguments.integer("thread").map(Id::from),
        from: arguments.text("from").map(str::to_owned),
        until: arguments.text("until").map(str::to_owned),
        format: WhyFormat::Json,
        extensions: Default::default(),
        members: Default::default(),
        tenants: Default::default(),
    };
    let story = on_latest(&mut session, |session| {
        why::story(session, &args, server.extensions())
    })?;
    let sentences: Vec<_> = story.sentences.iter().map(|s| s.text()).collect();
    Answer::of(&json!({"sentences": sentences, "facts": story.facts, "steps": story.steps}))
}

fn path(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let args = CriticalPathArgs {
        session: PathBuf::new(),
        request: arguments.integer("request").map(Id::from),
        thread: arguments.integer("thread").map(Id::from),
        from: arguments.text("from").map(str::to_owned),
        until: arguments.text("until").map(str::to_owned),
        format: CriticalPathFormat::Json,
    };
    match (&args.request, &args.thread) {
        (None, None) => bail!("a path is of a request or a thread: give request or thread"),
        (Some(_), Some(_)) => bail!("a path is of a request or a thread: give one of them"),
        (Some(_), None) if args.from.is_some() || args.until.is_some() => {
            bail!("from and until cannot be combined with request, which has its own time")
        }
        _ => {}
    }
    let mut session = server.open(arguments.session())?;
    let mut path = on_latest(&mut session, |session| critical_path::path(session, &args))?;
    let all = path.segments.len();
    // The longest, in order of time.
    let mut order: Vec<_> = (0..all).collect();
    order.sort_by_key(|at| Reverse(path.segments.get(*at).map(|segment| segment.dur_ns)));
    order.truncate(SEGMENTS);
    order.sort_unstable();
    path.segments = order
        .into_iter()
        .filter_map(|at| path.segments.get(at).cloned())
        .collect();
    let mut answer = Answer::of(&path)?;
    if all > SEGMENTS {
        answer.cut.push(format!(
            "segments: the {SEGMENTS} longest of {all}; totals has the sums of all"
        ));
    }
    Ok(answer)
}

fn query(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let dir = server.dir(arguments.session())?;
    let sql = arguments.text("sql").unwrap_or_default().to_owned();
    let most = arguments.integer("max_rows").unwrap_or(100);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let findings = match server.extensions().names_findings(&sql) {
        true => {
            let mut session = Session::open(&dir)?;
            Some(fathom_diagnose::finding_rows(&diagnosis(
                server,
                &mut session,
            )?))
        }
        false => None,
    };
    let limits = Limits {
        time: Some(PATIENCE),
        ..Limits::default()
    };
    let mut worker = Worker::start(&Program::itself(), limits)?;
    server.runs_sql(worker.killer());
    worker.open(&dir, server.extensions().views())?;
    let statement = Statement {
        sql,
        form: Form::LINES,
        findings: findings.map(|rows| vec![rows]),
        refresh: false,
    };
    let mut bytes = Vec::new();
    let mut rows = 0;
    // The worker is stopped as soon as the rows are enough, or cannot all be shown.
    let outcome = worker.query(statement, |more| {
        bytes.extend_from_slice(more);
        rows += more.iter().filter(|byte| **byte == b'\n').count();
        match rows > most || bytes.len() > 8 * MOST {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
    let cut = match outcome {
        Ok(_) => false,
        Err(QueryError::Output(_)) => true,
        Err(error) => return Err(error.into()),
    };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    // The last line may not be whole.
    let whole = lines.filter(|line| line.ends_with(b"\n")).take(most);
    let rows = whole
        .map(serde_json::from_slice)
        .collect::<Result<Vec<Value>, _>>()?;
    if cut && rows.is_empty() {
        bail!("the first row is larger than an answer may be: select fewer or shorter columns");
    }
    let number = rows.len();
    let mut answer = Answer::of(&json!({"rows": rows}))?;
    if cut {
        answer.cut.push(format!(
            "rows: there are more than {number}; aggregate, filter, or select fewer columns"
        ));
    }
    Ok(answer)
}

fn describe(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let mut session = server.open(arguments.session())?;
    let mut relations = on_latest(&mut session, |session| {
        let db = Db::open(session, Limits::default())?;
        Ok::<_, Error>(fathom_query::relations(&db)?)
    })?;
    let views = server.extensions().views();
    relations.extend(views.iter().map(UserView::relation));
    let rows = |relation: &fathom_query::Relation| {
        (!relation.view).then(|| rows_of(&session, &relation.name))
    };
    let Some(name) = arguments.text("relation") else {
        let all = relations.iter().map(|relation| {
            let doc = relation.doc.split_inclusive(". ").next();
            json!({
                "name": relation.name,
                "view": relation.view,
                "row": doc.unwrap_or_default().trim_end(),
                "rows": rows(relation),
            })
        });
        return Answer::of(&json!({"relations": all.collect::<Vec<_>>()}));
    };
    let found = relations.iter().find(|r| r.name.eq_ignore_ascii_case(name));
    let relation = found.ok_or_else(|| {
        let names: Vec<_> = relations.iter().map(|r| r.name.as_str()).collect();
        let name = escape::text(name);
        let name = escape::shorten(&name, 60);
        anyhow!("no table or view {name}; choose from {}", names.join(", "))
    })?;
    let columns = relation.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "type": column.sql_type,
            "nullable": column.nullable,
            "doc": column.doc,
        })
    });
    Answer::of(&json!({
        "name": relation.name,
        "view": relation.view,
        "doc": relation.doc,
        "rows": rows(relation),
        "columns": columns.collect::<Vec<_>>(),
    }))
}

fn compare(server: &Server, arguments: &Arguments<'_>) -> Result<Answer, Error> {
    let dirs = |side| {
        let names = arguments.texts(side).into_iter();
        names
            .map(|name| server.dir(name))
            .collect::<Result<Vec<_>, _>>()
    };
    let args = DiffArgs {
        sessions: Vec::new(),
        before: dirs("before")?,
        after: dirs("after")?,
        fail_above: 10.0,
        metric: Vec::new(),
        format: DiffFormat::Json,
        extensions: Default::default(),
    };
    let mut answer = Answer::of(&diff::compare(&args, server.extensions())?)?;
    // Each figure of each row on both sides: what has changed is in `changes`.
    answer.fields.remove("tables");
    let left_out = "tables: changes and unproven have the rows that differ";
    answer.cut.push(left_out.into());
    Ok(answer)
}
