// Simulates a cluster and writes its trace, append-only and buffered.
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let f = OpenOptions::new().create(true).append(true).open("trace.log")?;
    let mut w = BufWriter::with_capacity(64 * 1024, f);
    let mut x: u64 = 88172645463325252;
    for tick in 0..4_000_000u64 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        writeln!(w, "{} node{} load={} queue={}", tick, x % 128, (x >> 8) % 1000, (x >> 20) % 64)?;
    }
    w.flush()?;
    w.get_ref().sync_all()?;
    std::fs::File::open(".")?.sync_all()
}
