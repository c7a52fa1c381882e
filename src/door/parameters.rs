//! Arguments that come as lists of `{name, type, value}`: at agents, in a return of control, and in a flow.
//!
//! Agents send every value as text, and sometimes leave out lists, types or names. The import proxy of AgentCore's
//! starter toolkit calls the functions of old agents with native values instead, and with objects taken apart into such
//! lists again. A flow's values are native. Rules for what is odd:
//!
//! | in the event | read as |
//! | --- | --- |
//! | a list that is absent, `null` or empty | no arguments |
//! | a text at an agent's door, also within a list or an object | by the schema of the tool's argument, never by the event's `type`, which the model may get wrong |
//! | a list of names and values where the schema has an object | that object |
//! | any other value | as it is |
//! | a name that the tool does not have | passed on; the check refuses it by name |
//! | one name, equal values (1 and 1.0 are equal) | one argument |
//! | one name, different values | a fault; none is picked |
//! | an entry with neither name nor value | nothing |
//! | a value without a name | a fault: to drop it would run the tool with less than was asked for |

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bounded;
use crate::{
    arguments::{Fault, read_text, same},
    call::{Arguments, kind_of},
    tool::Definition,
};

/// A list of arguments, and how the event calls it.
pub(super) type List<'a> = (&'static str, &'a Value);

/// What the values of a door are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Text, whatever the type of the argument.
    Text,
    /// JSON of the argument's type.
    Native,
}

/// The arguments of this tool in the lists.
pub(super) fn arguments(lists: &[List<'_>], definition: &Definition, are: Values) -> Arguments {
    let (named, mut faults) = gather(lists);
    let mut values = Map::new();
    for (name, all) in named {
        let schema = definition.schema.get("properties").and_then(|properties| properties.get(name));
        match read_all(name, &all, schema, are) {
            Ok(value) => drop(values.insert(String::from(name), value)),
            Err(fault) => faults.push(fault),
        }
    }
    Arguments { values, faults }
}

/// Every value under its name, and what has none.
fn gather<'a>(lists: &[List<'a>]) -> (BTreeMap<&'a str, Vec<&'a Value>>, Vec<Fault>) {
    let (mut values, mut faults, mut nameless) = (BTreeMap::<_, Vec<_>>::new(), Vec::new(), 0_usize);
    for (place, list) in lists {
        if !list.is_array() && !list.is_null() {
            let kind = kind_of(list);
            faults.push(whole(format!("The {place} must be a list of names and values, but are {kind}.")));
        }
        for entry in list.as_array().into_iter().flatten() {
            match entry.get("name").and_then(Value::as_str) {
                Some(name) => values.entry(name).or_default().push(&entry["value"]),
                None if says_nothing(entry) => {}
                None => nameless += 1,
            }
        }
    }
    if nameless > 0 {
        faults.push(whole(format!("{nameless} of the values came without a name. Give each value its name.")));
    }
    (values, faults)
}

/// Whether nothing is lost with an entry that has no name.
fn says_nothing(entry: &Value) -> bool {
    entry.is_null() || entry.as_object().is_some_and(|fields| !fields.contains_key("value"))
}

fn whole(rule: String) -> Fault {
    Fault { path: String::new(), rule, example: None }
}

/// The one value that all of them say.
fn read_all(name: &str, values: &[&Value], schema: Option<&Value>, are: Values) -> Result<Value, Fault> {
    let Some((first, others)) = values.split_first() else { return Ok(Value::Null) };
    let first_read = read(name, first, schema, are);
    let agrees = |other: &&Value| match (&first_read, read(name, other, schema, are)) {
        _ if other == first => true,
        (Ok(one), Ok(other)) => same(one, &other),
        _ => false,
    };
    if others.iter().all(agrees) {
        first_read
    } else {
        let rule = String::from("must be given once, but came with different values");
        Err(Fault { path: bounded(name), rule, example: None })
    }
}

fn read(name: &str, value: &Value, schema: Option<&Value>, are: Values) -> Result<Value, Fault> {
    match (value, schema) {
        (Value::String(text), Some(schema)) if are == Values::Text => read_text(name, schema, text),
        (_, Some(schema)) => Ok(assembled(value, schema, are)),
        _ => Ok(value.clone()),
    }
}

/// The value with each text in it read, and each object put together that came as a list of names and values. Goes along
/// the schema, so that a list is never taken for an object where the tool wants a list. What is of another kind stays as it
/// is, and the check refuses it by its place.
fn assembled(value: &Value, schema: &Value, are: Values) -> Value {
    match (value, schema["type"].as_str()) {
        (Value::String(text), Some(_)) if are == Values::Text => {
            read_text("", schema, text).unwrap_or_else(|_| value.clone())
        }
        (Value::Array(entries), Some("object")) => from_entries(entries, schema, are).unwrap_or_else(|| value.clone()),
        (Value::Array(items), Some("array")) => {
            items.iter().map(|item| assembled(item, &schema["items"], are)).collect()
        }
        (Value::Object(fields), Some("object")) => {
            fields.iter().map(|(name, value)| (name.clone(), assembled(value, member(schema, name), are))).collect()
        }
        _ => value.clone(),
    }
}

/// The object in a list of names and values, if it is nothing else and no name comes twice.
fn from_entries(entries: &[Value], schema: &Value, are: Values) -> Option<Value> {
    let mut fields = Map::new();
    for entry in entries {
        let name = entry.get("name")?.as_str()?;
        let value = assembled(entry.get("value")?, member(schema, name), are);
        if fields.insert(String::from(name), value).is_some() {
            return None;
        }
    }
    Some(Value::Object(fields))
}

/// The schema of a field.
fn member<'a>(schema: &'a Value, name: &str) -> &'a Value {
    schema["properties"].get(name).unwrap_or(&schema["additionalProperties"])
}
