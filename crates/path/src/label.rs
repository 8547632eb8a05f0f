//! Names the calls in whose course the segments are.

use crate::rows::Call;
use crate::{Name, Segment, State};

/// Splits the running segments of thread `tid` at the ends of its calls and page faults, and names
/// the innermost of these in each segment. With `outside`, time outside of calls is unknown: the
/// waits outside of them are not recorded.
pub(crate) fn label(
    segments: Vec<Segment>,
    tid: i64,
    calls: &[Call],
    outside: bool,
) -> Vec<Segment> {
    let pieces = pieces(calls);
    let mut out = Vec::with_capacity(segments.len());
    for segment in segments {
        if segment.tid != tid {
            out.push(segment);
            continue;
        }
        let (from_ns, until_ns) = (segment.ts_ns, segment.until_ns());
        let first = pieces.partition_point(|(_, end, _)| *end <= from_ns);
        let within = pieces.get(first..).unwrap_or_default();
        if segment.state != State::Running {
            let call = within.first().filter(|(begin, ..)| *begin <= from_ns);
            let mut segment = segment;
            if let Some((.., call)) =
                call.filter(|(.., call)| segment.rid.is_none_or(|rid| rid == call.rid))
            {
                name(&mut segment, call);
            }
            out.push(segment);
            continue;
        }
        let mut at_ns = from_ns;
        for (begin, end, call) in within {
            if *begin >= until_ns {
                break;
            }
            let begin_ns = (*begin).max(at_ns);
            push(&mut out, &segment, at_ns, begin_ns, None, outside);
            at_ns = (*end).min(until_ns);
            push(&mut out, &segment, begin_ns, at_ns, Some(call), outside);
        }
        push(&mut out, &segment, at_ns, until_ns, None, outside);
    }
    out
}

fn name(segment: &mut Segment, call: &Call) {
    segment.rid = segment.rid.or(Some(call.rid));
    if segment.syscall.is_none() {
        segment.syscall.clone_from(&call.syscall);
    }
    segment.path.clone_from(&call.path);
}

fn push(
    out: &mut Vec<Segment>,
    whole: &Segment,
    from_ns: i64,
    until_ns: i64,
    call: Option<&Call>,
    outside: bool,
) {
    if from_ns >= until_ns {
        return;
    }
    let mut piece = whole.clone();
    piece.ts_ns = from_ns;
    piece.dur_ns = until_ns.saturating_sub(from_ns);
    piece.share = whole.share * piece.dur_ns as f64 / whole.dur_ns.max(1) as f64;
    match call {
        Some(call) => name(&mut piece, call),
        None if outside => {
            piece.state = State::Unknown;
            piece.reason = Some(Name::from("outside_calls"));
        }
        None => {}
    }
    out.push(piece);
}

/// The times of calls, in order and without overlaps: each is of the call that began last.
fn pieces(calls: &[Call]) -> Vec<(i64, i64, &Call)> {
    let mut calls: Vec<&Call> = calls
        .iter()
        .filter(|call| call.from_ns < call.until_ns)
        .collect();
    calls.sort_by_key(|call| (call.from_ns, std::cmp::Reverse(call.until_ns)));
    let mut out: Vec<(i64, i64, &Call)> = Vec::with_capacity(calls.len());
    let mut open: Vec<&Call> = Vec::new();
    let mut at_ns = i64::MIN;
    for call in calls {
        while let Some(last) = open.pop_if(|last| last.until_ns <= call.from_ns) {
            emit(&mut out, at_ns.max(last.from_ns), last.until_ns, last);
            at_ns = at_ns.max(last.until_ns);
        }
        if let Some(last) = open.last() {
            emit(&mut out, at_ns.max(last.from_ns), call.from_ns, last);
        }
        at_ns = at_ns.max(call.from_ns);
        open.push(call);
    }
    while let Some(last) = open.pop() {
        emit(&mut out, at_ns.max(last.from_ns), last.until_ns, last);
        at_ns = at_ns.max(last.until_ns);
    }
    out
}

fn emit<'a>(out: &mut Vec<(i64, i64, &'a Call)>, from_ns: i64, until_ns: i64, call: &'a Call) {
    if from_ns < until_ns {
        out.push((from_ns, until_ns, call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(rid: i64, from_ns: i64, until_ns: i64) -> Call {
        Call {
            rid,
            from_ns,
            until_ns,
            ..Call::default()
        }
    }

    #[test]
    fn the_innermost_call_counts() {
        let of = |calls: &[Call]| -> Vec<(i64, i64, i64)> {
            let pieces = pieces(calls).into_iter();
            pieces
                .map(|(from, until, call)| (from, until, call.rid))
                .collect()
        };
        assert_eq!(
            of(&[call(1, 0, 10), call(2, 20, 30)]),
            [(0, 10, 1), (20, 30, 2)]
        );
        assert_eq!(
            of(&[call(1, 0, 100), call(2, 20, 30), call(3, 40, 50)]),
            [
                (0, 20, 1),
                (20, 30, 2),
                (30, 40, 1),
                (40, 50, 3),
                (50, 100, 1)
            ]
        );
        // Overlaps of damaged rows.
        assert_eq!(
            of(&[call(1, 0, 25), call(2, 20, 30)]),
            [(0, 20, 1), (20, 30, 2)]
        );
        assert_eq!(of(&[call(1, 5, 5)]), []);
    }
}
