//! What of the layers below the calls can be seen with the hooks that were chosen
//! (`bpf/block.bpf.h` and its neighbours).

use fathom_model::abi::LayerConfig;

use super::faults::page_bytes;
use super::{Feature, Hooks};
use crate::features::Features;
use crate::layers::Layers;

/// Bit of `rq_flags` that tells that a request is part of a sequence of flushes, in kernels
/// where it is no enumerator yet (6.1 and older).
const FLUSH_SEQUENCE_BEFORE: u32 = 4;

/// What the programs for these layers are told.
pub(crate) fn layer_config(hooks: &Hooks, layers: Layers, features: &Features) -> LayerConfig {
    let on = |wanted: bool, feature| u32::from(wanted && hooks.serve(feature));
    let block = on(layers.block, Feature::Block);
    LayerConfig {
        block,
        sched: on(layers.sched, Feature::Sched),
        irq: on(layers.irq, Feature::Irq),
        // What a request has made dirty tells which requests to remember.
        counts: block | on(layers.pagecache, Feature::Cache),
        page_shift: page_bytes().trailing_zeros(),
        spans: on(layers.fs, Feature::Fs),
        flush_sequence_bit: features
            .enumerator("__RQF_FLUSH_SEQ")
            .and_then(|bit| u32::try_from(bit).ok())
            .unwrap_or(FLUSH_SEQUENCE_BEFORE),
        reserved: 0,
    }
}
