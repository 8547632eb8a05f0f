//! Requests to devices that were on their way when the programs were detached: their
//! records are made here, as the programs would have made them of requests whose end they
//! did not see (`request_unseen` in `bpf/block.bpf.h`).

use fathom_model::abi::{
    BLOCK_FUA, BLOCK_PREFLUSH, BLOCK_UNSEEN, BioRecord, BlockRecord, RECORD_BLOCK, RequestState,
};
use fathom_model::raw::{RawChunk, Ring};
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::framing::append_framed;
use crate::maps::map;
use crate::monotonic_ns;

/// Records of the requests that are left in the programs' maps, and how many they are.
///
/// `merges` says that the programs saw requests that were merged into others: without
/// that a request that was not given to the driver may be one of those.
///
/// # Errors
/// When a map cannot be read.
pub(crate) fn unfinished(object: &Object, merges: bool) -> Result<(RawChunk, u64), ProbeError> {
    let refused = |source| ProbeError::Refused {
        what: "requests in flight".into(),
        source,
    };
    let requests = map(object, "requests")?;
    let now_ns = monotonic_ns();
    let (mut bytes, mut count) = (Vec::new(), 0);
    for key in requests.keys() {
        let value = requests.lookup(&key, MapFlags::ANY).map_err(refused)?;
        let Some(state) = value.as_deref().and_then(RequestState::parse) else {
            continue;
        };
        if !(merges || is_certain(&state)) {
            continue;
        }
        append_framed(&mut bytes, &record(&state, now_ns));
        count += 1;
    }
    let chunk = RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes,
    };
    Ok((chunk, count))
}

/// Whether the request cannot have been merged into another one.
fn is_certain(state: &RequestState) -> bool {
    state.in_device != 0 || u32::from(state.flags) & (BLOCK_PREFLUSH | BLOCK_FUA) != 0
}

/// The record of a request, and of its bio when that is its only one.
fn record(state: &RequestState, now_ns: u64) -> Vec<u8> {
    let bio = Some(state.bio).filter(|bio| bio.queued_at_ns > 0);
    let block = BlockRecord {
        kind: RECORD_BLOCK as u8,
        error: 0,
        bios: bio.is_some().into(),
        dev: state.dev,
        started_at_ns: state.started_at_ns,
        inserted_at_ns: state.inserted_at_ns,
        issued_at_ns: state.issued_at_ns,
        completed_at_ns: now_ns,
        sector: state.sector,
        bytes: state.bytes,
        op: state.op,
        flags: state.flags | BLOCK_UNSEEN as u16,
        queue_depth: state.depth,
        bios_left_out: 0,
        requeues: state.requeues,
        disk: state.disk,
    };
    let mut record = block.to_bytes().to_vec();
    if let Some(bio) = bio {
        let bio = BioRecord {
            sector: state.sector,
            bytes: u32::try_from(state.bytes).unwrap_or(u32::MAX),
            ..bio
        };
        record.extend_from_slice(&bio.to_bytes());
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RequestState {
        RequestState::parse(&[0; RequestState::SIZE]).unwrap()
    }

    #[test]
    fn a_request_comes_with_its_bio() {
        let mut state = state();
        state.bytes = 4096;
        let bare = record(&state, 100);
        let block = BlockRecord::parse(&bare).unwrap();
        assert_eq!((block.bios, bare.len()), (0, BlockRecord::SIZE));
        assert_eq!(u32::from(block.flags), BLOCK_UNSEEN);
        state.bio.queued_at_ns = 60;
        let whole = record(&state, 100);
        assert_eq!(BlockRecord::parse(&whole).unwrap().bios, 1);
        let bio = BioRecord::parse(&whole[BlockRecord::SIZE..]).unwrap();
        assert_eq!((bio.queued_at_ns, bio.bytes), (60, 4096));
    }

    #[test]
    fn a_request_that_may_have_been_merged_is_not_certain() {
        assert!(!is_certain(&state()));
        assert!(is_certain(&RequestState {
            in_device: 1,
            ..state()
        }));
        assert!(is_certain(&RequestState {
            flags: BLOCK_FUA as u16,
            ..state()
        }));
    }
}
