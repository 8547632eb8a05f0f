//! `--keep` and `--save-when`: recordings that keep what came last, and save it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use fathom_condition::Condition;
use fathom_model::Batch;
use fathom_model::meta::Keep;
use fathom_model::tables::SYSCALLS;
use fathom_probe::{monotonic_ns, realtime_ns, system};
use fathom_session::SaveRequest;

use crate::args_keep::{KeepLimit, KeepOptions};

/// What `--keep` asks for.
pub fn keep(options: &KeepOptions) -> anyhow::Result<Option<Keep>> {
    let mut keep = Keep::default();
    for limit in &options.keep {
        match limit {
            KeepLimit::Time(time) if keep.time_ns.is_none() => {
                keep.time_ns = Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
            KeepLimit::Bytes(bytes) if keep.bytes.is_none() => keep.bytes = Some(*bytes),
            _ => bail!("--keep takes one time and one size, not two of a kind"),
        }
    }
    Ok((!options.keep.is_empty()).then_some(keep))
}

/// The options as on the command line.
pub fn as_given(options: &KeepOptions) -> Vec<String> {
    let mut words = Vec::new();
    for limit in &options.keep {
        words.push(match limit {
            KeepLimit::Time(time) => format!("--keep {}s", time.as_secs_f64()),
            KeepLimit::Bytes(bytes) => format!("--keep {}KiB", bytes >> 10),
        });
    }
    if let Some(condition) = &options.save_when {
        words.push(format!("--save-when {condition}"));
    }
    if options.durable {
        words.push("--durable".into());
    }
    if options.count_files {
        words.push("--count-files".into());
    }
    words
}

/// Looks at rows as they come for one that is worth saving what is kept.
pub struct Watch {
    condition: Condition,
    /// Saves that may still be made.
    left: u64,
    pause: Duration,
    /// When the last one was asked for.
    last: Option<Instant>,
    held: bool,
}

impl Watch {
    /// What `--save-when` asks for.
    pub fn of(options: &KeepOptions) -> anyhow::Result<Option<Self>> {
        let Some(text) = &options.save_when else {
            return Ok(None);
        };
        let condition = Condition::parse(text, &SYSCALLS)
            .map_err(|error| anyhow!("--save-when \"{text}\": {error}"))?;
        Ok(Some(Self {
            condition,
            left: options.max_saves,
            pause: options.save_pause,
            last: None,
            held: false,
        }))
    }

    /// Looks at a batch of any table.
    pub fn look(&mut self, batch: &Batch) {
        let paused = self.last.is_some_and(|at| at.elapsed() < self.pause);
        if self.held || self.left == 0 || paused {
            return;
        }
        self.held = self.condition.first(batch).is_some();
    }

    /// Why to save now; tells each time once.
    pub fn take(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.held) {
            return None;
        }
        self.left -= 1;
        self.last = Some(Instant::now());
        Some(self.condition.text().to_owned())
    }
}

/// A request to save, under a name beside the session in `output`.
pub fn request(output: &Path, because: &str) -> SaveRequest {
    let stem = output.file_stem().unwrap_or(output.as_os_str());
    let time = system::local_time_for_names();
    let free = |n: u32| -> PathBuf {
        let mut name = stem.to_owned();
        name.push(format!("-{time}"));
        if n > 0 {
            name.push(format!("-{n}"));
        }
        name.push(".fathom");
        output.with_file_name(name)
    };
    let to = (0..1000)
        .map(free)
        .find(|to| to.symlink_metadata().is_err());
    SaveRequest {
        to: to.unwrap_or_else(|| free(0)),
        because: because.to_owned(),
        monotonic_ns: monotonic_ns() as i64,
        realtime_ns: realtime_ns() as i64,
    }
}
