//! Which layers are recorded.

use fathom_model::syscalls::Syscall;

use crate::selection::Selection;

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

    /// The layers that go with a choice of calls: page faults are what `mmap` is
    /// for, and who leaves that out does not ask for them.
    pub fn fitting(selection: &Selection) -> Self {
        let mmap = Syscall::index_of("mmap");
        Layers {
            pagecache: mmap.is_some_and(|mmap| selection.calls.contains(&mmap)),
        }
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_faults_go_with_mmap() {
        let of = |words: &[&str]| Layers::fitting(&Selection::parse(words).unwrap()).pagecache;
        assert!(of(&[]) && of(&["all"]) && of(&["!read"]) && of(&["read,memory"]));
        assert!(!of(&["read"]) && !of(&["data"]) && !of(&["!memory"]));
    }

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
        let error = parse(&["syscall,block"]).unwrap_err().to_string();
        assert!(error.contains("block"), "{error}");
    }
}
