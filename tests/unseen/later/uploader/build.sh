rustc -O -o uploader main.rs
