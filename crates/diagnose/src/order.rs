//! In which order a file is gone through.

/// The kernel's default readahead, bytes: data closer than this after the end of a read was
/// probably read together with it.
pub(crate) const READAHEAD: i64 = 128 << 10;

/// Position of a read or write relative to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There was none before.
    First,
    /// It begins where that one ended.
    Next,
    /// It leaves out less than the readahead.
    Skip,
    /// It goes back by less than the readahead.
    Back,
    /// It goes elsewhere.
    Jump,
}

/// Where the last one ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    end: Option<i64>,
}

impl Head {
    /// Moves on to a range.
    pub(crate) fn step(&mut self, start: i64, end: i64) -> Step {
        let before = self.end.replace(end);
        let Some(before) = before else {
            return Step::First;
        };
        match start.saturating_sub(before) {
            0 => Step::Next,
            1..=READAHEAD => Step::Skip,
            n if (-READAHEAD..0).contains(&n) => Step::Back,
            _ => Step::Jump,
        }
    }
}

/// Streams of one file that are tracked separately.
const MAX_HEADS: usize = 8;

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It begins where one before ended.
    On,
    /// It ends where one before began.
    Back,
}

/// The last ranges of several streams, those used last first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads(Vec<(i64, i64)>);

impl Heads {
    /// Moves on to a range; whether it continues one of the streams, and which way.
    pub(crate) fn step(&mut self, start: i64, end: i64) -> Option<Way> {
        let on = self.0.iter().position(|(_, last)| *last == start);
        let back = || self.0.iter().position(|(first, _)| *first == end);
        let found = on.map(|at| (at, Way::On));
        let found = found.or_else(|| back().map(|at| (at, Way::Back)));
        match found {
            Some((at, _)) => {
                self.0.remove(at);
            }
            None => self.0.truncate(MAX_HEADS - 1),
        }
        self.0.insert(0, (start, end));
        found.map(|(_, way)| way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let mut head = Head::default();
        let steps = [
            (0, 100),
            (100, 200),
            (300, 400),
            (350, 360),
            (1 << 20, 2 << 20),
            (0, 1),
        ];
        let found: Vec<Step> = steps.iter().map(|(s, e)| head.step(*s, *e)).collect();
        use Step::*;
        assert_eq!(found, [First, Next, Skip, Back, Jump, Jump]);
    }

    #[test]
    fn streams_that_take_turns() {
        let mut heads = Heads::default();
        assert_eq!((heads.step(0, 10), heads.step(1000, 1010)), (None, None));
        for i in 1..50 {
            assert_eq!(heads.step(i * 10, i * 10 + 10), Some(Way::On));
            assert_eq!(heads.step(1000 - i * 10, 1010 - i * 10), Some(Way::Back));
        }
        assert_eq!(heads.step(5000, 5010), None);
    }
}
