//! The values that the difference of two clocks can have at each time.

/// A moment of A, and the difference of the clocks or a bound of it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub x: f64,
    pub d: f64,
}

/// The differences that keep all bounds, if the rates of the clocks differ by at most so much.
pub(super) struct Corridor<'a> {
    pub most_rate: f64,
    upper: Wall<'a>,
    lower: Wall<'a>,
}

/// The upper or the lower end of the corridor.
struct Wall<'a> {
    spots: &'a [Spot],
    /// 1 for the upper wall, -1 for the lower one: the wall is the least of its values with this sign.
    sign: f64,
    /// The wall at each spot.
    values: Vec<f64>,
}

impl<'a> Wall<'a> {
    fn new(spots: &'a [Spot], sign: f64, most_rate: f64) -> Self {
        let mut values: Vec<f64> = spots.iter().map(|spot| sign * spot.d).collect();
        // A wall falls to the next bound, and rises behind one, by no more than the rates allow.
        let mut last: Option<(f64, f64)> = None;
        for (value, spot) in values.iter_mut().zip(spots) {
            if let Some((x, before)) = last {
                *value = value.min(before + most_rate * (spot.x - x));
            }
            last = Some((spot.x, *value));
        }
        last = None;
        for (value, spot) in values.iter_mut().zip(spots).rev() {
            if let Some((x, behind)) = last {
                *value = value.min(behind + most_rate * (x - spot.x));
            }
            last = Some((spot.x, *value));
        }
        Self {
            spots,
            sign,
            values,
        }
    }

    /// The wall at a time.
    fn at(&self, x: f64, most_rate: f64) -> f64 {
        let next = self.spots.partition_point(|spot| spot.x < x);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten();
        let values = near.filter_map(|at| {
            let (spot, value) = (self.spots.get(at)?, self.values.get(at)?);
            Some(value + most_rate * (spot.x - x).abs())
        });
        self.sign * values.fold(f64::MAX, f64::min)
    }

    /// The times between two spots at which the wall is furthest out.
    fn peaks(&self, most_rate: f64) -> impl Iterator<Item = f64> {
        let pairs = self.spots.windows(2).zip(self.values.windows(2));
        pairs.filter_map(move |pair| match pair {
            ([a, b], [at_a, at_b]) => Some((a.x + b.x) / 2.0 + (at_b - at_a) / (2.0 * most_rate)),
            _ => None,
        })
    }
}

impl<'a> Corridor<'a> {
    /// From upper and lower bounds in order of time; `None` if no clocks keep them.
    pub fn new([upper, lower]: &'a [Vec<Spot>; 2], most_rate: f64) -> Option<Self> {
        let corridor = Self {
            most_rate,
            upper: Wall::new(upper, 1.0, most_rate),
            lower: Wall::new(lower, -1.0, most_rate),
        };
        let open = upper.iter().all(|spot| {
            let (low, high) = corridor.at(spot.x);
            low <= high
        });
        open.then_some(corridor)
    }

    /// The lowest and the highest value at a time.
    pub fn at(&self, x: f64) -> (f64, f64) {
        let wall = |wall: &Wall<'_>| wall.at(x, self.most_rate);
        (wall(&self.lower), wall(&self.upper))
    }

    /// How far the walls are at most from a path, between each two times in `borders` and the next one.
    /// These are in order and within the path, which is straight between its spots.
    pub fn distances(&self, path: &[Spot], borders: &[f64]) -> Vec<f64> {
        let mut most = vec![0.0f64; borders.len().saturating_sub(1)];
        let walls = [&self.upper, &self.lower];
        let peaks = walls.map(|wall| wall.peaks(self.most_rate));
        let knots = path.iter().map(|knot| knot.x);
        // Between these, walls and path are straight; at the bounds, the walls are nearest.
        for x in peaks
            .into_iter()
            .flatten()
            .chain(knots)
            .chain(borders.iter().copied())
        {
            let (low, high) = self.at(x);
            let value = along(path, x);
            let distance = (high - value).max(value - low);
            // A border is a part of the times on both sides.
            let after = borders.partition_point(|border| *border <= x);
            let before = borders.partition_point(|border| *border < x);
            for next in before..=after {
                let time = next.checked_sub(1).and_then(|time| most.get_mut(time));
                if let Some(most) = time {
                    *most = most.max(distance);
                }
            }
        }
        most
    }
}

/// The value of a path at a time.
fn along(path: &[Spot], x: f64) -> f64 {
    let next = path
        .partition_point(|knot| knot.x <= x)
        .clamp(1, path.len().max(2) - 1);
    match (path.get(next - 1), path.get(next)) {
        (Some(a), Some(b)) if b.x > a.x => a.d + (x - a.x) / (b.x - a.x) * (b.d - a.d),
        (Some(a), _) => a.d,
        _ => 0.0,
    }
}
