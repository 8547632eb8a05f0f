//! Limits of a query.

use std::time::Duration;

use duckdb::Config;

/// Limits of a query.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Memory of the database, bytes. Nothing is spilled to disk.
    pub memory_bytes: u64,
    /// Threads; 0 for one a processor.
    pub threads: u32,
    /// Time of one query from its start to its last row; `None` for no limit.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 1 GiB, all processors, no time limit.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            threads: 0,
            time: None,
        }
    }
}

impl Limits {
    pub(crate) fn config(&self) -> duckdb::Result<Config> {
        let config = Config::default()
            .max_memory(&format!("{}KiB", self.memory_bytes >> 10))?
            .enable_autoload_extension(false)?
            .with("autoinstall_known_extensions", "false")?
            .with("allow_community_extensions", "false")?
            .with("allow_persistent_secrets", "false")?
            // Without a directory nothing is spilled to disk: the default is one in
            // the current directory.
            .with("temp_directory", "")?;
        match self.threads {
            0 => Ok(config),
            n => config.threads(i64::from(n)),
        }
    }
}
