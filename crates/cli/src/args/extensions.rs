//! Rules and views of the user.

use std::path::{Path, PathBuf};

use clap::Args;
use fathom_extensions::Extensions;

use crate::exit::Failure;

/// Option of the commands that use them.
#[derive(Clone, Debug, Default, Args)]
pub struct ExtensionsOption {
    /// Directory with your own rules/*.sql and views/*.sql; none: use none [default:
    /// ~/.config/fathom]
    #[arg(long, value_name = "DIR")]
    extensions: Option<PathBuf>,
}

impl ExtensionsOption {
    /// The directory as given.
    pub fn dir(&self) -> Option<&Path> {
        self.extensions.as_deref()
    }

    pub fn load(&self) -> Result<Extensions, Failure> {
        match &self.extensions {
            None => Extensions::load_default(),
            Some(dir) if dir == Path::new("none") => Ok(Extensions::default()),
            Some(dir) => Extensions::load(dir),
        }
        .map_err(Failure::input)
    }
}
