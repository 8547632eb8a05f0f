//! Options from a file: a table whose keys are the long names of a command's options.
//!
//! `config.toml` in the user's directory of settings has a table for each command that is to have
//! other defaults. An option on the command line replaces the one in the file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use fathom_session::{config_dir, open_trusted_dir, read_trusted};
use toml::{Table, Value};

use crate::args::Arguments;

/// The file's name.
const FILE: &str = "config.toml";
/// Bytes of it at most.
const MOST_BYTES: u64 = 256 << 10;
/// Another file, or `none`.
const VARIABLE: &str = "FATHOM_CONFIG";

/// A command line with the options of the user's file.
pub struct CommandLine {
    /// All arguments, the program's name first.
    pub arguments: Vec<OsString>,
    /// The file that options were taken from.
    pub from: Option<PathBuf>,
}

/// Adds the options of the user's file to a command line.
///
/// # Errors
/// A file that is not trusted, or that is wrong.
pub fn complete(given: Vec<OsString>) -> Result<CommandLine, String> {
    let unchanged = |arguments| CommandLine {
        arguments,
        from: None,
    };
    let Some(path) = file() else {
        return Ok(unchanged(given));
    };
    let Some(text) = read(&path)? else {
        return Ok(unchanged(given));
    };
    let tables = parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = given.get(1).and_then(|word| word.to_str());
    let table = name.and_then(|name| tables.get(name)?.as_table());
    let Some(table) = table.filter(|table| !table.is_empty()) else {
        return Ok(unchanged(given));
    };
    let name = name.unwrap_or_default();
    let arguments = merged(&given, name, table)
        .map_err(|error| format!("{}: [{name}]: {error}", path.display()))?;
    Ok(CommandLine {
        arguments,
        from: Some(path),
    })
}

/// The user's file; it need not exist.
fn file() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(none) if none == "none" => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(config_dir()?.join(FILE)),
    }
}

/// Its text, if it is there and the user may look.
fn read(path: &Path) -> Result<Option<String>, String> {
    match path.try_exists() {
        Ok(true) => {}
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            return Err(format!("cannot read {}: {error}", path.display()));
        }
        _ => return Ok(None),
    }
    // The file itself may be a link, as of a collection of settings; it is resolved once.
    let resolved = path
        .canonicalize()
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(format!("cannot read {}: it is not a file", path.display()));
    };
    let distrust = |error| format!("cannot use {error}; {VARIABLE}=none works without it");
    let (parent, _) = open_trusted_dir(parent).map_err(distrust)?;
    read_trusted(parent, &name.to_string_lossy(), &resolved, MOST_BYTES).map_err(distrust)
}

/// The tables of a file, each of a command that there is.
fn parse(text: &str) -> Result<Table, String> {
    let tables: Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text.get(..span.start).unwrap_or(text).matches('\n').count()
        });
        format!("line {line}: {}", error.message())
    })?;
    let program = Arguments::command();
    for (name, value) in &tables {
        let command = program.find_subcommand(name);
        if command.is_none_or(clap::Command::is_hide_set) {
            return Err(format!("{name} is not a command of fathom"));
        }
        if !value.is_table() {
            return Err(format!(
                "{name} is a command, so it must be a table: [{name}]"
            ));
        }
    }
    Ok(tables)
}

/// `given` with the options of `table` behind the command's name, except for options that it has itself.
fn merged(given: &[OsString], name: &str, table: &Table) -> Result<Vec<OsString>, String> {
    let program = Arguments::command();
    let command = program.find_subcommand(name);
    let mut more = Table::new();
    for (key, value) in table {
        let option = command.and_then(|command| {
            let mut all = command.get_arguments();
            all.find(|option| option.get_long() == Some(key.as_str()))
        });
        let Some(option) = option else {
            return Err(format!(
                "{key} is not an option; fathom {name} --help lists them"
            ));
        };
        if !has(given, key, option.get_short()) {
            more.insert(key.clone(), value.clone());
        }
    }
    let (before, behind) = given.split_at(given.len().min(2));
    let mut all = before.to_vec();
    all.extend(arguments(&more)?);
    all.extend_from_slice(behind);
    Ok(all)
}

/// Whether a command line has an option.
fn has(given: &[OsString], long: &str, short: Option<char>) -> bool {
    let options = given.iter().skip(2).take_while(|word| *word != "--");
    options.filter_map(|word| word.to_str()).any(|word| {
        match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(name), _) => name.split('=').next() == Some(long),
            (None, Some(letters)) => short.is_some_and(|short| letters.starts_with(short)),
            (None, None) => false,
        }
    })
}

/// Whether the options of the file are the cause of an error.
pub fn is_to_blame(line: &CommandLine, given: &[OsString]) -> bool {
    let parses = |words: &[OsString]| {
        let matches = Arguments::command().try_get_matches_from(words.iter().map(OsStr::new));
        matches.is_ok()
    };
    line.from.is_some() && parses(given)
}

/// The arguments that stand for a table: `rows = "tail"` is `--rows=tail`, `all = true` is
/// `--all`, and an option of a list is repeated.
///
/// # Errors
/// Which key has a value that no option has.
pub fn arguments(table: &Table) -> Result<Vec<OsString>, String> {
    let mut arguments = Vec::new();
    for (key, value) in table {
        let is_name = key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        if !is_name || key.starts_with('-') || key.is_empty() {
            return Err(format!("{key:?} is not the long name of an option"));
        }
        match value {
            Value::Array(values) => {
                for value in values {
                    arguments.extend(argument(key, value)?);
                }
            }
            value => arguments.extend(argument(key, value)?),
        }
    }
    Ok(arguments)
}

fn argument(key: &str, value: &Value) -> Result<Option<OsString>, String> {
    let text = match value {
        Value::Boolean(true) => return Ok(Some(format!("--{key}").into())),
        Value::Boolean(false) => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => {
            return Err(format!(
                "{key} is a {}; an option is a text, a number, true, false, or a list",
                other.type_str()
            ));
        }
    };
    Ok(Some(format!("--{key}={text}").into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<String>, String> {
        let table: Table = toml::from_str(text).unwrap();
        let all = arguments(&table)?;
        Ok(all.into_iter().map(|a| a.into_string().unwrap()).collect())
    }

    #[test]
    fn keys_are_options() {
        let text = "rows = 'tail'\nsample = 100\nkeep = ['15m', '1GiB']\ndurable = true\n\
                    diagnose = false\ncomm = '!my \"app\"'\n";
        let mut found = of(text).unwrap();
        found.sort();
        assert_eq!(
            found,
            [
                "--comm=!my \"app\"",
                "--durable",
                "--keep=15m",
                "--keep=1GiB",
                "--rows=tail",
                "--sample=100",
            ]
        );
    }

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn merge(given: &str, table: &str) -> Result<String, String> {
        let given = words(given);
        let name = given[1].to_str().unwrap();
        let merged = merged(&given, name, &toml::from_str(table).unwrap())?;
        let merged: Vec<String> = merged
            .into_iter()
            .map(|a| a.into_string().unwrap())
            .collect();
        Ok(merged.join(" "))
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let table = "output = 'x'\nlayers = ['fs', 'block']\nstacks = true\n";
        assert_eq!(
            merge("fathom record -- ls --stacks", table).unwrap(),
            "fathom record --layers=fs --layers=block --output=x --stacks -- ls --stacks"
        );
        assert_eq!(
            merge("fathom record --layers all -oy --stacks -- ls", table).unwrap(),
            "fathom record --layers all -oy --stacks -- ls"
        );
        assert_eq!(
            merge("fathom record --output=y -- ls", "output = 'x'").unwrap(),
            "fathom record --output=y -- ls"
        );
        let wrong = merge("fathom record -- ls", "outptu = 'x'").unwrap_err();
        assert!(wrong.contains("outptu is not an option"), "{wrong}");
    }

    #[test]
    fn tables_are_commands() {
        assert!(parse("[record]\nstacks = true\n[query]\n").is_ok());
        for (text, part) in [
            ("[recrod]\n", "recrod is not a command"),
            ("[remote]\n", "remote is not a command"),
            ("record = 1\n", "must be a table"),
            ("\n[record\n", "line 2"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }

    #[test]
    fn nothing_else_becomes_an_argument() {
        for text in [
            "a = { b = 1 }",
            "a = 2026-01-01",
            "'-c' = 1",
            "'a b' = 1",
            "'' = 1",
            "a = [[1]]",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
