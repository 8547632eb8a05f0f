//! The relation between two clocks, from messages.
//!
//! A message from host A to host B bounds the relation f from A's clock to B's: it cannot be received
//! before it was sent, so f(sent) <= received. A message from B to A bounds it from below. A
//! straight line that keeps all bounds passes below the convex hull of the upper bounds and above
//! the hull of the lower ones (paper 5, section 3.1: the convex-hull method). Lines have two
//! parameters, so all such lines are a convex polygon, and every bound cuts off a part of it. Its
//! center is the relation; how far its corners differ from that at a time is the error.
//!
//! The clocks are taken for straight against each other for [`LONGEST`]: services that keep the
//! time change the rate of a clock. Where not even a single line keeps the bounds of a shorter
//! time, the time is halved.

use std::collections::BTreeMap;

use fathom_model::set::{ClockMap, Segment};

/// Longest time for which a line holds, nanoseconds.
const LONGEST: i64 = 60_000_000_000;
/// Shortest time for which one is looked for.
const SHORTEST: i64 = 100_000_000;
/// Largest difference between the rates of two clocks. The kernel changes the rate of its own by
/// at most 500 ppm (adjtimex(2)), and crystals are good to 100.
const MOST_RATE: f64 = 1.5e-3;
/// Points of a chunk that are kept until the ones that bound nothing are dropped.
const BUFFER: usize = 64;
/// Time of a chunk, nanoseconds.
const CHUNK: i64 = 100_000_000;

/// A bound: at a time of A, B's clock shows at most, or at least, another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    x: i64,
    y: i64,
}

/// Bounds of one kind in a chunk of time.
#[derive(Clone, Debug, Default)]
struct Bounds {
    points: Vec<Point>,
    /// How many more points make it worth while to drop some.
    room: usize,
}

impl Bounds {
    /// Adds a bound; `sign` is 1 for upper bounds and -1 for lower ones.
    fn add(&mut self, point: Point, sign: i128) {
        self.points.push(point);
        if self.room == 0 {
            self.reduce(sign);
            self.room = self.points.len().max(BUFFER);
        }
        self.room -= 1;
    }

    /// Keeps the points of the hull that faces the lines.
    fn reduce(&mut self, sign: i128) {
        self.points.sort_unstable();
        let mut hull: Vec<Point> = Vec::new();
        for &point in &self.points {
            while let [.., a, b] = hull[..] {
                let from_a = |p: Point| {
                    let [x, y] =
                        [(p.x, a.x), (p.y, a.y)].map(|(p, a)| i128::from(p) - i128::from(a));
                    (x, y)
                };
                let ((dx1, dy1), (dx2, dy2)) = (from_a(b), from_a(point));
                // Not below (above) the line from a to the new point: it bounds nothing. The products
                // of times that can be are exact.
                let turn = dx1
                    .saturating_mul(dy2)
                    .saturating_sub(dx2.saturating_mul(dy1));
                match turn.saturating_mul(sign) {
                    ..=0 => hull.pop(),
                    _ => break,
                };
            }
            hull.push(point);
        }
        self.points = hull;
    }
}

/// Bounds of the relation of two clocks, from messages, in bounded memory for each 100 ms.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    chunks: BTreeMap<i64, [Bounds; 2]>,
    messages: u64,
}

impl Evidence {
    /// A message from A to B.
    pub fn forth(&mut self, sent_ns: i64, received_ns: i64) {
        let point = Point {
            x: sent_ns,
            y: received_ns,
        };
        self.chunk(point.x)[0].add(point, 1);
        self.messages += 1;
    }

    /// A message from B to A.
    pub fn back(&mut self, sent_ns: i64, received_ns: i64) {
        let point = Point {
            x: received_ns,
            y: sent_ns,
        };
        self.chunk(point.x)[1].add(point, -1);
        self.messages += 1;
    }

    fn chunk(&mut self, x: i64) -> &mut [Bounds; 2] {
        self.chunks.entry(x.div_euclid(CHUNK)).or_default()
    }

    /// How many messages there were.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The first and the last time of A in a message; `None` without one.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let points = self
            .chunks
            .values()
            .flatten()
            .flat_map(|bounds| &bounds.points);
        points.fold(None, |extent, p| {
            let (first, last) = extent.unwrap_or((p.x, p.x));
            Some((p.x.min(first), p.x.max(last)))
        })
    }

    /// The relation from A's clock to B's, with a bound of its error between two times of A.
    pub fn relate(&self, from_ns: i64, until_ns: i64) -> Result<Relation, Unrelated> {
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        for [above, below] in self.chunks.values() {
            let (mut above, mut below) = (above.clone(), below.clone());
            above.reduce(1);
            below.reduce(-1);
            upper.append(&mut above.points);
            lower.append(&mut below.points);
        }
        if upper.is_empty() || lower.is_empty() {
            return Err(match self.messages {
                0 => Unrelated::NoMessages,
                _ => Unrelated::OneDirection,
            });
        }
        upper.sort_unstable();
        lower.sort_unstable();
        let until_ns = until_ns.max(from_ns);
        let mut relation = Relation::default();
        let pieces = (until_ns.saturating_sub(from_ns).max(0) / LONGEST + 1).min(100_000);
        let step = until_ns.saturating_sub(from_ns).max(1) / pieces;
        let mut start = from_ns;
        for piece in 1..=pieces {
            let end = match piece == pieces {
                true => until_ns,
                false => from_ns.saturating_add(step.saturating_mul(piece)),
            };
            // A piece with too few messages is joined with the next one.
            let few =
                within(&upper, start, end).is_empty() || within(&lower, start, end).is_empty();
            if few && piece < pieces {
                continue;
            }
            if few && let Some(last) = relation.pieces.pop() {
                start = last;
                relation.map.segments.pop();
            }
            // The first and the last piece have all that was sent before and after.
            let first = if start == from_ns { i64::MIN } else { start };
            let last = if piece == pieces { i64::MAX } else { end };
            relation.add(&upper, &lower, (first, last), (start, end))?;
            start = end;
        }
        Ok(relation)
    }
}

/// The points between two times.
fn within(points: &[Point], from_ns: i64, until_ns: i64) -> &[Point] {
    let start = points.partition_point(|p| p.x < from_ns);
    let end = points.partition_point(|p| p.x <= until_ns);
    points.get(start..end.max(start)).unwrap_or_default()
}

/// A relation between two clocks.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    /// From A's clock to B's.
    pub map: ClockMap,
    /// Bound of its error between the two times, nanoseconds.
    pub error_ns: i64,
    /// The same between the first and the last message of each segment.
    pub error_in_messages_ns: i64,
    /// Starts of its segments.
    pieces: Vec<i64>,
}

/// Why there is no relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrelated {
    /// No message was sent.
    NoMessages,
    /// All were sent in one direction.
    OneDirection,
    /// No clocks agree with them.
    Contradiction,
}

impl Relation {
    /// Adds the relation that holds in `time`, from the messages in `seen`, which contains it or is
    /// a part of it.
    fn add(
        &mut self,
        upper: &[Point],
        lower: &[Point],
        seen: (i64, i64),
        time: (i64, i64),
    ) -> Result<(), Unrelated> {
        let both = |(from, until)| (within(upper, from, until), within(lower, from, until));
        let (above, below) = both(seen);
        if let Some((segment, [error_ns, inner_ns])) = line(above, below, time.0, time.1) {
            self.error_ns = self.error_ns.max(error_ns);
            self.error_in_messages_ns = self.error_in_messages_ns.max(inner_ns);
            self.map.segments.push(segment);
            self.pieces.push(time.0);
            return Ok(());
        }
        // Half of the time in which there are messages.
        let (Some(first), Some(last)) = (
            above.first().min(below.first()),
            above.last().max(below.last()),
        ) else {
            return Err(Unrelated::Contradiction);
        };
        let length = last.x.saturating_sub(first.x);
        if length < SHORTEST {
            return Err(Unrelated::Contradiction);
        }
        let middle = first.x.saturating_add(length / 2);
        let halves = [(seen.0, middle), (middle, seen.1)];
        let related = halves.map(|half| {
            let (above, below) = both(half);
            !above.is_empty() && !below.is_empty()
        });
        let cut = middle.clamp(time.0, time.1);
        match related {
            [true, true] => {
                self.add(upper, lower, halves[0], (time.0, cut))?;
                self.add(upper, lower, halves[1], (cut, time.1))
            }
            // The other half has messages in one direction only, or none.
            [true, false] => self.add(upper, lower, halves[0], time),
            [false, true] => self.add(upper, lower, halves[1], time),
            [false, false] => Err(Unrelated::Contradiction),
        }
    }
}

/// The line that keeps all bounds, and its error between two times, and between the first and the last
/// bound; `None` if no line does, or if nothing bounds one on one side.
fn line(
    upper: &[Point],
    lower: &[Point],
    from_ns: i64,
    until_ns: i64,
) -> Option<(Segment, [i64; 2])> {
    // Differences are small, so that numbers of 53 bits are exact to far below a nanosecond.
    let first = upper.first()?;
    lower.first()?;
    let shift = first.y.checked_sub(first.x)?;
    let plain = |p: &Point| {
        let x = p.x.checked_sub(from_ns)?;
        let d = p.y.checked_sub(p.x)?.checked_sub(shift)?;
        Some((x as f64, d as f64))
    };
    let upper: Vec<(f64, f64)> = upper.iter().map(plain).collect::<Option<_>>()?;
    let lower: Vec<(f64, f64)> = lower.iter().map(plain).collect::<Option<_>>()?;
    let extent = |of: fn(&(f64, f64)) -> f64| {
        let all = upper.iter().chain(&lower).map(of);
        all.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
    };
    let ((x0, x1), (d0, d1)) = (extent(|p| p.0), extent(|p| p.1));
    let reach = MOST_RATE * x0.abs().max(x1.abs()) + 1.0;
    let (low, high) = (d0 - reach, d1 + reach);
    // Corners (rate, difference at the start).
    let mut lines = vec![
        (-MOST_RATE, low),
        (MOST_RATE, low),
        (MOST_RATE, high),
        (-MOST_RATE, high),
    ];
    for (x, d) in upper {
        lines = cut(&lines, |(rate, at)| d - (rate * x + at));
    }
    for (x, d) in lower {
        lines = cut(&lines, |(rate, at)| (rate * x + at) - d);
    }
    if lines.is_empty() {
        return None;
    }
    let count = lines.len() as f64;
    let sum = lines.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let center = (sum.0 / count, sum.1 / count);
    // The largest difference of lines is at an end.
    let value = |line: (f64, f64), x: f64| line.0 * x + line.1;
    // Times are rounded twice.
    let error = |ends: [f64; 2]| {
        let differences = lines
            .iter()
            .flat_map(|corner| ends.map(|x| (value(*corner, x) - value(center, x)).abs()));
        (differences.fold(0.0, f64::max).ceil() as i64).saturating_add(1)
    };
    let errors = [[0.0, until_ns.saturating_sub(from_ns) as f64], [x0, x1]].map(error);
    let segment = Segment {
        from_ns,
        to_ns: from_ns
            .checked_add(shift)?
            .checked_add(center.1.round() as i64)?,
        rate: center.0,
    };
    Some((segment, errors))
}

/// The part of a convex polygon where `keeps` is not negative.
fn cut(corners: &[(f64, f64)], keeps: impl Fn((f64, f64)) -> f64) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(corners.len() + 1);
    let next = corners.iter().cycle().skip(1);
    for (a, b) in corners.iter().zip(next) {
        let (at_a, at_b) = (keeps(*a), keeps(*b));
        if at_a >= 0.0 {
            out.push(*a);
        }
        if (at_a > 0.0 && at_b < 0.0) || (at_a < 0.0 && at_b > 0.0) {
            let part = at_a / (at_a - at_b);
            out.push((a.0 + part * (b.0 - a.0), a.1 + part * (b.1 - a.1)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A clock that is off and drifts.
    struct Truth {
        offset: i64,
        rate: f64,
    }

    impl Truth {
        fn of(&self, at: i64) -> i64 {
            at + self.offset + (at as f64 * self.rate).round() as i64
        }

        fn back(&self, at: i64) -> i64 {
            let guess = ((at - self.offset) as f64 / (1.0 + self.rate)) as i64;
            let near = (guess - 4..=guess + 4).rev();
            near.into_iter().find(|a| self.of(*a) <= at).unwrap()
        }
    }

    /// Messages in both directions over a number of seconds, each at least 20 µs on its way.
    fn talk(truth: &Truth, seconds: i64, messages: i64, seed: u64) -> (Evidence, Vec<[i64; 2]>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut evidence = Evidence::default();
        let mut forth = Vec::new();
        for _ in 0..messages {
            let sent = random.i64(5 * SECOND..(5 + seconds) * SECOND);
            let way = 20_000 + random.i64(0..200_000) * random.i64(0..3);
            let received = truth.of(sent + way);
            evidence.forth(sent, received);
            forth.push([sent, received]);
            let sent = truth.of(random.i64(5 * SECOND..(5 + seconds) * SECOND));
            let way = 30_000 + random.i64(0..500_000);
            evidence.back(sent, truth.back(sent) + way);
        }
        (evidence, forth)
    }

    #[test]
    fn the_true_relation_lies_within_the_error() {
        for seed in 0..60 {
            let mut random = fastrand::Rng::with_seed(1000 + seed);
            let truth = Truth {
                offset: random.i64(-1_000_000 * SECOND..1_000_000 * SECOND),
                rate: (random.f64() - 0.5) * 8e-4,
            };
            let seconds = [1, 10, 50, 600][seed as usize % 4];
            let messages = [10, 100, 20_000][seed as usize % 3];
            let (evidence, forth) = talk(&truth, seconds, messages, seed);
            // Sessions last longer than there are messages.
            let around = [1, 100][seed as usize % 2] * SECOND;
            let (from, until) = (5 * SECOND - around, (5 + seconds) * SECOND + around);
            let relation = evidence.relate(from, until).unwrap();
            let mut worst = 0;
            for step in 0..=1000 {
                let at = from + (until - from) / 1000 * step;
                worst = worst.max((relation.map.apply(at) - truth.of(at)).abs());
            }
            assert!(
                worst <= relation.error_ns,
                "seed {seed}: off by {worst}, bound {}",
                relation.error_ns
            );
            for [sent, _] in &forth {
                let off = (relation.map.apply(*sent) - truth.of(*sent)).abs();
                assert!(
                    off <= relation.error_in_messages_ns,
                    "seed {seed}: off by {off}"
                );
            }
            // No message arrives before it was sent.
            for [sent, received] in forth {
                assert!(relation.map.apply(sent) <= received, "seed {seed}");
            }
            // With many messages the bound is near the time that the fastest are on their way.
            if messages == 20_000 && (10..=50).contains(&seconds) {
                assert!(
                    relation.error_in_messages_ns < 60_000,
                    "seed {seed}: {}",
                    relation.error_ns
                );
            }
        }
    }

    /// The rate changes by 300 ppm in the middle: one line cannot hold.
    #[test]
    fn a_bent_clock_gets_several_lines() {
        let before = Truth {
            offset: 7,
            rate: 0.0,
        };
        let bend = 25 * SECOND;
        let after = |at: i64| before.of(at) + ((at - bend).max(0) as f64 * 3e-4) as i64;
        let mut random = fastrand::Rng::with_seed(3);
        let mut evidence = Evidence::default();
        for _ in 0..20_000 {
            let at = random.i64(5 * SECOND..45 * SECOND);
            evidence.forth(at, after(at + 20_000 + random.i64(0..50_000)));
            evidence.back(after(at), at + 20_000 + random.i64(0..50_000));
        }
        let relation = evidence.relate(5 * SECOND, 45 * SECOND).unwrap();
        assert!(relation.map.segments.len() > 1);
        for at in (5 * SECOND..45 * SECOND).step_by(10_000_000) {
            let off = (relation.map.apply(at) - after(at)).abs();
            assert!(off <= relation.error_ns.max(60_000), "{at}: {off}");
        }
    }

    /// In the first half of the time all messages go one way, and the rate changes after that.
    #[test]
    fn a_half_with_messages_in_one_direction_is_related_by_the_other() {
        let bend = 45 * SECOND;
        let truth = |at: i64| at + 9 + ((at - bend).max(0) as f64 * 3e-4) as i64;
        let mut random = fastrand::Rng::with_seed(4);
        let mut evidence = Evidence::default();
        for _ in 0..20_000 {
            let at = random.i64(0..55 * SECOND);
            evidence.forth(at, truth(at + 20_000 + random.i64(0..50_000)));
            if at > 30 * SECOND {
                evidence.back(truth(at), at + 20_000 + random.i64(0..50_000));
            }
        }
        let relation = evidence.relate(0, 55 * SECOND).unwrap();
        for at in (31 * SECOND..55 * SECOND).step_by(10_000_000) {
            let off = (relation.map.apply(at) - truth(at)).abs();
            assert!(
                off <= relation.error_ns,
                "{at}: {off} {}",
                relation.error_ns
            );
        }
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
    }
}
