use super::*;

const SECOND: i64 = 1_000_000_000;

/// A clock that is off, and whose rate against the other one changes at times.
struct Truth {
    offset: i64,
    /// From a time on, the rate; in order.
    rates: Vec<(i64, f64)>,
}

impl Truth {
    fn of(&self, at: i64) -> i64 {
        let ends = self.rates.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([i64::MAX]);
        let first = self.rates.first().map_or(0, |(at, _)| *at);
        let gained: f64 = (self.rates.iter().zip(ends))
            .map(|((start, rate), end)| (at.min(end) - *start).max(0) as f64 * rate)
            .sum();
        // The first rate also holds before.
        let before = (at - first).min(0) as f64 * self.rates.first().map_or(0.0, |(_, rate)| *rate);
        at + self.offset + (gained + before).round() as i64
    }

    /// The last time at which the clock shows at most `at`.
    fn back(&self, at: i64) -> i64 {
        let (mut low, mut high) = (at - self.offset, at - self.offset);
        for step in (0..45).map(|power| 1i64 << power) {
            if self.of(low) <= at {
                break;
            }
            low -= step;
        }
        for step in (0..45).map(|power| 1i64 << power) {
            if self.of(high) > at {
                break;
            }
            high += step;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.of(middle) <= at {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

/// Messages, as [sent, received] on the clocks of their hosts.
struct Messages {
    forth: Vec<[i64; 2]>,
    back: Vec<[i64; 2]>,
}

impl Messages {
    /// At random times within `times`, each at least `fastest` nanoseconds on its way, half of them not
    /// much longer.
    fn talk(
        truth: &Truth,
        times: std::ops::Range<i64>,
        count: i64,
        fastest: i64,
        random: &mut fastrand::Rng,
    ) -> Self {
        let way = |random: &mut fastrand::Rng| {
            let slow = random.i64(0..10 * fastest) * random.i64(0..20);
            fastest + random.i64(0..fastest / 4 + 2) + slow * random.i64(0..2)
        };
        let forth = (0..count).map(|_| {
            let sent = random.i64(times.clone());
            [sent, truth.of(sent + way(random))]
        });
        let forth = forth.collect();
        let back = (0..count).map(|_| {
            let sent = truth.of(random.i64(times.clone()));
            // The next nanosecond at which the sender's clock has shown the time.
            [sent, truth.back(sent) + 1 + way(random)]
        });
        Self {
            back: back.collect(),
            forth,
        }
    }

    fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::default();
        for [sent, received] in &self.forth {
            evidence.forth(*sent, *received);
        }
        for [sent, received] in &self.back {
            evidence.back(*sent, *received);
        }
        evidence
    }

    /// Panics unless no message arrives before it was sent, whichever clock is the reference.
    fn arrive_in_order(&self, map: &ClockMap, what: &str) {
        let inverse = map.inverse();
        for [sent, received] in &self.forth {
            assert!(map.apply(*sent) <= *received, "{what}: {sent}");
            assert!(*sent <= inverse.apply(*received), "{what}: {sent}");
        }
        for [sent, received] in &self.back {
            assert!(*sent <= map.apply(*received), "{what}: {sent}");
            assert!(inverse.apply(*sent) <= *received, "{what}: {sent}");
        }
    }
}

/// The largest differences of a relation, and of its inverse, from the truth at some times.
fn off(truth: &Truth, relation: &Relation, times: impl Iterator<Item = i64>) -> i64 {
    let back = relation.map.inverse();
    let off = times.map(|at| {
        let there = truth.of(at);
        let forth = (relation.map.apply(at) - there).abs();
        forth.max((back.apply(there) - at).abs())
    });
    off.max().unwrap_or(0)
}

fn steps(from: i64, until: i64) -> impl Iterator<Item = i64> {
    (0..=2000).map(move |step| from + (until - from) / 2000 * step)
}

/// Clocks whose rates change never, once, or again and again, up to the limits.
#[test]
fn the_true_relation_is_within_the_error() {
    let mut bent = 0;
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(1000 + seed);
        let seconds = [1, 10, 50, 600][seed as usize % 4];
        let messages = [1, 10, 100, 5_000][seed as usize / 4 % 4];
        let fastest = [200, 20_000, 3_000_000][seed as usize % 3];
        let most = [4e-4, 1.45e-3][seed as usize / 2 % 2];
        let bends = [0, 1, 12][seed as usize % 5 % 3];
        // Sessions last longer than there are messages.
        let around = [0, 1, 100][seed as usize / 3 % 3] * SECOND;
        let start = random.i64(-1_000_000 * SECOND..1_000_000 * SECOND);
        let (from, until) = (start - around, start + seconds * SECOND + around);
        let rate = |random: &mut fastrand::Rng| (random.f64() - 0.5) * 2.0 * most;
        let mut at: Vec<i64> = (0..bends).map(|_| random.i64(from..until)).collect();
        at.push(from - SECOND);
        at.sort_unstable();
        let truth = Truth {
            offset: random.i64(-1_000_000 * SECOND..1_000_000 * SECOND),
            rates: at.iter().map(|at| (*at, rate(&mut random))).collect(),
        };
        let times = start..start + seconds * SECOND;
        let all = Messages::talk(&truth, times, messages, fastest, &mut random);
        let evidence = all.evidence();
        let relation = evidence
            .relate(from, until)
            .unwrap_or_else(|why| panic!("seed {seed}: {why:?}"));
        assert_eq!(relation.most_rate, MOST_RATES[0], "seed {seed}");
        assert!(relation.map.is_sound());
        bent += usize::from(relation.map.segments.len() > 10);

        let knots = relation.map.segments.iter().map(|segment| segment.from_ns);
        let worst = off(&truth, &relation, steps(from, until).chain(knots));
        let error = relation.error_ns;
        assert!(worst <= error, "seed {seed}: off by {worst}, bound {error}");
        let most = relation.errors.iter().map(|step| step.error_ns).max();
        assert_eq!(most, Some(error), "seed {seed}");
        let ends = relation.errors.iter().skip(1).map(|step| step.from_ns);
        for (step, end) in relation.errors.iter().zip(ends.chain([until])) {
            let worst = off(
                &truth,
                &relation,
                (0..=9).map(|n| step.from_ns + (end - step.from_ns) / 9 * n),
            );
            assert!(
                worst <= step.error_ns,
                "seed {seed}: off by {worst} in {step:?}"
            );
        }
        let (first, last) = evidence.extent().unwrap();
        let worst = off(&truth, &relation, steps(first, last));
        let error = relation.error_in_messages_ns;
        assert!(worst <= error, "seed {seed}: off by {worst}, bound {error}");
        assert!(error <= relation.error_ns, "seed {seed}");
        all.arrive_in_order(&relation.map, &format!("seed {seed}"));
    }
    assert!(bent > 20, "{bent}");
}

/// With many messages the bound is near the time that the fastest are on their way, and without
/// changes of the rate the relation is far better than that.
#[test]
fn many_messages_bound_the_error_well() {
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let truth = Truth {
            offset: -77 * SECOND,
            rates: vec![(0, (random.f64() - 0.5) * 8e-4)],
        };
        let all = Messages::talk(&truth, 0..50 * SECOND, 20_000, 20_000, &mut random);
        let relation = all.evidence().relate(0, 50 * SECOND).unwrap();
        let error = relation.error_in_messages_ns;
        assert!(error < 80_000, "seed {seed}: {error}");
        let worst = off(&truth, &relation, steps(0, 50 * SECOND));
        assert!(worst < 10_000, "seed {seed}: {worst}");
        assert_eq!(relation.map.segments.len(), 1);
    }
}

/// A service may make a clock faster or slower by 10 %.
#[test]
fn a_clock_that_is_slewed_by_its_tick() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bend = random.i64(SECOND..19 * SECOND);
        let truth = Truth {
            offset: 7,
            rates: vec![
                (0, 2e-5),
                (bend, [0.1, -0.09, 0.02, -0.2][seed as usize % 4]),
            ],
        };
        let all = Messages::talk(&truth, 0..20 * SECOND, 2_000, 20_000, &mut random);
        let relation = all.evidence().relate(-SECOND, 21 * SECOND).unwrap();
        assert_eq!(relation.most_rate, MOST_RATES[1], "seed {seed}");
        assert!(relation.map.is_sound());
        let worst = off(&truth, &relation, steps(-SECOND, 21 * SECOND));
        let error = relation.error_ns;
        assert!(worst <= error, "seed {seed}: off by {worst}, bound {error}");
        all.arrive_in_order(&relation.map, &format!("seed {seed}"));
    }
}

/// More messages than are kept: the kept ones still bound it, and no other one arrives early.
#[test]
fn long_recordings_are_related_in_little_memory() {
    let mut random = fastrand::Rng::with_seed(5);
    let bend = 5_000 * SECOND;
    let truth = Truth {
        offset: 7,
        rates: vec![(0, 1e-5), (bend, -3e-5)],
    };
    let times = 0..10_000 * SECOND;
    let all = Messages::talk(&truth, times, 200_000, 50_000, &mut random);
    let evidence = all.evidence();
    assert!(evidence.chunks.len() <= MOST_CHUNKS + 1);
    assert!(evidence.length > 64 * CHUNK);
    let relation = evidence.relate(0, 10_000 * SECOND).unwrap();
    let worst = off(&truth, &relation, steps(0, 10_000 * SECOND));
    let error = relation.error_ns;
    assert!(worst <= error, "off by {worst}, bound {error}");
    all.arrive_in_order(&relation.map, "long");
}

/// In the first half of the time all messages go one way, and the rate changes after that.
#[test]
fn a_half_with_messages_in_one_direction_is_related_by_the_other() {
    let mut random = fastrand::Rng::with_seed(4);
    let truth = Truth {
        offset: 9,
        rates: vec![(0, 0.0), (45 * SECOND, 3e-4)],
    };
    let mut all = Messages::talk(&truth, 0..55 * SECOND, 20_000, 20_000, &mut random);
    all.back.retain(|[_, received]| *received > 30 * SECOND);
    let relation = all.evidence().relate(0, 55 * SECOND).unwrap();
    let worst = off(&truth, &relation, steps(0, 55 * SECOND));
    let error = relation.error_ns;
    assert!(worst <= error, "off by {worst}, bound {error}");
    all.arrive_in_order(&relation.map, "half");
}

#[test]
fn what_cannot_be_related_is_told_apart() {
    let mut evidence = Evidence::default();
    assert_eq!(evidence.relate(0, 9).unwrap_err(), Unrelated::NoMessages);
    evidence.forth(10, 20);
    assert_eq!(evidence.relate(0, 99).unwrap_err(), Unrelated::OneDirection);
    // It came before it was sent, whatever the clocks: one of them was set back.
    evidence.forth(50, 60);
    evidence.back(1_000_000, 51);
    let relation = evidence.relate(0, 99);
    assert_eq!(relation.unwrap_err(), Unrelated::Contradiction);
}

/// Any i64 may come from a damaged session.
#[test]
fn extreme_times_do_no_harm() {
    let mut evidence = Evidence::default();
    for (a, b) in [(i64::MIN, i64::MAX), (0, 0), (i64::MAX, i64::MIN)] {
        evidence.forth(a, b);
        evidence.back(b, a);
    }
    let _ = evidence.relate(i64::MIN, i64::MAX);
    let _ = evidence.relate(5, -5);
    for near in [i64::MIN, i64::MAX - 1000] {
        let mut evidence = Evidence::default();
        evidence.forth(near, near + 100);
        evidence.back(near + 300, near + 200);
        let _ = evidence.relate(near, near);
        let _ = evidence.relate(i64::MIN, i64::MAX);
    }
}
