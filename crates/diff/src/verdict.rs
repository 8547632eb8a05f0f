//! Whether a difference is more than noise.
//!
//! **Several sessions on a side**: a figure has one value per session, and Welch's t-test compares
//! their logarithms (times and counts scatter by factors; if a value is 0, the values themselves).
//! A figure that is the same in all sessions of each side needs no test.
//!
//! **One session on each side**: how much a figure differs from run to run cannot be
//! seen, only guessed from what can:
//!
//! - Counts. If nearly all calls on files have equal counts on both sides, the program is assumed
//!   to repeat itself, and counts are compared directly, except for differences so small that
//!   chance makes them in any count of that size. Otherwise the typical difference is the variation
//!   between runs of this program. One or two errors are noise, unless they are faults that the
//!   other side does not have.
//! - Times. Their spread within each session is a lower limit of their variation (module `spread`).
//!   No session shows the variation between runs (another state of caches, other work on the
//!   machine): medians of the same call differ by factors of ten between runs of one program on a
//!   busy machine. So no difference is claimed, unless the user selects times and thereby declares
//!   the machine quiet: then the variation comes from the differences between the medians of all
//!   calls, at least [`RUN_TO_RUN`].
//!
//! All tests of a comparison are one family: they are corrected for their number (Holm),
//! weighted by the part of the whole that they are about, so that a test of a trifle takes
//! little from a test of what the program spends its time with.

use fathom_model::units::{count, percent};

use crate::result::{Figure, Metric, Verdict};
use crate::stats::{self, Test};
use crate::tail::Tail;
use fathom_model::failure::ErrorKind;

/// Chance of one false alarm in all tests of a comparison.
pub(crate) const ALPHA: f64 = 0.05;
/// Standard deviation of the logarithm of a time from run to run: 28 %. Medians of the
/// same call in runs of one program on one machine differ by about so much.
pub(crate) const RUN_TO_RUN: f64 = 0.25;
/// The same where too few calls tell by how much these runs differ.
pub(crate) const RUN_TO_RUN_UNSEEN: f64 = 0.35;
/// Factor by which tails of the same call may differ between runs: they depend on what the
/// device and the machine do meanwhile, of which a run sees only some.
const TAIL_FACTOR: f64 = 4.0;
/// Weight of the smallest test.
const LEAST_WEIGHT: f64 = 0.001;
/// Part of all kinds of calls on a file that must be as many on both sides for counts to
/// be compared as they are, and for small differences to count, too.
const REPEATS: f64 = 0.5;
const REPEATS_STRICTLY: f64 = 0.9;
/// Least scatter of counts that do not repeat.
const SCATTER: f64 = 0.1;
/// Number of additional or missing errors that are noise with one session per side, unless they are
/// faults.
const FEW_ERRORS: f64 = 2.0;
/// Why times are not judged with one session per side.
const NOT_JUDGED: &str = "not judged: one session per side; it does not show how much runs differ";
/// Why a part of a comparison is not tested.
const TOO_SMALL: &str = "not judged: too small a part of the whole";
/// From a standard deviation to the median of absolute values, of a normal distribution.
const NORMAL_MAD: f64 = 1.4826;

/// The components of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Counted, or moved by counted calls: how many on each side.
    Counted([f64; 2]),
    /// Calls that failed: how many on each side, and what their errors say where that is
    /// known.
    Failed([f64; 2], ErrorKind),
    /// Time, with the standard errors of its logarithm within the sessions where
    /// they are known.
    Timed([Option<f64>; 2]),
    /// Resources that all programs on the machine share: one session per side proves nothing.
    Shared,
}

/// Known properties of the two sides as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    /// Sessions before and after.
    pub sessions: [usize; 2],
    /// Kinds of call on a file, and those with equal counts on both sides.
    pub counted: usize,
    pub equal: usize,
    /// Counts do not repeat as a matter of course: rates of recordings that ended at any time.
    pub rates: bool,
    /// Standard deviation of the logarithm of counts that do not repeat.
    pub scatter: f64,
    /// Of times from run to run.
    pub run_to_run: f64,
    /// Times of one session per side are judged, because the user declares the machine quiet.
    pub quiet: bool,
}

/// A figure that is to be judged with all others of its metric.
#[derive(Debug)]
pub(crate) struct Draft {
    pub figure: Figure,
    test: Option<Test>,
    /// Its share of the chance of a false alarm, relative to others.
    pub weight: f64,
    /// The logarithm was tested: the interval is one of factors.
    logarithmic: bool,
    /// The test does not see all that makes the figure differ: it claims nothing.
    blind: bool,
}

impl Judge {
    /// Learns from counts of kinds of call on a file (before, after) and from medians of
    /// durations by call.
    pub fn new(
        sessions: [usize; 2],
        rates: bool,
        counts: &[(f64, f64)],
        medians: &[(f64, f64)],
    ) -> Self {
        let factor = |(b, a): &(f64, f64)| (a / b).ln().abs();
        let both = |pair: &&(f64, f64)| pair.0 > 0.0 && pair.1 > 0.0;
        let mut factors: Vec<f64> = counts.iter().filter(both).map(factor).collect();
        let scatter = stats::median(&mut factors).unwrap_or(0.0) * NORMAL_MAD;
        let mut times: Vec<f64> = medians.iter().filter(both).map(factor).collect();
        let seen = times.len() >= 5;
        let typical = stats::median(&mut times).unwrap_or(0.0) * NORMAL_MAD;
        Self {
            sessions,
            counted: counts.len(),
            equal: counts.iter().filter(|(b, a)| b == a).count(),
            rates,
            scatter: scatter.max(SCATTER),
            quiet: false,
            run_to_run: typical.max(if seen { RUN_TO_RUN } else { RUN_TO_RUN_UNSEEN }),
        }
    }

    /// Whether a side has several sessions.
    pub fn repeated(&self) -> bool {
        self.sessions.iter().any(|n| *n > 1)
    }

    fn equal_share(&self) -> f64 {
        self.equal as f64 / (self.counted.max(1)) as f64
    }

    /// Whether counts of one session per side are compared directly.
    pub fn repeats(&self) -> bool {
        !self.rates && self.counted > 0 && self.equal_share() >= REPEATS
    }

    /// A figure, judged as far as it can be alone. `matters`: it is large enough to be
    /// tested.
    pub fn draft(
        &self,
        metric: Metric,
        samples: [Vec<f64>; 2],
        kind: Kind,
        matters: bool,
    ) -> Draft {
        let figure = self.figure(metric, samples);
        let mut draft = Draft {
            figure,
            test: None,
            weight: 1.0,
            logarithmic: true,
            blind: false,
        };
        let all = || draft.figure.samples.iter().flatten();
        if all().all(|x| Some(*x) == draft.figure.before) {
            draft.figure.verdict = Verdict::Same;
            return draft;
        }
        if self.repeated() {
            self.test_sessions(&mut draft, matters);
        } else {
            self.test_one(&mut draft, kind, matters);
        }
        draft
    }

    /// Calls beyond a threshold, as they were tested.
    pub fn tail(&self, tail: Tail) -> Draft {
        Draft {
            figure: Figure {
                threshold_ns: Some(tail.threshold_ns),
                ..self.figure(Metric::Tail, tail.beyond)
            },
            test: Some(tail.test),
            weight: 1.0,
            logarithmic: false,
            blind: !self.repeated() && !self.quiet,
        }
    }

    /// The figure before it is tested.
    fn figure(&self, metric: Metric, samples: [Vec<f64>; 2]) -> Figure {
        let [before, after] = &samples;
        let (b, a) = (stats::mean(before), stats::mean(after));
        Figure {
            metric,
            before: Some(b),
            after: Some(a),
            change: (b > 0.0).then(|| a / b - 1.0),
            verdict: Verdict::WithinNoise,
            why: String::new(),
            p: None,
            interval: None,
            effect: self.repeated().then(|| stats::cliffs_delta(before, after)),
            threshold_ns: None,
            samples,
        }
    }

    fn test_sessions(&self, draft: &mut Draft, matters: bool) {
        let [before, after] = &draft.figure.samples;
        let steady = |side: &[f64]| side.windows(2).all(|w| w.first() == w.last());
        if steady(before) && steady(after) {
            draft.claim("the same in all sessions of each side");
            return;
        }
        if !matters {
            draft.figure.why = TOO_SMALL.to_owned();
            return;
        }
        let positive = before.iter().chain(after).all(|x| *x > 0.0);
        let ln = |side: &[f64]| side.iter().map(|x| x.ln()).collect::<Vec<_>>();
        draft.logarithmic = positive;
        draft.test = match positive {
            true => stats::welch(&ln(before), &ln(after)),
            false => stats::welch(before, after),
        };
        if draft.test.is_none() {
            draft.figure.why = "not judged: too few sessions".to_owned();
        }
    }

    fn test_one(&self, draft: &mut Draft, kind: Kind, matters: bool) {
        let (b, a) = (
            draft.figure.before.unwrap_or(0.0),
            draft.figure.after.unwrap_or(0.0),
        );
        match kind {
            Kind::Counted(events) => self.test_count(draft, events, (b, a)),
            Kind::Failed([eb, ea], ErrorKind::Fault) if (eb == 0.0) != (ea == 0.0) => {
                draft.claim("a fault that one side does not have");
            }
            Kind::Failed([eb, ea], ErrorKind::Answer | ErrorKind::Other)
                if (ea - eb).abs() <= FEW_ERRORS =>
            {
                draft.figure.why = "one or two errors more or less may be chance".to_owned();
            }
            Kind::Failed(events, _) => self.test_count(draft, events, (b, a)),
            Kind::Timed(_) if b == 0.0 || a == 0.0 => match self.repeats() {
                // It has no calls on a side.
                true => draft.claim("follows from the number of calls"),
                false => {
                    draft.figure.why = "not judged: it follows from the number of calls".to_owned();
                }
            },
            Kind::Timed(_) if !matters => {
                draft.figure.why = TOO_SMALL.to_owned();
            }
            Kind::Timed([Some(before), Some(after)]) => {
                let error = before.hypot(after).hypot(self.run_to_run);
                draft.blind = !self.quiet;
                draft.test = stats::normal((a / b).ln(), error);
            }
            Kind::Timed(_) => {
                draft.figure.why = match self.quiet {
                    true => "not judged: too few calls; or they are too close together to show how much they differ",
                    false => NOT_JUDGED,
                }
                .to_owned();
            }
            Kind::Shared => {
                draft.figure.why =
                    "not judged: one session per side; the machine has a part in it, too"
                        .to_owned();
            }
        }
    }

    fn test_count(&self, draft: &mut Draft, [eb, ea]: [f64; 2], (b, a): (f64, f64)) {
        let events = eb + ea;
        let relative = (a - b).abs() / a.max(b);
        if self.repeats() {
            let (deviations, small) = match self.equal_share() >= REPEATS_STRICTLY {
                true => (2.0, 0.1),
                false => (4.0, 0.25),
            };
            // Of what comes at random so many more or less are nothing special.
            let chance = deviations * events.sqrt() / eb.max(ea).max(1.0);
            if relative < small && relative <= chance {
                draft.figure.why = "chance alone makes as much".to_owned();
            } else {
                draft.claim("counts differ; most other counts are identical");
            }
            return;
        }
        // The weight of one of them: a byte or more, a second of the recording.
        let scale = match eb > 0.0 && ea > 0.0 && b > 0.0 && a > 0.0 {
            true => (a / ea) / (b / eb),
            false => 1.0,
        };
        let difference = ((ea + 0.5) / (eb + 0.5)).ln() + scale.ln();
        // Bytes differ from call to call, too: by about themselves.
        let sizes = if draft.figure.metric.is_bytes() {
            2.0
        } else {
            1.0
        };
        let poisson = sizes / (ea + 0.5) + sizes / (eb + 0.5);
        draft.test = stats::normal(difference, poisson.sqrt().hypot(self.scatter));
    }

    /// Sentences that explain the method.
    pub fn text(&self) -> Vec<String> {
        let mut text = Vec::new();
        let number = |n: usize| count(n as i64);
        if self.repeated() {
            text.push(format!(
                "{} and {} sessions: Welch's t-test on the logarithms of the sessions' figures, all tests \
                 corrected together for their number (Holm, weighted by their part of the whole), {} chance of one \
                 false alarm in all of them",
                number(self.sessions[0]),
                number(self.sessions[1]),
                percent(ALPHA),
            ));
            return text;
        }
        let equal = format!(
            "{} of {} kinds of call on a file are as many on both sides",
            number(self.equal),
            number(self.counted)
        );
        text.push(match (self.rates, self.repeats()) {
            (true, _) => {
                "counts are by second of recording and judged as what comes at random".to_owned()
            }
            (_, true) => format!(
                "{equal}, so counts are compared as they are: by how much they differ from run to run is not known \
                 with one session a side"
            ),
            (_, false) => format!(
                "{equal}: the program does not repeat itself, and counts differ by {} anyway",
                percent(self.scatter.exp() - 1.0)
            ),
        });
        text.push(format!(
            "all tests, of totals, medians and tails, are corrected together for their number (Holm, weighted by their \
             part of the whole): {} chance of one false alarm in all of them",
            percent(ALPHA)
        ));
        text.push(match self.quiet {
            true => format!(
                "one session per side does not show how much times differ from run to run: on a quiet machine they count \
                 from a factor of {:.1} on, and tails from {:.1} on",
                self.least_factor(),
                self.tail_factor()
            ),
            false => "one session per side does not show how much times differ from run to run: give several to compare \
                      them, or ask for them with --metric time,p99 if the machine was quiet"
                .to_owned(),
        });
        text
    }

    /// The factor by which a tail must be longer or shorter to count with one session per side.
    ///
    pub fn tail_factor(&self) -> f64 {
        TAIL_FACTOR.max(self.least_factor())
    }

    /// By what factor a time must differ to count, at least.
    pub fn least_factor(&self) -> f64 {
        (1.96 * self.run_to_run).exp()
    }
}

impl Draft {
    /// A figure that a side lacks.
    pub fn not_comparable(metric: Metric, samples: [Vec<f64>; 2], why: String) -> Self {
        let figure = |side: &[f64]| (!side.is_empty()).then(|| stats::mean(side));
        Self {
            figure: Figure {
                metric,
                before: samples.first().and_then(|s| figure(s)),
                after: samples.last().and_then(|s| figure(s)),
                change: None,
                verdict: Verdict::NotComparable,
                why,
                p: None,
                interval: None,
                effect: None,
                threshold_ns: None,
                samples,
            },
            test: None,
            weight: 1.0,
            logarithmic: true,
            blind: false,
        }
    }

    fn claim(&mut self, why: &str) {
        let (b, a) = (self.figure.before, self.figure.after);
        self.figure.verdict = if a > b {
            Verdict::Worse
        } else {
            Verdict::Better
        };
        self.figure.why = why.to_owned();
    }
}

/// Corrects the chances of all tests for their number and says what the differences are.
pub(crate) fn settle(drafts: &mut [&mut Draft]) {
    let mut tested: Vec<&mut &mut Draft> = drafts.iter_mut().filter(|d| d.test.is_some()).collect();
    let chance = |draft: &&mut &mut Draft| {
        let p = draft.test.map_or(1.0, |test| test.p);
        (p, draft.weight.max(LEAST_WEIGHT))
    };
    let chances: Vec<(f64, f64)> = tested.iter().map(chance).collect();
    for (draft, p) in tested.iter_mut().zip(stats::holm(&chances)) {
        draft.settle(p, chances.len());
    }
}

impl Draft {
    fn settle(&mut self, p: f64, tests: usize) {
        let Some(test) = self.test else { return };
        let figure = &mut self.figure;
        figure.p = Some(p);
        if self.logarithmic {
            let bound = |ln: f64| ln.exp();
            figure.interval = Some([
                bound(test.difference - test.margin),
                bound(test.difference + test.margin),
            ]);
        }
        let p = if p < 0.001 {
            "p < 0.001".to_owned()
        } else {
            format!("p = {p:.3}")
        };
        let of = if tests > 1 {
            format!(" of {tests} tests")
        } else {
            String::new()
        };
        figure.why = format!("{p}{of}");
        if self.blind {
            figure.why = NOT_JUDGED.to_owned();
            return;
        }
        if figure.p.is_some_and(|p| p < ALPHA) {
            figure.verdict = match test.difference > 0.0 {
                true => Verdict::Worse,
                false => Verdict::Better,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(sessions: [usize; 2], equal: usize) -> Judge {
        let mut counts = vec![(10.0, 10.0); equal];
        counts.extend(vec![(10.0, 14.0); 10 - equal]);
        Judge::new(sessions, false, &counts, &[])
    }

    fn verdict(judge: &Judge, b: &[f64], a: &[f64], kind: Kind) -> Verdict {
        let mut draft = judge.draft(Metric::Calls, [b.to_vec(), a.to_vec()], kind, true);
        settle(&mut [&mut draft]);
        draft.figure.verdict
    }

    fn counted(judge: &Judge, b: f64, a: f64) -> Verdict {
        verdict(judge, &[b], &[a], Kind::Counted([b, a]))
    }

    #[test]
    fn counts_of_a_program_that_repeats_itself() {
        let judge = judge([1, 1], 10);
        assert!(judge.repeats());
        assert_eq!(counted(&judge, 100.0, 100.0), Verdict::Same);
        assert_eq!(counted(&judge, 1.0, 2.0), Verdict::Worse);
        assert_eq!(counted(&judge, 0.0, 1.0), Verdict::Worse);
        assert_eq!(counted(&judge, 1000.0, 10.0), Verdict::Better);
        assert_eq!(counted(&judge, 1000.0, 1020.0), Verdict::WithinNoise);
        assert_eq!(counted(&judge, 100_000.0, 105_000.0), Verdict::Worse);
    }

    #[test]
    fn counts_of_a_program_that_does_not() {
        let judge = judge([1, 1], 2);
        assert!(!judge.repeats());
        assert_eq!(counted(&judge, 1.0, 2.0), Verdict::WithinNoise);
        assert_eq!(counted(&judge, 1000.0, 1400.0), Verdict::WithinNoise);
        assert_eq!(counted(&judge, 1000.0, 9000.0), Verdict::Worse);
    }

    #[test]
    fn times_of_one_session_a_side() {
        let judge = Judge {
            quiet: true,
            ..judge([1, 1], 10)
        };
        let timed = |b, a, error| verdict(&judge, &[b], &[a], Kind::Timed([error, error]));
        assert_eq!(timed(1e6, 1.5e6, Some(0.01)), Verdict::WithinNoise);
        assert_eq!(timed(1e6, 5e6, Some(0.01)), Verdict::Worse);
        assert_eq!(timed(1e6, 5e6, Some(1.0)), Verdict::WithinNoise);
        assert_eq!(timed(1e6, 5e6, None), Verdict::WithinNoise);
        // Unless the machine is said to be quiet nothing is claimed.
        let busy = Judge {
            quiet: false,
            ..judge.clone()
        };
        let kind = Kind::Timed([Some(0.01), Some(0.01)]);
        assert_eq!(verdict(&busy, &[1e6], &[9e9], kind), Verdict::WithinNoise);
        assert_eq!(
            verdict(&judge, &[1.0], &[99.0], Kind::Shared),
            Verdict::WithinNoise
        );
    }

    #[test]
    fn several_sessions_are_tested() {
        let judge = judge([4, 4], 0);
        let kind = Kind::Timed([None, None]);
        let before = [100.0, 104.0, 98.0, 101.0];
        assert_eq!(
            verdict(&judge, &before, &[103.0, 99.0, 102.0, 97.0], kind),
            Verdict::WithinNoise
        );
        assert_eq!(
            verdict(&judge, &before, &[140.0, 151.0, 144.0, 139.0], kind),
            Verdict::Worse
        );
        assert_eq!(verdict(&judge, &[7.0; 4], &[8.0; 4], kind), Verdict::Worse);
        let mut draft = judge.draft(Metric::Time, [before.to_vec(), vec![200.0; 4]], kind, true);
        settle(&mut [&mut draft]);
        let [low, high] = draft.figure.interval.unwrap();
        assert!(
            low > 1.9 && low < 2.0 && high > 2.0 && high < 2.1,
            "{low} {high}"
        );
        assert_eq!(draft.figure.effect, Some(1.0));
    }

    #[test]
    fn many_tests_need_more() {
        let judge = judge([4, 4], 0);
        let kind = Kind::Timed([None, None]);
        let samples = || {
            [
                vec![100.0, 110.0, 95.0, 102.0],
                vec![118.0, 121.0, 108.0, 125.0],
            ]
        };
        let mut alone = judge.draft(Metric::Time, samples(), kind, true);
        settle(&mut [&mut alone]);
        assert_eq!(alone.figure.verdict, Verdict::Worse);
        let mut many: Vec<Draft> = (0..50)
            .map(|_| judge.draft(Metric::Time, samples(), kind, true))
            .collect();
        settle(&mut many.iter_mut().collect::<Vec<_>>());
        assert_eq!(many[0].figure.verdict, Verdict::WithinNoise);
    }
}
