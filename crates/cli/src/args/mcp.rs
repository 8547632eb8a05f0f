//! Options of `mcp`.

use std::path::PathBuf;

use clap::Args;

use super::{ExtensionsOption, RedactOptions};

/// Options of `mcp`.
#[derive(Debug, Args)]
#[command(
    after_help = "Speaks the Model Context Protocol on standard input and output; a client starts it. Its \
tools read the sessions below DIR, and nothing else. They record nothing and write nothing."
)]
pub struct McpArgs {
    /// A directory of sessions, a session, or a set of sessions
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Redaction: what is served are copies, made at the start.
    #[command(flatten)]
    pub redact: RedactOptions,
}
