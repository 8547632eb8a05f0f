//! Generates the list of views: the files in `sql/`, each after the views that it uses.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("sql");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut left = Vec::new();
    for entry in fs::read_dir(&dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sql") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            left.push((name.into_owned(), fs::read_to_string(&path)?, path));
        }
    }
    left.sort();
    let mut rows = String::new();
    let mut done: Vec<String> = Vec::new();
    while !left.is_empty() {
        let next = left.iter().position(|(name, sql, _)| {
            let mut others = left.iter().filter(|(other, ..)| other != name);
            !others.any(|(other, ..)| uses(sql, other))
        });
        let (name, sql, path) = left.remove(next.ok_or("views use each other in a circle")?);
        let numbers = done.iter().enumerate();
        let used: Vec<usize> = numbers
            .filter(|(_, other)| uses(&sql, other))
            .map(|(number, _)| number)
            .collect();
        writeln!(
            rows,
            "    View {{ name: {name:?}, sql: include_str!({path:?}), uses: &{used:?} }},"
        )?;
        done.push(name);
    }
    let code = format!(
        "/// Every view, in an order in which each uses earlier ones only.\n\
         pub(crate) static VIEWS: &[View] = &[\n{rows}];\n"
    );
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("views.rs"), code)?;
    Ok(())
}

/// Whether a query names a view, comments aside.
fn uses(sql: &str, view: &str) -> bool {
    sql.lines()
        .filter(|line| !line.starts_with("--"))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|word| word == view)
}
