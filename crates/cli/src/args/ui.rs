//! Options of `ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::{ExtensionsOption, RedactOptions};

/// Options of `record` for the page.
#[derive(Debug, Args)]
pub struct RecordUiOptions {
    /// Show the recording live in the browser; the page stays available after the recording ends,
    /// until Ctrl-C
    #[arg(long)]
    pub ui: bool,
    /// With --ui: address to listen on [default: 127.0.0.1:7327, or any free port]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "ui")]
    pub listen: Option<SocketAddr>,
    /// With --listen: how other machines come.
    #[command(flatten)]
    pub transport: TransportOptions,
    /// With --ui: tokens with the roles look, query, or record, and the users of a reverse proxy, from
    /// this file (TOML), in place of the printed token with role query
    #[arg(long, value_name = "FILE", requires = "ui")]
    pub access: Option<PathBuf>,
    /// With --ui: do not open the page in a browser
    #[arg(long, requires = "ui")]
    pub no_open: bool,
}

/// How clients reach the page.
#[derive(Debug, Args)]
pub struct TransportOptions {
    /// With --listen: serve by TLS with the certificate in this file (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub tls_certificate: Option<PathBuf>,
    /// With --listen: the key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_certificate"])]
    pub tls_key: Option<PathBuf>,
    /// With --listen: let other machines come without encryption
    #[arg(long, requires = "listen", conflicts_with = "tls_certificate")]
    pub plain_http: bool,
}

/// Options of `ui`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints the address of the page. Without --access it ends with a secret token: anyone who \
has the address can see the sessions and send SQL (role query). With --access, each client needs a token of the file or has the role that the file gives to a user of the \
reverse proxy: see docs/explanation/page-security.md. Ctrl-C stops the server."
)]
pub struct UiArgs {
    /// A session, a directory of sessions, or a set of sessions
    #[arg(default_value = ".", value_name = "DIR")]
    pub root: PathBuf,
    /// Address to listen on [default: 127.0.0.1:7327, or any free port if that is taken]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// How other machines come.
    #[command(flatten)]
    pub transport: TransportOptions,
    /// Tokens with the roles look, query, or record, and the users of a reverse proxy, from this file
    /// (TOML), in place of the printed token with role query
    #[arg(long, value_name = "FILE")]
    pub access: Option<PathBuf>,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
    /// Directory with panels and queries (*.json, as the page saves them) to show in every session
    #[arg(long, value_name = "DIR")]
    pub panels: Option<PathBuf>,
    /// Open the page at this link ("?s=...&view=..."), as copied from its Share menu
    #[arg(long, value_name = "LINK")]
    pub at: Option<String>,
    /// Memory limit of queries, MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    pub memory: u64,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Redaction: what is served are copies, made at the start.
    #[command(flatten)]
    pub redact: RedactOptions,
}
