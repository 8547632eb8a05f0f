//! Connections: how many, how long, and what each may send.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at once: a browser opens six, and a live page keeps one.
const CONNECTIONS: usize = 128;
/// How long a client may take to send the head of a request, or do nothing between two.
const HEAD: Duration = Duration::from_secs(60);
/// Bytes of it.
const HEAD_BYTES: usize = 128 << 10;
/// After a failure to take a connection, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, routes: Router) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Answers are sent whole: waiting to fill packets only delays them.
        stream.set_nodelay(true).ok();
        let service = TowerToHyperService::new(routes.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A client that goes away is none of the server's troubles.
            connection.await.ok();
            drop(permit);
        });
    }
}
