//! The requested size of a call, its return value, and the place of its I/O.

use fathom_model::abi::{
    CALL_APPENDS, CALL_PENDING, CALL_POSITION_RACED, CALL_SHARED_POSITION, NO_OFFSET,
};
use fathom_model::batch::{NULL_I64, Null};
use fathom_model::errno;
use fathom_model::syscalls::{Number, Returns};

use super::call::Call;
use super::plan::Plan;
use crate::files::positions::{Moved, Positions, Use};

/// include/uapi/linux/fs.h
const SEEK_CUR: u32 = 1;

/// The numbers of a row that follow from the call alone.
pub(crate) struct Outcome {
    pending: bool,
    pub error: Option<i64>,
    pub ret: i64,
    pub size: i64,
    pub bytes: i64,
}

impl Outcome {
    #[inline]
    pub(crate) fn of(plan: &Plan, call: &Call<'_>) -> Self {
        let ret = call.record.ret;
        let pending = call.has(CALL_PENDING);
        let asked = call.size(plan);
        Self {
            pending,
            error: if pending { None } else { errno::of_return(ret) },
            ret: ret.when(!pending),
            // Column args contains values that their column cannot hold.
            size: match asked.filter(|_| plan.has_size) {
                Some(size) => plan.size.of(size).unwrap_or(NULL_I64),
                None => NULL_I64,
            },
            bytes: match plan.returns {
                // Asked with size 0, getxattr and listxattr return the size that
                // there is.
                Returns::Bytes if !pending && ret >= 0 && asked == Some(0) => 0,
                Returns::Bytes if !pending && ret >= 0 => ret,
                _ if plan.has_messages && !pending && ret >= 0 => {
                    call.message_bytes().unwrap_or(NULL_I64)
                }
                _ => NULL_I64,
            },
        }
    }

    /// Where the I/O took place. `row` is the place that the call's row gets;
    /// [`Positions::resolve`] may replace the offset of I/O at the position of a descriptor
    /// that may be shared.
    #[inline]
    pub(crate) fn offset(
        &self,
        plan: &Plan,
        call: &Call<'_>,
        row: usize,
        positions: &mut Positions,
    ) -> i64 {
        let r = call.record;
        if call.has(CALL_SHARED_POSITION | CALL_POSITION_RACED) && !self.pending {
            let row = (self.bytes > 0).then_some(row);
            return at_position(positions, plan, call, row);
        }
        match plan.offset {
            _ if !plan.has_offset => NULL_I64,
            Number::Unsigned if r.offset < 0 => NULL_I64,
            _ => r.offset,
        }
    }
}

/// The derived offset of I/O at the position of a descriptor that may be shared, which
/// [`Positions::resolve`] may replace. `row`: of a call that moved data.
fn at_position(positions: &mut Positions, plan: &Plan, call: &Call<'_>, row: Option<usize>) -> i64 {
    let r = call.record;
    let offset = match row {
        Some(_) if r.offset == NO_OFFSET => {
            // It is unknown which call moved the position or the end of the file meanwhile.
            positions.count_unknown();
            return NULL_I64;
        }
        Some(_) => r.offset,
        None => r.offset.when(plan.has_offset),
    };
    if call.has(CALL_SHARED_POSITION) {
        let moved = row.map(|row| Moved {
            row,
            entry: call.entry_position().unwrap_or(r.offset),
            derived: r.offset,
            bytes: r.ret,
            appends: call.has(CALL_APPENDS),
        });
        // lseek(fd, 0, SEEK_CUR) asks for the position.
        let stays = plan.seeks && r.offset == 0 && r.aux == SEEK_CUR;
        let id = if plan.seeks { r.size as u32 } else { r.aux };
        if !stays {
            let noted = Use {
                begin_ns: r.ts_ns as i64,
                ended_at_ns: call.ended_at_ns() as i64,
                moved,
            };
            positions.note(id, r.file, noted);
        }
    }
    offset
}
