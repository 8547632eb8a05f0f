//! Options of `ship`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{RedactOptions, time};

/// Options of `ship`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each table has a directory, with partitions as Hive has them:
  DESTINATION/syscalls/date=2026-01-31/host=db1/session=ID/part-00000000.HASH.parquet

Credentials and the endpoint come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP (true for an endpoint without TLS), the roles of EC2,
ECS, and EKS; GOOGLE_SERVICE_ACCOUNT (a file); AZURE_STORAGE_ACCOUNT_NAME,
AZURE_STORAGE_ACCOUNT_KEY.

The page \"Ship sessions to an object store\" of the documentation has queries for DuckDB, ClickHouse,
Spark, and Trino."
)]
pub struct ShipArgs {
    /// Directories of the sessions
    #[arg(required = true, value_name = "SESSION")]
    pub sessions: Vec<PathBuf>,
    /// s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, file:///DIR, or a directory
    #[arg(long, value_name = "DESTINATION")]
    pub to: String,
    /// Ship command lines with the passwords, tokens, and keys in them, which are left out otherwise
    #[arg(long, conflicts_with = "redact")]
    pub keep_secrets: bool,
    /// Ship without table findings, for which the rules read each session once
    #[arg(long)]
    pub no_findings: bool,
    /// Replace a session that was shipped in another state
    #[arg(long)]
    pub force: bool,
    /// Repeat a request that fails for TIME
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    pub retry_for: Duration,
    /// Print errors only
    #[arg(short, long)]
    pub quiet: bool,
    /// Redaction.
    #[command(flatten)]
    pub redact: RedactOptions,
}
