rustc -O -o orders wal.rs
