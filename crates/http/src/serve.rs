//! Connections: how many, how long, and what each may send.
//!
//! Any program that reaches the address can open connections, but only clients with the token may
//! keep them. So the server never waits for a connection to end: at the limit, the oldest
//! connection that has never sent the token makes room for the next.

use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Connections at once: a browser opens six, and a live page keeps one.
const CONNECTIONS: usize = 128;
/// How long a client may take to send the head of its first request.
const FIRST: Duration = Duration::from_secs(5);
/// Time limit for sending another request, or for idling between two.
const NEXT: Duration = Duration::from_secs(60);
const HEAD_BYTES: usize = 128 << 10;
/// After a failure to take a connection, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Known properties of a connection; each of its requests has them as an extension.
#[derive(Default)]
pub struct Client {
    /// The head of a request has come.
    asked: AtomicBool,
    /// It had the token.
    trusted: AtomicBool,
    /// Signals the end of the connection.
    end: Notify,
}

impl Client {
    /// It has sent the token, or none is needed.
    pub fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }
}

/// Connections in the order in which they came.
#[derive(Default)]
struct Clients(Mutex<Vec<Arc<Client>>>);

impl Clients {
    /// The connections, also after a panic: they are whole at every step.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes another one in, in the place of an old one if need be.
    fn add(&self) -> Arc<Client> {
        let client = Arc::new(Client::default());
        let mut all = self.lock();
        if all.len() >= CONNECTIONS {
            let trusted = |client: &Arc<Client>| client.trusted.load(Ordering::Relaxed);
            let victim = all.iter().position(|c| !trusted(c)).unwrap_or(0);
            // Its place is free at once; that its task ends may take a moment.
            all.remove(victim).end.notify_one();
        }
        all.push(client.clone());
        client
    }

    fn remove(&self, client: &Arc<Client>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, client));
    }
}

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, routes: Router) {
    serve_by(listener, routes, |stream| ready(Ok(stream))).await;
}

/// The same on streams that `open` makes of connections.
pub(crate) async fn serve_by<S, O>(
    listener: TcpListener,
    routes: Router,
    open: impl Fn(TcpStream) -> O,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    O: Future<Output = io::Result<S>> + Send + 'static,
{
    let clients = Arc::new(Clients::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (clients, routes) = (clients.clone(), routes.clone());
        let client = clients.add();
        // Answers are sent whole: waiting to fill packets only delays them.
        stream.set_nodelay(true).ok();
        let stream = open(stream);
        tokio::spawn(async move {
            attend(stream, routes, &client).await;
            clients.remove(&client);
        });
    }
}

/// Answers the requests of a connection until it ends, or is to end.
async fn attend<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: impl Future<Output = io::Result<S>>,
    routes: Router,
    client: &Arc<Client>,
) {
    let routes = TowerToHyperService::new(routes);
    let asking = client.clone();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        asking.asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(asking.clone());
        routes.call(request)
    });
    let connection = async {
        let Ok(stream) = stream.await else {
            return;
        };
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(NEXT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .await
            // A client that goes away is none of the server's troubles.
            .ok();
    };
    let late = async {
        tokio::time::sleep(FIRST).await;
        if client.asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = connection => {}
        () = client.end.notified() => {}
        () = late => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_without_the_token_makes_room() {
        let clients = Clients::default();
        let all: Vec<_> = (0..CONNECTIONS).map(|_| clients.add()).collect();
        all[0].trust();
        all[2].trust();
        let count = || clients.lock().len();
        let has = |client: &Arc<Client>| clients.lock().iter().any(|c| Arc::ptr_eq(c, client));
        clients.add();
        assert_eq!(count(), CONNECTIONS);
        assert!(has(&all[0]) && !has(&all[1]) && has(&all[2]));
        clients.add();
        assert!(has(&all[2]) && !has(&all[3]));
        clients.remove(&all[4]);
        clients.add();
        assert!(has(&all[5]));
        // Where all have it the oldest goes.
        clients.lock().iter().for_each(|c| c.trust());
        clients.add();
        assert!(!has(&all[0]) && has(&all[2]));
    }
}
