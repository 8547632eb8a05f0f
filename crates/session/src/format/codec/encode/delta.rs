//! Parquet's DELTA_BINARY_PACKED: differences, packed in miniblocks.

use fathom_model::varint::{self, zigzag};

use super::bits::{pack, width_of};

/// Values a block and a miniblock.
const BLOCK: usize = 128;
const MINI: usize = 32;
const MINIS: usize = BLOCK / MINI;

/// Appends `values`. With `NARROW` they are 32-bit integers, whose differences
/// wrap at 32 bits.
pub(crate) fn encode<const NARROW: bool>(values: &[i64], out: &mut Vec<u8>) {
    varint::put(BLOCK as u64, out);
    varint::put(MINIS as u64, out);
    varint::put(values.len() as u64, out);
    let Some((&first, rest)) = values.split_first() else {
        out.push(0);
        return;
    };
    varint::put(zigzag(first), out);
    let mut previous = first;
    for block in rest.chunks(BLOCK) {
        let mut deltas = [0i64; BLOCK];
        let mut least = i64::MAX;
        for (delta, &value) in deltas.iter_mut().zip(block) {
            *delta = sub::<NARROW>(value, previous);
            least = least.min(*delta);
            previous = value;
        }
        encode_block::<NARROW>(&deltas[..block.len()], least, out);
    }
}

fn encode_block<const NARROW: bool>(deltas: &[i64], least: i64, out: &mut Vec<u8>) {
    varint::put(zigzag(least), out);
    let widths = out.len();
    out.extend_from_slice(&[0; MINIS]);
    for (i, mini) in deltas.chunks(MINI).enumerate() {
        // Values that a last miniblock lacks are zeros.
        let mut packed = [0u64; MINI];
        let mut all = 0;
        for (to, &delta) in packed.iter_mut().zip(mini) {
            let above = sub::<NARROW>(delta, least) as u64;
            *to = if NARROW { above & 0xffff_ffff } else { above };
            all |= *to;
        }
        let width = width_of(all);
        out[widths + i] = width as u8;
        pack(&packed, width, out);
    }
}

#[inline(always)]
fn sub<const NARROW: bool>(a: i64, b: i64) -> i64 {
    if NARROW {
        i64::from((a as i32).wrapping_sub(b as i32))
    } else {
        a.wrapping_sub(b)
    }
}
