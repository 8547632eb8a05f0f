//! JSON schemas of types that are serialized.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::Value;

/// Refuses properties that a schema does not name.
pub fn close(schema: &mut Schema) {
    transform_subschemas(&mut close, schema);
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if !object.contains_key("properties") {
        return;
    }
    // Properties that are flattened into others are in branches, which do not know the others.
    match object.get_mut("oneOf").and_then(Value::as_array_mut) {
        Some(branches) => {
            let branches = branches.iter_mut().filter_map(Value::as_object_mut);
            branches.for_each(|branch| {
                branch.remove("additionalProperties");
            });
            object.insert("unevaluatedProperties".to_owned(), false.into());
        }
        None => {
            object.entry("additionalProperties").or_insert(false.into());
        }
    }
}
