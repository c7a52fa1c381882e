//! What the dialect allows. A schema that leaves it does not start: some door could not express it, or the model would
//! be told a rule that is not checked.
//!
//! | type | words beside `description`, `examples`, `default`, `enum` |
//! | --- | --- |
//! | `string` | `minLength`, `maxLength`, `pattern`, `format` |
//! | `integer`, `number` | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`; `multipleOf` of integers |
//! | `boolean` | |
//! | `array` | `items`, `minItems`, `maxItems`, `uniqueItems` |
//! | `object` | `properties`, `required`, `additionalProperties` |

use serde_json::Value;

use super::{check, format, rules, wording};

const LONGEST_DESCRIPTION: usize = 500;

/// What some door could not express of this schema, or the checker could not explain; a sentence each.
pub fn schema_faults(schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if schema["type"] != "object" || !schema["properties"].is_object() {
        faults.push(String::from("The arguments are no struct with named fields. Make them one."));
    } else if schema["additionalProperties"] != false {
        faults.push(String::from(
            "The arguments take fields that the struct does not name. Give a flattened map a field of its own.",
        ));
    }
    if faults.is_empty() {
        visit("", schema, &mut faults);
    }
    faults
}

fn visit(path: &str, schema: &Value, faults: &mut Vec<String>) {
    let mut found = [word_faults(schema), text_faults(schema)].concat();
    if found.is_empty() {
        found = value_faults(schema); // which would only repeat that a rule cannot be checked
    }
    if !path.is_empty() {
        found = found.into_iter().map(|fault| format!("The argument {path} {fault}")).collect();
    }
    faults.append(&mut found);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = wording::member(path, name);
        faults.extend(property_faults(name, inner).into_iter().map(|fault| format!("The argument {path} {fault}")));
        visit(&path, inner, faults);
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if schema["properties"].get(name).is_none() {
            faults.push(format!("The argument {} is required, but is not described.", wording::member(path, name)));
        }
    }
    if schema["items"].is_object() {
        visit(&format!("{path}[]"), &schema["items"], faults);
    }
    if schema["additionalProperties"].is_object() {
        visit(&format!("{path}.*"), &schema["additionalProperties"], faults);
    }
}

fn words_of(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "string" => &["minLength", "maxLength", "pattern", "format"],
        "number" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        "integer" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
        "boolean" => &[],
        "array" => &["items", "minItems", "maxItems", "uniqueItems"],
        "object" => &["properties", "required", "additionalProperties"],
        _ => return None,
    })
}

fn word_faults(schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if schema.get("$ref").is_some() {
        return vec![String::from("has a type that contains itself. No door can describe it; flatten it.")];
    }
    let Some(kind) = schema["type"].as_str() else {
        return vec![String::from(
            "has no single type. Use a text, a number, a boolean, a list, a struct, or an enum without fields.",
        )];
    };
    let Some(words) = words_of(kind) else {
        return vec![format!("has the type {kind:?}, which no door knows.")];
    };
    for word in schema.as_object().into_iter().flatten().map(|(word, _)| word.as_str()) {
        let general = ["type", "description", "examples", "default", "enum"].contains(&word);
        let is_told_at_its_ref = word == "$defs"; // which names the argument
        if !general && !is_told_at_its_ref && !words.contains(&word) {
            faults.push(format!("has the rule {word:?}, which is not checked for the type {kind:?}. Leave it out."));
        }
    }
    if kind == "array" && !schema["items"].is_object() {
        faults.push(String::from("is a list that does not say of what."));
    }
    if kind == "object" && !schema["properties"].is_object() && !schema["additionalProperties"].is_object() {
        faults.push(String::from("is an object that does not say of what."));
    }
    let step_is_whole = schema["multipleOf"].as_i64().is_some_and(|step| step > 0);
    if schema.get("multipleOf").is_some() && !step_is_whole {
        faults.push(String::from("has a \"multipleOf\" that is no whole number above 0."));
    }
    faults
}

fn text_faults(schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(pattern) = schema["pattern"].as_str() {
        faults.extend(pattern_fault(pattern));
    }
    if let Some(name) = schema["format"].as_str().filter(|name| format::known(name).is_none()) {
        let known = wording::list(format::FORMATS.iter().map(|format| format.name));
        faults.push(format!("has the format {name:?}, which is not checked. Use one of {known}, or a pattern."));
    }
    faults
}

/// A pattern must hold for the whole value, and mean the same to this check as to others (ECMA 262).
fn pattern_fault(pattern: &str) -> Option<String> {
    let marks = marks(pattern);
    let opens = marks.first() == Some(&(0, '^', 0));
    let closes = marks.last() == Some(&(pattern.len().saturating_sub(1), '$', 0));
    if !opens || !closes || marks.iter().any(|mark| matches!(mark, (_, '|', 0))) {
        return Some(format!(
            "has the pattern {pattern:?}, which does not hold for the whole value. Write it as \"^(?:…)$\"."
        ));
    }
    let is_plain = |at: usize| !pattern[at..].starts_with("(?") || pattern[at..].starts_with("(?:");
    let groups_are_plain = marks.iter().all(|(at, mark, _)| *mark != '(' || is_plain(*at));
    (!groups_are_plain || rules::compile(pattern).is_none()).then(|| {
        format!(
            "has the pattern {pattern:?}, which cannot be checked. Use classes, groups and repetition; no look-around, \
             no back-reference, no \\p."
        )
    })
}

/// The characters that are neither escaped nor in a class, with their place and the number of groups around them.
fn marks(pattern: &str) -> Vec<(usize, char, usize)> {
    let (mut depth, mut in_class, mut escaped) = (0_usize, false, false);
    let mut marks = Vec::new();
    for (at, c) in pattern.char_indices() {
        let hidden = escaped || in_class;
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => in_class = false,
            '[' => in_class = true,
            ')' if !hidden => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !hidden {
            marks.push((at, c, depth));
        }
        if c == '(' && !hidden {
            depth += 1;
        }
    }
    marks
}

fn value_faults(schema: &Value) -> Vec<String> {
    let examples = schema["examples"].as_array().into_iter().flatten().map(|value| ("example", value));
    let values = examples.chain(schema.get("default").map(|value| ("default", value)));
    values
        .filter(|(_, value)| !check::keeps(schema, value))
        .map(|(word, value)| format!("has the {word} {value}, which breaks its own rules."))
        .collect()
}

fn property_faults(name: &str, schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_name(name) {
        faults.push(String::from(
            "has a name that is not legal at every door. Use letters and digits, with single \"_\" or \"-\" between them.",
        ));
    }
    match schema["description"].as_str().map(str::trim) {
        None | Some("") => {
            faults.push(String::from("has no doc comment; it is the description that the model reads."));
        }
        Some(text) if text.chars().count() > LONGEST_DESCRIPTION => {
            faults.push(format!("has a description of more than {LONGEST_DESCRIPTION} characters. Shorten it."));
        }
        Some(_) => {}
    }
    let has_rule = |schema: &Value| schema.get("pattern").is_some() || schema.get("format").is_some();
    let has_example = |schema: &Value| !schema["examples"][0].is_null();
    if (has_rule(schema) || has_rule(&schema["items"])) && !has_example(schema) && !has_example(&schema["items"]) {
        faults.push(String::from(
            "has a pattern or format but no example. Add #[schemars(extend(\"examples\" = [\"…\"]))].",
        ));
    }
    faults
}

/// `([0-9a-zA-Z][_-]?){1,100}`, which is what Bedrock's agents take.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_joint = |byte: &u8| matches!(byte, b'_' | b'-');
    let joints_are_single = bytes.windows(2).all(|pair| !pair.iter().all(is_joint));
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && joints_are_single
        && letters <= 100
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || is_joint(byte))
}
