//! The page and answers to its questions as one HTML file, which opens without a server.
//!
//! The build of the page makes the template: scripts and styles inline, a security policy that
//! allows these alone, and a mark where the answers go. The file answers a question of the page
//! from them (web/src/state/archive.ts); it holds no token and asks nothing of any server.

mod standard;

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};

use crate::access::{Caller, Role};
use crate::error::ApiError;
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
    let file = file(&routes, &request, &caller).await?;
    // No HTML of this origin: it is to be saved, not shown.
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, file).into_response())
}

/// The file with the answers to the questions of `request` that `caller` may ask.
pub(crate) async fn file(
    routes: &Router,
    request: &ShareRequest,
    caller: &Caller,
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
    let mut room = MOST_BYTES;
    for question in &request.questions {
        match ask(routes, question, caller, &mut room).await? {
            Some(answer) => archive.answers.push(answer),
            None => archive.missing += 1,
        }
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

/// Answers a question as the server does; `None` when it has no answer, or there is no room.
async fn ask(
    routes: &Router,
    question: &Question,
    caller: &Caller,
    room: &mut usize,
) -> Result<Option<Answer>, ApiError> {
    // A stream that goes on, and this itself, have no answer that can be kept. The name of
    // the client that saves the file is no reader's concern.
    let path = bare(&question.path);
    if path.ends_with("/live") || path == ADDRESS || path == "/access" {
        return Ok(None);
    }
    let (method, body) = match &question.body {
        // Of what is posted only SQL is a question; the others change something.
        Some(_) if !path.ends_with("/sql") => return Ok(None),
        Some(body) => (Method::POST, Body::from(body.clone())),
        None => (Method::GET, Body::empty()),
    };
    let asked = Request::builder().method(method).uri(&question.path);
    let asked = asked.extension(caller.clone());
    let asked = asked.body(body);
    let asked = asked.map_err(|e| ApiError::parameter("questions", e.to_string()))?;
    let Ok(answer) = TowerToHyperService::new(routes.clone()).call(asked).await;
    if !answer.status().is_success() {
        return Ok(None);
    }
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_string();
    let Ok(bytes) = to_bytes(answer.into_body(), *room).await else {
        return Ok(None);
    };
    *room -= bytes.len();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let packed = packed.map_err(|e| ApiError::internal(e.to_string()))?;
    Ok(Some(Answer {
        path: question.path.clone(),
        body: question.body.clone(),
        kind,
        data: STANDARD.encode(packed),
    }))
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
        let mut room = 100;
        let mut asked = |path: &str| {
            let question = question(path);
            let caller = Caller {
                role: Role::Look,
                name: None,
            };
            let answer = ask(&routes, &question, &caller, &mut room);
            runtime.block_on(answer).unwrap().is_some()
        };
        assert!(asked("/a"));
        for never in ["/live", "/live?x", "/live#x", "/access", "/access?x"] {
            assert!(!asked(never), "{never}");
        }
        assert!(!asked("/nothing"));
        assert!(!asked("/a"), "60 of 100 bytes are taken");
        assert_eq!(room, 40);
        assert_eq!(bare("/sessions/a/save?/sql"), "/sessions/a/save");
    }

    #[test]
    fn titles_are_text() {
        assert_eq!(escaped("a</title><b>&"), "a&lt;/title&gt;&lt;b&gt;&amp;");
    }
}
