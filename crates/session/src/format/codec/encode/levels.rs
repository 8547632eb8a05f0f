//! Definition levels of columns whose values can be null.

use fathom_model::varint;

use super::bits::{hybrid_run, pack_iter};

/// Bytes of equal bits that are written as a run: a run and the header of packed bits
/// behind it take up to six.
const RUN: usize = 8;

/// Appends the levels 0 (null) and 1 for `count` values, of which `nulls` are.
pub(crate) fn definition(
    present: impl Iterator<Item = bool>,
    count: usize,
    nulls: usize,
    out: &mut Vec<u8>,
) {
    if nulls == 0 {
        hybrid_run(1, count, 1, out);
    } else if nulls == count {
        hybrid_run(0, count, 1, out);
    } else {
        let mut bits = Vec::with_capacity(count.div_ceil(8) + 8);
        pack_iter(present.map(u64::from), 1, &mut bits);
        bits.resize(count.div_ceil(8), 0);
        runs(&bits, count, out);
    }
}

/// Appends `count` levels, eight a byte: long runs as such, for which a packed page has a
/// byte for every eight rows, in each of the many columns that only rare calls fill.
fn runs(bits: &[u8], count: usize, out: &mut Vec<u8>) {
    // The last byte may have fewer than eight.
    let whole = count / 8;
    let run_at = |from: usize| -> usize {
        match bits.get(from) {
            Some(&first @ (0 | 0xff)) if from < whole => {
                let run = bits[from..whole].iter().take_while(|b| **b == first);
                run.count()
            }
            _ => 0,
        }
    };
    let (mut at, mut packed) = (0, 0);
    let pack = |from: usize, to: usize, out: &mut Vec<u8>| {
        if from < to {
            varint::put((((to - from) as u64) << 1) | 1, out);
            out.extend_from_slice(&bits[from..to]);
        }
    };
    while at < bits.len() {
        match run_at(at) {
            run if run >= RUN => {
                pack(packed, at, out);
                hybrid_run(u32::from(bits[at] & 1), 8 * run, 1, out);
                at += run;
                packed = at;
            }
            // Shorter runs stay among the packed.
            run => at += run.max(1),
        }
    }
    pack(packed, bits.len(), out);
}

/// Replaces `out` by the values that are not `null`. Without branches: whether
/// a value is null is hard to predict.
pub(crate) fn compact<T: Copy + PartialEq>(values: &[T], null: T, out: &mut Vec<T>) {
    out.clear();
    out.resize(values.len(), null);
    let mut kept = 0;
    for &value in values {
        out[kept] = value;
        kept += usize::from(value != null);
    }
    out.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::codec::encode::bits::tests::decode;

    #[test]
    fn levels_come_back_and_long_runs_take_little() {
        let mut random = fathom_testkit::Random::new(7);
        for count in [1usize, 7, 8, 63, 64, 65, 100, 1000, 32_768] {
            for longest in [1u64, 20, 500, 20_000] {
                let (mut levels, mut level) = (Vec::new(), 1);
                while levels.len() < count {
                    let run = 1 + random.below(longest);
                    levels.extend(std::iter::repeat_n(level, run as usize));
                    level = 1 - level;
                }
                levels.truncate(count);
                let present = || levels.iter().map(|level| *level == 1);
                let nulls = present().filter(|present| !present).count();
                let mut bytes = Vec::new();
                definition(present(), count, nulls, &mut bytes);
                assert_eq!(decode(&bytes, 1, count), levels, "{count} levels");
                // Never more than packed, but for headers.
                assert!(
                    bytes.len() <= count.div_ceil(8) + 5,
                    "{count}: {}",
                    bytes.len()
                );
                if longest == 20_000 && count == 32_768 {
                    assert!(bytes.len() < 200, "{} bytes", bytes.len());
                }
            }
        }
    }
}
