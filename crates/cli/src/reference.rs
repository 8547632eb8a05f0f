//! Files that are generated from definitions: the reference of commands in the documentation, and
//! the tables as the Python package knows them.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory};

use crate::args::Arguments;

/// `docs/reference/commands.md`.
fn markdown() -> String {
    let mut fathom = Arguments::command();
    fathom.build();
    let mut page = String::from(
        "# Commands\n\n\
         <!-- Generated from crates/cli/src/args: FATHOM_BLESS=1 ./do test regenerates it. -->\n\n\
         `fathom COMMAND --help` prints the same.\n\n",
    );
    let _ = writeln!(page, "```text\n{}\n```", text(fathom.get_after_help()));
    for command in fathom.get_subcommands() {
        if !command.is_hide_set() && command.get_name() != "help" {
            describe(&mut page, command.clone());
        }
    }
    page
}

fn describe(page: &mut String, mut command: Command) {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(
        page,
        "\n## fathom {}\n\n{}.\n\n```text\n{usage}\n```\n",
        command.get_name(),
        text(command.get_long_about().or(command.get_about())),
    );
    let mut headings: Vec<&str> = Vec::new();
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    for arg in command.get_arguments().filter(shown) {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for title in headings {
        let _ = write!(page, "\n| {} | Meaning |\n|---|---|\n", cell(title));
        for arg in command.get_arguments().filter(shown) {
            if heading(arg) == title {
                let _ = writeln!(page, "| {} | {} |", names(arg), cell(&meaning(arg)));
            }
        }
    }
    let after = text(command.get_after_help());
    if !after.is_empty() {
        let _ = write!(page, "\n```text\n{after}\n```\n");
    }
}

fn heading(arg: &Arg) -> &str {
    match arg.is_positional() {
        true => "Argument",
        false => arg.get_help_heading().unwrap_or("Option"),
    }
}

/// `-o`, `--output DIR`.
fn names(arg: &Arg) -> String {
    let values: Vec<&str> = match arg.get_action().takes_values() {
        true => arg
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(|name| name.as_str())
            .collect(),
        false => Vec::new(),
    };
    let value = match values.join(" ") {
        values if values.is_empty() => values,
        values => format!(" {values}"),
    };
    let short = arg
        .get_short()
        .map(|short| format!("`-{short}`, "))
        .unwrap_or_default();
    match arg.get_long() {
        Some(long) => cell(&format!("{short}`--{long}{value}`")),
        None => cell(&format!("`{}`", value.trim())),
    }
}

fn meaning(arg: &Arg) -> String {
    let mut meaning = text(arg.get_long_help().or(arg.get_help()));
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let described = values.iter().map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        });
        let _ = write!(
            meaning,
            ". Values: {}",
            described.collect::<Vec<_>>().join(", ")
        );
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if arg.get_action().takes_values() && !defaults.concat().is_empty() {
        let _ = write!(meaning, " [default: {}]", defaults.join(", "));
    }
    meaning
}

fn text(styled: Option<&clap::builder::StyledStr>) -> String {
    styled.map(|text| text.to_string()).unwrap_or_default()
}

/// A bar would end the cell, and `<` start an element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}

#[test]
fn the_reference_of_commands_is_up_to_date() {
    fathom_testkit::expect_file("docs/reference/commands.md", &markdown());
}

/// `python/fathom/_schema.py`.
fn python_schema() -> String {
    use fathom_model::tables::{ColumnType, Stored};
    let mut page = String::from(
        "\"\"\"Tables of a session, and how its Parquet files contain their columns.\n\n\
         Generated from crates/model/src/tables.rs: FATHOM_BLESS=1 ./do test regenerates it.\n\
         \"\"\"\n\n\
         # Version of the tables (schema_version in session.json).\n",
    );
    let version = fathom_model::tables::SCHEMA_VERSION;
    let _ = writeln!(page, "SCHEMA_VERSION = {version}\n");
    page.push_str(
        "# By table: columns (name, type, expression over the stored columns; the last ones are \
         hidden), key.\n\
         TABLES: dict[str, tuple[list[tuple[str, str, str, bool]], list[str]]] = {\n",
    );
    for table in fathom_model::tables::TABLES {
        let _ = writeln!(page, "    \"{}\": (\n        [", table.name);
        for column in table.columns {
            let ty = match column.ty {
                ColumnType::I64 => "BIGINT",
                ColumnType::I32 => "INTEGER",
                ColumnType::Bool => "BOOLEAN",
                ColumnType::Str => "VARCHAR",
                ColumnType::Blob => "BLOB",
                ColumnType::ListI64 => "BIGINT[]",
            };
            let value = match column.stored {
                Stored::AsIs | Stored::Hidden => column.name.to_string(),
                Stored::Less { name, terms } => terms.iter().fold(name.to_string(), |sum, term| {
                    let sign = if term.minus { '-' } else { '+' };
                    let of = format!("coalesce({}, 0)", term.column);
                    match term.divisor {
                        1 => format!("{sum} {sign} {of}"),
                        by => format!("{sum} {sign} {of} // {by}"),
                    }
                }),
            };
            let hidden = match column.stored {
                Stored::Hidden => "True",
                _ => "False",
            };
            let _ = writeln!(
                page,
                "            (\"{}\", \"{ty}\", \"{value}\", {hidden}),",
                column.name
            );
        }
        for difference in table.differences() {
            let (name, a, b) = (difference.name, difference.minuend, difference.subtrahend);
            let _ = writeln!(
                page,
                "            (\"{name}\", \"BIGINT\", \"{a} - {b}\", False),"
            );
        }
        let key: Vec<String> = table.key.iter().map(|key| format!("\"{key}\"")).collect();
        let _ = writeln!(page, "        ],\n        [{}],\n    ),", key.join(", "));
    }
    page.push_str("}\n\n# Views, which the program answers.\nVIEWS: list[str] = [\n");
    for view in fathom_query::view_names() {
        let _ = writeln!(page, "    \"{view}\",");
    }
    page.push_str("]\n");
    page
}

#[test]
fn the_tables_of_the_python_package_are_up_to_date() {
    fathom_testkit::expect_file("python/fathom/_schema.py", &python_schema());
}
