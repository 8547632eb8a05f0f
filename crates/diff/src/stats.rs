//! Tests over samples. They follow the textbook forms, so that other implementations give
//! the same values.

use libm::{erfc, lgamma};

/// The result of a test of two samples of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    /// Chance of a difference of this size, or a larger one, when there is none.
    pub p: f64,
    /// Difference of the means, after less before.
    pub difference: f64,
    /// Half the width of its interval of 95 % confidence.
    pub margin: f64,
}

pub(crate) fn mean(sample: &[f64]) -> f64 {
    if sample.is_empty() {
        return 0.0;
    }
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Variance, of the population that the sample is from.
pub(crate) fn variance(sample: &[f64]) -> f64 {
    if sample.len() < 2 {
        return 0.0;
    }
    let mean = mean(sample);
    sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (sample.len() - 1) as f64
}

/// Welch's t-test, two-sided: whether two means differ, without assuming equal variances. With one
/// value on a side, its variance is assumed to equal the other side's; with one value on both sides
/// there is no test.
pub(crate) fn welch(before: &[f64], after: &[f64]) -> Option<Test> {
    welch_at_least(before, after, [0.0; 2])
}

/// The same where the variances are known to be no smaller than `least`.
pub(crate) fn welch_at_least(before: &[f64], after: &[f64], least: [f64; 2]) -> Option<Test> {
    let (n, m) = (before.len() as f64, after.len() as f64);
    let [s, t] = [
        variance(before).max(least[0]),
        variance(after).max(least[1]),
    ];
    let (error, freedom) = match (before.len(), after.len()) {
        (0, _) | (_, 0) | (1, 1) => return None,
        (1, _) => (t * (1.0 + 1.0 / m), m - 1.0),
        (_, 1) => (s * (1.0 + 1.0 / n), n - 1.0),
        _ => {
            let (s, t) = (s / n, t / m);
            let freedom = (s + t).powi(2) / (s * s / (n - 1.0) + t * t / (m - 1.0));
            (s + t, freedom)
        }
    };
    let difference = mean(after) - mean(before);
    if error <= 0.0 {
        return None;
    }
    let error = error.sqrt();
    Some(Test {
        p: student(difference / error, freedom),
        difference,
        margin: error * student_margin(freedom),
    })
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method;
/// Press et al., Numerical Recipes, 6.4).
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // It converges fast below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(b, a, 1.0 - x);
    }
    let nonzero = |x: f64| if x.abs() < 1e-300 { 1e-300 } else { x };
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / nonzero(1.0 + term * d);
            c = nonzero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    let front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * fraction / a
}

/// Probability that Student's t is at least this far from 0.
fn student(t: f64, freedom: f64) -> f64 {
    beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The limit that Student's t exceeds in one case of twenty.
fn student_margin(freedom: f64) -> f64 {
    // The chance falls with t: halved until nothing is left between the ends.
    let (mut low, mut high) = (0.0, 1.0);
    while student(high, freedom) > 0.05 && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        match student(middle, freedom) > 0.05 {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Number of standard deviations that a value exceeds in one case of twenty.
const NORMAL_MARGIN: f64 = 1.959963984540054;

/// Whether a difference is more than chance, when its standard error is known.
pub(crate) fn normal(difference: f64, error: f64) -> Option<Test> {
    (error > 0.0).then(|| Test {
        p: erfc((difference / error).abs() / std::f64::consts::SQRT_2),
        difference,
        margin: error * NORMAL_MARGIN,
    })
}

/// Cliff's delta: how much more often a value after is larger than one before than it
/// is smaller, of all pairs; -1 to 1.
pub(crate) fn cliffs_delta(before: &[f64], after: &[f64]) -> f64 {
    let pairs = before.len() * after.len();
    if pairs == 0 {
        return 0.0;
    }
    let signs = before.iter().flat_map(|b| {
        after
            .iter()
            .map(move |a| f64::from(i8::from(a > b) - i8::from(a < b)))
    });
    signs.sum::<f64>() / pairs as f64
}

/// Corrects chances for the number of tests (Holm, Scandinavian Journal of Statistics 6,
/// 1979, with weights as in its section 4): of all tests that find nothing but chance one or
/// more falls below a level as rarely as the level says. A test of twice the weight gets
/// twice the share of that level. Takes chances and positive weights, keeps their order.
pub(crate) fn holm(tests: &[(f64, f64)]) -> Vec<f64> {
    let mut order: Vec<(usize, f64, f64)> = tests
        .iter()
        .enumerate()
        .map(|(i, (p, weight))| (i, p / weight, *weight))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut left: f64 = tests.iter().map(|(_, weight)| weight).sum();
    let mut out = vec![1.0; tests.len()];
    let mut least = 0.0f64;
    for (i, p, weight) in order {
        least = least.max((p * left).min(1.0));
        left -= weight;
        if let Some(slot) = out.get_mut(i) {
            *slot = least;
        }
    }
    out
}

pub(crate) fn median(sample: &mut [f64]) -> Option<f64> {
    sample.sort_by(f64::total_cmp);
    let middle = sample.len() / 2;
    let upper = sample.get(middle).copied()?;
    if sample.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = middle.checked_sub(1).and_then(|i| sample.get(i).copied())?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-3), "{a} {b}");
    }

    // Values of scipy 1.x (stats.ttest_ind with equal_var=False and confidence_interval,
    // stats.norm, stats.mannwhitneyu) and statsmodels (multipletests, method holm).
    const A: [f64; 15] = [
        27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4,
    ];
    const B: [f64; 16] = [
        27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.4, 26.2,
        27.8,
    ];

    #[test]
    fn welch_gives_the_values_of_scipy() {
        for (before, after, p, margin) in [
            (&A[..], &B[..], 0.003484669383799926, 2.0562562287172135),
            (
                &[1.0, 2.0, 3.0],
                &[2.5, 3.5, 4.5],
                0.14006598491201777,
                2.266957935527519,
            ),
            (
                &[10.1, 9.9],
                &[12.0, 12.5],
                0.04262230436726444,
                1.9886331273708284,
            ),
            // One value on a side: Student's test with the other side's variance.
            (
                &[5.0, 5.2, 4.9, 5.1],
                &[5.9],
                0.0097726258412924,
                0.45934655775926936,
            ),
        ] {
            let test = welch(before, after).unwrap();
            near(test.p, p);
            near(test.margin, margin);
            near(test.difference, mean(after) - mean(before));
            let turned = welch(after, before).unwrap();
            near(turned.p, p);
            near(turned.difference, -test.difference);
        }
    }

    #[test]
    fn no_test_without_a_spread() {
        assert_eq!(welch(&[1.0], &[2.0]), None);
        assert_eq!(welch(&[], &[2.0, 3.0]), None);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(normal(1.0, 0.0), None);
    }

    #[test]
    fn normal_gives_the_values_of_scipy() {
        near(normal(1.96, 1.0).unwrap().p, 0.04999579029644087);
        near(normal(-3.2, 1.0).unwrap().p, 0.0013742758758316942);
        near(normal(1.0, 2.0).unwrap().margin, 2.0 * 1.959963984540054);
    }

    #[test]
    fn holm_gives_the_values_of_statsmodels() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005, 0.6].map(|p| (p, 1.0)));
        for (ours, theirs) in corrected.iter().zip([0.04, 0.09, 0.09, 0.025, 0.6]) {
            near(*ours, theirs);
        }
        assert!(holm(&[]).is_empty());
        // Three times the weight: three quarters of the level.
        let weighted = holm(&[(0.03, 3.0), (0.03, 1.0)]);
        near(weighted[0], 0.04);
        near(weighted[1], 0.04);
    }

    #[test]
    fn effect_sizes() {
        near(cliffs_delta(&A, &B), 0.6208333333333333);
        near(cliffs_delta(&[1.0, 2.0], &[3.0]), 1.0);
        near(cliffs_delta(&[1.0], &[1.0]), 0.0);
    }

    /// Of samples that come from the same values few are called different, and as
    /// many as the level says.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut draw = || (0..12).map(|_| rng.f64()).sum::<f64>();
        let rounds = 4000;
        let mut alarms = 0;
        for _ in 0..rounds {
            let before: Vec<f64> = (0..4).map(|_| draw()).collect();
            let after: Vec<f64> = (0..4).map(|_| draw()).collect();
            alarms += u32::from(welch(&before, &after).unwrap().p < 0.05);
        }
        let rate = f64::from(alarms) / f64::from(rounds);
        assert!((0.03..0.06).contains(&rate), "{rate}");
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }
}
