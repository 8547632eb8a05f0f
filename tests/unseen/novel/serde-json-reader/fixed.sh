exec target/release/report buffered
