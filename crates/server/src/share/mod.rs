//! The page and answers to its questions as one HTML file, which opens without a server.
//!
//! The build of the page makes the template: scripts and styles inline, a security policy that
//! allows these alone, and a mark where the answers go. The file answers a question of the page
//! from them (web/src/state/archive.ts); it holds no token and asks nothing of any server.

mod standard;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};

use crate::access::{Caller, Role};
use crate::error::ApiError;
use crate::job::AT_ONCE;
use crate::page;

pub use standard::shared_page;

/// Where the template has the answers.
const MARK: &str = "<!--fathom:answers-->";
/// The address below `/api`.
pub(crate) const ADDRESS: &str = "/share";
/// Each question needs the role of its own address, too.
pub(crate) const ROLE: Role = Role::Look;
/// Questions of a file at most.
const MOST_QUESTIONS: usize = 1000;
/// Bytes of all answers together at most, before they are compressed: about 10 MiB of file.
const MOST_BYTES: usize = 48 << 20;
/// Bytes of the list of questions at most.
const MOST_ASKED: usize = 4 << 20;
/// Tries of a question that has found others before it: each waits for its turn.
const TRIES: u32 = 4;

/// The requested contents of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct ShareRequest {
    /// Title of the file.
    pub title: String,
    /// The state of the page that it opens with, as in an address: `?s=...&view=...`.
    pub start: String,
    /// Views that it has tabs for.
    pub views: Vec<String>,
    /// Questions that it answers, the most important first.
    pub questions: Vec<Question>,
}

/// A question that the page asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[cfg_attr(test, ts(optional_fields))]
pub(crate) struct Question {
    /// Below `/api`.
    pub path: String,
    /// The sent body; `None` for a request without one.
    pub body: Option<String>,
}

/// The contents of the file, as the page reads them.
#[derive(Debug, Serialize)]
struct Archive<'a> {
    start: &'a str,
    views: &'a [String],
    answers: Vec<Answer>,
    /// Questions that found no room, or no answer.
    missing: usize,
}

#[derive(Debug, Serialize)]
struct Answer {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    kind: String,
    /// Compressed (gzip), in base64.
    data: String,
}

impl Archive<'_> {
    /// Adds an answer, if there is room for its bytes, which are taken from it.
    fn add(&mut self, answer: Option<(Answer, usize)>, room: &AtomicUsize) {
        let left = |bytes| room.load(Ordering::Relaxed).checked_sub(bytes);
        match answer.and_then(|(answer, bytes)| Some((answer, left(bytes)?))) {
            Some((answer, left)) => {
                room.store(left, Ordering::Relaxed);
                self.answers.push(answer);
            }
            None => self.missing += 1,
        }
    }
}

/// `POST /share`.
pub(crate) async fn share(
    State(routes): State<Router>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, ApiError> {
    let body = to_bytes(body, MOST_ASKED).await.map_err(|e| {
        let next = "ask for fewer questions";
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            e.to_string(),
            "the body",
            next,
        )
    })?;
    let request: ShareRequest = serde_json::from_slice(&body)
        .map_err(|e| ApiError::parameter("the body", format!("it is not as expected: {e}")))?;
    let file = file(&routes, &request, &caller, AT_ONCE).await?;
    // No HTML of this origin: it is to be saved, not shown.
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, file).into_response())
}

/// The file with the answers to the questions of `request` that `caller` may ask; `at_once` of them are asked together.
pub(crate) async fn file(
    routes: &Router,
    request: &ShareRequest,
    caller: &Caller,
    at_once: usize,
) -> Result<String, ApiError> {
    let template = page::text("share.html").ok_or_else(|| {
        let next = "build the page (./do build), then fathom";
        ApiError::new(
            StatusCode::NOT_IMPLEMENTED,
            "the page is not built into this fathom",
            "share.html",
            next,
        )
    })?;
    if request.questions.len() > MOST_QUESTIONS {
        let what = format!("there are more than {MOST_QUESTIONS}");
        return Err(ApiError::parameter("questions", what));
    }
    let mut archive = Archive {
        start: &request.start,
        views: &request.views,
        answers: Vec::new(),
        missing: 0,
    };
    let room = AtomicUsize::new(MOST_BYTES);
    let mut waiting = FuturesOrdered::new();
    // The first finds what is damaged, and the others leave it out.
    let mut most = 1;
    for question in &request.questions {
        if waiting.len() == most
            && let Some(answer) = waiting.next().await
        {
            archive.add(answer?, &room);
            most = at_once;
        }
        waiting.push_back(ask(routes, question, caller, &room));
    }
    while let Some(answer) = waiting.next().await {
        archive.add(answer?, &room);
    }
    let data = serde_json::to_string(&archive).map_err(|e| ApiError::internal(e.to_string()))?;
    // In JSON only strings can have these signs, which could end the element.
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e");
    let data = format!("<script type=\"application/json\" id=\"answers\">{data}</script>");
    let title = format!("<title>{}</title>", escaped(&request.title));
    Ok(template
        .replacen("<title>fathom</title>", &title, 1)
        .replacen(MARK, &data, 1))
}

/// Answers a question as the server does, with the number of bytes before they are compressed; `None` when it has no
/// answer, or there is no room.
async fn ask(
    routes: &Router,
    question: &Question,
    caller: &Caller,
    room: &AtomicUsize,
) -> Result<Option<(Answer, usize)>, ApiError> {
    // A stream that goes on, and this itself, have no answer that can be kept. The name of
    // the client that saves the file is no reader's concern.
    let path = bare(&question.path);
    if path.ends_with("/live") || path == ADDRESS || path == "/access" {
        return Ok(None);
    }
    // Of what is posted only SQL is a question; the others change something.
    if question.body.is_some() && !path.ends_with("/sql") {
        return Ok(None);
    }
    let mut tries = TRIES;
    let answer = loop {
        let answer = answered(routes, question, caller).await?;
        tries -= 1;
        if answer.status() != StatusCode::SERVICE_UNAVAILABLE || tries == 0 {
            break answer;
        }
    };
    if !answer.status().is_success() {
        return Ok(None);
    }
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_string();
    let Ok(bytes) = to_bytes(answer.into_body(), room.load(Ordering::Relaxed)).await else {
        return Ok(None);
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let packed = packed.map_err(|e| ApiError::internal(e.to_string()))?;
    let answer = Answer {
        path: question.path.clone(),
        body: question.body.clone(),
        kind,
        data: STANDARD.encode(packed),
    };
    Ok(Some((answer, bytes.len())))
}

async fn answered(
    routes: &Router,
    question: &Question,
    caller: &Caller,
) -> Result<Response, ApiError> {
    let (method, body) = match &question.body {
        Some(body) => (Method::POST, Body::from(body.clone())),
        None => (Method::GET, Body::empty()),
    };
    let asked = Request::builder().method(method).uri(&question.path);
    let asked = asked.extension(caller.clone());
    let asked = asked.body(body);
    let asked = asked.map_err(|e| ApiError::parameter("questions", e.to_string()))?;
    let Ok(answer) = TowerToHyperService::new(routes.clone()).call(asked).await;
    Ok(answer)
}

/// The path without a query and a fragment.
fn bare(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use axum::routing::get;

    use super::*;

    fn question(path: &str) -> Question {
        Question {
            path: path.into(),
            body: None,
        }
    }

    #[test]
    fn answers_are_kept_while_there_is_room() {
        let routes = Router::new()
            .route("/a", get(async || "x".repeat(60)))
            .route("/access", get(async || "never"))
            .route("/live", get(async || "never"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let room = AtomicUsize::new(100);
        let mut archive = Archive {
            start: "",
            views: &[],
            answers: Vec::new(),
            missing: 0,
        };
        let mut asked = |path: &str| {
            let question = question(path);
            let caller = Caller {
                role: Role::Look,
                name: None,
            };
            let answer = runtime.block_on(ask(&routes, &question, &caller, &room));
            let before = archive.missing;
            archive.add(answer.unwrap(), &room);
            archive.missing == before
        };
        assert!(asked("/a"));
        for never in ["/live", "/live?x", "/live#x", "/access", "/access?x"] {
            assert!(!asked(never), "{never}");
        }
        assert!(!asked("/nothing"));
        assert!(!asked("/a"), "60 of 100 bytes are taken");
        assert_eq!(room.load(Ordering::Relaxed), 40);
        assert_eq!(bare("/sessions/a/save?/sql"), "/sessions/a/save");
    }

    #[test]
    fn a_question_waits_for_others() {
        static BUSY: AtomicU32 = AtomicU32::new(2);
        let busy = async || match BUSY.fetch_sub(1, Ordering::Relaxed) {
            0 => StatusCode::OK,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let routes = Router::new().route("/a", get(busy));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let caller = Caller {
            role: Role::Look,
            name: None,
        };
        let room = AtomicUsize::new(100);
        let (question, other) = (question("/a"), question("/b"));
        let answer = runtime.block_on(ask(&routes, &question, &caller, &room));
        assert!(answer.unwrap().is_some());
        let answer = runtime.block_on(ask(&routes, &other, &caller, &room));
        assert!(answer.unwrap().is_none());
    }

    #[test]
    fn titles_are_text() {
        assert_eq!(escaped("a</title><b>&"), "a&lt;/title&gt;&lt;b&gt;&amp;");
    }
}
