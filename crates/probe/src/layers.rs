//! Which layers are recorded.

/// Layers besides the system calls, which are always recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// Page faults on mapped files, and their write-back.
    pub pagecache: bool,
}

/// A word that names no layer.
#[derive(Debug, thiserror::Error)]
#[error("no layer is called {0:?}: use syscall, pagecache or all")]
pub struct LayersError(String);

impl Layers {
    /// Every layer.
    pub const ALL: Layers = Layers { pagecache: true };

    /// The layers that `words` name, each a list separated by commas.
    ///
    /// # Errors
    /// When a word names no layer.
    pub fn parse(words: &[String]) -> Result<Self, LayersError> {
        let mut layers = Layers { pagecache: false };
        for word in words.iter().flat_map(|words| words.split(',')) {
            match word.trim() {
                "syscall" => {}
                "pagecache" => layers.pagecache = true,
                "all" => layers = Layers::ALL,
                other => return Err(LayersError(other.to_string())),
            }
        }
        Ok(layers)
    }

    /// Names of the layers, separated by commas: what [`Layers::parse`] takes.
    pub fn names(&self) -> &'static str {
        if self.pagecache {
            "syscall,pagecache"
        } else {
            "syscall"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let parse = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|w| w.to_string()).collect();
            Layers::parse(&words)
        };
        assert!(!parse(&["syscall"]).unwrap().pagecache);
        assert!(parse(&["syscall,pagecache"]).unwrap().pagecache);
        assert!(parse(&["syscall", " pagecache "]).unwrap().pagecache);
        assert_eq!(parse(&["all"]).unwrap(), Layers::ALL);
        assert_eq!(parse(&[Layers::ALL.names()]).unwrap(), Layers::ALL);
        let error = parse(&["syscall,block"]).unwrap_err().to_string();
        assert!(error.contains("block"), "{error}");
    }
}
