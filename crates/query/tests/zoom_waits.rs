//! Time off the CPU by reason: the pyramid's sums and the spread time equal the sums of the rows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use fathom_model::StringTable;
use fathom_model::batch::NULL_I64;
use fathom_model::tables::{WaitRow, WaitRows};
use fathom_query::Limits;
use fathom_query::arrow::array::AsArray;
use fathom_query::arrow::datatypes::Int64Type;
use fathom_query::zoom::{Answer, By, Filter, Request, Zoom};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, START};

const REASONS: [&str; 4] = ["cpu", "disk", "futex", "timer"];

struct Wait {
    at: i64,
    dur_ns: i64,
    queue_ns: i64,
    tid: i32,
    reason: &'static str,
}

/// Waits of some threads, one after the other in each; most are short, some take minutes.
fn waits(rng: &mut fastrand::Rng, count: usize) -> Vec<Wait> {
    let mut at = [START; 5];
    let mut all: Vec<Wait> = (0..count)
        .map(|_| {
            let thread = rng.usize(0..at.len());
            let reason = REASONS[rng.usize(0..REASONS.len())];
            let dur_ns = match rng.u32(0..200) {
                0 => rng.i64(0..60_000_000_000),
                1..20 => rng.i64(0..50_000_000),
                _ => rng.i64(0..80_000),
            };
            at[thread] += rng.i64(0..200_000);
            let wait = Wait {
                at: at[thread],
                dur_ns,
                queue_ns: match reason {
                    "cpu" => NULL_I64,
                    _ => rng.i64(0..=dur_ns.min(5_000_000)),
                },
                tid: 100 + thread as i32,
                reason,
            };
            at[thread] += dur_ns;
            wait
        })
        .collect();
    all.sort_by_key(|wait| wait.at + wait.dur_ns);
    all
}

fn write(dir: &Path, waits: &[Wait]) {
    let options = WriterOptions {
        part_rows: 1_400,
        part_interval: Duration::from_secs(60),
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, sample::meta(), options).unwrap();
    for chunk in waits.chunks(700) {
        let (mut rows, mut strings) = (WaitRows::default(), StringTable::new());
        for wait in chunk {
            rows.push(WaitRow {
                ts_ns: wait.at,
                dur_ns: wait.dur_ns,
                run_queue_ns: wait.queue_ns,
                woken_at_ns: match wait.queue_ns {
                    NULL_I64 => NULL_I64,
                    ns => wait.at + wait.dur_ns - ns,
                },
                pid: 100,
                tid: wait.tid,
                reason: strings.intern(wait.reason.as_bytes()),
                state: strings.intern(b"interruptible"),
                ..WaitRow::default()
            });
        }
        writer.append(rows.into_batch(strings)).unwrap();
    }
    writer.finish(sample::meta()).unwrap();
}

/// A number by reason and bucket, without zeros.
type Sums = BTreeMap<(String, i64), i64>;

fn found(answer: &Answer, column: &str) -> Sums {
    let rows = &answer.rows;
    let numbers = |name: &str| {
        let column = rows.column_by_name(name).unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    let reasons = rows.column_by_name("reason").unwrap().as_string::<i32>();
    let keys = reasons.iter().map(|reason| reason.unwrap().to_owned());
    let cells = keys.zip(numbers("ts_ns")).zip(numbers(column));
    cells.filter(|(_, n)| *n != 0).collect()
}

/// Beginning, end and reason of the pieces of a wait: from the wake-up on it is one for the CPU.
fn pieces(wait: &Wait) -> [(i64, i64, &'static str); 2] {
    let end = wait.at + wait.dur_ns;
    let woken = end - wait.queue_ns.max(0);
    [(wait.at, woken, wait.reason), (woken, end, "cpu")]
}

fn of<'a>(
    waits: &'a [Wait],
    tids: Option<&'a [i32]>,
) -> impl Iterator<Item = &'a Wait> + Clone + 'a {
    let passes = move |wait: &&Wait| tids.is_none_or(|tids| tids.contains(&wait.tid));
    waits.iter().filter(passes)
}

fn inside(window: &Range<i64>, wait: &Wait) -> bool {
    window.contains(&wait.at)
}

#[test]
fn sums_equal_those_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(19);
    let waits = waits(&mut rng, 400_000);
    write(&dir, &waits);
    let session = Session::open(&dir).unwrap();
    session.build_pyramids().unwrap();
    let zoom = Zoom::open(&session, Limits::default()).unwrap();
    assert_eq!(zoom.problem(), None);
    let last = waits
        .iter()
        .map(|wait| wait.at + wait.dur_ns)
        .max()
        .unwrap();
    let (mut by_blocks, mut turns) = (0, 0);
    while turns < 60 {
        turns += 1;
        let (a, b) = (rng.i64(START..last), rng.i64(START..last));
        let tids = rng.bool().then_some([101, 103]);
        let request = Request {
            from_ns: Some(a.min(b)),
            to_ns: Some(a.max(b) + 1),
            pixels: rng.u32(1..200),
            by: By::Reason,
            filter: Filter {
                tid: tids.map(Vec::from),
                ..Filter::default()
            },
            max_rows: [Some(0), None][rng.usize(0..2)],
            busy: rng.bool(),
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        by_blocks += usize::from(got.blocks > 0);
        let tids = tids.as_ref().map(|tids| &tids[..]);
        let bucket = |at: i64| at / got.bucket_ns * got.bucket_ns;
        let (mut count, mut time, mut busy) = (Sums::new(), Sums::new(), Sums::new());
        for wait in of(&waits, tids).filter(|wait| inside(&got.window_ns, wait)) {
            *count
                .entry((wait.reason.to_owned(), bucket(wait.at)))
                .or_default() += 1;
            for (from, to, reason) in pieces(wait) {
                *time
                    .entry((reason.to_owned(), bucket(wait.at)))
                    .or_default() += to - from;
            }
        }
        time.retain(|_, ns| *ns != 0);
        assert_eq!(found(&got, "calls"), count);
        assert_eq!(found(&got, "total_ns"), time);
        if !request.busy {
            continue;
        }
        // The time of waits is where they were; if the rows are too many to be read, short waits
        // count where they began.
        let all_read = request.max_rows.is_none();
        assert!(waits.len() > 5_000, "more than some requests may read");
        for wait in of(&waits, tids) {
            let long = all_read || wait.dur_ns > got.bucket_ns / 4;
            for (from, to, reason) in pieces(wait) {
                if !long && inside(&got.window_ns, wait) {
                    *busy
                        .entry((reason.to_owned(), bucket(wait.at)))
                        .or_default() += to - from;
                }
                let (mut at, to) = (from.max(got.window_ns.start), to.min(got.window_ns.end));
                while long && at < to {
                    let next = (bucket(at) + got.bucket_ns).min(to);
                    *busy.entry((reason.to_owned(), bucket(at))).or_default() += next - at;
                    at = next;
                }
            }
        }
        busy.retain(|_, ns| *ns != 0);
        assert_eq!(found(&got, "busy_ns"), busy);
    }
    assert!(by_blocks >= 5, "{by_blocks} of {turns}");
}
