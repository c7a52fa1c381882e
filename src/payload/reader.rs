//! Reads any JSON as far as the limits go, and notes what is beyond them, or said twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

use super::{MOST_LEVELS, MOST_VALUES, Payload};

/// One value with all that is in it, and the first flaw.
pub(super) fn read<'de, D: Deserializer<'de>>(json: D) -> Result<Payload, D::Error> {
    let mut found = Found::default();
    let value = Reader { found: &mut found, level: 0 }.deserialize(json)?;
    Ok(Payload { value, flaw: found.flaw })
}

/// What was met on the way.
#[derive(Default)]
struct Found {
    values: usize,
    flaw: Option<String>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.values >= MOST_VALUES
    }

    fn too_many(&mut self) {
        self.flaw.get_or_insert_with(|| format!("holds more than {MOST_VALUES} values, which is too many."));
    }

    fn doubled(&mut self, name: &str) {
        let name: String = name.chars().take(40).collect();
        self.flaw.get_or_insert_with(|| {
            format!("has the field {name:?} twice in one object, and it is not clear which one is meant.")
        });
    }

    fn too_deep(&mut self) {
        self.flaw.get_or_insert_with(|| format!("is nested more than {MOST_LEVELS} levels deep."));
    }
}

/// Reads one value.
struct Reader<'a> {
    found: &'a mut Found,
    level: usize,
}

impl Reader<'_> {
    fn inner(&mut self) -> Reader<'_> {
        Reader { found: self.found, level: self.level + 1 }
    }

    fn is_too_deep(&mut self) -> bool {
        let too_deep = self.level >= MOST_LEVELS;
        if too_deep {
            self.found.too_deep();
        }
        too_deep
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.found.values += 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let skip = self.is_too_deep();
        while !skip && !self.found.is_full() {
            match items.next_element_seed(self.inner())? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
        // Skipping takes no stack, however deep the values are.
        let mut skipped = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            self.found.too_many(); // unless it is too deep, which has been noted already
            skipped = true;
        }
        if skipped {
            list.push(Value::Null); // whoever answers each item has to know that there were more
        }
        Ok(if skip { Value::Null } else { Value::Array(list) })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let skip = self.is_too_deep();
        while let Some(name) = entries.next_key::<String>()? {
            if skip || self.found.is_full() {
                self.found.too_many(); // unless it is too deep, which has been noted already
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = entries.next_value_seed(self.inner())?;
            match fields.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut place) => {
                    self.found.doubled(place.key());
                    place.insert(value);
                }
            }
        }
        Ok(if skip { Value::Null } else { Value::Object(fields) })
    }
}
