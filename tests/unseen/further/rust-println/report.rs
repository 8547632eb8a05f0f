// A report of a million measurements, to standard output.
use std::io::{BufWriter, Write};

fn main() {
    if std::env::args().nth(1).is_some() {
        let mut out = BufWriter::new(std::io::stdout().lock());
        for n in 0..900_000u64 {
            writeln!(out, "{} sensor{} {}", n, n % 40, n * 31 % 977).unwrap();
        }
    } else {
        for n in 0..900_000u64 {
            println!("{} sensor{} {}", n, n % 40, n * 31 % 977);
        }
    }
}
