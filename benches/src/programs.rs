//! What the kernel itself says of the time that programs take
//! (`kernel.bpf_stats_enabled`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::query::ProgInfoIter;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// How often the programs are looked at: they go with their tracer.
const EVERY: Duration = Duration::from_millis(50);

/// Time and runs of a program.
type Spent = (u64, u64);

/// The programs that are loaded from now on, while a tracer runs.
pub struct Programs {
    before: String,
    stop: Arc<AtomicBool>,
    looks: Option<JoinHandle<BTreeMap<u32, Spent>>>,
}

impl Programs {
    /// Has the kernel count from now on.
    ///
    /// # Errors
    /// When it does not let us, or no thread can be made.
    pub fn watch() -> Result<Programs> {
        let before = fs::read_to_string(SWITCH).context(SWITCH)?;
        fs::write(SWITCH, "1").context(SWITCH)?;
        let others: BTreeSet<u32> = ProgInfoIter::default().map(|program| program.id).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = Programs {
            before,
            stop: Arc::clone(&stop),
            looks: None,
        };
        watch.looks = Some(
            std::thread::Builder::new()
                .spawn(move || look(&others, &stop))
                .context("a thread")?,
        );
        Ok(watch)
    }

    /// Nanoseconds that all programs took for one run of the one that ran most: at the
    /// entry of a call. Calls of others on the machine are in it, and twice the kernel's
    /// clock for each run. `None` when no program ran.
    ///
    /// # Errors
    /// When the thread that looks has failed.
    pub fn ns_per_call(mut self) -> Result<Option<f64>> {
        self.stop.store(true, Ordering::Release);
        let looks = self.looks.take().context("no thread")?;
        let spent = looks
            .join()
            .map_err(|_| anyhow!("the thread that looks at the programs failed"))?;
        let most = spent.values().map(|(_, runs)| *runs).max().unwrap_or(0);
        let ns: u64 = spent.values().map(|(ns, _)| ns).sum();
        Ok((most > 0).then(|| ns as f64 / most as f64))
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Whoever had it on keeps it; nothing is lost when it stays on.
        let _ = fs::write(SWITCH, self.before.trim());
    }
}

fn look(others: &BTreeSet<u32>, stop: &AtomicBool) -> BTreeMap<u32, Spent> {
    let mut spent = BTreeMap::new();
    loop {
        let last = stop.load(Ordering::Acquire);
        for program in ProgInfoIter::default() {
            if !others.contains(&program.id) {
                spent.insert(program.id, (program.run_time_ns, program.run_cnt));
            }
        }
        if last {
            return spent;
        }
        std::thread::sleep(EVERY);
    }
}
