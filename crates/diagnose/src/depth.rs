//! Which operations of io_uring and AIO are waited for one at a time, as a call would be.
//!
//! An operation's duration is no time that its thread spent, unless it was the only one of its
//! process that was on its way, and the thread was waiting for it as it ended. Then the program
//! gains nothing by the interface, and rules look at it as at the call that does the same.

use std::collections::HashMap;

/// From when to when, nanoseconds.
pub(crate) type Span = (i64, i64);

/// An operation of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) row: usize,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// From submission to completion.
    pub(crate) span: Span,
}

/// A call that submits or waits: `io_uring_enter`, `io_submit`, `io_getevents`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) rid: i64,
    pub(crate) tid: i32,
    /// From entry to return.
    pub(crate) span: Span,
}

/// Whether a call of this name waits for operations.
pub(crate) fn waits(name: &[u8]) -> bool {
    matches!(
        name,
        b"io_uring_enter" | b"io_submit" | b"io_getevents" | b"io_pgetevents"
    )
}

/// State from earlier batches.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    /// The end of the last operation of each process.
    ended: HashMap<i32, i64>,
}

impl Depth {
    /// Rows of the operations of a batch that were alone and waited for, with the call in whose
    /// course each was submitted, if that is known: what was seen below an operation is below that
    /// call.
    pub(crate) fn alone(
        &mut self,
        operations: &[Operation],
        waits: &[Wait],
    ) -> HashMap<usize, Option<i64>> {
        let mut by_process: HashMap<i32, Vec<&Operation>> = HashMap::new();
        for operation in operations {
            by_process.entry(operation.pid).or_default().push(operation);
        }
        let mut by_thread: HashMap<i32, Vec<&Wait>> = HashMap::new();
        for wait in waits {
            by_thread.entry(wait.tid).or_default().push(wait);
        }
        for calls in by_thread.values_mut() {
            calls.sort_unstable_by_key(|wait| wait.span.1);
        }
        // The call that a thread was in at a time.
        let call_at = |tid: i32, time: i64| {
            let calls = by_thread.get(&tid).map_or(&[][..], Vec::as_slice);
            let next = calls.get(calls.partition_point(|wait| wait.span.1 < time));
            next.filter(|wait| wait.span.0 <= time)
        };
        let mut alone = HashMap::new();
        for (pid, mut list) in by_process {
            list.sort_unstable_by_key(|operation| operation.span);
            let mut busy_until = self.ended.get(&pid).copied().unwrap_or(i64::MIN);
            for (i, operation) in list.iter().enumerate() {
                let (began, ended) = operation.span;
                let next = list.get(i + 1).map_or(i64::MAX, |next| next.span.0);
                let (tid, only) = (operation.tid, busy_until <= began && next >= ended);
                if only && call_at(tid, ended).is_some() {
                    let submitted = call_at(tid, began).map(|wait| wait.rid);
                    alone.insert(operation.row, submitted);
                }
                busy_until = busy_until.max(ended);
            }
            self.ended.insert(pid, busy_until);
        }
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(spans: &[Span]) -> Vec<Operation> {
        let one = |(row, span): (usize, &Span)| Operation {
            row,
            pid: 1,
            tid: 2,
            span: *span,
        };
        spans.iter().enumerate().map(one).collect()
    }

    fn alone(depth: &mut Depth, spans: &[Span], waits: &[Span]) -> Vec<usize> {
        let wait = |(rid, span): (i64, &Span)| Wait {
            rid,
            tid: 2,
            span: *span,
        };
        let waits: Vec<Wait> = (0..).zip(waits).map(wait).collect();
        let found = depth.alone(&operations(spans), &waits);
        let mut rows: Vec<usize> = found.into_keys().collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn one_after_the_other() {
        let spans = [(0, 10), (12, 20), (20, 30)];
        let waits = [(0, 11), (12, 21), (22, 31)];
        assert_eq!(alone(&mut Depth::default(), &spans, &waits), [0, 1, 2]);
    }

    #[test]
    fn not_while_another_is_on_its_way() {
        let mut depth = Depth::default();
        // The second begins before the first ends, the third before the second does.
        let spans = [(0, 10), (5, 20), (15, 30), (40, 50)];
        assert_eq!(alone(&mut depth, &spans, &[(0, 60)]), [3]);
        // One of the batch before ended later.
        assert_eq!(alone(&mut depth, &[(45, 70), (80, 90)], &[(60, 100)]), [1]);
    }

    #[test]
    fn submitted_in_the_course_of_a_call() {
        let wait = |rid, span| Wait { rid, tid: 2, span };
        let waits = [wait(7, (0, 2)), wait(8, (3, 11)), wait(9, (12, 40))];
        let found = Depth::default().alone(&operations(&[(1, 10), (20, 30)]), &waits);
        assert_eq!(found, HashMap::from([(0, Some(7)), (1, Some(9))]));
    }

    #[test]
    fn not_while_the_thread_does_something_else() {
        let spans = [(0, 10), (20, 30)];
        assert_eq!(alone(&mut Depth::default(), &spans, &[]), [0; 0]);
        assert_eq!(
            alone(&mut Depth::default(), &spans, &[(0, 1), (21, 31)]),
            [1]
        );
    }
}
