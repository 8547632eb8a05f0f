//! `GET /sessions/ID/live`: a line whenever rows have become visible.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fathom_model::tables::TABLES;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};

use super::Shared;
use super::sessions::{Counted, totals};
use crate::changes::Changes;
use crate::error::{ApiError, ErrorAnswer};

/// Least time between two lines.
const PAUSE: Duration = Duration::from_millis(100);
/// A line comes at least so often, so that either end notices when the other is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// How often it is looked whether the recorder is still there.
const ALIVE: Duration = Duration::from_millis(500);

/// The current totals of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct LiveState {
    /// Just behind the beginning of the last call, nanoseconds since the start: a window of
    /// everything reaches to here.
    pub end: i64,
    /// Whether it is still being recorded.
    pub live: bool,
    /// Counts of what can be seen.
    pub totals: Counted,
}

/// `GET /sessions/ID/live`.
pub(crate) async fn follow(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let first = state(&app, &id).await?;
    let dir = app.library.dir(&id)?;
    let (lines, body) = channel::<Bytes>(2);
    tokio::spawn(async move {
        let (mut now, mut rows) = first;
        // Watched before it is looked at, so that what comes meanwhile is seen.
        let mut changes = Changes::of(&dir);
        loop {
            if lines.send(line(&now)).await.is_err() || !now.live {
                return;
            }
            tokio::time::sleep(PAUSE).await;
            let told = Instant::now();
            while told.elapsed() < SIGN_OF_LIFE {
                match state(&app, &id).await {
                    // session.json is also rewritten for invisible changes.
                    Ok(state) if state == (now, rows) => {}
                    Ok(state) => {
                        (now, rows) = state;
                        break;
                    }
                    Err(error) => {
                        let answer = ErrorAnswer {
                            error: error.problem,
                        };
                        lines.send(line(&answer)).await.ok();
                        return;
                    }
                }
                tokio::select! {
                    () = lines.closed() => return,
                    () = changes.next() => {}
                    // A recorder that was killed changes no file.
                    () = tokio::time::sleep(ALIVE) => {}
                }
            }
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::new(Lines(body))).into_response())
}

/// A body that is sent as it comes.
struct Lines(Receiver<Bytes>);

impl hyper::body::Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(context);
        next.map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

/// The line to send, and the number of rows in all tables.
async fn state(app: &Shared, id: &str) -> Result<(LiveState, u64), ApiError> {
    let view = app.jobs.look(id.to_string()).await?;
    let start = view.started_at_ns();
    let last = view.span().map_or(start, |span| span.1);
    let state = LiveState {
        end: last.saturating_add(1).saturating_sub(start),
        live: view.session.is_live(),
        totals: totals(&view.session),
    };
    let rows = TABLES.iter().map(|t| view.session.rows(t.name)).sum();
    Ok((state, rows))
}

fn line(value: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    Bytes::from(text)
}
