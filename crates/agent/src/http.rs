//! `/metrics` and `/health` over HTTP.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fathom_http::{Client, Token, serve};
use tokio::runtime::Runtime;

use crate::metrics::metrics;
use crate::openmetrics;
use crate::status::Status;
use crate::sums::SharedSums;

/// The data that clients read.
pub struct Shown {
    /// The sums.
    pub sums: SharedSums,
    /// How the agent is doing.
    pub status: Arc<Mutex<Status>>,
    /// The token that a client of `/metrics` must send.
    pub token: Option<Token>,
    /// Where it listens.
    pub listen: SocketAddr,
}

/// A server at work; it ends when it is dropped.
pub struct Server {
    /// Its threads end with it.
    runtime: Runtime,
    address: SocketAddr,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// When the address cannot be had, or no thread.
    pub fn start(shown: Shown) -> io::Result<Self> {
        let listener = TcpListener::bind(shown.listen)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fathom-metrics")
            .enable_all()
            .build()?;
        let routes = Router::new()
            .route("/metrics", get(show_metrics))
            .route("/health", get(show_health))
            .with_state(Arc::new(shown));
        {
            let _entered = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            runtime.spawn(serve(listener, routes));
        }
        Ok(Self { runtime, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; its address is free afterwards.
    pub fn stop(self) {
        self.runtime
            .shutdown_timeout(std::time::Duration::from_secs(1));
    }
}

async fn show_metrics(State(shown): State<Arc<Shown>>, request: Request) -> Response {
    if !knows_host(shown.listen.ip(), request.headers()) {
        return (StatusCode::FORBIDDEN, "this host is not served\n").into_response();
    }
    if let Some(token) = &shown.token {
        let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
        match (given.next(), given.next()) {
            (Some(given), None) if token.is_in(given.as_bytes()) => {}
            _ => {
                let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
                return (
                    StatusCode::UNAUTHORIZED,
                    challenge,
                    "the token is missing or wrong\n",
                )
                    .into_response();
            }
        }
        if let Some(client) = request.extensions().get::<Arc<Client>>() {
            client.trust();
        }
    }
    let text = {
        let sums = shown.sums.lock();
        let status = shown.status.lock().unwrap_or_else(PoisonError::into_inner);
        openmetrics::text(&metrics(&sums, &status))
    };
    let kind = [(header::CONTENT_TYPE, openmetrics::CONTENT_TYPE)];
    (kind, text).into_response()
}

async fn show_health(State(shown): State<Arc<Shown>>) -> Response {
    let status = shown.status.lock().unwrap_or_else(PoisonError::into_inner);
    match status.is_healthy(Instant::now()) {
        true => (StatusCode::OK, "ok\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "no recording goes on\n").into_response(),
    }
}

/// A page of another site can make a browser on this host ask a server that only this host
/// reaches, by a name of its own that leads here: only addresses and localhost are known then.
fn knows_host(listen: IpAddr, headers: &HeaderMap) -> bool {
    if !listen.is_loopback() {
        return true;
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(host) = host else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_not_served_on_loopback() {
        let with = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            headers
        };
        let local = IpAddr::from([127, 0, 0, 1]);
        for host in [
            "127.0.0.1:9464",
            "localhost:9464",
            "localhost",
            "[::1]:1",
            "[::1]",
        ] {
            assert!(knows_host(local, &with(host)), "{host}");
        }
        for host in ["evil.example:9464", "localhost.evil.example", "a:b"] {
            assert!(!knows_host(local, &with(host)), "{host}");
        }
        assert!(!knows_host(local, &HeaderMap::new()));
        assert!(knows_host(IpAddr::from([0, 0, 0, 0]), &with("node7:9464")));
    }
}
