//! Definition levels of columns whose values can be null.

use fathom_model::varint;

use super::bits::hybrid_run;

/// Bytes of equal bits that are written as a run: a run and the header of packed bits
/// behind it take up to six.
const RUN: usize = 8;

/// Whether all rows are equal.
pub(crate) fn all_same<T: Copy + PartialEq>(rows: &[T]) -> bool {
    let Some(&first) = rows.first() else {
        return true;
    };
    // In blocks, so that the processor compares several rows at a time.
    let same = |rows: &[T]| rows.iter().fold(true, |all, row| all & (*row == first));
    rows.chunks(64).all(same)
}

/// How many of `rows` are `null`; `all_same`: all of them are equal.
pub(crate) fn nulls<T: Copy + PartialEq>(rows: &[T], null: T, all_same: bool) -> usize {
    match rows.first() {
        Some(first) if all_same => match *first == null {
            true => rows.len(),
            false => 0,
        },
        _ => rows.iter().map(|row| usize::from(*row == null)).sum(),
    }
}

/// Appends the levels 0 (null) and 1 of `rows`, of which `nulls` are `null`.
pub(crate) fn definition<T: Copy + PartialEq>(
    rows: &[T],
    null: T,
    nulls: usize,
    out: &mut Vec<u8>,
) {
    let count = rows.len();
    if nulls == 0 {
        hybrid_run(1, count, 1, out);
    } else if nulls == count {
        hybrid_run(0, count, 1, out);
    } else {
        let bits: Vec<u8> = rows.chunks(8).map(|rows| byte(rows, null)).collect();
        runs(&bits, count, out);
    }
}

/// The levels of up to eight rows.
#[inline]
fn byte<T: Copy + PartialEq>(rows: &[T], null: T) -> u8 {
    let bit = |(i, row): (usize, &T)| u8::from(*row != null) << i;
    match rows.first_chunk::<8>() {
        // As many as are known in advance need no loop.
        Some(rows) => rows
            .iter()
            .enumerate()
            .map(bit)
            .fold(0, |all, bit| all | bit),
        None => rows
            .iter()
            .enumerate()
            .map(bit)
            .fold(0, |all, bit| all | bit),
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
                let nulls = levels.iter().filter(|level| **level == 0).count();
                let mut bytes = Vec::new();
                definition(&levels, 0, nulls, &mut bytes);
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
