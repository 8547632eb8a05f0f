//! The stored pages of the rules equal the generated ones.
//!

use std::path::Path;

use fathom_testkit::{blesses, expect_file};

#[test]
fn the_pages_are_up_to_date() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
    let pages = fathom_diagnose::pages();
    if blesses() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    for (name, text) in &pages {
        expect_file(Path::new("docs/rules").join(name), text);
    }
    let mut found: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut wanted: Vec<String> = pages.iter().map(|(name, _)| name.clone()).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted, "FATHOM_BLESS=1 regenerates them");
}
