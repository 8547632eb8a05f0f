//! Which layers are recorded.

use fathom_model::syscalls::Syscall;

use crate::selection::Selection;

/// Layers besides the system calls, which are always recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Page faults on mapped files and their write-back, and what requests do in the
    /// page cache.
    pub pagecache: bool,
    /// Functions of VFS, file systems, the page cache and the block layer, where the
    /// kernel lets programs hook functions.
    pub vfs: bool,
    /// Parts of file systems.
    pub fs: bool,
    /// Requests to devices.
    pub block: bool,
    /// Waits.
    pub sched: bool,
    /// Interrupts.
    pub irq: bool,
}

/// A word that names no layer.
#[derive(Debug, thiserror::Error)]
#[error("no layer is called {0:?}: use syscall, vfs, pagecache, fs, block, sched, irq or all")]
pub struct LayersError(String);

impl Layers {
    /// Every layer.
    pub const ALL: Layers = Layers {
        pagecache: true,
        vfs: true,
        fs: true,
        block: true,
        sched: true,
        irq: true,
    };

    /// The layers that go with a choice of calls: all, but functions, of which one read
    /// passes through several, and page faults without `mmap`: who leaves that out does
    /// not ask for them.
    pub fn fitting(selection: &Selection) -> Self {
        let mmap = Syscall::index_of("mmap");
        Layers {
            pagecache: mmap.is_some_and(|mmap| selection.calls.contains(&mmap)),
            vfs: false,
            ..Layers::ALL
        }
    }

    /// The layers that `words` name, each a list separated by commas.
    ///
    /// # Errors
    /// When a word names no layer.
    pub fn parse(words: &[String]) -> Result<Self, LayersError> {
        let mut layers = Layers::default();
        for word in words.iter().flat_map(|words| words.split(',')) {
            match word.trim() {
                "syscall" => {}
                "pagecache" => layers.pagecache = true,
                "vfs" => layers.vfs = true,
                "fs" => layers.fs = true,
                "block" => layers.block = true,
                "sched" => layers.sched = true,
                "irq" => layers.irq = true,
                "all" => layers = Layers::ALL,
                other => return Err(LayersError(other.to_string())),
            }
        }
        Ok(layers)
    }

    /// Names of the layers, separated by commas: what [`Layers::parse`] takes.
    pub fn names(&self) -> String {
        let named = [
            (true, "syscall"),
            (self.pagecache, "pagecache"),
            (self.vfs, "vfs"),
            (self.fs, "fs"),
            (self.block, "block"),
            (self.sched, "sched"),
            (self.irq, "irq"),
        ];
        let names: Vec<_> = named.iter().filter(|n| n.0).map(|n| n.1).collect();
        names.join(",")
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
        assert_eq!(parse(&["syscall"]).unwrap(), Layers::default());
        assert!(parse(&["syscall,pagecache"]).unwrap().pagecache);
        let two = parse(&["syscall", " block ,sched"]).unwrap();
        assert!(two.block && two.sched && !two.pagecache && !two.irq);
        assert_eq!(two.names(), "syscall,block,sched");
        assert_eq!(parse(&["all"]).unwrap(), Layers::ALL);
        assert_eq!(parse(&[&Layers::ALL.names()]).unwrap(), Layers::ALL);
        let error = parse(&["syscall,vfsx"]).unwrap_err().to_string();
        assert!(error.contains("vfsx"), "{error}");
    }
}
