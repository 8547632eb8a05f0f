//! Where the time of requests went.

use std::collections::BTreeMap;

use serde::Serialize;

/// A waker that ended this share of the time asleep is named.
const MOST: f64 = 0.5;
/// The reason of sleep of which most is in no row of table `waits`.
const UNKNOWN: &str = "unknown";

/// Why requests took time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// The device worked on their block requests.
    Device {
        /// Its name.
        device: String,
    },
    /// Their block requests waited in the queue of the device, or for a place in it.
    Queue {
        /// Name of the device.
        device: String,
    },
    /// Their thread could run, and waited for a CPU.
    Cpu,
    /// Their thread slept until another thread or an event woke it.
    Sleep {
        /// The reason of most of the time: as column `reason` of table `waits`, unknown if the rows have
        /// less than half of the time, and null if no reason has most of the time.
        reason: Option<String>,
        /// The thread or event that mostly woke it; null when that was not seen.
        waker: Option<String>,
    },
    /// The kernel worked in their thread: copies, look-ups, the file system.
    Kernel {
        /// The layer, as in table `slices`.
        layer: String,
        /// Time asleep is in it, as layer sched was not recorded.
        asleep_too: bool,
    },
    /// A server had them: of a FUSE file system, or of NFS, the way there and back included.
    Server {
        /// The layer, as in table `slices`.
        layer: String,
    },
    /// Interrupts took the CPU.
    Interrupts,
    /// Operations of io_uring and AIO had been submitted and not completed, and nothing below them
    /// was seen: no thread is in them, and which worker of the kernel has one is not known.
    Unseen,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Device { device } => write!(f, "{device} at work"),
            Cause::Queue { device } => write!(f, "queue of {device}"),
            Cause::Cpu => f.write_str("waiting for a CPU"),
            Cause::Sleep {
                waker: Some(waker), ..
            } => write!(f, "asleep, mostly until {waker}"),
            Cause::Sleep { reason, .. } => match awaited(reason.as_deref()) {
                Awaited::Several => f.write_str("asleep, for several reasons"),
                Awaited::Unknown => f.write_str("asleep, reason not seen"),
                Awaited::For(event) => write!(f, "waiting for {event}"),
            },
            Cause::Kernel { layer, asleep_too } => match layer.as_str() {
                "fs" => f.write_str("file system"),
                "pagecache" => f.write_str("page cache"),
                "vfs" => f.write_str("VFS"),
                "block" => f.write_str("submission to devices"),
                _ if *asleep_too => f.write_str("in calls, on CPU or asleep"),
                _ => f.write_str("running kernel code"),
            },
            Cause::Server { layer } if layer == "nfs" => f.write_str("NFS server"),
            Cause::Server { .. } => f.write_str("FUSE server"),
            Cause::Interrupts => f.write_str("interrupts"),
            Cause::Unseen => f.write_str("submitted, no device at work"),
        }
    }
}

impl Cause {
    /// Whether the block requests were in a device or in its queue.
    pub(crate) fn is_disk(&self) -> bool {
        matches!(self, Self::Device { .. } | Self::Queue { .. })
    }

    /// Whether what to change about it depends on what the calls do.
    pub(crate) fn depends_on_calls(&self) -> bool {
        matches!(
            self,
            Self::Device { .. } | Self::Kernel { .. } | Self::Sleep { .. }
        )
    }
}

/// The thing or event that threads wait for.
pub(crate) enum Awaited {
    /// Several, none of which has most of the time.
    Several,
    /// It was not seen.
    Unknown,
    /// This one.
    For(&'static str),
}

/// The same by the reason of the wait.
pub(crate) fn awaited(reason: Option<&str>) -> Awaited {
    Awaited::For(match reason {
        None => return Awaited::Several,
        Some(UNKNOWN) => return Awaited::Unknown,
        Some(reason) => event_of(reason),
    })
}

fn event_of(reason: &str) -> &'static str {
    match reason {
        "disk" => "a device",
        "page_cache" => "a page, or memory for one",
        "file_system" => "other work of the file system",
        "lock" => "a lock of the kernel",
        "file_lock" => "a lock on a file",
        "futex" => "a lock or a condition of the program",
        "socket" => "the other end of a socket",
        "pipe" => "the other end of a pipe",
        "terminal" => "a terminal",
        "timer" => "a timer",
        "poll" => "a socket, a pipe, or an event",
        "child" => "a child process",
        "async_io" => "asynchronous I/O",
        "swap" => "memory",
        "page_fault" => "the page of a mapped file",
        _ => "a lock or an event",
    }
}

/// A share of time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Share {
    /// Why.
    #[serde(flatten)]
    pub cause: Cause,
    /// How much of the requests' time, nanoseconds.
    pub self_ns: i64,
}

/// Time of requests in a layer.
pub(crate) struct Layer {
    pub layer: String,
    /// Of layers block and device, the name of the visit; else empty.
    pub name: String,
    /// Whether the requests are operations of io_uring and AIO.
    pub operations: bool,
    pub self_ns: i64,
}

/// Time off the CPU. Sleep until a server answered is not in it, nor until a device did: the time is
/// theirs.
pub(crate) struct Sleep {
    /// Empty when it is not known.
    pub reason: String,
    pub waker: String,
    /// Time in which the thread could have run.
    pub cpu_ns: i64,
    pub slept_ns: i64,
}

/// Where the time of the requests went: `total_ns` of calls, and of operations of io_uring and AIO. Without
/// layer sched, the kernel's work is not distinguished from sleep.
pub(crate) fn causes(
    layers: impl Iterator<Item = Layer>,
    sleeps: &[Sleep],
    total_ns: [i64; 2],
    has_sched: bool,
) -> Vec<Share> {
    let kernel = |layer: String| Cause::Kernel {
        layer,
        asleep_too: !has_sched,
    };
    let mut shares: BTreeMap<Cause, i64> = BTreeMap::new();
    let mut add = |cause: Cause, ns: i64| {
        let sum = shares.entry(cause).or_default();
        *sum = sum.saturating_add(ns);
    };
    let mut asleep_ns = 0i64;
    let [mut of_calls, mut of_operations] = total_ns;
    for visits in layers {
        let Layer {
            layer,
            name,
            operations,
            self_ns,
        } = visits;
        let rest = if operations {
            &mut of_operations
        } else {
            &mut of_calls
        };
        *rest = rest.saturating_sub(self_ns);
        match layer.as_str() {
            "device" => add(Cause::Device { device: name }, self_ns),
            // The submission itself is the kernel's work.
            "block" if name == "submit_bio" => add(kernel(layer), self_ns),
            "block" => add(Cause::Queue { device: name }, self_ns),
            "sched" => asleep_ns = asleep_ns.saturating_add(self_ns),
            "fuse" | "nfs" => add(Cause::Server { layer }, self_ns),
            "irq" => add(Cause::Interrupts, self_ns),
            _ => add(kernel(layer), self_ns),
        }
    }
    add(kernel("syscall".to_owned()), of_calls.max(0));
    add(Cause::Unseen, of_operations.max(0));
    if asleep_ns > 0 {
        let sleeps = Sleeps::of(sleeps, asleep_ns);
        add(Cause::Cpu, sleeps.cpu_ns);
        let (reason, waker) = (sleeps.reason, sleeps.waker);
        let slept_ns = asleep_ns.saturating_sub(sleeps.cpu_ns);
        add(Cause::Sleep { reason, waker }, slept_ns);
    }
    let mut shares: Vec<Share> = shares
        .into_iter()
        .filter(|(_, self_ns)| *self_ns > 0)
        .map(|(cause, self_ns)| Share { cause, self_ns })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.self_ns));
    shares
}

/// The main reason of the time off the CPU.
struct Sleeps {
    /// Time in which threads could have run.
    cpu_ns: i64,
    /// The reason of most of the rest.
    reason: Option<String>,
    /// The thread that ended most of the rest.
    waker: Option<String>,
}

impl Sleeps {
    /// `asleep_ns`: the time off the CPU of which nothing below has any.
    fn of(sleeps: &[Sleep], asleep_ns: i64) -> Self {
        let cpu_ns = sleeps
            .iter()
            .fold(0i64, |sum, sleep| sum.saturating_add(sleep.cpu_ns))
            .min(asleep_ns);
        let slept_ns = asleep_ns.saturating_sub(cpu_ns);
        let threads = sleeps.iter().filter(|sleep| {
            !sleep.waker.starts_with("softirq:") && !sleep.waker.starts_with("irq:")
        });
        let reasons = || sleeps.iter().map(|sleep| (&sleep.reason, sleep.slept_ns));
        let known = reasons().filter(|(reason, _)| !reason.is_empty());
        let known_ns = known.fold(0i64, |sum, (_, ns)| sum.saturating_add(ns));
        let unknown = (known_ns as f64) < slept_ns as f64 * MOST;
        Self {
            cpu_ns,
            reason: match unknown {
                true => Some(UNKNOWN.to_owned()),
                false => most(slept_ns, reasons()),
            },
            waker: most(
                slept_ns,
                threads.map(|sleep| (&sleep.waker, sleep.slept_ns)),
            ),
        }
    }
}

/// The name with the largest sum, if that is most of `all`.
fn most<'a>(all: i64, parts: impl Iterator<Item = (&'a String, i64)>) -> Option<String> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, ns) in parts.filter(|(name, _)| !name.is_empty()) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
    let (name, ns) = sums.into_iter().max_by_key(|(_, ns)| *ns)?;
    (all > 0 && ns as f64 >= all as f64 * MOST).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Cause, Layer, Share, Sleep, causes};

    /// Causes of one call of 100 ns of which it slept 80 ns, by the reason and the time of each wait.
    fn of_sleep(waits: &[(&str, i64)], has_sched: bool) -> Vec<Share> {
        let asleep = Layer {
            layer: "sched".to_owned(),
            name: String::new(),
            operations: false,
            self_ns: 80,
        };
        let sleep = |(reason, slept_ns): &(&str, i64)| Sleep {
            reason: (*reason).to_owned(),
            waker: "softirq:BLOCK".to_owned(),
            cpu_ns: 0,
            slept_ns: *slept_ns,
        };
        let sleeps: Vec<Sleep> = waits.iter().map(sleep).collect();
        let layers = has_sched.then_some(asleep);
        causes(layers.into_iter(), &sleeps, [100, 0], has_sched)
    }

    #[test]
    fn sleep_has_the_name_of_its_reasons() {
        let name = |waits: &[(&str, i64)]| {
            let shares = of_sleep(waits, true);
            shares.first().map(|share| share.cause.to_string())
        };
        let is = |name: &str| Some(name.to_owned());
        let several = [("disk", 30), ("page_cache", 30), ("lock", 20)];
        assert_eq!(name(&several), is("asleep, for several reasons"));
        assert_eq!(
            name(&[("disk", 60), ("lock", 20)]),
            is("waiting for a device")
        );
        assert_eq!(name(&[("disk", 20)]), is("asleep, reason not seen"));
        assert_eq!(name(&[]), is("asleep, reason not seen"));
    }

    #[test]
    fn time_on_the_cpu_is_not_known_without_sched() {
        let names = |has_sched| -> Vec<String> {
            let shares = of_sleep(&[("disk", 80)], has_sched);
            shares.iter().map(|share| share.cause.to_string()).collect()
        };
        assert_eq!(names(true), ["waiting for a device", "running kernel code"]);
        assert_eq!(names(false), ["in calls, on CPU or asleep"]);
        let unknown = of_sleep(&[], false);
        let expected = Cause::Kernel {
            layer: "syscall".to_owned(),
            asleep_too: true,
        };
        assert!(unknown.iter().all(|share| share.cause == expected));
    }
}
