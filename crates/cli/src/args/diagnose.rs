//! Options of `fathom diagnose`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ExtensionsOption, RedactOptions};

/// Format of a diagnosis.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DiagnosisFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
    /// For code hosts and editors: SARIF 2.1.0
    Sarif,
}

/// Options of `diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiagnosisFormat,
    /// Also list minor notes: patterns that cost less than a finding. JSON always contains them
    #[arg(long)]
    pub all: bool,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Redaction.
    #[command(flatten)]
    pub redact: RedactOptions,
}
