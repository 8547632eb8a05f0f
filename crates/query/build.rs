//! Generates the list of views: the files in `sql/`, each behind those that it uses.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

struct View {
    name: String,
    path: PathBuf,
    sql: String,
}

impl View {
    fn uses(&self, other: &View) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.name != other.name
            && (self.sql.lines().filter(|line| !line.starts_with("--")))
                .flat_map(|line| line.split(|c| !is_word(c)))
                .any(|word| word == other.name)
    }
}

fn main() -> Result<()> {
    let dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("sql");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut left = views(&dir)?;
    let mut rows = String::new();
    while !left.is_empty() {
        let next = left
            .iter()
            .position(|view| !left.iter().any(|other| view.uses(other)))
            .ok_or("views use each other in a circle")?;
        let View { name, path, .. } = left.remove(next);
        writeln!(
            rows,
            "    View {{ name: {name:?}, sql: include_str!({path:?}) }},"
        )?;
    }
    let code = format!(
        "/// Every view, in an order in which each uses earlier ones only.\n\
         pub(crate) static VIEWS: &[View] = &[\n{rows}];\n"
    );
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("views.rs"), code)?;
    Ok(())
}

/// The views of a directory by name.
fn views(dir: &Path) -> Result<Vec<View>> {
    let mut views = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sql") {
            views.push(View {
                name: path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into(),
                sql: fs::read_to_string(&path)?,
                path,
            });
        }
    }
    views.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(views)
}
