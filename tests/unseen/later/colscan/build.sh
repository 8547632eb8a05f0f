rustc -O -o colscan main.rs
