//! A call, decoded from its record.

use fathom_model::abi::{
    ARG_EARLY, ARG_FLOW, ARG_SEGMENTS, ARG_SIZE, CALL_HAS_HOW, CALL_PENDING, CALL_POSITION_RACED,
    CacheFacts, CallRecord, DataCallRecord, FlowFacts, NO_SIZE, SEGMENTS_SHIFT, WideCallRecord,
};
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::syscalls::{Number, Place};

use super::operations;
use super::plan::Plan;

/// A call, whichever ring it came by.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub record: &'a CallRecord,
    pub wide: Option<&'a WideCallRecord>,
    /// With content: the record and the last part of the content.
    pub data: Option<(&'a DataCallRecord, &'a [u8])>,
    pub string1: &'a [u8],
    pub string2: &'a [u8],
    pub string3: &'a [u8],
    /// The struct that an argument points to, or its beginning.
    pub structure: &'a [u8],
    /// Its activity in the page cache.
    pub cache: Option<&'a CacheFacts>,
    /// Flags and user_data of an operation.
    pub operation: Option<(u32, u64)>,
}

impl<'a> Call<'a> {
    /// A call that fits a slot.
    #[inline]
    pub(crate) fn slot(record: &'a CallRecord) -> Self {
        Call {
            record,
            wide: None,
            data: None,
            string1: b"",
            string2: b"",
            string3: b"",
            structure: b"",
            cache: None,
            operation: None,
        }
    }

    /// One that does not, without its strings and its struct.
    pub(crate) fn wide(record: &'a WideCallRecord) -> Self {
        Call {
            wide: Some(record),
            cache: Some(&record.cache),
            operation: operations::of_wide(record),
            ..Call::slot(&record.call)
        }
    }

    #[inline]
    pub(crate) fn ended_at_ns(&self) -> u64 {
        self.record.ts_ns.saturating_add(self.record.dur_ns)
    }

    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        u32::from(self.record.flags) & flag != 0
    }

    /// Whether the arguments of a wide record have one of the `ARG_` flags.
    pub(crate) fn passed(&self, flag: u32) -> bool {
        self.wide.is_some_and(|w| w.arg_flags & flag != 0)
    }

    /// The size or length that was asked for, as the register had it; `None` when
    /// there is none or it could not be read.
    pub(crate) fn size(&self, plan: &Plan) -> Option<u64> {
        let size = self.record.size;
        if plan.has_segments {
            let known = self.record.size != NO_SIZE;
            return known.then(|| match self.segments_elsewhere() {
                Some(_) => size,
                None => size & ((1 << SEGMENTS_SHIFT) - 1),
            });
        }
        let passed = match self.operation {
            None => plan.size_is_passed,
            Some(_) => self.passed(ARG_SIZE),
        };
        (passed || size != NO_SIZE).then_some(size)
    }

    /// How many segments were passed.
    pub(crate) fn segments(&self) -> Option<u64> {
        let size = self.record.size;
        self.segments_elsewhere()
            .or((size != NO_SIZE).then_some(size >> SEGMENTS_SHIFT))
    }

    fn segments_elsewhere(&self) -> Option<u64> {
        let wide = self.wide.filter(|_| self.passed(ARG_SEGMENTS))?;
        wide.extra.get(1).copied()
    }

    /// A numeric argument, unless the record was too small to hold it.
    pub(crate) fn value(&self, place: Place) -> Option<u64> {
        match place {
            Place::Aux => Some(u64::from(self.record.aux)),
            Place::Extra(i) => self.wide?.extra.get(i).copied(),
        }
    }

    /// The lowest offset possible, when it is not the derived one.
    pub(crate) fn entry_position(&self) -> Option<i64> {
        if !self.has(CALL_POSITION_RACED) {
            return None;
        }
        match (self.wide, self.data) {
            (Some(wide), _) => wide.extra.first().map(|entry| *entry as i64),
            (None, Some((data, _))) => Some(data.entry_pos),
            (None, None) => None,
        }
    }

    /// The struct that was read at the entry, and the one that was read at the return.
    pub(crate) fn structures(&self, plan: &Plan) -> (Option<&'a [u8]>, &'a [u8]) {
        let early = self.passed(ARG_EARLY).then_some(plan.early_bytes);
        let structure = self
            .split_flow()
            .map_or(self.structure, |(before, _)| before);
        match early.and_then(|bytes| structure.split_at_checked(bytes)) {
            Some((early, rest)) => (Some(early), rest),
            None => (None, structure),
        }
    }

    fn split_flow(&self) -> Option<(&'a [u8], &'a [u8])> {
        let before = self.structure.len().checked_sub(FlowFacts::SIZE)?;
        let split = self.structure.split_at_checked(before)?;
        self.passed(ARG_FLOW).then_some(split)
    }

    /// The kernel's facts of the socket or pipe.
    pub(crate) fn flow(&self) -> Option<FlowFacts> {
        FlowFacts::parse(self.split_flow()?.1)
    }

    /// Bytes of the messages that the call moved.
    pub(crate) fn message_bytes(&self) -> Option<i64> {
        let bytes = *self.wide?.extra.get(2)?;
        i64::try_from(bytes).ok()
    }

    /// Flags, mode and resolve of openat2.
    pub(crate) fn how(&self) -> Option<[u64; 3]> {
        self.wide
            .filter(|_| self.has(CALL_HAS_HOW))
            .map(|w| w.extra)
    }

    /// Whether columns contain all arguments that belong into columns; the rest is in args.
    pub(crate) fn fits(&self, plan: &Plan) -> bool {
        !plan.has_segments
            && !self.wide_fd(plan)
            && self.wide_size(plan).is_none()
            && self.wide_offset(plan).is_none()
    }

    /// The descriptor is the number that stands for null.
    pub(crate) fn wide_fd(&self, plan: &Plan) -> bool {
        plan.has_fd && self.record.fd == NULL_I32
    }

    /// A size that is too large for its column.
    pub(crate) fn wide_size(&self, plan: &Plan) -> Option<u64> {
        let size = self.size(plan).filter(|_| plan.has_size)?;
        let fits = plan.size.of(size).is_some_and(|size| size != NULL_I64);
        (!fits).then_some(size)
    }

    /// An offset that is too large for its column, or the number that stands for
    /// null there: no I/O takes place at either.
    pub(crate) fn wide_offset(&self, plan: &Plan) -> Option<i64> {
        let offset = self.record.offset;
        let no_column = match plan.offset {
            Number::Unsigned => offset < 0,
            _ => offset == NULL_I64 && self.record.ret <= 0 && !self.has(CALL_PENDING),
        };
        (plan.offset_is_passed && no_column).then_some(offset)
    }
}
