//! Compression of the API's answers, which links to other machines are slow for.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Body as _;

use crate::error::ApiError;
use crate::page::takes_gzip;

/// Bytes from which on an answer is compressed.
const LEAST: u64 = 2 << 10;

/// Compresses an answer whose size is known, if the client takes it. The lines of `live` have no
/// size and go out as they come.
pub(crate) async fn answers(request: Request, next: Next) -> Response {
    let takes = takes_gzip(request.headers());
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let packed = headers.contains_key(header::CONTENT_ENCODING);
    let size = answer.body().size_hint().exact();
    if !takes || packed || size.is_none_or(|size| size < LEAST) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal("the answer could not be read").into_response();
    };
    let work = tokio::task::spawn_blocking(move || pack(&bytes).map_err(|_| bytes));
    match work.await {
        Ok(Ok(packed)) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            let gzip = HeaderValue::from_static("gzip");
            parts.headers.insert(header::CONTENT_ENCODING, gzip);
            Response::from_parts(parts, Body::from(packed))
        }
        Ok(Err(bytes)) => Response::from_parts(parts, Body::from(bytes)),
        Err(_) => ApiError::internal("the answer could not be compressed").into_response(),
    }
}

/// Fast rather than small: on this machine the time counts, and columns become small anyway.
fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    packed.write_all(bytes)?;
    packed.finish()
}
