//! `GET /sessions/ID/questions/NAME`: questions of the page that one statement answers.
//!
//! A question is a row of a table, in the file of its subject. Its statement runs as one that a user wrote does, in the
//! worker, so it has that one's limits.

mod blame;
mod library;
mod spans;
mod tenants;

use axum::extract::{Path, State};
use fathom_query::escape::sql_string;
use fathom_query::worker::{Form, Statement};
use serde::Deserialize;

use super::Shared;
use super::sql::SqlMeta;
use crate::columns::{ArrowAnswer, described};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};

/// Most threads that a question may name.
const MOST_THREADS: usize = 10_000;

/// A question and its statement.
pub(crate) struct Question {
    pub name: &'static str,
    /// The answer's rows.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the description of the interface")
    )]
    pub about: &'static str,
    /// Parameters besides the window, which the statement has as `$NAME`.
    pub takes: &'static [(&'static str, Kind)],
    /// Rows of an answer at most.
    rows: usize,
    /// The statement. `$from` and `$to` are the window, `$start` is the beginning of the recording.
    /// `$since` and `$until` are the window too, without an end that was not asked for: waits and
    /// requests to devices may reach beyond the calls.
    sql: fn() -> String,
}

/// The values of a parameter.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Null when it is missing.
    Text,
    Number,
    /// Separated by commas.
    Numbers,
    /// One of these words, the first when it is missing.
    Choice(&'static [&'static str]),
}

/// All questions.
pub(crate) fn all() -> impl Iterator<Item = &'static Question> {
    [
        spans::QUESTIONS,
        blame::QUESTIONS,
        library::QUESTIONS,
        tenants::QUESTIONS,
    ]
    .into_iter()
    .flatten()
}

/// The parameters of questions.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct QuestionParams {
    /// For which spans a call counts: `all` that contain it, or its `own`, which is the innermost one.
    pub counting: Option<String>,
    /// Service of spans; spans without one when it is missing.
    pub service: Option<String>,
    /// Name of spans; spans without one when it is missing.
    pub name: Option<String>,
    /// Kind of spans.
    pub kind: Option<String>,
    /// Id of a trace.
    pub trace: Option<String>,
    /// Id of a span.
    pub span: Option<String>,
    /// Threads, separated by commas.
    pub tids: Option<String>,
    /// Number of a library call (`user_call`).
    pub call: Option<String>,
}

impl QuestionParams {
    fn get(&self, name: &str) -> Option<&str> {
        let value = match name {
            "counting" => &self.counting,
            "service" => &self.service,
            "name" => &self.name,
            "kind" => &self.kind,
            "trace" => &self.trace,
            "span" => &self.span,
            "tids" => &self.tids,
            "call" => &self.call,
            _ => &None,
        };
        value.as_deref()
    }
}

/// `GET /sessions/ID/questions/NAME`.
pub(crate) async fn question(
    State(app): State<Shared>,
    Path((id, name)): Path<(String, String)>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<QuestionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let Some(question) = all().find(|question| question.name == name) else {
        let next = "docs/reference/openapi.json lists the questions";
        return Err(ApiError::not_found("this question", next));
    };
    let selection = selection.parse()?;
    let values = values(question, &params)?;
    let state = app.clone();
    let work = move |stop: &Stop| {
        let sql = statement(&state, &id, question, &selection, values)?;
        let statement = Statement {
            sql,
            form: Form::Page {
                max_rows: question.rows,
            },
            findings: None,
            refresh: false,
        };
        state.workers.query(&state.library, &id, statement, stop)
    };
    let (answer, outcome) = app.jobs.run(Lane::Slow, work).await?;
    described(&answer, &SqlMeta::of(&outcome))
}

type Values = Vec<(&'static str, String)>;

/// The parameters of a question as SQL has them.
fn values(question: &Question, params: &QuestionParams) -> Result<Values, ApiError> {
    let value = |&(name, kind): &(&'static str, Kind)| {
        let given = params.get(name);
        let wrong = |what: &str| ApiError::parameter(name, what);
        let number = |text: &str| {
            let number = text.parse::<i64>();
            number.map_err(|_| wrong("it is not a number"))
        };
        let sql = match kind {
            Kind::Text => given.map_or_else(|| "NULL".to_owned(), sql_string),
            Kind::Number => number(given.ok_or_else(|| wrong("it is missing"))?)?.to_string(),
            Kind::Numbers => {
                let given = given.ok_or_else(|| wrong("it is missing"))?;
                let all: Vec<String> = given
                    .split(',')
                    .map(|text| number(text).map(|number| number.to_string()))
                    .collect::<Result<_, _>>()?;
                if all.len() > MOST_THREADS {
                    return Err(wrong("there are too many numbers"));
                }
                all.join(", ")
            }
            Kind::Choice(words) => {
                let word = given.or(words.first().copied()).unwrap_or_default();
                if !words.contains(&word) {
                    return Err(wrong(&format!("it is not one of {}", words.join(", "))));
                }
                sql_string(word)
            }
        };
        Ok((name, sql))
    };
    question.takes.iter().map(value).collect()
}

/// The statement with its parameters.
fn statement(
    app: &Shared,
    id: &str,
    question: &Question,
    selection: &Selection,
    mut values: Values,
) -> Result<String, ApiError> {
    let view = app.library.view(id)?;
    let start = view.started_at_ns();
    let window = selection.window(start, view.span());
    values.push(("start", start.to_string()));
    values.push(("from", window.from.to_string()));
    values.push(("to", window.to.to_string()));
    let (since, until) = selection.ends(window);
    values.push(("since", since.unwrap_or(-i64::MAX).to_string()));
    values.push(("until", until.unwrap_or(i64::MAX).to_string()));
    Ok(filled(&(question.sql)(), &values))
}

/// A statement in which values are in the places of their names, each read once: a value may contain `$` itself.
fn filled(sql: &str, values: &[(&'static str, String)]) -> String {
    let mut parts = sql.split('$');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let value = values.iter().find(|(known, _)| *known == name);
        match value {
            Some((_, value)) => made.push_str(value),
            // DuckDB says that the statement has a parameter without a value.
            None => made.extend(["$", name]),
        }
        made.push_str(rest);
    }
    made
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_statement_uses_its_parameters_and_no_other() {
        for question in all() {
            let sql = (question.sql)();
            let used: BTreeSet<&str> = sql
                .split('$')
                .skip(1)
                .map(|part| {
                    let end = part.find(|c: char| !c.is_ascii_lowercase());
                    &part[..end.unwrap_or(part.len())]
                })
                .filter(|name| !["from", "to", "since", "until", "start"].contains(name))
                .collect();
            let taken: BTreeSet<&str> = question.takes.iter().map(|take| take.0).collect();
            assert_eq!(used, taken, "{}", question.name);
            let none = QuestionParams::default();
            for (name, _) in question.takes {
                assert_eq!(none.get(name), None, "{}", question.name);
            }
        }
    }

    #[test]
    fn texts_stay_texts() {
        let params = QuestionParams {
            name: Some("a' OR $kind --".into()),
            kind: Some("server".into()),
            ..QuestionParams::default()
        };
        let slowest = all().find(|q| q.name == "slowest-spans").unwrap();
        let values = values(slowest, &params).unwrap();
        let sql = filled("name = $name, $kind, $service, $counting;", &values);
        assert_eq!(sql, "name = 'a'' OR $kind --', 'server', NULL, 'all';");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |name: &str, params: QuestionParams| {
            let question = all().find(|q| q.name == name).unwrap();
            values(question, &params).unwrap_err().problem.subject
        };
        let given = |text: &str| Some(text.to_owned());
        let none = QuestionParams::default;
        assert_eq!(refused("library-call", none()), "call");
        let wrong = [
            (
                "library-call",
                QuestionParams {
                    call: given("1 OR 1"),
                    ..none()
                },
                "call",
            ),
            (
                "thread-spans",
                QuestionParams {
                    tids: given("1,,2"),
                    ..none()
                },
                "tids",
            ),
            (
                "spans",
                QuestionParams {
                    counting: given("some"),
                    ..none()
                },
                "counting",
            ),
        ];
        for (name, params, subject) in wrong {
            assert_eq!(refused(name, params), subject);
        }
    }
}
