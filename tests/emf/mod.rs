//! The rules of a metric line: the specification's JSON schema, in `tests/fixtures`, and what it says in words only.

use serde_json::Value;

const SCHEMA: &str = include_str!("../fixtures/emf.schema.json");

/// Every reason for which CloudWatch would drop this line, or a part of it.
pub fn faults(line: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    let mut faults = Vec::new();
    if line.len() > 1_000_000 || line.trim_end_matches('\n').contains('\n') || !line.ends_with('\n') {
        faults.push(String::from("not one line of at most 1 MB"));
    }
    match serde_json::from_str::<Value>(line) {
        Ok(value) => {
            check(&schema, &value, "", &mut faults);
            check_targets(&value, &mut faults);
        }
        Err(error) => faults.push(error.to_string()),
    }
    faults
}

/// The keywords that this schema uses; any other is a fault of the schema.
fn check(schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let limit = || usize::try_from(rule.as_u64().expect("a limit")).expect("a small limit");
        let holds = match keyword.as_str() {
            "$comment" | "title" => true,
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_i64() || value.is_u64(),
                other => panic!("the type {other}"),
            },
            "enum" => rule.as_array().expect("values").contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().expect("a number")),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= limit()),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= limit()),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= limit()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= limit()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, &format!("{path}/{index}"), faults);
                }
                true
            }
            "required" => {
                rule.as_array().expect("names").iter().all(|name| value.get(name.as_str().expect("a name")).is_some())
            }
            "properties" => {
                for (name, schema) in rule.as_object().expect("properties") {
                    if let Some(value) = value.get(name) {
                        check(schema, value, &format!("{path}/{name}"), faults);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = &schema["properties"];
                value.as_object().is_none_or(|fields| fields.keys().all(|name| known.get(name).is_some()))
            }
            other => panic!("the keyword {other}"),
        };
        if !holds {
            faults.push(format!("{path}: {keyword} {rule}"));
        }
    }
}

/// What a directive names stands at the root: dimensions as texts, metrics as numbers.
fn check_targets(line: &Value, faults: &mut Vec<String>) {
    for directive in line["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
        let namespace = directive["Namespace"].as_str().unwrap_or_default();
        if namespace.starts_with(':') || namespace.trim().is_empty() || !namespace.is_ascii() {
            faults.push(format!("the namespace {namespace:?}"));
        }
        for name in directive["Dimensions"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|set| set.as_array().into_iter().flatten())
        {
            let value = name.as_str().and_then(|name| line.get(name)).and_then(Value::as_str);
            let fits = |text: &str| (1..=1024).contains(&text.len()) && text.is_ascii() && !text.trim().is_empty();
            if !value.is_some_and(fits) {
                faults.push(format!("the dimension {name}"));
            }
        }
        for metric in directive["Metrics"].as_array().into_iter().flatten() {
            let name = metric["Name"].as_str().unwrap_or_default();
            if name.len() > 255 || !line.get(name).is_some_and(is_target) {
                faults.push(format!("the metric {metric}"));
            }
        }
    }
}

fn is_target(value: &Value) -> bool {
    match value {
        Value::Array(numbers) => (1..=100).contains(&numbers.len()) && numbers.iter().all(Value::is_number),
        value => value.is_number(),
    }
}
