//! Sentences from the numbers.

use fathom_diagnose::{Activity, Finding};
use fathom_model::layers::Layer;
use fathom_model::meta::SessionMeta;
use fathom_model::units::{bytes, count, duration, percent};
use fathom_query::{Db, QueryError};
use serde::Serialize;

use crate::advice::{advice, advised, is_write_back};
use crate::causes::{Awaited, Cause, Share, awaited};
use crate::facts::{Ahead, Block, Facts, Group};
use crate::scope::Scope;
use crate::sentence::{Link, Sentence};
use crate::share::{LITTLE, MOST, of_rows, part_of_all, storage_share};
use crate::step::Step;

/// A second and a third cause are named from this share on.
const SECOND: f64 = 0.2;
const NAMED: usize = 3;
/// Block requests of another process ahead of each, thousandths, from which on it is named.
const SOME_AHEAD: i64 = 1000;
/// Share of the time of block requests in which some were behind others, from which on the story has it.
const HELD_UP: f64 = 0.1;
/// Share of the requests' time that they were behind another process's from which on the advice is about that.
const BLAMED: f64 = 0.3;
/// Share of the bytes ahead from which on a process is named.
const MOST_AHEAD: f64 = 0.5;
/// A request that took this many times the median is said to be slow.
const SLOW: f64 = 3.0;
/// Time in the queue of a device from this share of the time in the device on is said.
const QUEUED: f64 = 0.2;

/// Why requests took as long as they did.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Story {
    /// Three at most: what took the time, what it waited for, what to change.
    pub sentences: Vec<Sentence>,
    /// The numbers that they are made of.
    pub facts: Facts,
    /// Of a request of an application: it, and the requests that it caused. A sentence about it comes before
    /// the three.
    pub steps: Vec<Step>,
}

/// The story of the requests of `scope` in the session that `db` was opened on. `findings` are
/// from its diagnosis, if there is one.
///
/// # Errors
/// When a query fails.
pub fn why(
    db: &Db,
    meta: &SessionMeta,
    scope: &Scope,
    findings: &[Finding],
) -> Result<Story, QueryError> {
    let facts = Facts::gather(db, meta, scope)?;
    let sentences = tell(&facts, meta, scope, findings);
    Ok(Story {
        sentences,
        facts,
        steps: Vec::new(),
    })
}

/// Sentences for the numbers of a scope.
pub fn tell(
    facts: &Facts,
    meta: &SessionMeta,
    scope: &Scope,
    findings: &[Finding],
) -> Vec<Sentence> {
    let mut unknown = Sentence::default();
    if !facts.missing_requests.is_empty() {
        unknown.push(format!(
            "It is not known how much time went to storage, nor why: {} are missing.",
            facts.missing_requests
        ));
        return vec![unknown];
    }
    let Some(group) = facts.groups.first() else {
        let mut none = Sentence::default();
        none.push(nothing(meta, scope));
        return vec![none];
    };
    let mut out = vec![match scope.request {
        Some(rid) => one(facts, group, rid),
        None => many(facts, group, meta, scope),
    }];
    let little = scope.is_whole() && storage_share(facts).is_some_and(|share| share < LITTLE);
    if little {
        return out;
    }
    if !facts.missing_causes.is_empty() {
        unknown.push(format!(
            "It is not known what these requests waited for: {} are missing.",
            facts.missing_causes
        ));
        out.push(unknown);
        return out;
    }
    let total_ns = facts.causes.iter().map(|share| share.self_ns);
    let total_ns = total_ns.fold(0, i64::saturating_add);
    let Some(first) = facts.causes.first().filter(|_| total_ns > 0) else {
        return out;
    };
    let advised = advised(&facts.causes, total_ns).unwrap_or(&first.cause);
    let other = other_ahead(facts, advised)
        .filter(|ahead| ahead.behind_ns as f64 >= total_ns as f64 * BLAMED);
    let recorded = |layer| {
        meta.layers
            .iter()
            .any(|known| known.name == layer && known.recorded)
    };
    if !recorded(Layer::Block) && !recorded(Layer::Sched) {
        unknown.push(match meta.source {
            Some(_) => "The log does not say what these requests waited for.",
            None => "The waits of these requests were not recorded (--layers block,sched).",
        });
        out.push(unknown);
        return out;
    }
    let mut cause = cause_sentence(facts, group, total_ns, scope);
    let may_sleep = |cause: &Cause| {
        matches!(
            cause,
            Cause::Kernel {
                asleep_too: true,
                ..
            }
        )
    };
    if named(facts, total_ns).any(|(_, share)| may_sleep(&share.cause)) {
        cause.push(" Whether calls were on the CPU or asleep was not recorded.");
    }
    if facts.too_many_blocks {
        cause.push(" Their block requests are too many to say which program was ahead of them.");
    }
    out.push(cause);
    // Causes of all requests say nothing about a group that has little of the time.
    let most = facts.first_only || group.total_ns as f64 >= facts.total_ns as f64 * MOST;
    let of_group = Some(advised).filter(|cause| most || !cause.depends_on_calls());
    out.extend(advice(findings, group, of_group, other, total_ns));
    out
}

/// Why there is nothing to say.
fn nothing(meta: &SessionMeta, scope: &Scope) -> String {
    if meta.totals.counted > 0 && scope.is_whole() {
        return "Single calls were not recorded (--detail counters), so it is not known where their \
                time went."
            .to_owned();
    }
    match scope {
        Scope {
            request: Some(rid), ..
        } => {
            format!("There is no request {rid} in this session: it may have been lost or dropped.")
        }
        Scope {
            file: Some(file), ..
        } => {
            format!("No requests on {} are in this session.", file.path)
        }
        scope if scope.is_whole() => "No requests to storage were recorded.".to_owned(),
        scope if scope.of_span => "It made no recorded calls on files.".to_owned(),
        _ => "No requests to storage match.".to_owned(),
    }
}

/// The work of a group, as in `spent 4 s`: `making a durable (3 fsync calls)`.
fn doing(group: &Group, sentence: &mut Sentence) {
    let verb = match group.activity {
        Activity::Sync => "making",
        Activity::Read => "reading",
        Activity::Write => "writing",
        Activity::Transfer => "copying",
        Activity::Find => "looking up, opening and listing files",
        Activity::Remove => "removing files",
        Activity::Change => "creating, renaming and changing files",
        Activity::Lock => "locking",
        Activity::Fault => "in page faults on",
        Activity::Other => "in other calls on",
    };
    sentence.push(verb);
    let objectless = matches!(
        group.activity,
        Activity::Find | Activity::Remove | Activity::Change
    );
    let mut of_all = "";
    if !objectless {
        sentence.push(" ");
        let aside = object(group, sentence);
        if group.activity == Activity::Sync {
            sentence.push(if aside { ", durable" } else { " durable" });
        }
        // Not of the file alone that was named last.
        if aside {
            of_all = " on all of them";
        }
    }
    let mut how = match group.activity {
        Activity::Fault => counted(group.requests, "page fault", "page faults"),
        _ => {
            let noun = if group.asynchronous {
                "operation"
            } else {
                "call"
            };
            let several = format!("{noun}s");
            counted(group.requests, noun, &several)
        }
    };
    // Of several calls, other verbs say enough.
    let is_named = match group.activity {
        Activity::Sync | Activity::Lock | Activity::Other => true,
        Activity::Fault => false,
        _ => group.requests == 1,
    };
    if group.one_call && is_named {
        how = how.replacen(' ', &format!(" {} ", group.syscall), 1);
    }
    if group.bytes > 0 && !objectless {
        how = format!("{} in {how}", bytes(group.bytes));
    }
    sentence.push(format!(" ({how}{of_all}, the longest "));
    sentence.link(
        duration(group.longest_ns),
        Link::Request {
            rid: group.longest_rid,
        },
    );
    if !group.one_call {
        sentence.push(format!(" in {}", group.longest_syscall));
    }
    sentence.push(")");
}

/// The files of a group; whether an aside about one of several ends it.
fn object(group: &Group, sentence: &mut Sentence) -> bool {
    let several = match group.files {
        0 | 1 => "files".to_owned(),
        n => counted(n, "file", "files"),
    };
    let (Some(file_id), Some(path)) = (group.file_id, &group.path) else {
        sentence.push(several);
        return false;
    };
    let share = group.file_ns as f64 / group.total_ns.max(1) as f64;
    // Requests on an unknown file are not among the files.
    let alone = group.files == 1 && group.file_ns == group.total_ns;
    if !alone {
        sentence.push(several);
        if share < MOST {
            return false;
        }
        sentence.push(", mostly ");
    }
    sentence.link(path.clone(), Link::File { file_id });
    !alone
}

/// The program of a group.
fn program(group: &Group, sentence: &mut Sentence) {
    match group.pid {
        Some(pid) => {
            let name = format!("{} (PID {pid})", group.comm);
            sentence.link(name, Link::Process { pid });
        }
        None => {
            let comm = group.comm.clone();
            sentence.link(comm.clone(), Link::Comm { comm });
            if group.processes > 1 {
                sentence.push(format!(" ({} processes)", count(group.processes)));
            }
        }
    }
}

/// The first sentence about many requests.
fn many(facts: &Facts, group: &Group, meta: &SessionMeta, scope: &Scope) -> Sentence {
    let mut sentence = Sentence::default();
    let span = facts.span_ns;
    let of_span = |ns: i64| percent(ns as f64 / span.max(1) as f64);
    let keep = meta.history.keep.as_ref();
    let kept = keep.is_some_and(|keep| keep.complete_from_ns.is_some());
    let run = match (scope.has_window(), meta.command.is_empty()) {
        (true, _) if scope.of_span => format!("these {}", duration(span)),
        (true, _) => format!("this window of {}", duration(span)),
        (false, _) if kept => format!("the last {} that were kept", duration(span)),
        (false, false) => format!("the {} run", duration(span)),
        (false, true) => format!("the {} recording", duration(span)),
    };
    let little = storage_share(facts).filter(|share| *share < LITTLE && scope.is_whole());
    of_rows(facts, scope, little.is_some(), &mut sentence);
    if let Some(share) = little {
        sentence.push(format!(
            "Storage did not hold this program up: requests were under way for {} at most of {run}; ",
            percent(share)
        ));
        program(group, &mut sentence);
        sentence.push(spent(group));
        sentence.push(part_of_all(facts, group)).push(" ");
        doing(group, &mut sentence);
        sentence.push(".");
        return sentence;
    }
    program(group, &mut sentence);
    sentence.push(spent(group));
    match group.wall_ns {
        Some(wall) => {
            sentence.push(format!("{} ({} of {run}) ", duration(wall), of_span(wall)));
        }
        None => {
            sentence.push(format!(
                "{} of its threads' time in {run} ",
                duration(group.total_ns)
            ));
        }
    }
    doing(group, &mut sentence);
    let wall = group.wall_ns.unwrap_or(i64::MAX);
    let at_once = !group.asynchronous && group.threads > 1;
    if at_once && group.spent_ns as f64 > wall as f64 * 1.5 {
        sentence.push(format!(
            ", {} in total over {}",
            duration(group.spent_ns),
            counted(group.threads, "thread", "threads")
        ));
    }
    let second = facts.groups.get(1);
    let second = second.filter(|second| {
        second.total_ns as f64 >= facts.total_ns as f64 * SECOND
            && second
                .wall_ns
                .is_none_or(|wall| wall as f64 >= span as f64 * LITTLE)
    });
    if let Some(second) = second {
        sentence.push("; ");
        match second.comm == group.comm {
            true => sentence.push("it"),
            false => sentence.link(
                second.comm.clone(),
                Link::Comm {
                    comm: second.comm.clone(),
                },
            ),
        };
        let ns = second.wall_ns.unwrap_or(second.total_ns);
        sentence.push(format!("{}{} ", spent(second), duration(ns)));
        doing(second, &mut sentence);
    }
    sentence.push(".");
    sentence
}

/// The verb for the time of a group: no thread waits in operations.
fn spent(group: &Group) -> &'static str {
    match group.asynchronous {
        true => " had requests under way for ",
        false => " spent ",
    }
}

/// The first sentence about one request.
fn one(facts: &Facts, group: &Group, rid: i64) -> Sentence {
    let mut sentence = Sentence::default();
    let single = facts.single.clone().unwrap_or_default();
    let syscall = group.syscall.clone();
    let name = match group.activity {
        Activity::Fault => "The page fault".to_owned(),
        _ => format!("This {syscall}"),
    };
    sentence.link(name, Link::Request { rid });
    if let (Some(file_id), Some(path)) = (group.file_id, &group.path) {
        sentence.push(" on ");
        sentence.link(path.clone(), Link::File { file_id });
    }
    sentence.push(" by ");
    let who = format!("{} (TID {})", group.comm, single.tid);
    sentence.link(who, Link::Thread { tid: single.tid });
    sentence.push(if single.pending {
        " had not ended after "
    } else {
        " took "
    });
    sentence.push(duration(group.total_ns));
    if let Some(usual) = single.p50_ns.filter(|ns| *ns > 0) {
        let times = group.total_ns as f64 / usual as f64;
        if times >= SLOW {
            sentence.push(format!(
                ", {} times the median of {} ({})",
                count(times.round() as i64),
                counted_calls(&syscall),
                duration(usual)
            ));
        } else {
            sentence.push(format!(
                "; the median of {} is {}",
                counted_calls(&syscall),
                duration(usual)
            ));
        }
    }
    if let Some(errno) = &single.errno {
        sentence.push(format!(", and failed with {errno}"));
    }
    sentence.push(".");
    sentence
}

fn counted_calls(syscall: &str) -> String {
    format!("this process's {syscall} calls")
}

/// The processes that were ahead in the device, if that held up a good part of the time of block
/// requests there.
fn matters_ahead<'a>(facts: &'a Facts, device: &str) -> impl Iterator<Item = &'a Ahead> {
    let on_device = facts.blocks.iter().filter(|block| block.device == device);
    let all_ns: i64 = on_device
        .map(|block| block.queue_ns.saturating_add(block.device_ns))
        .fold(0, i64::saturating_add);
    let held = move |ahead: &&Ahead| ahead.behind_ns as f64 >= all_ns as f64 * HELD_UP;
    let device = device.to_owned();
    let of_device = facts
        .ahead
        .iter()
        .filter(move |ahead| ahead.device == device);
    of_device.filter(held)
}

/// The process whose block requests were mostly ahead in the device, when it is another
/// one and `cause` is a device or its queue.
fn other_ahead<'a>(facts: &'a Facts, cause: &Cause) -> Option<&'a Ahead> {
    let (Cause::Device { device } | Cause::Queue { device }) = cause else {
        return None;
    };
    let ahead = || matters_ahead(facts, device);
    let all: i64 = ahead().map(|ahead| ahead.bytes).sum();
    let first = ahead().max_by_key(|ahead| ahead.bytes)?;
    let mostly = first.bytes as f64 >= all as f64 * MOST_AHEAD;
    (mostly && !first.own && first.requests_milli >= SOME_AHEAD).then_some(first)
}

/// The causes that the sentence names, and their places.
fn named(facts: &Facts, total_ns: i64) -> impl Iterator<Item = (usize, &Share)> {
    let causes = facts.causes.iter().enumerate().take(NAMED);
    causes.filter(move |(i, share)| *i == 0 || share.self_ns as f64 >= total_ns as f64 * SECOND)
}

/// The causes that the requests waited for.
fn cause_sentence(facts: &Facts, group: &Group, total_ns: i64, scope: &Scope) -> Sentence {
    let mut sentence = Sentence::default();
    let share_of = |share: &Share| share.self_ns as f64 / total_ns as f64;
    let whole = match (scope.request.is_some(), facts.first_only) {
        (true, _) => "it".to_owned(),
        (false, true) => "that time".to_owned(),
        // Of a request that is partly in the window, the causes have all of its time.
        (false, false) if scope.has_window() => {
            format!("all {} that these requests took", duration(total_ns))
        }
        (false, false) => format!("all {} in requests", duration(total_ns)),
    };
    for (i, share) in named(facts, total_ns) {
        if i > 0 {
            sentence.push("; ");
        }
        sentence.push(percent(share_of(share)));
        if i == 0 {
            sentence.push(format!(" of {whole}"));
        }
        sentence.push(" ");
        // A device and its queue have the same block requests: once is enough.
        let detail = i == 0
            || facts
                .causes
                .first()
                .is_some_and(|first| !first.cause.is_disk());
        let other = other_ahead(facts, &share.cause);
        explain(facts, group, &share.cause, other, detail, &mut sentence);
    }
    sentence.push(".");
    sentence
}

/// The cause of a part of the time, in words.
fn explain(
    facts: &Facts,
    group: &Group,
    cause: &Cause,
    other: Option<&Ahead>,
    detail: bool,
    sentence: &mut Sentence,
) {
    let block = |device: &str| facts.blocks.iter().find(|block| block.device == device);
    match cause {
        Cause::Queue { device } => {
            sentence.push("was spent waiting in the queue of ");
            sentence.link(
                device.clone(),
                Link::Device {
                    device: device.clone(),
                },
            );
            if detail {
                behind(facts, device, other, sentence);
            }
            if let Some(block) = block(device).filter(|_| detail) {
                sentence.push(format!(
                    "; {device} itself took {} for {}",
                    duration(block.device_ns),
                    requests_of(block)
                ));
            }
        }
        Cause::Device { device } => {
            sentence.push("passed while ");
            sentence.link(
                device.clone(),
                Link::Device {
                    device: device.clone(),
                },
            );
            sentence.push(" served ");
            match block(device).filter(|_| detail) {
                Some(block) => {
                    sentence.push(requests_of(block));
                    if let Some(p50) = block.device_p50_ns.filter(|_| block.requests > 1) {
                        sentence.push(format!(", half of them in {} or less", duration(p50)));
                    }
                    let queued = block.queue_ns.checked_div(block.requests).unwrap_or(0);
                    if block.queue_ns as f64 >= block.device_ns as f64 * QUEUED {
                        let mean = if block.requests > 1 {
                            " on average"
                        } else {
                            ""
                        };
                        sentence.push(format!(", after {} in its queue{mean}", duration(queued)));
                    }
                }
                None => {
                    sentence.push("them");
                }
            }
            if detail {
                behind(facts, device, other, sentence);
            }
        }
        Cause::Cpu => {
            sentence.push("passed while ");
            sentence.push(if group.threads > 1 {
                "threads were"
            } else {
                "the thread was"
            });
            sentence.push(" ready to run, but other threads had the CPUs");
        }
        Cause::Sleep { reason, waker } => {
            sentence.push("was spent asleep");
            match waker {
                Some(waker) if waker.starts_with("jbd2/") => {
                    sentence.push(" until ");
                    sentence.link(
                        waker.clone(),
                        Link::Comm {
                            comm: waker.clone(),
                        },
                    );
                    sentence.push(
                        ", the kernel's thread that commits the file system's journal, was done",
                    );
                }
                Some(waker) if waker.starts_with("kworker/") => {
                    sentence.push(format!(", mostly until a kernel worker ({waker}) was done"));
                }
                Some(waker) => {
                    sentence.push(", mostly until ");
                    sentence.link(
                        waker.clone(),
                        Link::Comm {
                            comm: waker.clone(),
                        },
                    );
                    sentence.push(match reason.as_deref() {
                        Some("lock" | "file_lock" | "futex") => {
                            " woke it, as the holder of a lock does"
                        }
                        Some(_) | None => " woke it",
                    });
                }
                None => {
                    match awaited(reason.as_deref()) {
                        Awaited::Several => sentence.push(", for several reasons"),
                        Awaited::Unknown => sentence.push(", for a reason that was not seen"),
                        Awaited::For(event) => sentence.push(format!(", waiting for {event}")),
                    };
                }
            }
        }
        Cause::Kernel { layer, asleep_too } => {
            let text = match layer.as_str() {
                "fs" if *asleep_too => "passed in the file system",
                "pagecache" if *asleep_too => "passed in the page cache",
                "vfs" if *asleep_too => "passed in the kernel's VFS",
                "block" if *asleep_too => "passed in the submission of block requests",
                _ if *asleep_too => "passed in the calls",
                "fs" => "was the file system's work",
                "pagecache" => "was the page cache's work",
                "vfs" => "was work in the kernel's VFS",
                "block" => "was the submission of block requests",
                _ => "was the kernel's own work for the calls, on the CPU",
            };
            sentence.push("");
            sentence.link(
                text,
                Link::Layer {
                    layer: layer.clone(),
                },
            );
        }
        Cause::Server { layer } => {
            sentence.push(match layer.as_str() {
                "nfs" => "passed at an NFS server or on the way to it",
                _ => "passed in the server of a FUSE file system",
            });
        }
        Cause::Interrupts => {
            sentence.push("went to interrupts that took the CPU");
        }
        Cause::Unseen => {
            sentence.push(
                "passed between submission and completion without a device at work: the kernel or a \
                 worker thread of it had the operations, or they waited to be begun",
            );
        }
    }
}

/// The process that was ahead of the block requests.
fn behind(facts: &Facts, device: &str, other: Option<&Ahead>, sentence: &mut Sentence) {
    let own = || {
        let mut own = matters_ahead(facts, device).filter(|ahead| ahead.own);
        own.find(|ahead| ahead.requests_milli >= SOME_AHEAD)
    };
    let (ahead, own) = match (other, own()) {
        (Some(ahead), _) => (ahead, false),
        (None, Some(ahead)) => (ahead, true),
        (None, None) => return,
    };
    let number = ahead.requests_milli as f64 / 1000.0;
    let number = match number < 10.0 {
        true => format!("{number:.1}"),
        false => count(number.round() as i64),
    };
    sentence.push(format!(
        ", where {} had {number} requests ({}) of ",
        counted(ahead.behind, "block request", "block requests"),
        bytes(ahead.bytes)
    ));
    let name = match (ahead.pid, ahead.processes) {
        (Some(pid), _) => format!("{} (PID {pid})", ahead.comm),
        (None, 2..) => format!("{} ({} processes)", ahead.comm, count(ahead.processes)),
        (None, _) => ahead.comm.clone(),
    };
    // Its calls may not have been recorded, but its requests to the device were.
    let device = device.to_owned();
    match own {
        true => sentence.push("the same program"),
        false => sentence.link(name, Link::Device { device }),
    };
    if !own && is_write_back(&ahead.comm) {
        sentence.push(", a kernel thread that writes back data,");
    }
    sentence.push(match ahead.behind {
        1 => " ahead",
        _ => " ahead of each on average",
    });
}

fn requests_of(block: &Block) -> String {
    let noun = match (block.reads, block.requests) {
        (0, 1) => "block request",
        (0, _) => "block requests",
        (1, 1) => "read",
        (reads, all) if reads == all => "reads",
        _ => "block requests",
    };
    format!("{} {noun} ({})", count(block.requests), bytes(block.bytes))
}

fn counted(n: i64, one: &str, several: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { several })
}
