//! Options from a file: a table whose keys are the long names of a command's options.

use std::ffi::OsString;

use toml::{Table, Value};

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
                "{key} is a {}; an option is a text, a number, true, false, or a list of these",
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
