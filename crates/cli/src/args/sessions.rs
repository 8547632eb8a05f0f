//! Options of `sessions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_report::FleetKey;

use super::ExtensionsOption;

/// Options of `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Directory with sessions, or one session
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Sum the sessions up, by one or more: --by day,host. Of finding, tenant, volume, and device it
    /// takes one. It reads all sessions, and diagnoses those without kept findings that are not large
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub by: Vec<SessionsBy>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SessionsBy {
    /// Recorded command, or the target in words
    Command,
    /// Day on which the recording started, UTC
    Day,
    /// Host
    Host,
    /// Rule that found a problem
    Finding,
    /// Pod, otherwise unit of systemd, otherwise cgroup
    Tenant,
    /// Volume of Kubernetes
    Volume,
    /// Block device
    Device,
}

impl SessionsBy {
    /// The property in the library.
    pub fn key(self) -> FleetKey {
        match self {
            Self::Command => FleetKey::Command,
            Self::Day => FleetKey::Day,
            Self::Host => FleetKey::Host,
            Self::Finding => FleetKey::Finding,
            Self::Tenant => FleetKey::Tenant,
            Self::Volume => FleetKey::Volume,
            Self::Device => FleetKey::Device,
        }
    }
}

/// Format of the list.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SessionsFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
}
