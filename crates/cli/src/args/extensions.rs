//! Rules and views of the user.

use std::path::{Path, PathBuf};

use clap::Args;
use fathom_extensions::Extensions;
use fathom_model::escape;

use crate::exit::Failure;

/// Option of the commands that use them.
#[derive(Clone, Debug, Default, Args)]
pub struct ExtensionsOption {
    /// Directory with your own rules/*.sql, views/*.sql, and panels/*.sql; none: use none [default:
    /// ~/.config/fathom]
    #[arg(long, value_name = "DIR")]
    extensions: Option<PathBuf>,
}

impl ExtensionsOption {
    /// The directory as given.
    pub fn dir(&self) -> Option<&Path> {
        self.extensions.as_deref()
    }

    /// The same for a recording, which a wrong default directory does not stop.
    pub fn load_to_record(&self) -> Result<Extensions, Failure> {
        match (self.load(), &self.extensions) {
            (Err(failure), None) => {
                errln!("fathom: {}", escape::lines(&failure.to_string()));
                Ok(Extensions::default())
            }
            (loaded, _) => loaded,
        }
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
