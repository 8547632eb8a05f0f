cargo build -q --release
