//! Options of commands that reach other hosts.

use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "analysis")]
use super::Host;

/// How other hosts are reached.
#[derive(Clone, Debug, Args)]
pub struct SshOptions {
    /// The ssh command, read by sh: 'ssh -p 2222 -i key'
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
    )]
    pub ssh: String,
    /// How fathom is called on other hosts, read by the shell there: 'sudo -n fathom'
    #[arg(long, value_name = "COMMAND", default_value = "fathom")]
    pub remote_fathom: String,
}

/// `record` on several hosts.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(next_help_heading = "Several hosts")]
pub struct OnOptions {
    /// Record on these hosts over ssh, each with the same options and command, and join the sessions:
    /// -o names the set, FILE.fset, and the sessions are HOST.fathom in the directory FILE. 'local'
    /// is this machine
    #[arg(
        long = "on",
        value_name = "HOST,...",
        value_delimiter = ',',
        requires = "output",
        conflicts_with_all = ["ui", "raw", "with"]
    )]
    pub hosts: Vec<Host>,
    /// With --on: directory for the sessions on the hosts until they are copied
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub remote_dir: PathBuf,
    /// How hosts are reached.
    #[command(flatten)]
    pub ssh: SshOptions,
}

/// Options of `pull`.
#[derive(Debug, Args)]
#[command(
    after_help = "ssh and fathom of the same version must be on the host; nothing changes there. Files are compared with \
their checksums, and the copy gets its name when it is whole. Of a session that is being recorded, \
the copy has the rows that are stored, and is closed as a snapshot is; with --follow it is a \
recording in progress for ui, query and all other commands, until the recording ends.

  fathom pull db:/var/tmp/run.fathom -o db.fathom
  fathom pull root@db:run.fathom --follow"
)]
pub struct PullArgs {
    /// The session: a host as ssh knows it, and a directory there; or ssh://[USER@]HOST[:PORT]/DIR, where
    /// /~/ begins a directory in the user's home
    #[arg(value_name = "HOST:DIR")]
    pub session: String,
    /// Directory of the copy [default: the name of the session, here]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an existing session
    #[arg(long)]
    pub force: bool,
    /// Go on copying as long as the session is recorded
    #[arg(long)]
    pub follow: bool,
    /// Refuse a session that is larger
    #[arg(long, value_name = "BYTES", default_value = "64GiB", value_parser = fathom_model::units::parse_bytes)]
    pub max_bytes: u64,
    /// Print nothing but warnings
    #[arg(short, long)]
    pub quiet: bool,
    /// How the host is reached.
    #[command(flatten)]
    pub ssh: SshOptions,
}
