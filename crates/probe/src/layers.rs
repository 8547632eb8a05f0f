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
#[error("no layer is called {0:?}: use syscall, {list} or all", list = Layers::ALL.list(", "))]
pub struct LayersError(String);

/// A layer as a user chooses it.
#[derive(Clone, Copy, Debug)]
pub struct NamedLayer {
    /// Its name.
    pub name: &'static str,
    /// What is recorded of it, for the help.
    pub what: &'static str,
    field: fn(&mut Layers) -> &mut bool,
}

impl Layers {
    /// The layers besides the calls: the one list that parsing, printing and the help go by.
    pub const NAMED: [NamedLayer; 6] = [
        NamedLayer {
            name: "pagecache",
            what: "page faults on mapped files and their write-back, hits and misses",
            field: |layers| &mut layers.pagecache,
        },
        NamedLayer {
            name: "vfs",
            what: "functions of VFS, file systems and the page cache",
            field: |layers| &mut layers.vfs,
        },
        NamedLayer {
            name: "fs",
            what: "parts of file systems",
            field: |layers| &mut layers.fs,
        },
        NamedLayer {
            name: "block",
            what: "requests to devices",
            field: |layers| &mut layers.block,
        },
        NamedLayer {
            name: "sched",
            what: "waits",
            field: |layers| &mut layers.sched,
        },
        NamedLayer {
            name: "irq",
            what: "interrupts",
            field: |layers| &mut layers.irq,
        },
    ];

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
                "all" => layers = Layers::ALL,
                other => match Layers::NAMED.iter().find(|layer| layer.name == other) {
                    Some(layer) => *(layer.field)(&mut layers) = true,
                    None => return Err(LayersError(other.to_string())),
                },
            }
        }
        Ok(layers)
    }

    /// Names of the layers, separated by commas: what [`Layers::parse`] takes.
    pub fn names(&self) -> String {
        match self.list(",") {
            names if names.is_empty() => "syscall".to_string(),
            names => format!("syscall,{names}"),
        }
    }

    /// Whether the layer is recorded.
    pub fn has(mut self, layer: &NamedLayer) -> bool {
        *(layer.field)(&mut self)
    }

    /// Names of the layers besides the calls.
    fn list(self, separator: &str) -> String {
        let named = Layers::NAMED.iter().filter(|layer| self.has(layer));
        named
            .map(|layer| layer.name)
            .collect::<Vec<_>>()
            .join(separator)
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
        // The list of names and the fields cover each other.
        for layer in &Layers::NAMED {
            let one = parse(&[layer.name]).unwrap();
            assert_eq!(one.names(), format!("syscall,{}", layer.name));
            assert!(error.contains(layer.name), "{error}");
        }
        let named = Layers::NAMED.map(|layer| layer.name).join(",");
        assert_eq!(parse(&[&named]).unwrap(), Layers::ALL);
    }
}
