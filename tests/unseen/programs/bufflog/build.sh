rustc -O -o prog main.rs
