//! Where the time of requests went.

use std::collections::BTreeMap;

use serde::Serialize;

/// A waker that ended this share of the time asleep is named.
const MOST: f64 = 0.5;

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
        /// The reason of most of the time: as column `reason` of table `waits`, and null if no reason has
        /// most of the time.
        reason: Option<String>,
        /// The thread or event that mostly woke it; null when that was not seen.
        waker: Option<String>,
    },
    /// The kernel worked in their thread: copies, look-ups, the file system.
    Kernel {
        /// The layer, as in table `slices`.
        layer: String,
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
            Cause::Sleep { reason: None, .. } => f.write_str("asleep, waker not seen"),
            Cause::Sleep { reason, .. } => {
                write!(f, "waiting for {}", awaited(reason.as_deref()))
            }
            Cause::Kernel { layer } => match layer.as_str() {
                "fs" => f.write_str("file system"),
                "pagecache" => f.write_str("page cache"),
                "vfs" => f.write_str("VFS"),
                "block" => f.write_str("submission to devices"),
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

/// The thing or event that a thread waits for, by the reason of the wait.
pub(crate) fn awaited(reason: Option<&str>) -> &'static str {
    match reason.unwrap_or_default() {
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

/// Where the time of the requests went: `total_ns` of calls, and of operations of io_uring and AIO.
pub(crate) fn causes(
    layers: impl Iterator<Item = Layer>,
    sleeps: &[Sleep],
    total_ns: [i64; 2],
) -> Vec<Share> {
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
            "block" if name == "submit_bio" => add(Cause::Kernel { layer }, self_ns),
            "block" => add(Cause::Queue { device: name }, self_ns),
            "sched" => asleep_ns = asleep_ns.saturating_add(self_ns),
            "fuse" | "nfs" => add(Cause::Server { layer }, self_ns),
            "irq" => add(Cause::Interrupts, self_ns),
            _ => add(Cause::Kernel { layer }, self_ns),
        }
    }
    let layer = "syscall".to_owned();
    add(Cause::Kernel { layer }, of_calls.max(0));
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
        let reasons = sleeps.iter().map(|sleep| (&sleep.reason, sleep.slept_ns));
        Self {
            cpu_ns,
            reason: most(slept_ns, reasons),
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
