//! The page's types of what the server answers, made of the Rust types.

use std::path::PathBuf;

use ts_rs::TS;

use crate::api::types;
use crate::{error, filter};

/// The file, with `bigint`s as the numbers that JSON has.
fn file() -> String {
    let mut out = String::from(
        "// Generated from the Rust types of crates/server: FATHOM_BLESS=1 ./do test writes it anew.\n\n\
         /** A row of a table: its columns, with times since the start of the recording. */\n\
         export type Row = Record<string, string | number | boolean | null | number[]>;\n",
    );
    let mut all = vec![
        error::Problem::decl(),
        error::ErrorAnswer::decl(),
        filter::AnyOrNone::decl(),
        filter::Errors::decl(),
        filter::Filter::decl(),
    ];
    all.extend(types::declarations());
    for declaration in all {
        let declaration = declaration.replace("bigint", "number");
        out.push_str(&format!("\nexport {}\n", tidy(&declaration)));
    }
    out
}

/// Comments of one line on one line, members on lines of their own, indented.
fn tidy(declaration: &str) -> String {
    let lines: Vec<&str> = declaration.lines().map(str::trim).collect();
    let mut out: Vec<String> = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((line, more)) = rest.split_first() {
        rest = more;
        let line = match (*line, more) {
            ("/**", [text, "*/", more @ ..]) => {
                rest = more;
                format!("/** {} */", text.trim_start_matches("* "))
            }
            (line, _) if line.starts_with('*') => format!(" {line}"),
            (line, _) => line.to_string(),
        };
        let (line, end) = match line.strip_suffix(", };") {
            Some(line) => (format!("{line},"), Some("};")),
            None => (line, None),
        };
        let indent = if out.is_empty() { "" } else { "  " };
        out.push(format!("{indent}{line}"));
        out.extend(end.map(str::to_string));
    }
    out.join("\n")
}

#[test]
fn the_page_has_the_types_of_the_answers() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/src/api/types.ts");
    let made = file();
    assert!(!made.contains("bigint") && made.contains("type TilesMeta"));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == made,
        "{} is not what the Rust types say: FATHOM_BLESS=1 ./do test writes it anew",
        path.display()
    );
}
