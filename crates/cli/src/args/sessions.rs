//! Options of `sessions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_report::FleetKey;

use super::ExtensionsOption;
use super::tenants::{LabelFilter, label};

/// Options of `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Directory with sessions, or one session
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Only sessions with this label; repeat it for several, which must all match
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = label)]
    pub label: Vec<LabelFilter>,
    /// Sum the sessions up, by one or more: --by day,host. command: the recorded command, or the target in
    /// words; day: the day of the start, UTC; host; label:KEY: the value of a label; finding: the rule that found a
    /// problem; tenant: the pod, otherwise the unit of systemd, otherwise the cgroup; volume: of Kubernetes;
    /// device: block device. Of finding, tenant, volume, and device it takes one. It reads all sessions, and diagnoses
    /// those without kept findings that are not large
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = by)]
    pub by: Vec<String>,
    /// With --by: the groups with most time, of each day with --by day; 0: all
    #[arg(long, value_name = "N", default_value_t = 20, requires = "by")]
    pub top: usize,
    /// The user's own rules.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: SessionsFormat,
}

/// A property by which sessions are summed up.
fn by(text: &str) -> Result<String, String> {
    FleetKey::list(text).map(|_| text.to_owned())
}

/// Format of the list.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SessionsFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
}
