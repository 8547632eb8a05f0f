//! `GET /sessions/ID/live`: a line whenever rows have become visible.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fathom_session::Session;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};

use super::Shared;
use super::sessions::{Counted, totals};
use crate::error::{ApiError, ErrorAnswer};
use crate::job::{Lane, Stop};
use crate::library::Stamp;
use crate::view::Reader;

/// How often the session's folders are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Least time between two lines.
const PAUSE: Duration = Duration::from_millis(200);
/// A line comes at least so often, so that either end notices when the other is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// What a session holds now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
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
        let mut now = first;
        loop {
            let live = now.live;
            // Taken before, so that what comes meanwhile is seen the next time.
            let seen = Stamp::of(&dir);
            if lines.send(line(&now)).await.is_err() || !live {
                return;
            }
            tokio::time::sleep(PAUSE).await;
            let mut waited = Duration::ZERO;
            while Stamp::of(&dir) == seen && waited < SIGN_OF_LIFE {
                if lines.is_closed() {
                    return;
                }
                tokio::time::sleep(LOOK).await;
                waited += LOOK;
                // A recorder that was killed changes no file.
                if waited.as_millis().is_multiple_of(500) && !Session::is_recorded_now(&dir) {
                    break;
                }
            }
            match state(&app, &id).await {
                Ok(state) => now = state,
                Err(error) => {
                    let answer = ErrorAnswer {
                        error: error.problem,
                    };
                    lines.send(line(&answer)).await.ok();
                    return;
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

async fn state(app: &Shared, id: &str) -> Result<LiveState, ApiError> {
    let query = |reader: &Reader, _: &Stop| {
        let start = reader.start_ns();
        let last = reader.span().map_or(start, |span| span.1);
        Ok(LiveState {
            end: last.saturating_add(1).saturating_sub(start),
            live: reader.session.is_live(),
            totals: totals(&reader.session),
        })
    };
    app.jobs.query(id.to_string(), Lane::Quick, query).await
}

fn line(value: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    Bytes::from(text)
}
