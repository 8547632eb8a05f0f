/usr/bin/rustc -O -o report report.rs
