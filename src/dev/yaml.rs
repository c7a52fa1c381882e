//! Values as YAML, in the way in which a template for CloudFormation is written by hand.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The keys that a reader wants first. The others follow by name, whatever order the JSON has.
const FIRST: [&str; 3] = ["Name", "Type", "Description"];

fn in_reading_order(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| (FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()), *key));
    fields
}

/// Writes a list or an object as YAML lines. Scalars are written as JSON, which is YAML.
pub(super) fn yaml(value: &Value, indent: usize, out: &mut String) {
    let before = out.len();
    match value {
        Value::Object(fields) => {
            for (key, value) in in_reading_order(fields) {
                let _ = write!(out, "{:indent$}{}:", "", yaml_key(key));
                yaml_value(value, indent + 2, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                let start = out.len();
                yaml(item, indent + 2, out);
                // The first line of the item carries the dash.
                out.replace_range(start + indent..=start + indent, "-");
            }
        }
        scalar => {
            let _ = writeln!(out, "{:indent$}{scalar}", "");
        }
    }
    if out.len() == before {
        let _ = writeln!(out, "{:indent$}{value}", ""); // [] or {}
    }
}

/// Writes what stands after a key's colon.
fn yaml_value(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            yaml(value, indent, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            yaml(value, indent, out);
        }
        inline => {
            let _ = writeln!(out, " {inline}");
        }
    }
}

/// CloudFormation's keys as they are; quotes around anything that YAML might take for something else (`on`, `no`, `1`).
fn yaml_key(key: &str) -> String {
    let is_word = ["true", "false", "null"].iter().any(|word| key.eq_ignore_ascii_case(word));
    let is_plain = key.len() > 3
        && key.starts_with(|first: char| first.is_ascii_uppercase())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain && !is_word { key.to_owned() } else { Value::from(key).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_lists_and_objects_are_written_inline() {
        let mut out = String::new();
        yaml(&json!({"Parameters": {}, "Required": []}), 2, &mut out);
        assert_eq!(out, "  Parameters: {}\n  Required: []\n");
        out.clear();
        yaml(&json!([]), 4, &mut out);
        assert_eq!(out, "    []\n");
    }
}
