//! Options of `record` for nodes of Kubernetes.

use std::path::PathBuf;

use clap::Args;

/// How Kubernetes is asked.
#[derive(Debug, Args)]
pub struct KubernetesOptions {
    /// Ask the API of Kubernetes for the claims of persistent volumes, for view by_volume:
    /// https://HOST:PORT, or in-cluster in a pod
    #[arg(long, value_name = "URL")]
    pub kubernetes: Option<String>,
    /// With --kubernetes: file with a bearer token
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    pub kubernetes_token: Option<PathBuf>,
    /// With --kubernetes: certificates of the authorities that the server's is from (PEM) [default: the
    /// system's]
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    pub kubernetes_ca: Option<PathBuf>,
    /// With --kubernetes: the certificate of this client and its key in one file (PEM)
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    pub kubernetes_certificate: Option<PathBuf>,
}
