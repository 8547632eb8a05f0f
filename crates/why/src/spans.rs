//! A request of an application, with the requests that it caused in other programs.

use std::collections::{HashMap, HashSet};

use fathom_diagnose::Finding;
use fathom_model::meta::SessionMeta;
use fathom_model::units::{count, duration, percent};
use fathom_query::escape::sql_string;
use fathom_query::fetch::rows;
use fathom_query::{Db, QueryError, read_row};

use crate::scope::Scope;
use crate::sentence::{Link, Sentence};
use crate::step::Step;
use crate::story::{Story, why};

/// Requests below one that are read.
const MAX_SPANS: usize = 10_000;
/// Causes of causes that are followed.
const MAX_DEPTH: usize = 32;
/// Steps that are listed.
const MAX_STEPS: usize = 40;
/// A request below with this share of the time is the one that the first sentence is about.
const MOST: f64 = 0.5;
/// Share of that which must be its own, if it has requests below.
const OWN: f64 = 0.2;

struct Row {
    span_id: String,
    trace_id: String,
    parent: String,
    ts_ns: i64,
    dur_ns: i64,
    pid: Option<i64>,
    service: String,
    name: String,
    server: i64,
}

/// A step, and the steps below it.
#[derive(Clone, Debug)]
struct Node {
    step: Step,
    longest_ns: i64,
    below: Vec<Node>,
}

/// Why a request of an application took as long as it did: `span` is its id, or the name of requests, of
/// which the longest is meant. `None` if there is none.
///
/// # Errors
/// When a query fails.
pub fn why_span(
    db: &Db,
    meta: &SessionMeta,
    span: &str,
    findings: &[Finding],
) -> Result<Option<Story>, QueryError> {
    let found = tree(db, span)?;
    let Some(root) = found.first() else {
        return Ok(None);
    };
    let ids: Vec<String> = found.iter().map(|row| sql_string(&row.span_id)).collect();
    let scope = Scope {
        calls: Some(format!(
            "rid IN (SELECT rid FROM span_calls WHERE trace_id = {} AND span_id IN ({}))",
            sql_string(&root.trace_id),
            ids.join(", ")
        )),
        from_ns: Some(root.ts_ns),
        until_ns: Some(root.ts_ns.saturating_add(root.dur_ns)),
        of_span: true,
        ..Scope::default()
    };
    let node = node(&found);
    let mut story = why(db, meta, &scope, findings)?;
    story.sentences.insert(0, sentence(&node));
    list(&node, 0, &mut story.steps);
    Ok(Some(story))
}

/// The request and those below it, the request first.
fn tree(db: &Db, span: &str) -> Result<Vec<Row>, QueryError> {
    let found = rows(
        db,
        &format!(
            "WITH RECURSIVE root AS (
                 SELECT trace_id, span_id FROM spans WHERE dur_ns IS NOT NULL AND (span_id = {span} OR name = {span})
                 ORDER BY span_id = {span} DESC, kind = 'client', dur_ns DESC, span_id LIMIT 1),
             trace AS (SELECT trace_id, span_id, parent_span_id FROM spans SEMI JOIN root USING (trace_id)),
             tree AS (
                 SELECT trace_id, span_id, 0 AS depth FROM root
                 UNION
                 SELECT trace.trace_id, trace.span_id, depth + 1 FROM trace
                 JOIN tree ON trace.parent_span_id = tree.span_id WHERE depth < {MAX_DEPTH})
             SELECT span_id, trace_id, coalesce(parent_span_id, '') AS parent, ts_ns, dur_ns, pid::BIGINT AS pid,
                 coalesce(service, '') AS service, coalesce(name, '') AS name,
                 coalesce(kind = 'server', false)::INTEGER AS server
             FROM (SELECT trace_id, span_id, min(depth) AS depth FROM tree GROUP BY ALL)
             JOIN spans USING (trace_id, span_id) WHERE dur_ns IS NOT NULL
             ORDER BY depth, ts_ns, span_id LIMIT {MAX_SPANS}",
            span = sql_string(span)
        ),
        |row| {
            read_row!(row => Row { span_id trace_id parent ts_ns dur_ns pid service name server })
        },
    )?;
    Ok(found)
}

/// The steps of a request and those below it.
fn node(found: &[Row]) -> Node {
    let mut below: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in found.iter().skip(1) {
        below.entry(&row.parent).or_default().push(row);
    }
    let mut seen = HashSet::new();
    match found.first() {
        Some(root) => of(root, &below, &mut seen),
        None => Node {
            step: Step::default(),
            longest_ns: 0,
            below: Vec::new(),
        },
    }
}

fn of<'a>(row: &'a Row, below: &HashMap<&str, Vec<&'a Row>>, seen: &mut HashSet<&'a str>) -> Node {
    seen.insert(&row.span_id);
    let children = |row: &Row| {
        below
            .get(row.span_id.as_str())
            .map_or(&[][..], Vec::as_slice)
    };
    // The server at the other end of the connection answers the request of a client: one step.
    let (mut who, mut inner) = (row, children(row));
    if let ([server], 0) = (inner, row.server)
        && server.server != 0
        && seen.insert(&server.span_id)
    {
        (who, inner) = (server, children(server));
    }
    let mut nodes: Vec<Node> = Vec::new();
    for child in inner {
        if seen.contains(child.span_id.as_str()) {
            continue;
        }
        fold(&mut nodes, of(child, below, seen));
    }
    let inside = nodes.iter().map(|node| node.step.total_ns);
    let inside = inside.fold(0i64, i64::saturating_add);
    Node {
        step: Step {
            depth: 0,
            span_id: row.span_id.clone(),
            service: who.service.clone(),
            pid: who.pid,
            name: row.name.clone(),
            requests: 1,
            total_ns: row.dur_ns,
            own_ns: row.dur_ns.saturating_sub(inside).max(0),
        },
        longest_ns: row.dur_ns,
        below: nodes,
    }
}

/// Adds a step to its likes.
fn fold(nodes: &mut Vec<Node>, new: Node) {
    let alike =
        |node: &&mut Node| node.step.service == new.step.service && node.step.name == new.step.name;
    let Some(node) = nodes.iter_mut().find(alike) else {
        nodes.push(new);
        return;
    };
    let step = &mut node.step;
    step.requests += new.step.requests;
    step.total_ns = step.total_ns.saturating_add(new.step.total_ns);
    step.own_ns = step.own_ns.saturating_add(new.step.own_ns);
    if step.pid != new.step.pid {
        step.pid = None;
    }
    if new.longest_ns > node.longest_ns {
        node.longest_ns = new.longest_ns;
        step.span_id = new.step.span_id;
    }
    for below in new.below {
        fold(&mut node.below, below);
    }
}

fn list(node: &Node, depth: i64, steps: &mut Vec<Step>) {
    if steps.len() >= MAX_STEPS {
        return;
    }
    steps.push(Step {
        depth,
        ..node.step.clone()
    });
    for below in &node.below {
        list(below, depth + 1, steps);
    }
}

/// Where most of the time of a request was spent.
fn sentence(root: &Node) -> Sentence {
    let total_ns = root.step.total_ns.max(1) as f64;
    let mut sentence = Sentence::default();
    name(&root.step, &mut sentence);
    sentence.push(format!(" took {}", duration(root.step.total_ns)));
    let mut most = root;
    while let Some(below) = most.below.iter().max_by_key(|node| node.step.total_ns)
        && below.step.total_ns as f64 >= total_ns * MOST
    {
        most = below;
    }
    let step = &most.step;
    if std::ptr::eq(most, root) {
        if !root.below.is_empty() {
            sentence.push(format!(
                "; {} of it was spent outside of the requests that it caused",
                percent(step.own_ns as f64 / total_ns)
            ));
        }
    } else {
        let share = (step.total_ns as f64 / total_ns).min(1.0);
        sentence.push(format!("; {} of it was ", percent(share)));
        name(step, &mut sentence);
        let own = step.own_ns as f64 / step.total_ns.max(1) as f64;
        if !most.below.is_empty() && own >= OWN {
            sentence.push(format!(
                ", {} of that outside of the requests that it caused",
                percent(own)
            ));
        }
    }
    sentence.push(".");
    sentence
}

fn name(step: &Step, sentence: &mut Sentence) {
    let several = match step.requests {
        1 => String::new(),
        n => format!("{} times ", count(n)),
    };
    sentence.push(format!("{several}{}", step.name));
    if step.service.is_empty() {
        return;
    }
    sentence.push(" by ");
    match step.pid {
        Some(pid) => sentence.link(
            format!("{} (PID {pid})", step.service),
            Link::Process { pid },
        ),
        None => sentence.push(&step.service),
    };
}
