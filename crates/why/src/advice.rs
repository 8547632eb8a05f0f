//! Advice, by where the time went.

use fathom_diagnose::{Activity, Finding};
use fathom_model::kind::Kind;
use fathom_model::syscalls::Syscall;

use crate::causes::{Cause, Share};
use crate::facts::{Ahead, Group};
use crate::sentence::{Link, Sentence};

/// A finding with this share of the time explains it.
const EXPLAINS: f64 = 0.1;

/// Name of the program that records.
const RECORDER: &str = "fathom";

/// A cause with this share of the time is the one that it is about.
const MOST: f64 = 0.5;

/// Reasons of waits that another program ends: what it did meanwhile is the cause.
const ENDED_ELSEWHERE: [&str; 3] = ["socket", "pipe", "poll"];

/// The finding that says what to change about the requests of `group`: the costliest one about
/// their program or file, when it claims a good part of `total_ns`.
fn finding_for<'a>(findings: &'a [Finding], group: &Group, total_ns: i64) -> Option<&'a Finding> {
    let about = |finding: &&Finding| {
        let subject = &finding.subject;
        let file = subject.file_id.is_none_or(|id| group.file_id == Some(id));
        let program = match (subject.pid, &subject.comm) {
            (Some(pid), _) if group.pid.is_some() => group.pid == Some(i64::from(pid)),
            (_, Some(comm)) => *comm == group.comm,
            _ => true,
        };
        // Of what the story is about: a finding about look-ups explains no syncs.
        let example = finding.examples.first();
        let call = example.and_then(|example| Syscall::named(example.syscall.as_bytes()));
        let activity = call.is_none_or(|call| {
            let of = Activity::of(call.kind);
            let opens = |name: &str| {
                Syscall::named(name.as_bytes()).map(|call| call.kind) == Some(Kind::Open)
            };
            let makes = group.activity == Activity::Change && opens(&group.syscall);
            of == group.activity || call.kind == Kind::Open && makes
        });
        let cost = finding.cost_ns.unwrap_or(0);
        file && program && activity && cost as f64 >= total_ns as f64 * EXPLAINS && cost > 0
    };
    findings
        .iter()
        .filter(about)
        .max_by_key(|finding| finding.cost_ns)
}

/// The cause that the advice is about. Waiting for a CPU is one only where it has most of the time:
/// a busy machine adds such waits to everything. Time in devices, in their queues, and asleep until one was done
/// is one cause in pieces.
pub(crate) fn advised(causes: &[Share], total_ns: i64) -> Option<&Cause> {
    let first = causes.first()?;
    let mostly = first.self_ns as f64 >= total_ns as f64 * MOST;
    let disk = causes.iter().filter(|share| {
        let asleep =
            matches!(&share.cause, Cause::Sleep { reason: Some(reason), .. } if reason == "disk");
        asleep || share.cause.is_disk()
    });
    let disk_ns = disk.fold(0, |sum: i64, share| sum.saturating_add(share.self_ns));
    let largest = causes.iter().find(|share| share.cause.is_disk());
    if let Some(share) = largest.filter(|_| !mostly && disk_ns > first.self_ns) {
        return Some(&share.cause);
    }
    let other = causes.iter().find(|share| share.cause != Cause::Cpu);
    Some(match (&first.cause, other) {
        (Cause::Cpu, Some(other)) if !mostly => &other.cause,
        (first, _) => first,
    })
}

/// Advice: from the finding that explains the time, or else for the cause
/// with most of it, if that is known of these requests. `None` where there is nothing to say.
pub(crate) fn advice(
    findings: &[Finding],
    group: &Group,
    cause: Option<&Cause>,
    other: Option<&Ahead>,
    total_ns: i64,
) -> Option<Sentence> {
    let mut sentence = Sentence::default();
    // A program that waits for another's requests gains little by other I/O.
    let finding = finding_for(findings, group, total_ns).filter(|_| other.is_none());
    if let Some(finding) = finding {
        sentence.push(first_sentence(&finding.advice)).push(" (");
        let rule = finding.rule.to_owned();
        sentence
            .link(rule.clone(), Link::Finding { rule })
            .push(").");
        return Some(sentence);
    }
    let data = matches!(
        group.activity,
        Activity::Read | Activity::Write | Activity::Transfer
    );
    match cause? {
        Cause::Queue { device } | Cause::Device { device }
            if other.is_some_and(|ahead| is_write_back(&ahead.comm)) =>
        {
            sentence.push(format!(
                "These are data that programs wrote earlier, and that the kernel writes to {device} in \
                 bursts: make the bursts smaller (vm.dirty_background_bytes, vm.dirty_bytes), or write \
                 less."
            ));
        }
        Cause::Queue { .. } | Cause::Device { .. }
            if other.is_some_and(|ahead| ahead.comm == RECORDER) =>
        {
            sentence.push(
                "These were requests of the recorder, which was being loaded: record once more.",
            );
        }
        Cause::Queue { device } | Cause::Device { device } if let Some(ahead) = other => {
            // The name alone would mean the program that waits, too.
            let name = match (ahead.comm == group.comm, ahead.pid) {
                (false, _) => ahead.comm.clone(),
                (true, Some(pid)) => format!("{} (PID {pid})", ahead.comm),
                (true, None) => format!("the other processes named {}", ahead.comm),
            };
            sentence.push(format!(
                "Give {name} a smaller share of {device} (ionice -c 3, or io.weight or io.max of its \
                 cgroup), run it at another time, or move it to another device."
            ));
        }
        Cause::Queue { device } => {
            sentence.push(format!(
                "Have fewer requests under way on {device} at once: they wait for each other."
            ));
        }
        Cause::Device { device } => {
            let text = match group.activity {
                Activity::Sync => format!(
                    "Sync less often, with several changes for each sync, or put the file on a device \
                     that makes writes durable faster than {device}."
                ),
                Activity::Read | Activity::Fault => format!(
                    "Keep more of the data in memory, read it ahead or in larger pieces, or read with \
                     more requests under way at once, if {device} serves several at a time."
                ),
                Activity::Write => {
                    "Write in larger pieces, or with more requests under way at once.".to_owned()
                }
                Activity::Find => {
                    "Keep files open, look up and list less, or read the directories \
                                   into memory before."
                        .to_owned()
                }
                _ => return None,
            };
            sentence.push(text);
        }
        Cause::Cpu => {
            sentence.push("Give the program more CPU time, or run fewer busy threads next to it.");
        }
        Cause::Sleep {
            waker: Some(waker), ..
        } if waker.starts_with("jbd2/") => {
            sentence.push(
                "Make each commit of the file system's journal rarer or smaller: sync less often, \
                 and preallocate and overwrite instead of growing files, so that fdatasync has no \
                 metadata to commit.",
            );
        }
        Cause::Sleep {
            reason: Some(reason),
            ..
        } if ENDED_ELSEWHERE.contains(&reason.as_str()) => {
            let rid = group.longest_rid;
            sentence
                .push(
                    "See which program ended the longest of these waits, and its work meanwhile: ",
                )
                .push("`fathom critical-path SESSION --request ")
                .link(rid.to_string(), Link::Request { rid })
                .push("`. A program that was not recorded has to be recorded, too.");
        }
        Cause::Sleep { .. } if group.activity == Activity::Lock => {
            sentence.push("Hold the lock for less time, or lock less of the file.");
        }
        Cause::Sleep { .. } if group.threads > 1 && data => {
            sentence.push(
                "Have the threads work on different files, or on ranges that they do not share: the \
                 kernel lets one thread at a time change a file.",
            );
        }
        // The time may be of sleep, which the advice does not shorten.
        Cause::Kernel {
            asleep_too: true, ..
        } => return None,
        Cause::Kernel { layer, .. } => {
            let text = match (group.activity, layer.as_str()) {
                (Activity::Find, _) => {
                    "The time is the kernel's work for each call: keep files open, and remember what \
                     was looked up."
                }
                (Activity::Read | Activity::Write | Activity::Transfer, _) => {
                    "Make fewer and larger calls: the largest part of the time is the kernel's work for \
                     each of them."
                }
                (Activity::Change, _) if group.files == 1 => {
                    "The time is the file system's work for each call: keep the file open, or change it \
                     less often."
                }
                (Activity::Remove | Activity::Change, _) => {
                    "The time is the file system's work for each name: have fewer files."
                }
                (Activity::Sync, _) => "Sync less often, with several changes for each sync.",
                _ => return None,
            };
            sentence.push(text);
        }
        Cause::Server { layer } => {
            sentence.push(match layer.as_str() {
                "nfs" => {
                    "Look at the NFS server and the network: they had the requests. \
                     Fewer and larger calls, and `actimeo` or `nocto` where others do not change \
                     the files, make fewer requests."
                }
                _ => "Look at the server of the FUSE file system: it had the requests.",
            });
        }
        Cause::Sleep { .. } | Cause::Interrupts | Cause::Unseen => return None,
    }
    Some(sentence)
}

/// Whether a thread of this name writes back for programs: no one can give it a smaller share.
pub(crate) fn is_write_back(comm: &str) -> bool {
    comm.starts_with("kworker/") || comm.starts_with("flush-")
}

/// The first sentence of a text, without its full stop.
fn first_sentence(text: &str) -> &str {
    let ends = |at: usize| {
        let head = text.get(..at).unwrap_or_default();
        let next = text.get(at..).and_then(|rest| rest.chars().nth(2));
        let inside = head.matches('(').count() > head.matches(')').count();
        !inside && !head.ends_with('.') && next.is_some_and(char::is_uppercase)
    };
    let mut stops = text.match_indices(". ").map(|(at, _)| at);
    let end = stops.find(|at| ends(*at)).unwrap_or(text.len());
    text.get(..end).unwrap_or(text).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::{advised, first_sentence};
    use crate::causes::{Cause, Share};

    #[test]
    fn a_device_and_its_queue_and_the_sleep_until_it_was_done_are_one_cause() {
        let kernel = Cause::Kernel {
            layer: "vfs".to_owned(),
            asleep_too: false,
        };
        let device = Cause::Device {
            device: "vda".to_owned(),
        };
        let queue = Cause::Queue {
            device: "vda".to_owned(),
        };
        let asleep = |reason: &str| Cause::Sleep {
            reason: Some(reason.to_owned()),
            waker: None,
        };
        let causes = |shares: &[(&Cause, i64)]| -> Vec<Share> {
            let share = |(cause, self_ns): &(&Cause, i64)| Share {
                cause: (*cause).clone(),
                self_ns: *self_ns,
            };
            shares.iter().map(share).collect()
        };
        let (disk, page) = (asleep("disk"), asleep("page_cache"));
        let pieces = causes(&[(&kernel, 41), (&device, 24), (&disk, 22), (&queue, 5)]);
        assert_eq!(advised(&pieces, 100), Some(&device));
        let other = causes(&[(&kernel, 41), (&device, 24), (&page, 22), (&queue, 5)]);
        assert_eq!(advised(&other, 100), Some(&kernel));
        let mostly = causes(&[(&kernel, 51), (&device, 24), (&disk, 22), (&queue, 3)]);
        assert_eq!(advised(&mostly, 100), Some(&kernel));
        let busy = causes(&[(&Cause::Cpu, 40), (&queue, 30), (&device, 20)]);
        assert_eq!(advised(&busy, 100), Some(&queue));
    }

    #[test]
    fn advice_is_cut_at_its_first_sentence() {
        assert_eq!(first_sentence("Do a (x.y). Then b."), "Do a (x.y)");
        assert_eq!(first_sentence("Do a."), "Do a");
        let nested = "Use one (BEGIN ... COMMIT. Yes) or two, e.g. three. Then stop.";
        assert_eq!(
            first_sentence(nested),
            "Use one (BEGIN ... COMMIT. Yes) or two, e.g. three"
        );
        assert_eq!(first_sentence(""), "");
    }
}
