rustc -O -o journald journald.rs
