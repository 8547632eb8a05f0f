//! Records between others in the bytes of a wide ring ([`fathom_model::raw::Ring::Wide`]).

/// Appends `record` as the ring frames it.
pub(crate) fn append_framed(bytes: &mut Vec<u8>, record: &[u8]) {
    bytes.extend_from_slice(&(record.len() as u32).to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(record);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// The first record of the bytes of a wide ring, and what is behind it.
pub(crate) fn framed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_ne_bytes(*length) as usize;
    let record = bytes.get(8..8 + length)?;
    let behind = (8 + length).next_multiple_of(8);
    Some((record, bytes.get(behind..).unwrap_or_default()))
}
