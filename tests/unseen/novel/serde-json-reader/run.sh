exec target/release/report
