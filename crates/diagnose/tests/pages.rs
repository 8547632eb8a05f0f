//! The pages of the rules are those that the rules make.

use std::path::Path;

#[test]
fn the_pages_are_up_to_date() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
    let pages = fathom_diagnose::pages();
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::create_dir_all(&dir).unwrap();
        for entry in std::fs::read_dir(&dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, text) in &pages {
            std::fs::write(dir.join(name), text).unwrap();
        }
    }
    let mut found: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut wanted: Vec<String> = pages.iter().map(|(name, _)| name.clone()).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted, "FATHOM_BLESS=1 writes them anew");
    for (name, text) in &pages {
        let there = std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(
            there == *text,
            "{name} is not what the rule says: FATHOM_BLESS=1 writes it anew"
        );
    }
}
