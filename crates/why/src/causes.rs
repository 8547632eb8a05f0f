//! Where the time of requests went.

use std::collections::BTreeMap;

use fathom_query::fetch::{Row, rows};
use fathom_query::{Db, QueryError};
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
            Cause::Sleep { waker: Some(waker) } => write!(f, "asleep, mostly until {waker}"),
            Cause::Sleep { waker: None } => f.write_str("asleep, waker not seen"),
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

/// Where the time of the requests went: `total_ns` of calls, and of operations of io_uring and AIO.
pub(crate) fn causes(db: &Db, focus: &str, total_ns: [i64; 2]) -> Result<Vec<Share>, QueryError> {
    let layers = rows(
        db,
        &format!(
            "{focus}
             SELECT layer, if(layer IN ('block', 'device'), name, '') AS name, asynchronous,
                 bounded(sum(self_ns)) AS self_ns
             FROM slices JOIN focus USING (rid) WHERE depth > 0 GROUP BY ALL"
        ),
        |row: Row<'_>| {
            let operations = row.int("asynchronous")? != 0;
            Ok((
                row.text("layer")?,
                row.text("name")?,
                operations,
                row.int("self_ns")?,
            ))
        },
    )?;
    let mut shares: BTreeMap<Cause, i64> = BTreeMap::new();
    let mut add = |cause: Cause, ns: i64| {
        let sum = shares.entry(cause).or_default();
        *sum = sum.saturating_add(ns);
    };
    let mut asleep_ns = 0i64;
    let [mut of_calls, mut of_operations] = total_ns;
    for (layer, name, operations, self_ns) in layers {
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
        let (cpu_ns, waker) = sleeps(db, focus, asleep_ns)?;
        add(Cause::Cpu, cpu_ns);
        add(Cause::Sleep { waker }, asleep_ns.saturating_sub(cpu_ns));
    }
    let mut shares: Vec<Share> = shares
        .into_iter()
        .filter(|(_, self_ns)| *self_ns > 0)
        .map(|(cause, self_ns)| Share { cause, self_ns })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.self_ns));
    Ok(shares)
}

/// How much of the time off the CPU, of which nothing below has `asleep_ns`, threads could have
/// run, and who mostly ended the rest. Sleep until a server answered is not in it.
fn sleeps(db: &Db, focus: &str, asleep_ns: i64) -> Result<(i64, Option<String>), QueryError> {
    let waits = rows(
        db,
        &format!(
            "{focus},
             served AS (
                 SELECT rid, ts_ns, ts_ns + dur_ns AS until_ns
                 FROM slices SEMI JOIN focus USING (rid) WHERE layer IN ('fuse', 'nfs')
             ),
             asleep AS (
                 SELECT coalesce(waker, '') AS waker, if(reason = 'cpu', dur_ns, run_queue_ns) AS cpu_ns,
                     if(reason = 'cpu' OR EXISTS (SELECT 1 FROM served WHERE served.rid = waits.rid
                             AND waits.ts_ns BETWEEN served.ts_ns AND served.until_ns),
                         0, dur_ns - coalesce(run_queue_ns, 0)) AS slept_ns
                 FROM waits SEMI JOIN focus USING (rid)
             )
             SELECT waker, bounded(coalesce(sum(cpu_ns), 0)) AS cpu_ns, bounded(coalesce(sum(slept_ns), 0)) AS slept_ns
             FROM asleep GROUP BY waker"
        ),
        |row: Row<'_>| Ok((row.text("waker")?, row.int("cpu_ns")?, row.int("slept_ns")?)),
    )?;
    let cpu_ns = waits
        .iter()
        .fold(0i64, |sum, (_, ns, _)| sum.saturating_add(*ns))
        .min(asleep_ns);
    // Interrupts end waits for devices, whose time is the device's.
    let threads = waits.into_iter().filter(|(waker, ..)| {
        !waker.is_empty() && !waker.starts_with("softirq:") && !waker.starts_with("irq:")
    });
    let mostly = threads.max_by_key(|(.., slept)| *slept);
    let slept_ns = asleep_ns.saturating_sub(cpu_ns);
    let waker = mostly
        .filter(|(.., ns)| *ns as f64 >= slept_ns as f64 * MOST && slept_ns > 0)
        .map(|(waker, ..)| waker);
    Ok((cpu_ns, waker))
}
