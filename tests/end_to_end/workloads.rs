//! The programs whose calls are known.

use std::path::Path;

use fathom_tests::workload;

/// Compiled here, so that an emulated machine without a compiler finds them.
#[test]
fn every_workload_compiles() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let mut compiled = 0;
    for entry in sources.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "c") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(workload(name).is_file(), "{name}");
            compiled += 1;
        }
    }
    assert!(compiled >= 6, "{compiled} workloads");
}
