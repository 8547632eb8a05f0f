//! Texts with placeholders for columns.

use std::fmt::Write as _;

use fathom_diagnose::Evidence;
use serde_json::{Map, Value};

/// A text in which `{column}` stands for the value of a column; `{{` and `}}` are braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Column(String),
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.peek() == Some(&c) => {
                    rest.next();
                    plain.push(c);
                }
                '{' => {
                    let column: String = rest.by_ref().take_while(|c| *c != '}').collect();
                    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    if column.is_empty() || !column.chars().all(word) {
                        return Err(format!(
                            "{{{column}}} is no placeholder: write {{column}}, and {{{{ for a brace"
                        ));
                    }
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Column(column));
                }
                '}' => return Err("a single } has no meaning: write }} for a brace".to_owned()),
                c => plain.push(c),
            }
        }
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Column(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text for a row. Values are as they are: every output escapes texts of findings.
    pub fn fill(&self, row: &Map<String, Value>) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Column(name) => push(name, row.get(name).unwrap_or(&Value::Null), &mut out),
            }
        }
        out
    }
}

fn push(name: &str, value: &Value, out: &mut String) {
    let _ = match value {
        Value::Null => write!(out, "unknown"),
        Value::String(text) => write!(out, "{text}"),
        Value::Number(number) if is_id(name) => write!(out, "{number}"),
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or_default();
            let name = name.to_owned().into();
            write!(out, "{}", Evidence { name, value }.number())
        }
        other => write!(out, "{other}"),
    };
}

/// Whether a number is a name rather than a quantity.
pub(crate) fn is_id(column: &str) -> bool {
    ["pid", "tid", "rid"].contains(&column) || column.ends_with("_id")
}
