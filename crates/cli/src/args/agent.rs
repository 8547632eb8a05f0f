//! Options of `agent`.

use std::path::PathBuf;

use clap::Args;

/// Options of `agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGHUP reads the configuration again; one that is wrong changes nothing. SIGUSR1 saves \
the latest details as a session, as fathom snapshot does. SIGTERM and Ctrl-C end the agent."
)]
pub struct AgentArgs {
    /// Configuration, in TOML: tables record, metrics, sessions, otlp
    #[arg(long, value_name = "FILE", default_value = "/etc/fathom/agent.toml")]
    pub config: PathBuf,
    /// Only check the configuration
    #[arg(long)]
    pub check: bool,
}
