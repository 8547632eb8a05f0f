//! Pseudo-random numbers, the same in each run.

/// A small generator of pseudo-random numbers (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    #[expect(clippy::should_implement_trait, reason = "there is always a next one")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Skewed, as latencies are: most near `typical`, some far above.
    pub fn latency(&mut self, typical: u64) -> i64 {
        let spread = typical / 2 + self.below(typical) + self.below(typical / 2 + 1);
        let tail = if self.below(50) == 0 {
            self.below(typical * 40)
        } else {
            0
        };
        (spread + tail) as i64
    }
}
