//! The page: built into the program, compressed in advance.

use std::io::Read;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

struct PageFile {
    /// Its path in the page's folder.
    path: &'static str,
    /// Compressed.
    gzip: &'static [u8],
    /// Its size.
    bytes: usize,
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Shown when the page was not built in.
const MISSING: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>fathom</title>
<h1>The page is not built into this fathom</h1>
<p>The server works, but this program was compiled without the page. Build both with
<code>./do build</code>, or by hand: <code>npm ci &amp;&amp; npm run build</code> in folder
<code>web</code>, then <code>cargo build --release</code>.</p>
<p>Everything that the page shows can be had on the command line, too:
<code>fathom report</code>, <code>fathom diagnose</code>, <code>fathom query</code>.</p>
</html>
";

/// Whether the page is built in.
pub(crate) fn is_built_in() -> bool {
    !FILES.is_empty()
}

/// The scripts inside of the page, as the policy names them: ` 'sha256-...'` each.
pub(crate) fn scripts() -> &'static str {
    SCRIPTS
}

/// A file of the page as text.
pub(crate) fn text(path: &str) -> Option<String> {
    let file = FILES.iter().find(|file| file.path == path)?;
    let mut text = String::with_capacity(file.bytes);
    GzDecoder::new(file.gzip).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Any address that is not the API's: a file of the page, or the page itself, which finds
/// its views in the address's fragment.
pub(crate) async fn serve(request: Request) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = request.uri().path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    if !is_built_in() && path == "index.html" {
        let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        return (html, MISSING).into_response();
    }
    match FILES.iter().find(|file| file.path == path) {
        Some(file) => send(file, request.headers()),
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    }
}

fn send(file: &PageFile, asked: &HeaderMap) -> Response {
    // Names under assets/ hold a hash of what is in them.
    let caching = match file.path.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let headers = [
        (header::CONTENT_TYPE, kind(file.path)),
        (header::CACHE_CONTROL, caching),
        (header::VARY, "accept-encoding"),
    ];
    if takes_gzip(asked) {
        let packed = [(header::CONTENT_ENCODING, "gzip")];
        return (headers, packed, file.gzip).into_response();
    }
    let mut plain = Vec::with_capacity(file.bytes);
    match GzDecoder::new(file.gzip).read_to_end(&mut plain) {
        Ok(_) => (headers, plain).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(crate) fn takes_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = all
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next() == Some("gzip");
        let refused = parts.any(|p| p.replace(' ', "").trim_end_matches(['0', '.']) == "q=");
        is_gzip && !refused
    })
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "webmanifest") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let takes = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, text.parse().unwrap());
            takes_gzip(&headers)
        };
        assert!(takes("gzip"));
        assert!(takes("deflate, gzip;q=0.5"));
        assert!(!takes("gzip;q=0"));
        assert!(!takes("gzip; q=0.0"));
        assert!(!takes("br"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
