//! Which calls get a row: `--rows tail`, and `--budget`, which chooses by what the recording costs.

use std::time::{Duration, Instant};

use fathom_model::abi::{COST_SAMPLE, TAIL_ALL, TAIL_NONE, TAIL_SLOW, TailControl};
use fathom_model::meta::{Tail, TailStep};
use fathom_probe::{KernelStats, monotonic_ns, system};

use crate::source::RecordSource;
use crate::{Observer, Options, RecordError, Rows};

/// Time between two looks at what the recording costs.
const INTERVAL: Duration = Duration::from_secs(1);
/// Until the first: a program that floods the recorder is not to do so for long.
const FIRST: Duration = Duration::from_millis(250);
/// After a change records that came before it are still being stored.
const SETTLE: Duration = Duration::from_secs(1);
/// More calls get a row again when the recording costs less than this part of the budget,
const CALM: f64 = 0.4;
/// so many looks in a row. Each time that turns out to be too much the number doubles.
const PATIENCE: u32 = 10;
const MOST_PATIENCE: u32 = 600;

/// Which calls get a row, from most to fewest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rung {
    All,
    /// One of so many that are neither slow nor failed; 0: none.
    Tail(u32),
    None,
}

impl Rung {
    fn control(self, slow_ns: u64) -> TailControl {
        let (mode, sample) = match self {
            Rung::All => (TAIL_ALL, 0),
            Rung::Tail(sample) => (TAIL_SLOW, sample),
            Rung::None => (TAIL_NONE, 0),
        };
        let below = (1u64 << 32).checked_div(u64::from(sample)).unwrap_or(0);
        TailControl {
            slow_ns,
            sample_below: u32::try_from(below).unwrap_or(u32::MAX),
            mode,
        }
    }

    fn step(self, cost: Option<f64>) -> TailStep {
        let (rows, sample) = match self {
            Rung::All => ("all", 0),
            Rung::Tail(sample) => ("tail", sample),
            Rung::None => ("none", 0),
        };
        TailStep {
            at_ns: monotonic_ns() as i64,
            rows: rows.to_string(),
            sample,
            cost,
        }
    }

    fn words(self) -> String {
        match self {
            Rung::All => "all calls get a row".to_string(),
            Rung::Tail(0) => {
                "calls that are slow, fail or wait get a row, others are counted".into()
            }
            Rung::Tail(sample) => format!(
                "calls that are slow, fail or wait and 1 in {sample} others get a row, the rest is \
                 counted"
            ),
            Rung::None => "calls are counted, none gets a row".to_string(),
        }
    }
}

/// The options in session.json; `None` if all calls have rows.
pub(crate) fn described(options: &Options) -> Option<Tail> {
    let (slow_ns, sample) = match options.rows {
        Rows::All if options.budget.is_none() => return None,
        Rows::All => (None, 0),
        Rows::Tail {
            slower_than,
            sample,
        } => (
            slower_than.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            sample,
        ),
    };
    Some(Tail {
        slow_ns,
        sample,
        budget: options.budget,
        steps: Vec::new(),
    })
}

/// Says which calls get a row while a recording is at work.
pub(crate) struct Tailing {
    slow_ns: u64,
    rungs: Vec<Rung>,
    rung: usize,
    budget: Option<Budget>,
    steps: Vec<TailStep>,
}

/// The limit of the recording's cost.
struct Budget {
    /// Of the time of all processors.
    share: f64,
    cpus: f64,
    since: Usage,
    look: Instant,
    calm: u32,
    patience: u32,
    raised: bool,
    told: bool,
}

/// The cost of the recording at a moment.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    ns: u64,
}

impl Usage {
    fn now(counters: &KernelStats) -> Self {
        Self {
            at: Instant::now(),
            ns: system::own_usage().0 + counters.timed_ns * u64::from(COST_SAMPLE),
        }
    }
}

impl Tailing {
    /// `None` when all calls have rows. Asks `source` for what `described` says.
    pub(crate) fn start(
        described: Option<&Tail>,
        rows: Rows,
        cpus: u32,
        source: &impl RecordSource,
    ) -> Result<Option<Self>, RecordError> {
        let Some(tail) = described else {
            return Ok(None);
        };
        let first = match rows {
            Rows::All => Rung::All,
            Rows::Tail { sample, .. } => Rung::Tail(sample),
        };
        let mut tailing = Self {
            slow_ns: tail.slow_ns.unwrap_or(0),
            rungs: rungs(first),
            rung: 0,
            budget: tail.budget.map(|share| {
                let since = Usage::now(&source.counters());
                Budget {
                    share,
                    cpus: f64::from(cpus.max(1)),
                    look: since.at + FIRST,
                    since,
                    calm: 0,
                    patience: PATIENCE,
                    raised: false,
                    told: false,
                }
            }),
            steps: Vec::new(),
        };
        tailing.ask(source, None)?;
        Ok(Some(tailing))
    }

    fn current(&self) -> Rung {
        self.rungs.get(self.rung).copied().unwrap_or(Rung::None)
    }

    fn ask(&mut self, source: &impl RecordSource, cost: Option<f64>) -> Result<(), RecordError> {
        let rung = self.current();
        source.set_tail(&rung.control(self.slow_ns))?;
        if self.budget.is_some() {
            self.steps.push(rung.step(cost));
        }
        Ok(())
    }

    /// Compares what the recording costs with what it may, and changes what it does.
    pub(crate) fn look(
        &mut self,
        source: &impl RecordSource,
        observer: &mut dyn Observer,
    ) -> Result<(), RecordError> {
        let Some(budget) = &mut self.budget else {
            return Ok(());
        };
        let now = Instant::now();
        if now < budget.look {
            return Ok(());
        }
        let usage = Usage::now(&source.counters());
        let wall = usage.at.duration_since(budget.since.at).as_nanos() as f64;
        let cost = usage.ns.saturating_sub(budget.since.ns) as f64 / (wall.max(1.0) * budget.cpus);
        budget.since = usage;
        budget.look = now + INTERVAL;
        let rung = budget.next(cost, self.rung, self.rungs.len() - 1);
        if rung == self.rung {
            if cost > budget.share && !budget.told && rung + 1 == self.rungs.len() {
                budget.told = true;
                observer.warning(&format!(
                    "the recording costs {:.1} % of the processors' time without any rows of \
                     calls: --budget {} % cannot be kept",
                    cost * 100.0,
                    budget.share * 100.0
                ));
            }
            return Ok(());
        }
        budget.look = now + INTERVAL + SETTLE;
        self.rung = rung;
        self.ask(source, Some(cost))?;
        observer.note(&format!(
            "the recording cost {:.1} % of the processors' time: {} from now on",
            cost * 100.0,
            self.current().words()
        ));
        Ok(())
    }

    /// The choice of calls, for session.json.
    pub(crate) fn steps(self) -> Vec<TailStep> {
        self.steps
    }
}

impl Budget {
    /// The rung that comes after `rung`, of which `last` has fewest rows.
    fn next(&mut self, cost: f64, rung: usize, last: usize) -> usize {
        if cost > self.share {
            if std::mem::take(&mut self.raised) {
                self.patience = (self.patience * 2).min(MOST_PATIENCE);
            }
            self.calm = 0;
            // Far beyond it one step would not do.
            return last.min(rung + if cost > 4.0 * self.share { 2 } else { 1 });
        }
        if cost > CALM * self.share || rung == 0 {
            self.calm = 0;
            return rung;
        }
        self.calm += 1;
        if self.calm < self.patience {
            return rung;
        }
        self.calm = 0;
        self.raised = true;
        rung - 1
    }
}

/// Those from `first` on.
fn rungs(first: Rung) -> Vec<Rung> {
    let mut rungs = vec![first];
    let sparser = |sample: u32| match first {
        Rung::All => true,
        Rung::Tail(given) => given > 0 && sample > given,
        Rung::None => false,
    };
    rungs.extend(
        [10, 100, 1000]
            .into_iter()
            .filter(|n| sparser(*n))
            .map(Rung::Tail),
    );
    if first != Rung::Tail(0) {
        rungs.push(Rung::Tail(0));
    }
    rungs.push(Rung::None);
    rungs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_have_fewer_and_fewer_rows() {
        use Rung::{All, None, Tail};
        let all = [All, Tail(10), Tail(100), Tail(1000), Tail(0), None];
        assert_eq!(rungs(All), all);
        assert_eq!(rungs(Tail(100)), [Tail(100), Tail(1000), Tail(0), None]);
        assert_eq!(rungs(Tail(0)), [Tail(0), None]);
        assert_eq!(Tail(1).control(7).sample_below, u32::MAX);
        assert_eq!(Tail(2).control(7).sample_below, 1 << 31);
        assert_eq!(Tail(0).control(7).sample_below, 0);
        assert_eq!(
            (Tail(0).control(7).mode, None.control(0).mode),
            (TAIL_SLOW, TAIL_NONE)
        );
    }

    #[test]
    fn a_budget_is_kept_and_used() {
        let since = Usage {
            at: Instant::now(),
            ns: 0,
        };
        let mut budget = Budget {
            share: 0.03,
            cpus: 2.0,
            since,
            look: since.at,
            calm: 0,
            patience: PATIENCE,
            raised: false,
            told: false,
        };
        assert_eq!(budget.next(0.02, 0, 5), 0);
        assert_eq!(budget.next(0.04, 0, 5), 1);
        assert_eq!(budget.next(0.5, 1, 5), 3);
        assert_eq!(budget.next(0.5, 4, 5), 5);
        // Little more than half of it leaves no room for ten times the rows.
        for _ in 0..100 {
            assert_eq!(budget.next(0.02, 3, 5), 3);
        }
        for _ in 1..PATIENCE {
            assert_eq!(budget.next(0.001, 3, 5), 3);
        }
        assert_eq!(budget.next(0.001, 3, 5), 2);
        // That was too much: it waits longer before it tries again.
        assert_eq!(budget.next(0.05, 2, 5), 3);
        for _ in 1..2 * PATIENCE {
            assert_eq!(budget.next(0.001, 3, 5), 3);
        }
        assert_eq!(budget.next(0.001, 3, 5), 2);
    }
}
