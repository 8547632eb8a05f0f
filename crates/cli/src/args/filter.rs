//! Filters.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use fathom_recorder::FilterArgs;

use super::time;
use crate::help;

/// Filters of `record` and `top`. All filters work in the kernel: an event that they exclude makes
/// no record.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Filters (repeat an option to match any of its values; different options \
must all match; !VALUE excludes)"
)]
pub struct FilterOptions {
    /// Process PID with all its threads; 12,13: both; !PID: exclude it
    #[arg(short, long, value_name = "PID")]
    pub pid: Vec<String>,
    /// Thread TID, of any process unless a command or --pid is given
    #[arg(short, long, value_name = "TID")]
    pub tid: Vec<String>,
    /// Threads named NAME: 'redis-server', 'kworker*', '!bash'; of any process unless a command or
    /// --pid is given, including threads that start later
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<OsString>,
    /// Tasks whose real user is NAME or ID: 'postgres', '0', '!root' (to choose the user that runs
    /// CMD, see --user)
    #[arg(long, value_name = "NAME|ID")]
    pub uid: Vec<String>,
    /// Tasks in a cgroup (v2) or below it: '/system.slice/nginx.service'
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Tasks in a container: its name, its ID, or the beginning of its ID; 'ab12*' also matches
    /// containers that start later
    #[arg(long, value_name = "NAME|ID")]
    pub container: Vec<String>,
    /// Tasks of a unit of systemd or below it, system or user: 'nginx.service', 'nginx',
    /// 'user@1000.service'; also of units that start later
    #[arg(long, value_name = "NAME")]
    pub unit: Vec<String>,
    /// Tasks of a pod of Kubernetes on this node: 'shop/web-7f9c', 'web-*'; also of pods and containers
    /// that start later
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub pod: Vec<String>,
    /// Tasks of all pods in a namespace of Kubernetes: 'shop', 'team-*'; also of pods that start later
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,
    /// Calls on a file, or on anything below a directory: '/var/lib/mysql', '!/proc'; it need not
    /// exist yet; patterns are not supported: write '\*' for a literal '*'
    #[arg(long, value_name = "PATH")]
    pub path: Vec<OsString>,
    /// Calls on files of a type.
    #[arg(long, value_name = "TYPE", help = help::file_types())]
    pub file_type: Vec<String>,
    /// Only calls that fail
    #[arg(long)]
    pub errors_only: bool,
    /// Only calls that take at least TIME: 250us, 10ms, 1.5s
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub min_duration: Option<Duration>,
}

impl FilterOptions {
    /// The filters as given.
    pub fn filters(&self) -> FilterArgs {
        FilterArgs {
            path: self.path.clone(),
            comm: self.comm.clone(),
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            uid: self.uid.clone(),
            cgroup: self.cgroup.clone(),
            container: self.container.clone(),
            unit: self.unit.clone(),
            pod: self.pod.clone(),
            namespace: self.namespace.clone(),
            file_type: self.file_type.clone(),
            errors_only: self.errors_only,
            min_duration: self.min_duration,
        }
    }
}
