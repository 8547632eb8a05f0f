//! Options of `completions` and `man-pages`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fathom completions bash > ~/.local/share/bash-completion/completions/fathom
  fathom completions zsh > ~/.zfunc/_fathom           (a directory in $fpath)
  fathom completions fish > ~/.config/fish/completions/fathom.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Options of `man-pages`.
#[derive(Debug, Args)]
pub struct ManPagesArgs {
    /// Directory for the pages: fathom.1, fathom-record.1, ...
    pub dir: PathBuf,
}
