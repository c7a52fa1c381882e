//! From a Rust type to the dialect.
//!
//! | schemars says | the dialect says |
//! | --- | --- |
//! | `title`, `$schema`, line breaks in descriptions | nothing, nothing, spaces |
//! | `Option<T>`: `"type": ["string", "null"]`, `null` in `enum`, `anyOf` with null | `T`, not required |
//! | an enum with a doc comment on each variant: `oneOf` of `const` | `enum`, and the comments in the description |
//! | `"format": "uint32"` | `minimum` and `maximum`, so that what passes also fits the Rust type |
//! | an object without `additionalProperties` | `"additionalProperties": false` |
//!
//! What it cannot bring into the dialect it leaves for [`schema_faults`](super::schema_faults) to refuse.

use std::cmp::Ordering;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Number, Value};

use super::number::compare;

/// The description and the schema of a struct of arguments, in the one dialect that every door can be given or reduced
/// from: no `$ref`, no `null` type, no `title`, `additionalProperties: false`.
pub fn schema_of<T: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    reduce(&mut schema);
    let Value::Object(root) = &mut schema else { return (String::new(), schema) };
    if root.get("type").is_some_and(|kind| kind == "object") {
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        root.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    let description = match root.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    (description, schema)
}

fn reduce(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for word in ["$schema", "title", "deprecated", "readOnly", "writeOnly"] {
        object.remove(word);
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = one_line(text);
    }
    for branches in ["anyOf", "oneOf"] {
        fold_branches(object, branches);
    }
    remove_null(object);
    if let Some(value) = object.remove("const") {
        object.insert(String::from("enum"), Value::Array(vec![value]));
    }
    bound(object);
    if object.contains_key("properties") {
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    for inner in inner_schemas(object) {
        reduce(inner);
    }
}

fn inner_schemas(object: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    object.iter_mut().flat_map(|(word, value)| match (word.as_str(), value) {
        ("items" | "additionalProperties", value) => vec![value],
        ("properties", Value::Object(properties)) => properties.values_mut().collect(),
        _ => Vec::new(),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `anyOf` or `oneOf` that says no more than "or null", or "one of these texts".
fn fold_branches(object: &mut Map<String, Value>, word: &str) {
    let Some(Value::Array(mut branches)) = object.remove(word) else { return };
    branches.retain(|branch| branch["type"] != "null");
    if let [Value::Object(only)] = branches.as_mut_slice() {
        only.append(object); // what stands outside is nearer to the field
    }
    branches.iter_mut().for_each(reduce);
    if let [Value::Object(only)] = branches.as_mut_slice() {
        *object = std::mem::take(only);
    } else if !branches.is_empty() && branches.iter().all(is_choice) {
        fold_choices(object, &branches);
    } else {
        object.insert(String::from(word), Value::Array(branches));
    }
}

fn is_choice(branch: &Value) -> bool {
    branch["type"] == "string" && branch["enum"].is_array()
}

fn fold_choices(object: &mut Map<String, Value>, branches: &[Value]) {
    let choices = branches.iter().filter_map(|branch| branch["enum"].as_array()).flatten().cloned().collect();
    let mut description = Vec::from_iter(object.get("description").and_then(Value::as_str).map(String::from));
    for branch in branches {
        if let (Some(choice), Some(text)) = (branch["enum"][0].as_str(), branch["description"].as_str()) {
            description.push(format!("\"{choice}\": {text}"));
        }
    }
    object.insert(String::from("type"), Value::from("string"));
    object.insert(String::from("enum"), Value::Array(choices));
    if !description.is_empty() {
        object.insert(String::from("description"), Value::from(description.join(" ")));
    }
}

fn remove_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            object.insert(String::from("type"), only);
        }
    }
    for word in ["enum", "examples"] {
        if let Some(Value::Array(values)) = object.get_mut(word) {
            values.retain(|value| !value.is_null());
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// Puts the bounds of the Rust type in the place of its name. 64 bits need them only where a JSON integer can be larger
/// than the type: JSON integers are read as `i64` or `u64`.
fn bound(object: &mut Map<String, Value>) {
    let is_number = object.get("type").is_some_and(|kind| kind == "integer" || kind == "number");
    let Some(Value::String(format)) = object.get("format").filter(|_| is_number) else { return };
    let (least, most) = match format.as_str() {
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "int64" | "int" => (None, Some(i64::MAX.into())),
        "uint8" => (Some(0.into()), Some(u8::MAX.into())),
        "uint16" => (Some(0.into()), Some(u16::MAX.into())),
        "uint32" => (Some(0.into()), Some(u32::MAX.into())),
        "uint64" | "uint128" | "uint" => (Some(0.into()), None),
        "float" => (Number::from_f64(f32::MIN.into()), Number::from_f64(f32::MAX.into())),
        "int128" | "double" => (None, None),
        _ => return,
    };
    object.remove("format");
    tighten(object, "minimum", least, Ordering::Less);
    tighten(object, "maximum", most, Ordering::Greater);
}

/// Sets a bound unless the author's is tighter.
fn tighten(object: &mut Map<String, Value>, word: &str, limit: Option<Number>, looser: Ordering) {
    let Some(limit) = limit else { return };
    let keep = object.get(word).and_then(Value::as_number).is_some_and(|set| compare(set, &limit) != looser);
    if !keep {
        object.insert(String::from(word), Value::Number(limit));
    }
}
