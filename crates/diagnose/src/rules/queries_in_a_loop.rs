//! `queries-in-a-loop`: one query, many times one after the other, for one request.

use std::collections::HashMap;

use crate::layers::Span;
use crate::prelude::*;
use crate::query_text::{self, Query};

/// Times within one request from which on a query is in a loop.
const IN_REQUEST: i64 = 10;
/// The same within a transaction of which no request is known: some need a few.
const IN_TRANSACTION: i64 = 20;
/// The same of a client's thread that asks one query after the other for no known request, with pauses of this many
/// nanoseconds at most, and part of the recorded time that the round trips then cost: it is what the program does.
const IN_SERIES: i64 = 100;
const PAUSE_NS: i64 = 10_000_000;
const OF_RECORDING: f64 = 0.1;
/// Part of the time of its requests from which on a loop matters, however little of the recording that is:
/// most of the time a server waits for requests.
const OF_REQUESTS: f64 = 0.1;
/// Different queries of one request that are followed.
const MAX_QUERIES: usize = 64;
/// Texts of queries and names that are kept, and their length in bytes.
const MAX_TEXTS: usize = 1 << 13;
const MAX_TEXT: usize = 512;
/// Characters of a query in a sentence.
const MAX_SHOWN: usize = 80;
/// Calls that send a query that are looked for.
const MAX_SENT: usize = 1024;

static INFO: RuleInfo = RuleInfo {
    id: "queries-in-a-loop",
    name: "The same query many times for one request (N+1)",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Spans],
    kinds: kinds![Read, Write, Send, Receive],
    about_calls: true,
    what: "For one request, an application sends the same query to a database many times, one after the \
           other, mostly with another key each time. Each is a round trip, and the request waits for all of \
           them. Object-relational mappers do this when a loop reads an attribute that is \
           loaded at its first use: one query for the list, and one for each of its N entries.",
    when: "The same query (its text without literals) is sent 10 times or more as children of one span, each \
           after the previous one has ended; or 20 times or more in one transaction of a thread (BEGIN to \
           COMMIT) whose requests have no parent; or 100 times or more by a thread of a client outside of transactions and \
           requests, with pauses of 10 ms at most, for 10 % or more of the recorded time. Queries that overlap (pipelines) do not count, nor \
           do statements that control transactions, cursors or sessions. A loop that costs 10 % of the time of \
           its requests is reported even if that is little of the recorded time.",
    cost: "the queries beyond the first one of each request, times their median duration",
    advice: "Ask once for all keys (WHERE id IN (...), a JOIN, MGET; for writes INSERT with several rows or \
             executemany). With an object-relational mapper, load the relation with the list: selectinload or \
             joinedload in SQLAlchemy, select_related or prefetch_related in Django, includes in Rails, JOIN \
             FETCH or @BatchSize in Hibernate, with() in Laravel. Where the queries must differ, send them in a \
             pipeline.",
    not_when: "Not when each query depends on the result of the one before it, or when the list is bounded \
               and short.",
    bad: "for order in session.scalars(select(Order)):\n    print(order.customer.name)    # a SELECT for each order",
    good: "for order in session.scalars(select(Order).options(selectinload(Order.customer))):\n    print(order.customer.name)    # one SELECT for all",
    reference: "The N+1 selects problem: M. Fowler, Patterns of Enterprise Application Architecture, 2002 (Lazy Load)",
};

/// A query within one request.
#[derive(Clone, Debug)]
struct Repeated {
    query: u64,
    count: i64,
    began_ns: i64,
    ended_ns: i64,
    durations: Durations,
    pid: i32,
    /// Number of its literals, where they are known, and whether they were always the same.
    literals: Option<u64>,
    same: bool,
}

/// The purpose of the queries of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Of {
    /// A request of this name.
    Request(u64),
    /// A transaction, or a request whose own span is not known.
    #[default]
    Unknown,
    /// No request: a client asks for one thing after the other.
    Series,
}

/// A request, a transaction, or a series of queries.
#[derive(Debug, Default)]
struct Request {
    service: u64,
    client: bool,
    began_ns: i64,
    ended_ns: i64,
    queries: Vec<Repeated>,
}

/// A query of one service, whatever the request.
#[derive(Debug, Default)]
struct Loop {
    requests: i64,
    queries: i64,
    most: i64,
    durations: Durations,
    /// How long the requests took.
    requests_ns: i64,
    pid: Option<i32>,
    several: bool,
    same: bool,
    /// Text and system of the query, names of the request and the service.
    query: u64,
    of: Of,
    service: u64,
    client: bool,
}

/// A finding's queries: service, what they are for, query, and whether a client's spans have them.
type Key = (u64, Of, u64, bool);

rule! {
    pub struct QueriesInALoop {
        /// By trace and parent, or by thread: transactions.
        open: Bounded<(u64, u64), Request> = Bounded::new(|request| {
            request.queries.iter().map(|query| query.count.unsigned_abs()).sum()
        }),
        loops: HashMap<Key, Loop>,
        texts: HashMap<u64, String>,
        /// By thread and time of return: the query whose sending it is.
        sent: HashMap<(i32, i64), u64>,
        examples: HashMap<u64, Examples>,
    }
}

impl QueriesInALoop {
    fn text(&mut self, text: &str) -> u64 {
        let key = key_of(text);
        if self.texts.len() < MAX_TEXTS {
            let text = || query_text::beginning(text, MAX_TEXT).to_owned();
            self.texts.entry(key).or_insert_with(text);
        }
        key
    }

    /// A request, a transaction, or a series is over.
    fn close(&mut self, request: &Request, of: Of, least: i64, took_ns: i64) {
        add(&mut self.loops, request, of, least, Some(took_ns));
    }

    fn query(&mut self, span: &Span, query: &Query) {
        let digest = self.text(&query.digest);
        let service = self.text(span.service);
        let client = span.kind != "server";
        let mut key = match (span.parent, span.tid) {
            (Some(parent), _) => (key_of(span.trace), key_of(parent)),
            (None, Some(tid)) => transaction(span.pid.unwrap_or(0), tid),
            (None, None) => return,
        };
        if span.parent.is_none() {
            if query.begins {
                *self.open.entry(key) = Request { service, client, began_ns: span.ts_ns, ..Request::default() };
                return;
            }
            if query.ends {
                if let Some(request) = self.open.remove(&key) {
                    let took_ns = span.ended_at_ns().saturating_sub(request.began_ns);
                    self.close(&request, Of::Unknown, IN_TRANSACTION, took_ns);
                }
                return;
            }
            // A query outside of transactions is one by itself, for a server.
            if self.open.get(&key).is_none() {
                if !client {
                    return;
                }
                key = series(key);
                if self.open.get(&key).is_some_and(|series| span.ts_ns.saturating_sub(series.ended_ns) > PAUSE_NS)
                    && let Some(series) = self.open.remove(&key)
                {
                    self.close(&series, Of::Series, IN_SERIES, series.ended_ns.saturating_sub(series.began_ns));
                }
            }
        }
        if query.controls || query.begins || query.ends {
            return;
        }
        let request = self.open.entry(key);
        (request.service, request.client) = (service, client);
        if request.began_ns == 0 {
            request.began_ns = span.ts_ns;
        }
        request.ended_ns = request.ended_ns.max(span.ended_at_ns());
        let room = request.queries.len() < MAX_QUERIES;
        let known = request.queries.iter_mut().find(|known| known.query == digest);
        match known {
            Some(known) if span.ts_ns >= known.ended_ns => {
                known.count += 1;
                known.ended_ns = span.ended_at_ns();
                known.durations.add(span.dur_ns);
                known.same &= known.literals == query.literals;
                if known.count == IN_REQUEST
                    && let (Some(tid), true) = (span.tid, self.sent.len() < MAX_SENT)
                {
                    self.sent.insert((tid, span.ts_ns), digest);
                }
            }
            // Both were under way at the same time: no round trip can be saved.
            Some(known) => known.ended_ns = known.ended_ns.max(span.ended_at_ns()),
            None if room => {
                let mut durations = Durations::default();
                durations.add(span.dur_ns);
                request.queries.push(Repeated {
                    query: digest,
                    count: 1,
                    began_ns: span.ts_ns,
                    ended_ns: span.ended_at_ns(),
                    durations,
                    pid: span.pid.unwrap_or(0),
                    literals: query.literals,
                    same: query.literals.is_some(),
                });
            }
            None => {}
        }
    }
}

/// The key of the transaction of a thread; requests have the numbers of texts.
fn transaction(pid: i32, tid: i32) -> (u64, u64) {
    (u64::from(pid.unsigned_abs()), u64::from(tid.unsigned_abs()))
}

fn is_transaction(key: (u64, u64)) -> bool {
    key.0 <= u64::from(u32::MAX) && key.1 <= u64::from(u32::MAX)
}

/// The key of the series of the thread whose transactions have this one.
fn series((pid, tid): (u64, u64)) -> (u64, u64) {
    (pid, tid | 1 << 32)
}

fn is_series((pid, tid): (u64, u64)) -> bool {
    pid <= u64::from(u32::MAX) && tid >> 32 == 1
}

/// Adds the loops of a request, which took so long; `None`: as long as its queries, as far as is known.
fn add(
    loops: &mut HashMap<Key, Loop>,
    request: &Request,
    what: Of,
    least: i64,
    took_ns: Option<i64>,
) {
    for query in request.queries.iter().filter(|query| query.count >= least) {
        let key = (request.service, what, query.query, request.client);
        if loops.len() >= MAX_TEXTS && !loops.contains_key(&key) {
            return;
        }
        let of = loops.entry(key).or_insert_with(|| Loop {
            same: true,
            query: query.query,
            of: what,
            service: request.service,
            client: request.client,
            ..Loop::default()
        });
        of.requests += 1;
        of.queries += query.count;
        of.most = of.most.max(query.count);
        of.durations.merge(&query.durations);
        let queries_ns = query.ended_ns.saturating_sub(query.began_ns);
        of.requests_ns = of.requests_ns.saturating_add(took_ns.unwrap_or(queries_ns));
        of.same &= query.same;
        of.several |= of.pid.is_some_and(|pid| pid != query.pid);
        of.pid = Some(query.pid);
    }
}

impl Rule for QueriesInALoop {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Span]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Span(span) = row else { return };
        if let Some(query) = query_text::of(span) {
            self.query(span, &query);
        }
        // The span of a request comes after the spans of its queries.
        if !span.id.is_empty()
            && let Some(request) = self.open.remove(&(key_of(span.trace), key_of(span.id)))
        {
            let name = self.text(span.name);
            self.close(&request, Of::Request(name), IN_REQUEST, span.dur_ns);
        }
    }

    fn call(&mut self, call: &Call, _: &Context) {
        if self.sent.is_empty() {
            return;
        }
        if let Some(query) = self.sent.remove(&(call.tid, call.ended_at_ns())) {
            self.examples.entry(query).or_default().add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut loops: HashMap<Key, Loop> = HashMap::new();
        // Requests whose own span is missing, or has not come.
        for (key, request) in self.open.iter() {
            let (of, least) = match *key {
                key if is_series(key) => (Of::Series, IN_SERIES),
                key if is_transaction(key) => (Of::Unknown, IN_TRANSACTION),
                _ => (Of::Unknown, IN_REQUEST),
            };
            add(&mut loops, request, of, least, None);
        }
        let all = || self.loops.iter().chain(&loops);
        // A client and a server that were both recorded show the same queries: the client waits.
        let by_client = |query: u64| all().any(|((.., of, client), _)| *client && *of == query);
        for (_, of) in all() {
            let spare = of.queries - of.requests;
            let cost = spare.saturating_mul(of.durations.median_ns());
            let of_requests = cost as f64 / of.requests_ns.max(1) as f64;
            let matters = match of.of {
                Of::Series => !run.is_faint() && run.matters_from(cost, OF_RECORDING),
                _ => run.matters(cost) || of_requests >= OF_REQUESTS,
            };
            if !matters || !of.client && by_client(of.query) {
                continue;
            }
            let text = |key: u64| self.texts.get(&key).map_or("", String::as_str);
            let (query, service) = (text(of.query), text(of.service));
            let each = of.queries / of.requests.max(1);
            let place = match of.of {
                Of::Series => String::new(),
                Of::Request(name) if !text(name).is_empty() => {
                    format!(" in {} of {}", counted(of.requests, "request", "requests"), text(name))
                }
                _ => format!(" in {}", counted(of.requests, "request or transaction", "requests or transactions")),
            };
            let how = match (of.same, each) {
                (true, _) => " with the same values each time",
                (false, _) => "",
            };
            let mut numbers = vec![
                number("queries", of.queries),
                number("spare_round_trips", spare),
                number("median_query_ns", of.durations.median_ns()),
                number("queries_ns", of.durations.sum_ns),
            ];
            if of.of != Of::Series {
                numbers.extend([
                    number("requests", of.requests),
                    number("most_in_one_request", of.most),
                    number("requests_ns", of.requests_ns),
                    evidence("share_of_requests", of_requests.min(1.0)),
                ]);
            }
            let no_request = "the queries are part of no request that was recorded: if the program answers requests of others, each \
                              may be for one of them (--spans http,...)";
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{service} {} one query {}{place}, one after the other{how}: {}",
                    if of.client { "sends" } else { "receives" },
                    times(of.queries),
                    query_text::shown(query, MAX_SHOWN),
                ),
                subject: match of.pid.filter(|_| !of.several) {
                    Some(pid) if pid > 0 => Subject::process(pid, service),
                    _ => Subject {
                        comm: (!service.is_empty()).then(|| service.to_owned()),
                        ..Subject::default()
                    },
                },
                evidence: numbers,
                examples: self.examples.get(&of.query).map_or_else(Vec::new, Examples::list),
                query: format!(
                    "SELECT ts_ns, dur_ns, pid, tid, name, trace_id, parent_span_id FROM spans \
                     WHERE service = {} AND {} ORDER BY ts_ns",
                    sql::quote(service),
                    query_text::condition(query),
                ),
                advice: of.same.then(|| {
                    "Keep the result of the query for the rest of the request: each of these queries has the \
                     same values."
                        .to_owned()
                }),
                caveats: if of.of == Of::Series { vec![no_request.to_owned()] } else { Vec::new() },
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, SpanOf, fires, silent};

    const CUSTOMER: &str = "SELECT * FROM customer WHERE id = ?";

    /// Requests of a web server, each of which asks a database.
    fn shop(requests: i64, queries: i64, gap_us: i64) -> Scenario {
        let mut s = Scenario::new();
        for request in 0..requests {
            let id = format!("{request:016x}");
            let began = s.now();
            for query in 0..queries {
                let began = s.now();
                s.wait_us(200);
                let of = format!("{request:08x}{:08x}", query + 1);
                s.span(&SpanOf { parent: Some(&id), id: &of, name: CUSTOMER, kind: "client", attributes: "{\"db.system.name\":\"postgresql\"}", ..SpanOf::since(began) });
                s.wait_us(gap_us);
            }
            s.stat("/data");
            s.span(&SpanOf { id: &id, name: "GET /orders", kind: "server", ..SpanOf::since(began) });
        }
        s
    }

    #[test]
    fn fires_on_a_query_for_each_entry() {
        let found = without_example(shop(5, 40, 50));
        assert!(found.title.contains("200 times in 5 requests of GET /orders"), "{}", found.title);
        let value = |name: &str| found.evidence.iter().find(|e| e.name == name).unwrap().value;
        assert_eq!((value("spare_round_trips"), value("queries_ns")), (195.0, 200.0 * 200_000.0));
        // The median is from a histogram.
        let cost = found.cost_ns.unwrap() as f64 / (5.0 * 39.0 * 200_000.0);
        assert!((0.8..1.2).contains(&cost), "{cost}");
    }

    /// The finding, whose spans no call sent.
    fn without_example(s: Scenario) -> crate::finding::Finding {
        let found: Vec<_> = s.findings().into_iter().filter(|f| f.rule == "queries-in-a-loop").collect();
        assert_eq!(found.len(), 1, "{found:#?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn silent_on_few_for_each_request() {
        silent("queries-in-a-loop", shop(40, 9, 50));
    }

    #[test]
    fn silent_when_they_are_under_way_together() {
        let mut s = Scenario::new();
        let began = s.now();
        s.wait_us(9000);
        for query in 0..40 {
            let of = format!("{query:016x}");
            s.span(&SpanOf { parent: Some("00000000000000aa"), id: &of, name: "GET", kind: "client", attributes: "{\"db.system.name\":\"redis\"}", ..SpanOf::since(began) });
        }
        s.stat("/data");
        silent("queries-in-a-loop", s);
    }

    fn transaction(of: usize, begins: bool) -> Scenario {
        let mut s = Scenario::new();
        let mut one = |n: usize, name: &str| {
            let began = s.now();
            s.wait_us(100);
            s.span(&SpanOf { id: &format!("{n:016x}"), name, kind: "server", attributes: "{\"db.system.name\":\"postgresql\"}", ..SpanOf::since(began) });
        };
        if begins {
            one(1000, "BEGIN");
        }
        for n in 0..of {
            one(n, CUSTOMER);
        }
        if begins {
            one(1001, "COMMIT");
        }
        s.stat("/data");
        s
    }

    #[test]
    fn fires_in_a_transaction() {
        let found = without_example(transaction(50, true));
        assert!(found.title.contains("receives one query 50 times"), "{}", found.title);
    }

    /// A script that asks a database for one thing after the other.
    fn script(queries: i64, pause_us: i64) -> Scenario {
        let mut s = Scenario::new();
        s.stat("/data");
        for n in 0..queries {
            let began = s.now();
            s.wait_us(100);
            s.span(&SpanOf { id: &format!("{n:016x}"), name: CUSTOMER, kind: "client", attributes: "{\"db.system.name\":\"mysql\"}", ..SpanOf::since(began) });
            s.wait_us(pause_us);
        }
        s.stat("/data");
        s
    }

    #[test]
    fn a_client_may_ask_for_no_request() {
        let found = without_example(script(2000, 20));
        assert!(found.title.contains(" one query 2,000 times, one after the other: "), "{}", found.title);
        silent("queries-in-a-loop", script(90, 20));
        // It does something else most of the time, or waits for the next one to come.
        silent("queries-in-a-loop", script(2000, 2000));
        silent("queries-in-a-loop", script(2000, 11_000));
    }

    #[test]
    fn each_query_is_a_finding_of_its_own() {
        let mut s = Scenario::new();
        s.stat("/data");
        for n in 0..400 {
            let began = s.now();
            s.wait_us(100);
            let name = ["SELECT name FROM author WHERE id = ?", "SELECT count(*) FROM comment WHERE post = ?"][n % 2];
            s.span(&SpanOf { id: &format!("{n:016x}"), name, kind: "client", attributes: "{\"db.system.name\":\"mysql\"}", ..SpanOf::since(began) });
        }
        s.stat("/data");
        s.worker_ends(1, "php page.php");
        let found = s.findings().into_iter().filter(|found| found.rule == "queries-in-a-loop");
        let titles: Vec<String> = found.map(|found| found.title).collect();
        assert_eq!(titles.len(), 2, "{titles:?}");
        assert!(titles.iter().all(|title| title.contains(" 200 times")), "{titles:?}");
    }

    #[test]
    fn silent_when_each_query_is_a_transaction() {
        silent("queries-in-a-loop", transaction(500, false));
        silent("queries-in-a-loop", transaction(19, true));
    }

    #[test]
    fn the_call_that_sent_a_query_is_an_example() {
        let mut s = Scenario::new();
        let fd = s.open("/run/socket", "O_RDWR");
        for query in 0..40 {
            s.write(fd, 100);
            let sent = s.returned();
            s.wait_us(100);
            let of = format!("{query:016x}");
            s.span(&SpanOf { parent: Some("00000000000000aa"), id: &of, name: CUSTOMER, kind: "client", attributes: "{\"db.system.name\":\"mysql\"}", ..SpanOf::since(sent) });
        }
        let found = fires("queries-in-a-loop", s);
        assert_eq!(&*found[0].examples[0].syscall, "write");
    }
}
