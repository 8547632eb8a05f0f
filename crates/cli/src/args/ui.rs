//! Options of `ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Options of `record` about the page.
#[derive(Debug, Args)]
pub struct RecordUiOptions {
    /// Show the recording in the browser while it goes on; the page stays when it has ended,
    /// until Ctrl-C
    #[arg(long)]
    pub ui: bool,
    /// With --ui: address to listen on [default: 127.0.0.1:7327, or any port there]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "ui")]
    pub listen: Option<SocketAddr>,
    /// With --ui: do not open the page in a browser
    #[arg(long, requires = "ui")]
    pub no_open: bool,
}

/// Options of `ui`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints one address, which ends with a secret token: who has it may see the sessions. \
Ctrl-C ends the server."
)]
pub struct UiArgs {
    /// A session, or a directory of sessions
    #[arg(default_value = ".", value_name = "DIR")]
    pub root: PathBuf,
    /// Address to listen on [default: 127.0.0.1:7327, or any port there when that is taken]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
    /// Directory with panels and queries (*.json, as the page saves them) to show in every session
    #[arg(long, value_name = "DIR")]
    pub panels: Option<PathBuf>,
    /// Open the page at this link ("?s=...&view=..."), as copied from its Share menu
    #[arg(long, value_name = "LINK")]
    pub at: Option<String>,
    /// Memory for queries, MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    pub memory: u64,
}
