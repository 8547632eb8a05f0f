//! Fields of operations of io_uring and AIO that calls do not have, and calls that started before
//! the recording.

use fathom_model::abi::{
    OP_ASYNC, OP_BUFFER_SELECT, OP_COMPLETION_UNSEEN, OP_CQE_SKIP, OP_DIRECT, OP_DRAIN,
    OP_END_APPROXIMATE, OP_FIXED_FILE, OP_HARDLINK, OP_LINK, OP_MORE, OP_SQPOLL,
    OP_STARTED_BEFORE_TRACE, OP_WORKER, WideCallRecord,
};
use fathom_model::syscalls::{Api, SYSCALLS};

const FLAGS: [(u32, &str); 14] = [
    (OP_FIXED_FILE, "FIXED_FILE"),
    (OP_DRAIN, "DRAIN"),
    (OP_LINK, "LINK"),
    (OP_HARDLINK, "HARDLINK"),
    (OP_ASYNC, "ASYNC"),
    (OP_BUFFER_SELECT, "BUFFER_SELECT"),
    (OP_CQE_SKIP, "CQE_SKIP"),
    (OP_SQPOLL, "SQPOLL"),
    (OP_WORKER, "WORKER"),
    (OP_MORE, "MORE"),
    (OP_END_APPROXIMATE, "END_APPROXIMATE"),
    (OP_COMPLETION_UNSEEN, "COMPLETION_UNSEEN"),
    (OP_DIRECT, "DIRECT"),
    (OP_STARTED_BEFORE_TRACE, "STARTED_BEFORE_TRACE"),
];

/// Flags and user_data of a wide record; `None` for a call.
pub(crate) fn of_wide(record: &WideCallRecord) -> Option<(u32, u64)> {
    let call = SYSCALLS.get(usize::from(record.call.syscall))?;
    (call.api != Api::Syscall).then_some((record.op_flags, record.user_data))
}

/// Column op_flags of a call: only whether it started before the recording.
pub(crate) fn of_call(wide: Option<&WideCallRecord>) -> Option<u32> {
    let flags = wide?.op_flags & OP_STARTED_BEFORE_TRACE;
    (flags != 0).then_some(flags)
}

/// Appends the flags of an operation: column op_flags.
pub(crate) fn write(flags: u32, out: &mut String) {
    let start = out.len();
    for (flag, name) in FLAGS {
        if flags & flag != 0 {
            if out.len() > start {
                out.push('|');
            }
            out.push_str(name);
        }
    }
    if out.len() == start {
        out.push('0');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named() {
        let text = |flags| {
            let mut out = String::new();
            write(flags, &mut out);
            out
        };
        assert_eq!(text(0), "0");
        assert_eq!(
            text(OP_LINK | OP_WORKER | OP_FIXED_FILE),
            "FIXED_FILE|LINK|WORKER"
        );
        assert_eq!(text((1 << 14) - 1).split('|').count(), FLAGS.len());
    }
}
