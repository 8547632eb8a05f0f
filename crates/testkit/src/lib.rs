//! Support code that tests of several crates share. Crates depend on it only for their tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod allocations;
mod random;
pub mod sample;
pub mod schema;
mod stored;
pub mod waits;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::meta::{Clock, Cost, Host, Options, SessionMeta, State, Totals};
use fathom_model::tables::SCHEMA_VERSION;

pub use allocations::{Counting, allocations};
pub use random::Random;
pub use workload::{Workload, files};

/// Metadata of a session that is being recorded; a test gives what it is about:
/// `SessionMeta { command, ..meta() }`.
pub fn meta() -> SessionMeta {
    SessionMeta {
        schema_version: SCHEMA_VERSION,
        fathom_version: "0.1.0".into(),
        id: "0123456789abcdef0123456789abcdef".into(),
        state: State::Recording,
        command: vec!["program".into()],
        target: String::new(),
        options: Options::default(),
        labels: Default::default(),
        host: Host::default(),
        clock: Clock::default(),
        hooks: Vec::new(),
        layers: Vec::new(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost::default(),
        content: None,
        spans: None,
        library_budget: None,
        source: None,
        perf_counters: Vec::new(),
        own_tables: Default::default(),
        history: Default::default(),
    }
}

/// Checks that file `path` of the sources is `made`; with FATHOM_BLESS set writes it before.
///
/// # Panics
/// When it is not.
pub fn expect_file(path: impl AsRef<Path>, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    if blesses() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, made).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == made,
        "{} is out of date: FATHOM_BLESS=1 ./do test writes it again\n{made}",
        path.display()
    );
}

/// How often a test repeats itself: `usual` times, or as often as `FATHOM_ROUNDS` says.
///
/// # Panics
/// When that is no number.
pub fn rounds(usual: u32) -> u32 {
    let wanted = std::env::var("FATHOM_ROUNDS").ok();
    wanted.map_or(usual, |rounds| rounds.parse().expect("FATHOM_ROUNDS"))
}

/// Whether generated files are to be written.
pub fn blesses() -> bool {
    std::env::var_os("FATHOM_BLESS").is_some()
}
