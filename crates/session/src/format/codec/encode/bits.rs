//! Bit packing and Parquet's hybrid of run lengths and bit packing.

use fathom_model::varint;

pub(crate) fn width_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}

/// Appends the low `width` bits of each value, least significant bit first.
/// The bits above must be zero.
pub(crate) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    pack_iter(values.iter().copied(), width, out);
}

/// [`pack`] for values from anywhere.
#[inline]
pub(crate) fn pack_iter(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut word = 0u64;
    let mut filled = 0u32;
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            // Shifting by 64 is not defined: the value was used up entirely.
            word = if filled == 0 {
                0
            } else {
                value >> (width - filled)
            };
        }
    }
    let rest = filled.div_ceil(8) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..rest]);
}

/// Equal values from which a run takes less room than packed bits, whatever
/// the width, and the unit in which packed groups come.
const RUN: usize = 16;
const GROUP: usize = 8;

/// Appends `values` in the hybrid encoding, `width` bits each. There is no
/// length in front.
pub(crate) fn hybrid(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut at = 0;
    while at < values.len() {
        let run = run_length(&values[at..]);
        if run >= RUN || at + run == values.len() {
            hybrid_run(values[at], run, width, out);
            at += run;
            continue;
        }
        let mut end = at;
        while end < values.len() && !starts_run(&values[end..]) {
            end += GROUP;
        }
        let groups = (end - at) / GROUP;
        varint::put(((groups as u64) << 1) | 1, out);
        let packed = &values[at..end.min(values.len())];
        let padding = groups * GROUP - packed.len();
        let zeros = std::iter::repeat_n(0, padding);
        pack_iter(
            packed.iter().map(|v| u64::from(*v)).chain(zeros),
            width,
            out,
        );
        at = end;
    }
}

/// Appends one run of the hybrid encoding.
pub(crate) fn hybrid_run(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    if count > 0 {
        varint::put((count as u64) << 1, out);
        out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
    }
}

fn run_length(values: &[u32]) -> usize {
    match values.first() {
        Some(first) => values.iter().take_while(|v| *v == first).count(),
        None => 0,
    }
}

fn starts_run(values: &[u32]) -> bool {
    values
        .get(..RUN)
        .is_some_and(|v| v.iter().fold(0, |diff, x| diff | (x ^ v[0])) == 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads the hybrid encoding bit by bit, as the format describes it.
    pub(crate) fn decode(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut out = Vec::new();
        while out.len() < count {
            let mut header = 0u64;
            for shift in (0..).step_by(7) {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 1 {
                let n = (header >> 1) as usize * GROUP;
                for i in 0..n {
                    let mut v = 0;
                    for b in 0..width as usize {
                        let bit = i * width as usize + b;
                        v |= u32::from(bytes[bit / 8] >> (bit % 8) & 1) << b;
                    }
                    out.push(v);
                }
                bytes = &bytes[n * width as usize / 8..];
            } else {
                let len = width.div_ceil(8) as usize;
                let mut value = [0; 4];
                value[..len].copy_from_slice(&bytes[..len]);
                bytes = &bytes[len..];
                out.resize(
                    out.len() + (header >> 1) as usize,
                    u32::from_le_bytes(value),
                );
            }
        }
        assert!(bytes.is_empty());
        out.truncate(count);
        out
    }

    #[test]
    fn hybrid_round_trip() {
        let mut random = fathom_testkit::Random::new(1);
        for width in [1u32, 2, 3, 7, 8, 9, 17, 31, 32] {
            for len in [0usize, 1, 7, 8, 9, 15, 16, 17, 100, 1000] {
                let mut values = Vec::new();
                while values.len() < len {
                    let value = random.next() as u32 & (u32::MAX >> (32 - width));
                    let run = match random.below(8) {
                        0 => random.below(64) as usize,
                        _ => 1,
                    };
                    values.extend(std::iter::repeat_n(value, run));
                }
                values.truncate(len);
                let mut bytes = Vec::new();
                hybrid(&values, width, &mut bytes);
                assert_eq!(
                    decode(&bytes, width, len),
                    values,
                    "width {width}, {len} values"
                );
            }
        }
    }

    #[test]
    fn packing_of_wide_values() {
        let values = [u64::MAX, 0, 1 << 63, 5];
        let mut bytes = Vec::new();
        pack(&values, 64, &mut bytes);
        let back: Vec<u64> = bytes
            .chunks(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect();
        assert_eq!(back, values);
    }

    #[test]
    fn constants_take_a_few_bytes() {
        let mut bytes = Vec::new();
        hybrid(&[3; 100_000], 2, &mut bytes);
        assert!(bytes.len() <= 5, "{}", bytes.len());
    }
}
