//! Which layers are recorded where none are named.

use fathom_model::layers::{Layer, LayerSet, Recorded};
use fathom_model::syscalls::Syscall;

use crate::selection::Selection;

/// The layers that go with a choice of calls: the usual ones, but page faults without `mmap`:
/// who leaves that out does not ask for them.
pub fn usual_layers(selection: &Selection) -> LayerSet {
    let usual = |layer: &Layer| matches!(layer.recorded(), Recorded::Usually | Recorded::Always);
    let layers: LayerSet = Layer::ALL.iter().copied().filter(usual).collect();
    let mmap = Syscall::index_of("mmap");
    match mmap.is_some_and(|mmap| selection.calls.contains(&mmap)) {
        true => layers,
        false => layers.without(Layer::PageCache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_faults_go_with_mmap() {
        let of =
            |words: &[&str]| usual_layers(&Selection::parse(words).unwrap()).has(Layer::PageCache);
        assert!(of(&[]) && of(&["all"]) && of(&["!read"]) && of(&["read,memory"]));
        assert!(!of(&["read"]) && !of(&["data"]) && !of(&["!memory"]));
    }

    #[test]
    fn functions_are_recorded_when_asked_for() {
        let usual = usual_layers(&Selection::parse::<&str>(&[]).unwrap());
        assert!(!usual.has(Layer::Vfs) && usual.has(Layer::Syscall) && usual.has(Layer::Irq));
    }
}
