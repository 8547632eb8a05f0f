//! Answers of bounded size: lists and texts are cut until an answer fits, and the answer names each
//! place.

use fathom_model::escape::shorten;
use serde_json::{Map, Value};

use super::text;

/// The most bytes of an answer.
pub const MOST: usize = 20_000;
/// Limits of lists and texts, tried one after the other.
const LIMITS: [(usize, usize); 7] = [
    (200, 8000),
    (100, 4000),
    (50, 2000),
    (25, 1000),
    (12, 600),
    (6, 300),
    (3, 120),
];
/// The most places that are named.
const PLACES: usize = 12;

/// An answer of a tool.
pub struct Answer {
    pub fields: Map<String, Value>,
    /// Sentences that name the parts that were left out.
    pub cut: Vec<String>,
}

impl Answer {
    /// An answer from a type that serializes to an object.
    ///
    /// # Errors
    /// When it does not.
    pub fn of(value: &impl serde::Serialize) -> Result<Self, anyhow::Error> {
        match serde_json::to_value(value)? {
            Value::Object(fields) => Ok(Self::from(fields)),
            other => Ok(Self::from(Map::from_iter([("answer".to_owned(), other)]))),
        }
    }

    /// The answer in at most [`MOST`] bytes.
    ///
    /// # Errors
    /// When it does not fit even with the smallest limits.
    pub fn bounded(self) -> Result<Value, anyhow::Error> {
        if let Some(value) = finished(self.fields.clone(), self.cut.clone()) {
            return Ok(value);
        }
        for limits in LIMITS {
            let mut places = Vec::new();
            let mut fields = self.fields.clone();
            cut_fields(&mut fields, "", limits, &mut places);
            let more = places.len().saturating_sub(PLACES);
            places.truncate(PLACES);
            if more > 0 {
                places.push(format!("{more} more places"));
            }
            places.extend(self.cut.iter().cloned());
            if let Some(value) = finished(fields, places) {
                return Ok(value);
            }
        }
        anyhow::bail!("the answer is larger than {MOST} bytes even when it is cut: ask for less")
    }
}

impl From<Map<String, Value>> for Answer {
    fn from(fields: Map<String, Value>) -> Self {
        let cut = Vec::new();
        Self { fields, cut }
    }
}

/// The whole, if it fits.
fn finished(mut fields: Map<String, Value>, cut: Vec<String>) -> Option<Value> {
    if !cut.is_empty() {
        fields.insert("cut".into(), cut.into());
    }
    let value = Value::Object(fields);
    (text(&value).len() <= MOST).then_some(value)
}

fn cut_fields(
    fields: &mut Map<String, Value>,
    at: &str,
    limits: (usize, usize),
    places: &mut Vec<String>,
) {
    for (name, value) in fields {
        let at = match at {
            "" => name.clone(),
            at => format!("{at}.{name}"),
        };
        cut(value, &at, limits, places);
    }
}

fn cut(value: &mut Value, at: &str, limits: (usize, usize), places: &mut Vec<String>) {
    let (most, longest) = limits;
    match value {
        Value::Array(items) => {
            let all = items.len();
            if all > most {
                items.truncate(most);
                places.push(format!("{}: the first {most} of {all}", shorten(at, 100)));
            }
            for (i, item) in items.iter_mut().enumerate() {
                cut(item, &format!("{at}[{i}]"), limits, places);
            }
        }
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(longest) {
                let all = text.chars().count();
                text.truncate(end);
                text.push('…');
                places.push(format!(
                    "{}: the first {longest} of {all} characters",
                    shorten(at, 100)
                ));
            }
        }
        Value::Object(fields) => cut_fields(fields, at, limits, places),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(value: Value) -> Answer {
        Answer::of(&value).unwrap()
    }

    #[test]
    fn small_answers_are_whole() {
        let value = json!({"rows": [1, 2, 3], "name": "a"});
        assert_eq!(answer(value.clone()).bounded().unwrap(), value);
    }

    #[test]
    fn large_answers_are_cut_and_say_where() {
        let rows: Vec<_> = (0..5000)
            .map(|n| json!({"n": n, "path": "/a/b/c"}))
            .collect();
        let value = answer(json!({"rows": rows, "text": "é".repeat(50_000)}));
        let value = value.bounded().unwrap();
        assert!(text(&value).len() <= MOST);
        let shown = value["rows"].as_array().unwrap().len();
        assert!(shown >= 50, "{shown}");
        let cut: Vec<_> = value["cut"].as_array().unwrap().clone();
        assert!(
            cut.contains(&format!("rows: the first {shown} of 5000").into()),
            "{cut:?}"
        );
        assert!(
            cut.iter()
                .any(|c| c.as_str().unwrap().starts_with("text: the first "))
        );
    }

    #[test]
    fn escapes_count() {
        // Each sign takes six bytes in the answer.
        let value = answer(json!({"text": "\u{9b}".repeat(7000)}));
        let value = value.bounded().unwrap();
        assert!(text(&value).len() <= MOST);
        assert!(value["cut"].is_array());
    }

    #[test]
    fn what_cannot_be_cut_is_an_error() {
        let wide: Map<_, _> = (0..5000)
            .map(|n| (format!("column{n}"), n.into()))
            .collect();
        let error = answer(json!({"rows": [wide]})).bounded().unwrap_err();
        assert!(error.to_string().contains("ask for less"), "{error}");
    }
}
