//! Options of redaction.

use std::path::PathBuf;

use clap::Args;

use super::ShareOption;

/// Options of `redact`.
#[derive(Debug, Args)]
#[command(
    after_help = "Counts, bytes, times, and the names of calls stay. By default paths, names, \
command lines, texts
of arguments, names of operations, and addresses are replaced by hashes, equal texts by equal ones;
passwords and keys in command lines, content, and attributes of spans go.

The page \"Share a session\" of the documentation describes the rules. Check the copy before you give it away:
  fathom query COPY 'SELECT DISTINCT path FROM file_paths'
  fathom query COPY 'SELECT DISTINCT cmdline FROM processes'"
)]
pub struct RedactArgs {
    /// Directory of the session, which stays as it is
    pub session: PathBuf,
    /// Directory of the copy
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// File of rules (JSON): per kind of text drop, hash, or keep
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// File with the key of hashes, at least 16 bytes: copies with the same key have the same hashes
    /// [default: a random key]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Replace an existing session
    #[arg(long)]
    pub force: bool,
    /// Read access to the copy.
    #[command(flatten)]
    pub share: ShareOption,
}

/// Redaction of what a command writes.
#[cfg(any(feature = "analysis", feature = "ship"))]
#[derive(Debug, Args)]
pub struct RedactOptions {
    /// Write what a redacted copy of the session would give; see fathom redact
    #[arg(long)]
    pub redact: bool,
    /// With --redact: file of rules
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub rules: Option<PathBuf>,
    /// With --redact: file with the key of hashes
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub key: Option<PathBuf>,
}
