//! Definition levels of columns whose values can be null.

use super::bits::{hybrid_run, pack_iter, varint};

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
        let groups = count.div_ceil(8);
        varint(((groups as u64) << 1) | 1, out);
        let start = out.len();
        pack_iter(present.map(u64::from), 1, out);
        out.resize(start + groups, 0);
    }
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
