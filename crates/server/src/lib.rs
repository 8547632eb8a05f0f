//! The page's server: HTTP over sessions, on this machine.
//!
//! [`Server::start`] serves a session, or a directory of sessions: the page, which is built
//! into the program, and below `/api` what the page asks (docs/reference/openapi.json). Everything that
//! is asked needs a client that is known (module `access`) and that has the role of the address (table
//! `api::ADDRESSES`).
//!
//! Queries run in a queue in separate threads, each on a connection to the session's database that
//! is kept between requests, and stop when the requesting connection closes (module `job`).
//! Following a session in progress costs only the new parts (module `library`), as soon as inotify
//! reports them (module `changes`).

mod access;
mod api;
mod auth;
mod calls;
mod changes;
mod columns;
mod compress;
mod diagnoses;
mod error;
mod filter;
mod folder;
mod job;
mod library;
mod lock;
#[cfg(test)]
mod openapi;
mod page;
mod selection;
mod share;
mod stamp;
mod tables;
#[cfg(test)]
mod types;
mod view;
mod workers;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::post;
use fathom_extensions::Extensions;
use fathom_query::Limits;
use tokio::runtime::Runtime;

use crate::api::App;
use crate::auth::Auth;
use crate::job::AT_ONCE;
use crate::library::Library;
pub use fathom_http::{Tls, TlsError};

pub use crate::access::{Access, AccessError, Role};
pub use crate::api::{RecordingError, Recordings, rows_of};
pub use crate::folder::{Folder, id_of, is_session, link_in};
pub use crate::share::shared_page;

/// Port that is tried first when none was asked for, so that links to the page go on
/// working.
pub const PORT: u16 = 7327;
/// Longest time of one query.
const QUERY_TIME: Duration = Duration::from_secs(30);

/// The served sessions and the address.
#[derive(Clone)]
pub struct Options {
    /// A session, or a directory of sessions.
    pub root: PathBuf,
    /// Address to listen on; `None` for [`PORT`] on the loopback device, or any port there
    /// when that is taken.
    pub listen: Option<SocketAddr>,
    /// Certificate and key for clients to come by TLS; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Which clients may do what; `None` for a random token with role `query`.
    pub access: Option<Access>,
    /// Saves and stops recordings; `None` where there are none.
    pub recordings: Option<Arc<dyn Recordings>>,
    /// Whether other machines may come by plain HTTP.
    pub plain_http: bool,
    /// Memory of all databases together, bytes.
    pub memory_bytes: u64,
    /// Niceness of the server's threads; `None` keeps the niceness of the process.
    pub nice: Option<i32>,
    /// Directory with files of panels and queries that the page offers; `None` for none.
    pub panels: Option<PathBuf>,
    /// Rules and views of the user.
    pub extensions: Extensions,
}

/// Why the page is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Root {
        path: PathBuf,
        /// The answer of the operating system.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        address: SocketAddr,
        /// The answer of the operating system.
        source: io::Error,
    },
    /// Other machines could reach the address by plain HTTP.
    #[error(
        "other machines can reach {0}, and plain HTTP shows the sessions and the token to anyone who \
         sees the traffic; give a certificate (--tls-certificate and --tls-key), use the default \
         address and a tunnel (ssh -L), or accept it with --plain-http"
    )]
    Plain(SocketAddr),
    /// A session cannot be made a file.
    #[error("cannot make the page: {0}")]
    Share(String),
    /// The server's threads cannot be started, or there are no random numbers.
    #[error("cannot start the page's server: {0}")]
    Start(#[from] io::Error),
}

/// A server at work, on threads of its own.
pub struct Server {
    runtime: Runtime,
    address: SocketAddr,
    scheme: &'static str,
    token: Option<String>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// [`ServerError::Root`], [`ServerError::Plain`], [`ServerError::Listen`], [`ServerError::Start`].
    pub fn start(options: &Options) -> Result<Self, ServerError> {
        if let Some(address) = options.listen
            && !(address.ip().is_loopback() || options.tls.is_some() || options.plain_http)
        {
            return Err(ServerError::Plain(address));
        }
        let limits = Limits {
            memory_bytes: options.memory_bytes / AT_ONCE as u64,
            threads: 0,
            time: Some(QUERY_TIME),
        };
        let library = Library::new(&options.root, limits, options.extensions.clone());
        let library = library.map_err(|source| ServerError::Root {
            path: options.root.clone(),
            source,
        })?;
        let listener = listen(options.listen)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let access = options.access.clone();
        let access = access.map_or_else(Access::local, Ok)?;
        let token = access.token().map(str::to_owned);
        let guard = Auth {
            access,
            address,
            host_name: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            tls: options.tls.is_some(),
        };
        let tls = options.tls.clone();
        let nice = options.nice;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(AT_ONCE + 6)
            .thread_name("fathom-page")
            .enable_all()
            .on_thread_start(move || {
                if let Some(nice) = nice {
                    // Of this thread alone. Without the right to it stays as it is.
                    rustix::process::setpriority_process(None, nice).ok();
                }
            })
            .build()?;
        let routes = routes(
            App::new(library, options.panels.clone(), options.recordings.clone()),
            Arc::new(guard),
        );
        {
            let _entered = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            runtime.spawn(fathom_http::serve_tls(listener, routes, tls));
        }
        Ok(Self {
            runtime,
            address,
            scheme: if options.tls.is_some() {
                "https"
            } else {
                "http"
            },
            token,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The page's address, with the token of this start in its fragment, which browsers do not send.
    /// Tokens of an access file are not shown.
    pub fn url(&self) -> String {
        self.url_at("")
    }

    /// The same with the state that the page opens with: `?s=...&view=...`.
    pub fn url_at(&self, state: &str) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.is_ipv4() {
                true => [127, 0, 0, 1].into(),
                false => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let token = self.token.as_ref().map(|token| format!("#token={token}"));
        let token = token.unwrap_or_default();
        format!("{}://{address}/{state}{token}", self.scheme)
    }

    /// Whether the address has the token, so that a browser needs nothing else.
    pub fn is_open_to_its_user(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the page is built into this program.
    pub fn has_page() -> bool {
        page::is_built_in()
    }

    /// Waits until the process is asked to end: Ctrl-C, or SIGTERM.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub fn wait_for_signal(&self) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        self.runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(())
        })
    }

    /// Ends connections and queries.
    pub fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(2));
    }
}

fn listen(asked: Option<SocketAddr>) -> Result<TcpListener, ServerError> {
    let bind = |address: SocketAddr| {
        TcpListener::bind(address).map_err(|source| ServerError::Listen { address, source })
    };
    match asked {
        Some(address) => bind(address),
        None => bind(([127, 0, 0, 1], PORT).into()).or_else(|_| bind(([127, 0, 0, 1], 0).into())),
    }
}

fn routes(app: App, guard: Arc<Auth>) -> Router {
    let answers = api::routes(Arc::new(app));
    let share = Router::new()
        .route(share::ADDRESS, post(share::share))
        .route_layer(from_fn_with_state(share::ROLE, auth::require))
        .with_state(answers.clone());
    // A shared file holds what is compressed already.
    let api = answers
        .layer(from_fn(compress::answers))
        .merge(share)
        .layer(from_fn_with_state(guard.clone(), auth::identify));
    Router::new()
        .nest("/api", api)
        .fallback(page::serve)
        .layer(from_fn_with_state(guard, auth::check))
}
