//! The data below the calls that the chosen hooks can provide (`bpf/block.bpf.h` and its
//! neighbors).

use fathom_model::abi::LayerConfig;
use fathom_model::layers::{Layer, LayerSet};
use fathom_model::meta::RecordedLayer;

use super::faults::page_bytes;
use super::{Feature, Hooks, is_of};
use crate::features::Features;

/// Bit of `rq_flags` that marks a request of a flush sequence, in kernels where it is not an
/// enumerator yet (6.1 and older).
const FLUSH_SEQUENCE_BEFORE: u32 = 4;

/// Configuration of the programs for these layers.
pub(crate) fn layer_config(hooks: &Hooks, layers: LayerSet, features: &Features) -> LayerConfig {
    let on = |wanted: bool, feature| u32::from(wanted && hooks.serve(feature));
    let block = on(layers.has(Layer::Block), Feature::Block);
    LayerConfig {
        block,
        sched: on(layers.has(Layer::Sched), Feature::Sched),
        irq: on(layers.has(Layer::Irq), Feature::Irq),
        // The requests to remember follow from the pages that they dirty.
        counts: block | on(layers.has(Layer::PageCache), Feature::Cache),
        page_shift: page_bytes().trailing_zeros(),
        spans: on(layers.has(Layer::Fs), Feature::Fs),
        flush_sequence_bit: features
            .enumerator("__RQF_FLUSH_SEQ")
            .unwrap_or(FLUSH_SEQUENCE_BEFORE),
        miss_completions: miss_completions(),
    }
}

impl Hooks {
    /// Each layer, whether it is recorded, and why it is not.
    pub(crate) fn layers(&self, wanted: LayerSet) -> Vec<RecordedLayer> {
        let layer = |layer: Layer| {
            let (asked, features) = (wanted.has(layer), Feature::of_layer(layer));
            let serves = |program: &str| features.iter().any(|f| is_of(program, *f));
            let recorded = asked && self.attached.iter().any(|(program, _)| serves(program));
            RecordedLayer {
                name: layer,
                recorded,
                reason: match (recorded, asked) {
                    (true, _) => String::new(),
                    (false, false) => format!("it was not selected: --layers {}", layer.name()),
                    (false, true) => self.refusal(features),
                },
            }
        };
        LayerSet::chosen().iter().map(layer).collect()
    }

    /// Why nothing that serves these features is attached.
    fn refusal(&self, features: &[Feature]) -> String {
        let optional = Feature::OPTIONAL.iter().filter(|o| features.contains(&o.0));
        let names: Vec<&str> = optional.map(|o| o.1).collect();
        let missing = self
            .list
            .iter()
            .find(|hook| !hook.attached && names.contains(&hook.name.as_str()));
        match missing {
            Some(hook) => hook.note.clone(),
            None if features.iter().all(|f| self.absent.contains(f)) => {
                "the kernel has not loaded such a file system".to_string()
            }
            None => "this kernel has none of its attach points".to_string(),
        }
    }
}

/// One in how many completions of requests the programs leave out, as a kernel may:
/// `FATHOM_MISS_COMPLETIONS` says so in tests of what becomes of such requests.
fn miss_completions() -> u32 {
    let wanted = std::env::var("FATHOM_MISS_COMPLETIONS").ok();
    wanted.and_then(|one_in| one_in.parse().ok()).unwrap_or(0)
}
