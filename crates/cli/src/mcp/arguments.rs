//! Parameters of tools: their schema, and the check of arguments against it.

use anyhow::{anyhow, bail};
use fathom_model::escape;
use serde_json::{Map, Value, json};

/// A parameter of a tool.
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// Its meaning, for the model.
    pub doc: &'static str,
}

/// The type of an argument.
pub enum Kind {
    Text,
    /// Between these.
    Integer(i64, i64),
    Flag,
    /// A number of texts, at least one.
    Texts,
}

/// An argument that must be given.
pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        required: true,
        doc,
    }
}

/// An argument that may be left out.
pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        required: false,
        doc,
    }
}

/// JSON schema of an object with `parameters`.
pub fn schema(parameters: &[Parameter]) -> Value {
    let property = |parameter: &Parameter| {
        let mut schema = match parameter.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Integer(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        };
        schema["description"] = parameter.doc.into();
        (parameter.name.to_owned(), schema)
    };
    let properties: Map<_, _> = parameters.iter().map(property).collect();
    let required = parameters.iter().filter(|p| p.required).map(|p| p.name);
    json!({
        "type": "object",
        "properties": properties,
        "required": required.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

/// Checked arguments. A null counts as left out.
pub struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// # Errors
    /// When an argument is unknown, missing, or of another type.
    pub fn check(
        given: &'a Map<String, Value>,
        parameters: &[Parameter],
    ) -> Result<Self, anyhow::Error> {
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let Some(parameter) = parameters.iter().find(|p| p.name == name) else {
                let names: Vec<_> = parameters.iter().map(|p| p.name).collect();
                let name = escape::text(name);
                let name = escape::shorten(&name, 60);
                match names.is_empty() {
                    true => bail!("no argument {name}: this tool has none"),
                    false => bail!("no argument {name}; choose from {}", names.join(", ")),
                }
            };
            check(parameter, value)?;
        }
        let arguments = Self(given);
        let mut missing = parameters.iter().filter(|p| p.required);
        match missing.find(|p| arguments.get(p.name).is_none()) {
            Some(parameter) => Err(anyhow!(
                "argument {} is missing: {}",
                parameter.name,
                parameter.doc
            )),
            None => Ok(arguments),
        }
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    pub fn texts(&self, name: &str) -> Vec<&'a str> {
        let list = self.get(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.collect()
    }

    /// Name of the session, which every tool but one requires.
    pub fn session(&self) -> &'a str {
        self.text("session").unwrap_or_default()
    }
}

fn check(parameter: &Parameter, value: &Value) -> Result<(), anyhow::Error> {
    let expected = match parameter.kind {
        Kind::Text if value.is_string() => return Ok(()),
        Kind::Text => "a string".to_owned(),
        Kind::Integer(least, most) => match value.as_i64() {
            Some(number) if (least..=most).contains(&number) => return Ok(()),
            _ if most == i64::MAX => format!("an integer from {least} on"),
            _ => format!("an integer between {least} and {most}"),
        },
        Kind::Flag if value.is_boolean() => return Ok(()),
        Kind::Flag => "true or false".to_owned(),
        Kind::Texts => match value.as_array() {
            Some(list) if !list.is_empty() && list.iter().all(Value::is_string) => return Ok(()),
            _ => "an array of strings that is not empty".to_owned(),
        },
    };
    bail!(
        "argument {} must be {expected}, not {}",
        parameter.name,
        escape::shorten(&escape::text(&value.to_string()), 60)
    )
}
