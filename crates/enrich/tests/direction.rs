//! A module of this crate imports those below it only.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn imports_lead_down() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = fs::read_to_string(src.join("lib.rs")).unwrap();
    // From the top down, as lib.rs declares them.
    let order: Vec<&str> = (text.lines())
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut imports = 0;
    for file in files {
        let inside = file.strip_prefix(&src).unwrap().with_extension("");
        let module = inside.iter().next().unwrap().to_str().unwrap();
        let Some(place) = order.iter().position(|name| *name == module) else {
            assert_eq!(module, "lib");
            continue;
        };
        for used in fs::read_to_string(&file).unwrap().split("crate::").skip(1) {
            let name = used
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            let Some(below) = order.iter().position(|other| Some(*other) == name) else {
                continue;
            };
            imports += 1;
            assert!(place <= below, "{} imports {name:?}", file.display());
        }
    }
    assert!(imports > 10, "{imports}");
}
