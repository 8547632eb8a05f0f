//! Options of `why`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::id::{Id, id};
use super::{ExtensionsOption, MemberOptions, TenantOptions};
use crate::help;

/// Options of `why`.
#[derive(Debug, Args)]
#[command(after_help = help::TIMES)]
pub struct WhyArgs {
    /// Directory of the session, or a set of sessions
    pub session: PathBuf,
    /// Explain this request alone; in a set: HOST:RID
    #[arg(long, value_name = "RID", value_parser = id, conflicts_with_all = ["file", "thread", "from", "until", "TenantOptions"])]
    pub request: Option<Id>,
    /// Explain a request of an application (table spans): the id of its span, or a name, such as
    /// 'GET /', for the longest of that name
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["request", "file", "thread", "from", "until", "TenantOptions"])]
    pub span: Option<String>,
    /// Explain requests on this file: its path, or the end of its path
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
    /// Explain requests of this thread; in a set: HOST:TID
    #[arg(long, value_name = "TID", value_parser = id)]
    pub thread: Option<Id>,
    /// Explain requests that had not ended at TIME
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Explain requests that began before TIME
    #[arg(long, visible_alias = "to", value_name = "TIME")]
    pub until: Option<String>,
    /// Sessions of a set.
    #[command(flatten)]
    pub members: MemberOptions,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    pub format: WhyFormat,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Tenants.
    #[command(flatten)]
    pub tenants: TenantOptions,
}

/// Form of an explanation.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WhyFormat {
    /// For a terminal: sentences
    Text,
    /// For programs: sentences, and the numbers that they are made of
    Json,
}
