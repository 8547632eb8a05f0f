//! The layers that a request passes through, from the program down. Options, help, losses,
//! sessions, reports, comparisons, rules, and the page take names, order, and meaning from this
//! list.
//!
//! A new layer is a row here, the programs that observe it, and the features that attach them
//! (`Feature::of_layer` of the crate probe). If its visits are only rows of table `slices`, it
//! needs no table of its own.

use serde::{Deserialize, Serialize};

use crate::abi::{
    LOST_BLOCK, LOST_COUNTERS, LOST_FAULT, LOST_IRQ, LOST_LIBRARY_CALL, LOST_SPAN, LOST_STACK,
    LOST_TLS, LOST_USDT, LOST_WAIT, LOST_WRITEBACK,
};
use crate::tables::{
    BIOS, BLOCK, FAULTS, IRQS, PERF_COUNTERS, STACKS, Table, USER_CALLS, WAITS, WRITEBACK,
};

/// When a layer is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// In every recording.
    Always,
    /// If `--layers` names it, and by default.
    Usually,
    /// Only if `--layers` names it, or `all`.
    Asked,
    /// Together with another one.
    With(Layer),
    /// With an option of its own.
    Option(&'static str),
}

/// A kind of records of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// Name in column `syscall` of table `losses`.
    pub name: &'static str,
    /// Index of the kernel's count of lost records; `None` if the kernel has no records of
    /// this kind.
    pub lost: Option<u32>,
    /// Table of their rows; `None` if their data is in table `slices`.
    pub table: Option<&'static Table>,
}

/// A row of the list.
struct Row {
    name: &'static str,
    meaning: &'static str,
    what: &'static str,
    recorded: Recorded,
    records: &'static [Records],
}

macro_rules! layers {
    ($($(#[doc = $doc:literal])+ $layer:ident $name:literal, $recorded:expr, $meaning:literal, $what:literal,
        [$(($kind:literal, $lost:expr, $table:expr)),*];)*) => {
        /// A layer. In order: from the program down to the device, then the activities that take the CPU away.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Layer {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $layer,)*
        }

        impl Layer {
            /// All of them, in order.
            pub const ALL: &'static [Layer] = &[$(Layer::$layer),*];
        }

        static ROWS: &[Row] = &[$(Row {
            name: $name,
            meaning: $meaning,
            what: $what,
            recorded: $recorded,
            records: &[$(Records { name: $kind, lost: $lost, table: $table }),*],
        }),*];
    };
}

// Name, how it comes to be recorded, what spends time there, what is recorded of it, and its
// records besides calls: name, index of the lost ones, table.
layers! {
    /// The program.
    User "user", Recorded::Option("--stacks, --library, or --usdt"), "the program itself",
        "call stacks, calls of libraries, and static probes",
        [("stack", Some(LOST_STACK), Some(&STACKS)), ("user_call", Some(LOST_LIBRARY_CALL), Some(&USER_CALLS)),
        ("usdt", Some(LOST_USDT), None), ("tls", Some(LOST_TLS), None)];
    /// System calls, and operations of io_uring and AIO.
    Syscall "syscall", Recorded::Always, "the call itself, including all kernel work without a hook of its own",
        "calls, operations of io_uring and AIO", [];
    /// Functions of VFS.
    Vfs "vfs", Recorded::Asked, "the kernel's switch between file systems",
        "functions of VFS, file systems and the page cache", [];
    /// Page cache and mapped files.
    PageCache "pagecache", Recorded::Usually, "page faults and the page cache",
        "page faults on mapped files, their write-back, cache hits and misses",
        [("page_fault", Some(LOST_FAULT), Some(&FAULTS)), ("writeback", Some(LOST_WRITEBACK), Some(&WRITEBACK))];
    /// File systems.
    Fs "fs", Recorded::Usually, "the file system", "operations inside file systems", [("fs_span", Some(LOST_SPAN), None)];
    /// Servers of FUSE.
    Fuse "fuse", Recorded::Usually, "waiting for the server of a FUSE file system", "requests to FUSE servers", [];
    /// Servers of NFS.
    Nfs "nfs", Recorded::Usually, "waiting for an NFS server", "requests to NFS servers", [];
    /// Queues of devices.
    Block "block", Recorded::Usually, "waiting for the device", "block requests",
        [("block_request", Some(LOST_BLOCK), Some(&BLOCK)), ("bio", None, Some(&BIOS))];
    /// Devices.
    Device "device", Recorded::With(Layer::Block), "the device working", "", [];
    /// The scheduler.
    Sched "sched", Recorded::Usually, "off the CPU: waiting for a lock, an event, or the CPU", "waits",
        [("wait", Some(LOST_WAIT), Some(&WAITS))];
    /// Interrupts.
    Irq "irq", Recorded::Usually, "interrupts that took the CPU", "interrupts",
        [("interrupt", Some(LOST_IRQ), Some(&IRQS))];
    /// The processor.
    Cpu "cpu", Recorded::Option("--counters"), "the CPU", "perf counters",
        [("perf_counters", Some(LOST_COUNTERS), Some(&PERF_COUNTERS))];
}

impl Layer {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Name: as `--layers` takes it, and as columns `layer` have it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The layer of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|layer| layer.name() == name)
    }

    /// The activity that takes the time, for readers who do not know the name.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// The recorded data; empty if another layer includes it.
    pub fn what(self) -> &'static str {
        self.row().what
    }

    /// How it comes to be recorded.
    pub fn recorded(self) -> Recorded {
        self.row().recorded
    }

    /// Its records besides calls.
    pub fn records(self) -> &'static [Records] {
        self.row().records
    }

    /// Layers that `--layers` chooses.
    pub fn chosen() -> impl Iterator<Item = Layer> {
        let chosen =
            |layer: &Layer| matches!(layer.recorded(), Recorded::Usually | Recorded::Asked);
        Self::ALL.iter().copied().filter(chosen)
    }

    /// Whether this layer is recorded with `other`: they are the same, or one comes with the other.
    pub fn comes_with(self, other: Layer) -> bool {
        self == other || self.recorded() == Recorded::With(other)
    }
}

/// Every kind of records besides calls, with its layer.
pub fn records() -> impl Iterator<Item = (Layer, &'static Records)> {
    let all = Layer::ALL.iter().copied();
    all.flat_map(|layer| layer.records().iter().map(move |records| (layer, records)))
}

/// Indexes behind the calls under which records that are no calls are lost.
pub fn lost_others() -> impl Iterator<Item = u32> {
    records().filter_map(|(_, records)| records.lost)
}

/// Whether `call`, an index as records have it, stands for a record that is no call.
pub fn lost_is_other(call: u32) -> bool {
    lost_others().any(|other| other == call)
}

/// A set of layers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerSet(u32);

impl LayerSet {
    /// Whether it has `layer`.
    pub fn has(self, layer: Layer) -> bool {
        self.0 & 1 << layer as u32 != 0
    }

    /// With `layer`.
    #[must_use]
    pub fn with(self, layer: Layer) -> Self {
        Self(self.0 | 1 << layer as u32)
    }

    /// Without `layer`.
    #[must_use]
    pub fn without(self, layer: Layer) -> Self {
        Self(self.0 & !(1 << layer as u32))
    }

    /// Its layers, in order.
    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL
            .iter()
            .copied()
            .filter(move |layer| self.has(*layer))
    }
}

/// A word that names no layer that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayersError(String);

impl std::fmt::Display for LayersError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = LayerSet::chosen().names();
        write!(f, "no layer is called {:?}: use {names} or all", self.0)
    }
}

impl std::error::Error for LayersError {}

impl LayerSet {
    /// The layer of the calls, which are always recorded, and all that can be chosen.
    pub fn chosen() -> Self {
        let calls = Self::default().with(Layer::Syscall);
        Layer::chosen().fold(calls, Self::with)
    }

    /// The layers that `words` name, each a list separated by commas; `all` are all that can be
    /// chosen.
    ///
    /// # Errors
    /// When a word names no layer.
    pub fn parse(words: &[String]) -> Result<Self, LayersError> {
        let mut layers = Self::default().with(Layer::Syscall);
        for word in words.iter().flat_map(|words| words.split(',')) {
            let word = word.trim();
            if word == "all" {
                layers = Self::chosen();
                continue;
            }
            let named = Layer::named(word).filter(|layer| Self::chosen().has(*layer));
            layers = layers.with(named.ok_or_else(|| LayersError(word.to_owned()))?);
        }
        Ok(layers)
    }

    /// Names, separated by commas: what [`LayerSet::parse`] takes.
    pub fn names(self) -> String {
        let names: Vec<&str> = self.iter().map(Layer::name).collect();
        names.join(",")
    }
}

impl FromIterator<Layer> for LayerSet {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Self {
        layers.into_iter().fold(Self::default(), Self::with)
    }
}

impl std::fmt::Debug for LayerSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_session_json_and_of_sets() {
        for layer in Layer::ALL {
            let json = serde_json::to_string(layer).unwrap();
            assert_eq!(json, format!("{:?}", layer.name()));
            assert_eq!(serde_json::from_str::<Layer>(&json).unwrap(), *layer);
            assert_eq!(Layer::named(layer.name()), Some(*layer));
            let set: LayerSet = [*layer].into_iter().collect();
            assert!(set.iter().eq([*layer]) && set.without(*layer) == LayerSet::default());
        }
        assert_eq!(Layer::named("disk"), None);
    }

    #[test]
    fn lists() {
        let parse = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|w| w.to_string()).collect();
            LayerSet::parse(&words)
        };
        assert_eq!(parse(&[]).unwrap().names(), "syscall");
        assert_eq!(
            parse(&["syscall", " block ,sched"]).unwrap().names(),
            "syscall,block,sched"
        );
        assert_eq!(parse(&["all"]).unwrap(), LayerSet::chosen());
        assert_eq!(
            parse(&[&LayerSet::chosen().names()]).unwrap(),
            LayerSet::chosen()
        );
        // One that comes with another is not chosen.
        for wrong in ["vfsx", "device", "user", ""] {
            let error = parse(&["syscall", wrong]).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{wrong:?}")) && error.contains("pagecache"),
                "{error}"
            );
        }
    }

    #[test]
    fn every_kind_of_loss_and_every_table_is_of_one_layer() {
        let mut names: Vec<_> = records().map(|(_, records)| records.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), records().count());
        for (layer, records) in records() {
            let of_table = records.table.and_then(|table| {
                let column = table.columns.iter().any(|column| column.name == "layer");
                column.then_some(table.name)
            });
            assert_eq!(
                of_table,
                None,
                "{}: rows name their layer themselves",
                layer.name()
            );
        }
    }
}
