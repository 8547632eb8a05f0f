//! The machine as a whole: what its processors did, who wants them, its memory.

use std::fs;

use fathom_model::Batch;
use fathom_model::StringTable;
use fathom_model::batch::NULL_I64;
use fathom_model::tables::{MachineRow, MachineRows};
use fathom_probe::monotonic_ns;

/// A tick of /proc/stat, whatever the kernel's own are: USER_HZ in include/asm-generic/param.h.
const TICK_NS: i64 = 1_000_000_000 / 100;

/// Looks at the machine, and makes rows of table `machine` of the differences.
#[derive(Debug)]
pub(crate) struct Machine {
    before: Option<Look>,
}

/// The kernel's figures at one time.
#[derive(Debug, Default)]
struct Look {
    at_ns: i64,
    stat: Stat,
    /// Of processors, memory and I/O, nanoseconds since the machine started; `None` if the kernel
    /// does not keep it.
    stalled_ns: [Option<i64>; 3],
    memory: Memory,
}

/// Of /proc/stat.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stat {
    /// Ticks of user, nice, system, idle, iowait, irq, softirq and steal, since the machine started.
    ticks: [i64; 8],
    running: Option<i64>,
    blocked: Option<i64>,
}

/// Of /proc/meminfo, bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Memory {
    available: Option<i64>,
    cached: Option<i64>,
    dirty: Option<i64>,
    writeback: Option<i64>,
    swapped: Option<i64>,
}

impl Machine {
    /// Rows begin now.
    pub(crate) fn new() -> Self {
        Self {
            before: Look::now(),
        }
    }

    /// The time since the last row, as a row; `None` if /proc cannot be read.
    pub(crate) fn row(&mut self) -> Option<Batch> {
        let now = Look::now()?;
        let row = self.before.as_ref().map(|before| now.since(before));
        self.before = Some(now);
        let mut rows = MachineRows::default();
        rows.push(row?);
        Some(rows.into_batch(StringTable::new()))
    }
}

impl Look {
    fn now() -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{name}"));
        let stat = read("stat").ok()?;
        Some(Self {
            at_ns: monotonic_ns() as i64,
            stat: Stat::parse(&stat)?,
            stalled_ns: ["cpu", "memory", "io"]
                .map(|of| stalled_ns(&read(&format!("pressure/{of}")).ok()?)),
            memory: Memory::parse(&read("meminfo").unwrap_or_default()),
        })
    }

    fn since(&self, before: &Self) -> MachineRow {
        let ticks: [i64; 8] = std::array::from_fn(|at| self.stat.ticks[at] - before.stat.ticks[at]);
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
        // Whether a processor slept for I/O is settled when it wakes up: the kernel may take time
        // of one kind back then and add it to the other (tick_nohz_stop_idle).
        let slept = (idle + iowait).max(0);
        let idle = idle.clamp(0, slept);
        let [cpu, memory, io] = std::array::from_fn(|at| {
            let [now, then] = [self, before].map(|look| look.stalled_ns.get(at).copied().flatten());
            now.zip(then).map_or(NULL_I64, |(now, then)| now - then)
        });
        let or_null = |value: Option<i64>| value.unwrap_or(NULL_I64);
        MachineRow {
            ts_ns: before.at_ns,
            ended_at_ns: self.at_ns,
            user_ns: (user + nice).max(0) * TICK_NS,
            system_ns: system.max(0) * TICK_NS,
            interrupt_ns: (irq + softirq).max(0) * TICK_NS,
            iowait_ns: (slept - idle) * TICK_NS,
            idle_ns: idle * TICK_NS,
            steal_ns: steal.max(0) * TICK_NS,
            running_threads: or_null(self.stat.running),
            blocked_threads: or_null(self.stat.blocked),
            cpu_stalled_ns: cpu,
            memory_stalled_ns: memory,
            io_stalled_ns: io,
            available_bytes: or_null(self.memory.available),
            cached_bytes: or_null(self.memory.cached),
            dirty_bytes: or_null(self.memory.dirty),
            writeback_bytes: or_null(self.memory.writeback),
            swapped_bytes: or_null(self.memory.swapped),
        }
    }
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let mut ticks = value("cpu")?
            .split_whitespace()
            .map(|word| word.parse().ok());
        let mut stat = Self {
            running: value("procs_running").and_then(|word| word.parse().ok()),
            blocked: value("procs_blocked").and_then(|word| word.parse().ok()),
            ..Self::default()
        };
        for tick in &mut stat.ticks {
            *tick = ticks.next()??;
        }
        Some(stat)
    }
}

impl Memory {
    fn parse(text: &str) -> Self {
        let bytes = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib * 1024)
        };
        let swap = bytes("SwapTotal").zip(bytes("SwapFree"));
        Self {
            available: bytes("MemAvailable"),
            cached: bytes("Cached"),
            dirty: bytes("Dirty"),
            writeback: bytes("Writeback"),
            swapped: swap.map(|(total, free)| total - free),
        }
    }
}

/// Of a file of /proc/pressure: the time in which some task was stalled.
fn stalled_ns(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse::<i64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 5\n\
                    procs_running 3\nprocs_blocked 1\n";
        let parsed = Stat {
            ticks: [1, 2, 3, 4, 5, 6, 7, 8],
            running: Some(3),
            blocked: Some(1),
        };
        assert_eq!(Stat::parse(stat), Some(parsed));
        assert_eq!(Stat::parse("cpu  1 2 3\n"), None);
        let memory = Memory::parse(
            "MemAvailable:    2 kB\nCached: 3 kB\nSwapCached: 9 kB\nDirty: 4 kB\n\
             WritebackTmp: 7 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
        );
        let parsed = Memory {
            available: Some(2048),
            cached: Some(3072),
            dirty: Some(4096),
            writeback: None,
            swapped: Some(6144),
        };
        assert_eq!(memory, parsed);
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=5\n";
        assert_eq!(stalled_ns(pressure), Some(12_000));
        assert_eq!(stalled_ns(""), None);
    }

    #[test]
    fn rows_have_differences() {
        let look = |at_ns, ticks, io| Look {
            at_ns,
            stat: Stat {
                ticks: [ticks, 1, 0, 10 - ticks, 2 * ticks, 0, 0, 0],
                running: Some(2),
                ..Stat::default()
            },
            stalled_ns: [None, Some(5), io],
            ..Look::default()
        };
        let row = look(2_000, 7, Some(9)).since(&look(1_000, 4, None));
        assert_eq!((row.ts_ns, row.ended_at_ns), (1_000, 2_000));
        assert_eq!(row.user_ns, 3 * TICK_NS);
        // Three ticks of idle time have become time of waits for I/O, of which six are reported.
        assert_eq!((row.idle_ns, row.iowait_ns), (0, 3 * TICK_NS));
        assert_eq!((row.running_threads, row.blocked_threads), (2, NULL_I64));
        assert_eq!((row.memory_stalled_ns, row.io_stalled_ns), (0, NULL_I64));
        assert_eq!(row.dirty_bytes, NULL_I64);
    }
}
