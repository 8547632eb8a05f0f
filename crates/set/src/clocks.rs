//! The relation between two clocks, from messages.
//!
//! A message from host A to host B bounds the relation f from A's clock to B's: it cannot be received
//! before it was sent, so f(sent) <= received. A message from B to A bounds it from below (paper 5,
//! section 3.1: the convex-hull method). The rates of two clocks differ by a limited amount, so
//! each message also bounds f at other times, the less the further away they are. All bounds
//! together are a corridor ([`corridor`]) that contains f, whatever services that keep the time do to
//! the rates. The error is the largest distance of the relation from the walls of the corridor.
//!
//! The relation itself is a chain of straight lines that keeps all bounds. A line lasts for
//! [`LONGEST`], or shorter where no line keeps the bounds. Lines of one piece have two
//! parameters, their values at both ends. The lines that keep the bounds are a convex polygon of which
//! every bound cuts off a part. A first pass from piece to piece finds the values that a chain can
//! have at each end; a second one, backwards, chooses the middle of them.

mod corridor;

use std::collections::BTreeMap;

use fathom_model::set::{ClockMap, ErrorStep, Segment};

use corridor::{Corridor, Spot};

/// Longest time for which a line holds, nanoseconds.
const LONGEST: i64 = 60_000_000_000;
/// Largest differences between the rates of two clocks. The kernel changes the rate of its own by
/// at most 500 ppm, and crystals are good to 100. A service may also change the length of a tick by
/// 10 % (adjtimex(2)), which is assumed only if the messages show it.
pub(crate) const MOST_RATES: [f64; 2] = [1.5e-3, 0.25];
/// Points of a chunk that are kept until the ones that bound nothing are dropped.
const BUFFER: usize = 64;
/// Shortest time of a chunk, nanoseconds, and the number of chunks above which it is doubled.
const CHUNK: i64 = 1_000_000;
const MOST_CHUNKS: usize = 1 << 16;
/// Shortest time of which the error is stated, nanoseconds, and how many there are at most.
const STEP: i64 = 100_000_000;
const MOST_STEPS: i64 = 1000;
/// By how much a chain stays away from the bounds, nanoseconds: times are rounded on both ways.
const MARGIN: f64 = 2.0;

/// A bound: at a time of A, B's clock shows at most, or at least, another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    x: i64,
    y: i64,
    /// By how much `y` may be off.
    slack: i64,
}

/// Bounds of one kind in a chunk of time.
#[derive(Clone, Debug, Default)]
struct Bounds {
    points: Vec<Point>,
    /// How many more points make it worth while to drop some.
    room: usize,
    /// Whether some were dropped that bound no line over the whole chunk.
    reduced: bool,
}

impl Bounds {
    /// Adds a bound; `sign` is 1 for upper bounds and -1 for lower ones.
    fn add(&mut self, point: Point, sign: i128) {
        self.points.push(point);
        self.room = self.room.saturating_sub(1);
        if self.room == 0 && self.points.len() > BUFFER {
            self.reduce(sign);
            self.room = self.points.len().max(BUFFER);
        }
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
        self.reduced |= hull.len() < self.points.len();
        self.points = hull;
    }
}

/// Bounds of the relation of two clocks, from messages, in bounded memory.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// By the number of the chunk. The relation is straight within one of which points were dropped.
    chunks: BTreeMap<i64, [Bounds; 2]>,
    /// Time of a chunk.
    length: i64,
    messages: u64,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            chunks: BTreeMap::new(),
            length: CHUNK,
            messages: 0,
        }
    }
}

impl Evidence {
    /// A message from A to B.
    pub fn forth(&mut self, sent_ns: i64, received_ns: i64) {
        self.at_most(sent_ns, received_ns, 0);
        self.messages += 1;
    }

    /// A message from B to A.
    pub fn back(&mut self, sent_ns: i64, received_ns: i64) {
        self.at_least(received_ns, sent_ns, 0);
        self.messages += 1;
    }

    /// Adds the messages between A and another host: `messages` are those between both in the order of
    /// their clocks, with A first if `first`. `shown` leads from the other host's clock to B's, off by at most
    /// so much.
    pub fn add(&mut self, messages: &Self, first: bool, shown: impl Fn(i64) -> (i64, i64)) {
        self.messages += messages.messages;
        for [upper, lower] in messages.chunks.values() {
            for point in &upper.points {
                let (other, slack) = shown(if first { point.y } else { point.x });
                match first {
                    true => self.at_most(point.x, other, slack),
                    false => self.at_least(point.y, other, slack),
                }
            }
            for point in &lower.points {
                let (other, slack) = shown(if first { point.y } else { point.x });
                match first {
                    true => self.at_least(point.x, other, slack),
                    false => self.at_most(point.y, other, slack),
                }
            }
        }
    }

    fn at_most(&mut self, x: i64, y: i64, slack: i64) {
        self.chunk(x)[0].add(Point { x, y, slack }, 1);
    }

    fn at_least(&mut self, x: i64, y: i64, slack: i64) {
        self.chunk(x)[1].add(Point { x, y, slack }, -1);
    }

    fn chunk(&mut self, x: i64) -> &mut [Bounds; 2] {
        if self.chunks.len() > MOST_CHUNKS {
            self.length = self.length.saturating_mul(2);
            for (number, bounds) in std::mem::take(&mut self.chunks) {
                let both = self.chunks.entry(number.div_euclid(2)).or_default();
                for ((all, mut more), sign) in both.iter_mut().zip(bounds).zip([1, -1]) {
                    all.points.append(&mut more.points);
                    all.reduced |= more.reduced;
                    if all.points.len() > BUFFER {
                        all.reduce(sign);
                    }
                }
            }
        }
        self.chunks.entry(x.div_euclid(self.length)).or_default()
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
        let mut points = [Vec::new(), Vec::new()];
        for chunk in self.chunks.values() {
            for (bounds, all) in chunk.iter().zip(&mut points) {
                all.extend_from_slice(&bounds.points);
            }
        }
        if points.iter().any(Vec::is_empty) {
            return Err(match self.messages {
                0 => Unrelated::NoMessages,
                _ => Unrelated::OneDirection,
            });
        }
        points.iter_mut().for_each(|points| points.sort_unstable());
        let (first, last) = self.extent().unwrap_or((from_ns, until_ns));
        let time = (from_ns.min(first), until_ns.max(last));
        let plane = Plane::new(time.0, &points).ok_or(Unrelated::Contradiction)?;
        let related = MOST_RATES.iter().find_map(|most_rate| {
            let chain = Chain {
                evidence: self,
                plane: &plane,
                corridor: Corridor::new(&plane.spots, *most_rate)?,
                truth: Corridor::new(&plane.truth, *most_rate)?,
            };
            chain.relation(time, (first, last))
        });
        related.ok_or(Unrelated::Contradiction)
    }
}

/// Times and differences of clocks as numbers whose 53 bits are exact to far below a nanosecond.
struct Plane {
    from_ns: i64,
    /// B's clock minus A's, about.
    shift: i64,
    /// Upper and lower bounds, in order of time.
    spots: [Vec<Spot>; 2],
    /// The same as far as the other clock is known.
    truth: [Vec<Spot>; 2],
}

impl Plane {
    /// `None` for times that clocks cannot show.
    fn new(from_ns: i64, points: &[Vec<Point>; 2]) -> Option<Self> {
        let first = points.iter().flatten().next()?;
        let shift = first.y.checked_sub(first.x)?;
        let spot = |p: &Point, margin: f64, slack: f64| {
            let x = p.x.checked_sub(from_ns)?;
            let d = p.y.checked_sub(p.x)?.checked_sub(shift)?;
            Some(Spot {
                x: x as f64,
                d: d as f64 + margin + slack * p.slack as f64,
            })
        };
        let [upper, lower] = points;
        let spots = |points: &[Point], margin, slack| {
            let spots = points.iter().map(|p| spot(p, margin, slack));
            spots.collect::<Option<Vec<_>>>()
        };
        Some(Self {
            from_ns,
            shift,
            spots: [spots(upper, -MARGIN, 0.0)?, spots(lower, MARGIN, 0.0)?],
            truth: [spots(upper, -MARGIN, 1.0)?, spots(lower, MARGIN, -1.0)?],
        })
    }

    fn x(&self, at_ns: i64) -> f64 {
        at_ns.saturating_sub(self.from_ns) as f64
    }
}

/// A relation between two clocks.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    /// From A's clock to B's.
    pub map: ClockMap,
    /// Bound of its error between the two times, and of the error of its inverse, nanoseconds.
    pub error_ns: i64,
    /// The same between the first and the last message.
    pub error_in_messages_ns: i64,
    /// The same from each of these times of A on.
    pub errors: Vec<ErrorStep>,
    /// By how much the rates of the clocks may differ.
    pub most_rate: f64,
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

/// Looks for a chain of lines in a corridor.
struct Chain<'a> {
    evidence: &'a Evidence,
    plane: &'a Plane,
    corridor: Corridor<'a>,
    /// The corridor that contains the true relation.
    truth: Corridor<'a>,
}

/// The end of a line's time, and the lines that keep the bounds in it: corners (value at the start,
/// value at the end) of a convex polygon.
struct Piece {
    until_ns: i64,
    lines: Vec<(f64, f64)>,
}

impl Chain<'_> {
    /// The chain in `time`, with its error there and in `messages`; `None` if there is none.
    fn relation(&self, time: (i64, i64), messages: (i64, i64)) -> Option<Relation> {
        let pieces = self.pieces(time)?;
        let mut knots = Vec::new();
        let mut value = None;
        for piece in pieces.iter().rev() {
            let end = match value {
                Some(end) => end,
                None => {
                    let count = piece.lines.len() as f64;
                    piece.lines.iter().map(|line| line.1).sum::<f64>() / count
                }
            };
            knots.push(self.knot(piece.until_ns, end)?);
            value = Some(middle(&piece.lines, end));
        }
        knots.push(self.knot(time.0, value?)?);
        knots.reverse();
        let segments = knots.windows(2).filter_map(|pair| match pair {
            [(from_ns, to_ns), (until_ns, next_ns)] => Some(Segment {
                from_ns: *from_ns,
                to_ns: *to_ns,
                // The rounded ends, so that the lines meet.
                rate: next_ns.checked_sub(*to_ns)? as f64 / until_ns.checked_sub(*from_ns)? as f64
                    - 1.0,
            }),
            _ => None,
        });
        let map = ClockMap {
            segments: segments.collect(),
        };
        if !map.is_sound() {
            return None;
        }
        let path: Vec<Spot> = (knots.iter())
            .map(|(at, to)| {
                let d = to.saturating_sub(*at).saturating_sub(self.plane.shift);
                Spot {
                    x: self.plane.x(*at),
                    d: d as f64,
                }
            })
            .collect();
        // The bounds have a margin; the inverse is less exact where the member's clock is the slower one.
        let most_rate = self.corridor.most_rate;
        let errors = |borders: &[i64]| -> Vec<i64> {
            let borders: Vec<f64> = borders.iter().map(|at| self.plane.x(*at)).collect();
            let distances = self.truth.distances(&path, &borders);
            let error = |distance: f64| ((distance + MARGIN) / (1.0 - most_rate)).ceil() as i64;
            let errors = distances.into_iter().map(error);
            errors.map(|error| error.saturating_add(2)).collect()
        };
        let borders = borders(time);
        let steps = errors(&borders);
        let inner = errors(&[messages.0, messages.1]);
        Some(Relation {
            map,
            error_ns: steps.iter().copied().max()?,
            error_in_messages_ns: inner.first().copied()?,
            errors: joined(borders.into_iter().zip(steps)),
            most_rate,
        })
    }

    /// A moment on both clocks.
    fn knot(&self, at_ns: i64, value: f64) -> Option<(i64, i64)> {
        let to_ns = at_ns.checked_add(self.plane.shift)?;
        Some((at_ns, to_ns.checked_add(value.round() as i64)?))
    }

    /// The pieces of a chain, in order of time, each with the lines that continue the ones before.
    fn pieces(&self, (from_ns, until_ns): (i64, i64)) -> Option<Vec<Piece>> {
        let until_ns = until_ns.max(from_ns.checked_add(1)?);
        let length = until_ns.checked_sub(from_ns)?;
        let count = (length / LONGEST + 1).min(100_000);
        let mut open = Vec::new();
        let mut start = from_ns;
        for piece in 1..=count {
            let end = match piece == count {
                true => until_ns,
                false => self.border(from_ns.checked_add((length / count).checked_mul(piece)?)?),
            };
            // A piece with too few messages is joined with the next one, or the one before.
            let few = self.spots(start, end).iter().any(|spots| spots.is_empty());
            if end <= start || few && piece < count {
                continue;
            }
            if few && let Some((last, _)) = open.pop() {
                start = last;
            }
            open.push((start, end));
            start = end;
        }
        open.reverse();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut reach = self.corridor.at(0.0);
        while let Some((from_ns, until_ns)) = open.pop() {
            let lines = self.lines(from_ns, until_ns, reach);
            if lines.is_empty() {
                let cut = self.cut(from_ns, until_ns)?;
                open.extend([(cut, until_ns), (from_ns, cut)]);
                continue;
            }
            reach = lines
                .iter()
                .fold((f64::MAX, f64::MIN), |(low, high), line| {
                    (low.min(line.1), high.max(line.1))
                });
            pieces.push(Piece { until_ns, lines });
        }
        Some(pieces)
    }

    /// Where a line may end about the middle of a time.
    fn cut(&self, from_ns: i64, until_ns: i64) -> Option<i64> {
        let middle = from_ns + (until_ns - from_ns) / 2;
        let border = self.border(middle);
        let evidence = self.evidence;
        let chunk = evidence.chunks.get(&middle.div_euclid(evidence.length));
        let whole = chunk.is_none_or(|both| both.iter().all(|bounds| !bounds.reduced));
        let cuts = [
            Some(border),
            border.checked_add(evidence.length),
            whole.then_some(middle),
        ];
        let mut cuts = cuts.into_iter().flatten();
        cuts.find(|cut| from_ns < *cut && *cut < until_ns)
    }

    /// The border of a chunk at or before a time.
    fn border(&self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(at_ns.rem_euclid(self.evidence.length))
    }

    /// The bounds in a time: upper and lower ones.
    fn spots(&self, from_ns: i64, until_ns: i64) -> [&[Spot]; 2] {
        let (from, until) = (self.plane.x(from_ns), self.plane.x(until_ns));
        self.plane.spots.each_ref().map(|spots| {
            let start = spots.partition_point(|spot| spot.x < from);
            let end = spots.partition_point(|spot| spot.x <= until);
            spots.get(start..end.max(start)).unwrap_or_default()
        })
    }

    /// The lines that keep all bounds between two times and begin within `reach`.
    fn lines(&self, from_ns: i64, until_ns: i64, reach: (f64, f64)) -> Vec<(f64, f64)> {
        let (from, until) = (self.plane.x(from_ns), self.plane.x(until_ns));
        let length = until - from;
        let (low, high) = self.corridor.at(until);
        let mut lines = vec![
            (reach.0, low),
            (reach.1, low),
            (reach.1, high),
            (reach.0, high),
        ];
        let most = self.corridor.most_rate * length;
        lines = cut(&lines, |(start, end)| most - (end - start));
        lines = cut(&lines, |(start, end)| most + (end - start));
        let [upper, lower] = self.spots(from_ns, until_ns);
        for (spots, sign) in [(upper, 1.0), (lower, -1.0)] {
            for spot in hull(spots, sign) {
                let part = (spot.x - from) / length;
                lines = cut(&lines, |(start, end)| {
                    sign * (spot.d - (start + part * (end - start)))
                });
            }
        }
        lines
    }
}

/// The times for which errors are stated: their starts, and the end of the last one.
fn borders((from_ns, until_ns): (i64, i64)) -> Vec<i64> {
    let length = until_ns.saturating_sub(from_ns).max(0);
    let step = (length / MOST_STEPS).max(STEP);
    let starts =
        (0..=length / step).map(|number| from_ns.saturating_add(step.saturating_mul(number)));
    let mut borders: Vec<i64> = starts.filter(|start| *start < until_ns).collect();
    borders.push(until_ns);
    borders
}

/// Errors in fewer steps, as neighbors are often much alike.
fn joined(errors: impl Iterator<Item = (i64, i64)>) -> Vec<ErrorStep> {
    let mut steps: Vec<ErrorStep> = Vec::new();
    // The least error in the last step.
    let mut least = 0;
    for (from_ns, error_ns) in errors {
        if let Some(last) = steps.last_mut() {
            let (low, high) = (error_ns.min(least), error_ns.max(last.error_ns));
            if high <= low.saturating_add(low / 4) {
                (least, last.error_ns) = (low, high);
                continue;
            }
        }
        steps.push(ErrorStep { from_ns, error_ns });
        least = error_ns;
    }
    steps
}

/// The spots of the hull that faces lines below (`sign` 1) or above (-1) them.
fn hull(spots: &[Spot], sign: f64) -> Vec<Spot> {
    let mut hull: Vec<Spot> = Vec::new();
    for &spot in spots {
        while let [.., a, b] = hull[..] {
            let turn = (b.x - a.x) * (spot.d - a.d) - (spot.x - a.x) * (b.d - a.d);
            match turn * sign <= 0.0 {
                true => hull.pop(),
                false => break,
            };
        }
        hull.push(spot);
    }
    hull
}

/// The middle of the starts of the lines in a polygon that end at `end`.
fn middle(lines: &[(f64, f64)], end: f64) -> f64 {
    let nexts = lines.iter().cycle().skip(1);
    let mut starts = (f64::MAX, f64::MIN);
    for (a, b) in lines.iter().zip(nexts) {
        if (a.1 - end) * (b.1 - end) > 0.0 {
            continue;
        }
        let part = match a.1 == b.1 {
            true => 0.0,
            false => (end - a.1) / (b.1 - a.1),
        };
        let start = a.0 + part * (b.0 - a.0);
        starts = (starts.0.min(start), starts.1.max(start));
    }
    if starts.0 <= starts.1 {
        return starts.0 + (starts.1 - starts.0) / 2.0;
    }
    // Rounded to just outside: the nearest corner.
    let near = |line: &&(f64, f64)| (line.1 - end).abs();
    let nearest = lines.iter().min_by(|a, b| near(a).total_cmp(&near(b)));
    nearest.map_or(end, |line| line.0)
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
mod tests;
