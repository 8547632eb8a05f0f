//! For how long one or more of several calls were under way.

/// Times in which calls of a process were under way that can still grow.
const SPANS: usize = 32;

/// How long calls were under way, overlaps once.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// The last times, apart from each other and in order.
    spans: Vec<(i64, i64)>,
    before_ns: i64,
}

impl UnderWay {
    /// Adds a call: none that was added before ended later.
    pub(crate) fn add(&mut self, begin: i64, end: i64) {
        let mut span = (begin, end);
        while let Some((begin, end)) = self.spans.pop_if(|(_, last)| *last >= span.0) {
            span = (span.0.min(begin), span.1.max(end));
        }
        if self.spans.len() >= SPANS {
            self.before_ns = self.spans.drain(..SPANS / 2).fold(self.before_ns, longer);
        }
        self.spans.push(span);
    }

    pub(crate) fn ns(&self) -> i64 {
        self.spans.iter().copied().fold(self.before_ns, longer)
    }
}

fn longer(ns: i64, (begin, end): (i64, i64)) -> i64 {
    ns.saturating_add(end.saturating_sub(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_under_way_count_once() {
        let mut under_way = UnderWay::default();
        for i in 0..200 {
            under_way.add(i * 10, i * 10 + 5);
        }
        assert_eq!(under_way.ns(), 1000);
        under_way.add(1900, 2000);
        assert_eq!(under_way.ns(), 950 + 100);
    }
}
