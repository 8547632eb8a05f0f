//! Generates the list of views: the files in `sql/`, each after the views that it uses; and a function for each of DuckDB's
//! library (`src/engine.rs`).

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use object::{Object, ObjectSymbol, SymbolKind};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("views.rs"), views()?)?;
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    let library = env::var("DUCKDB_LIB_DIR").map_err(|_| "DUCKDB_LIB_DIR is not set")?;
    let library = Path::new(&library).join("libduckdb.so");
    let code = functions(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    fs::write(out.join("duckdb_functions.rs"), code)?;
    Ok(())
}

/// Names and code of the functions that the library exports.
fn functions(library: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", library.display());
    let bytes = fs::read(library)?;
    let file = object::File::parse(&*bytes)?;
    let mut names = Vec::new();
    for symbol in file.dynamic_symbols() {
        let name = symbol.name()?;
        let is_function = symbol.is_definition() && symbol.kind() == SymbolKind::Text;
        if is_function && name.starts_with("duckdb_") {
            names.push(name);
        }
    }
    names.sort_unstable();
    // The registers that calls may use on their way to another object.
    let jump: fn(usize) -> String = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => |at| format!("jmp *fathom_duckdb_functions+{at}(%rip)"),
        "aarch64" => |at| {
            format!(
                "adrp x16, fathom_duckdb_functions+{at}\n\
                 ldr x16, [x16, :lo12:fathom_duckdb_functions+{at}]\n\
                 br x16"
            )
        },
        other => return Err(format!("no code for architecture {other}").into()),
    };
    let mut assembly = String::from(".text\n");
    for (number, name) in names.iter().enumerate() {
        writeln!(
            assembly,
            ".globl {name}\n.hidden {name}\n.type {name}, @function\n.p2align 4\n{name}:\n{jump}\n.size {name}, . - {name}",
            jump = jump(8 * number)
        )?;
    }
    writeln!(
        assembly,
        ".bss\n.globl fathom_duckdb_functions\n.hidden fathom_duckdb_functions\n.p2align 3\n\
         fathom_duckdb_functions:\n.zero {}\n.text",
        8 * names.len()
    )?;
    let mut code = format!(
        "/// Functions of the library.\n\
         static FUNCTIONS: [&CStr; {}] = [\n",
        names.len()
    );
    for name in &names {
        writeln!(code, "    c{name:?},")?;
    }
    let options = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => ", options(att_syntax)",
        _ => "",
    };
    writeln!(code, "];\nstd::arch::global_asm!({assembly:?}{options});")?;
    Ok(code)
}

fn views() -> Result<String, Box<dyn Error>> {
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
    while !left.is_empty() {
        let next = left.iter().position(|(name, sql, _)| {
            let mut others = left.iter().filter(|(other, ..)| other != name);
            !others.any(|(other, ..)| uses(sql, other))
        });
        let (name, _, path) = left.remove(next.ok_or("views use each other in a circle")?);
        writeln!(
            rows,
            "    View {{ name: {name:?}, sql: include_str!({path:?}) }},"
        )?;
    }
    let code = format!(
        "/// Every view, in an order in which each uses earlier ones only.\n\
         pub(crate) static VIEWS: &[View] = &[\n{rows}];\n"
    );
    Ok(code)
}

/// Whether a query names a view, comments aside.
fn uses(sql: &str, view: &str) -> bool {
    sql.lines()
        .filter(|line| !line.starts_with("--"))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|word| word == view)
}
