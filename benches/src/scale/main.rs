//! What a session of millions of calls costs to ask.
//!
//! ```text
//! fathom-scale generate RECORDED.fathom OUT.fathom 100000000
//! fathom-scale zoom OUT.fathom [--queries 300] [--plain] [--sqlite FILE]
//! fathom-scale sql OUT.fathom [--turns 3] [--only by_file]
//! fathom-scale cost RECORDED.fathom 10000000
//! ```
//!
//! `generate` repeats what was recorded, later and later, as other threads and other
//! files, through the writer that a recording uses. `zoom` asks for random
//! windows. `sql` compares views with hand-written SQL in DuckDB alone. `cost` tells what
//! the pyramid takes of the writer's CPU time.

mod cpu;
mod generate;
mod questions;
mod sql;
mod zoom;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures what sessions of millions of calls cost to ask")]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a large session of a recorded one
    Generate {
        recorded: PathBuf,
        output: PathBuf,
        rows: u64,
    },
    /// Time random windows
    Zoom {
        session: PathBuf,
        /// How many
        #[arg(long, default_value_t = 300)]
        queries: usize,
        /// Time plain DuckDB too
        #[arg(long)]
        plain: bool,
        /// Time SQLite too, with the rows and an index by time in this file
        #[arg(long)]
        sqlite: Option<PathBuf>,
    },
    /// Time views beside hand-written SQL
    Sql {
        session: PathBuf,
        /// Runs of each
        #[arg(long, default_value_t = 3)]
        turns: usize,
        /// Only the questions whose names contain this
        #[arg(long)]
        only: Option<String>,
    },
    /// What the pyramid costs while rows are written
    Cost { recorded: PathBuf, rows: u64 },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().action {
        Action::Generate {
            recorded,
            output,
            rows,
        } => generate::run(&recorded, &output, rows),
        Action::Zoom {
            session,
            queries,
            plain,
            sqlite,
        } => zoom::run(&session, queries, plain, sqlite.as_deref()),
        Action::Sql {
            session,
            turns,
            only,
        } => sql::run(&session, turns, only.as_deref()),
        Action::Cost { recorded, rows } => generate::cost(&recorded, rows),
    }
}
