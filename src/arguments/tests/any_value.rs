//! Whatever is sent: no panic, a bounded answer, and nothing that the Rust type would refuse.

use proptest::prelude::*;
use serde::de::DeserializeOwned;

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-300_i16..300).prop_map(Value::from),
        (-300_i16..300).prop_map(|whole| Value::from(f64::from(whole))),
        ".{0,50}".prop_map(Value::from),
        Just(Value::from("192.0.2.1")),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(".{0,50}", inner.clone(), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One good value of [`Everything`].
fn everything() -> Value {
    json!({
        "byte": 255, "small": -128, "int": i32::MIN, "long": i64::MIN, "ulong": u64::MAX, "wide": 7, "some": 1,
        "single": 3.4e38, "double": 0.5, "flag": true, "letter": "ä", "ip": "::1", "count": 3.0, "lists": [[1.0, 2]],
        "pair": [1, 2], "address": {"street": "a", "number": null}, "limits": {"a": 5.0}
    })
}

/// Objects with the right names, most of whose values are right.
fn nearly_everything() -> impl Strategy<Value = Value> {
    let names: Vec<String> = everything().as_object().expect("an object").keys().cloned().collect();
    let change = (proptest::sample::select(names), proptest::option::of(any_json()));
    proptest::collection::vec(change, 0..3).prop_map(move |changes| {
        let mut value = everything();
        let members = value.as_object_mut().expect("an object");
        for (name, change) in changes {
            match change {
                Some(change) => members.insert(name, change),
                None => members.remove(&name),
            };
        }
        value
    })
}

#[test]
fn a_good_value_of_every_kind_passes_and_fits() {
    let checker = checker::<Everything>();
    let value = checker.normalise(everything().as_object().expect("an object").clone());
    assert_eq!(checker.check(&value), []);
    assert_eq!(deserialises::<Everything>(&value), Ok(()));
}

fn deserialises<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    T::deserialize(value).map(drop).map_err(|fault| fault.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_json_is_checked_without_a_panic_and_told_in_bounds(value in any_json()) {
        for schema in [schema_of::<SearchOrders>().1, schema_of::<Everything>().1, Value::Null, value.clone()] {
            let checker = Checker::new(&schema);
            let value = value.as_object().map_or_else(|| value.clone(), |object| checker.normalise(object.clone()));
            let told = in_words(&checker.check(&value));
            prop_assert!(told.len() < 20_000, "{}", told.len());
            prop_assert!(told.lines().count() <= TOLD + 2, "{told}");
            schema_faults(&schema);
        }
    }

    #[test]
    fn what_passes_the_check_fits_the_rust_type(value in nearly_everything()) {
        let checker = checker::<Everything>();
        let value = checker.normalise(value.as_object().expect("an object").clone());
        if checker.check(&value).is_empty() {
            prop_assert_eq!(deserialises::<Everything>(&value), Ok(()));
        }
        let again = checker.normalise(value.as_object().expect("an object").clone());
        prop_assert_eq!(again, value);
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_never_as_another_number(text in "[-+]?[0-9]{0,25}(\\.[0-9]{0,5})?([eE][-+]?[0-9]{0,4})?|.{0,60}") {
        if let Ok(value) = read_text("a", &json!({"type": "integer"}), &text) {
            let exact: f64 = text.trim().parse().expect("a number");
            prop_assert_eq!(value.as_f64(), Some(exact));
        }
        for kind in ["number", "boolean", "array", "object", "string"] {
            if let Err(fault) = read_text("a", &json!({"type": kind}), &text) {
                prop_assert!(fault.to_string().len() < 1000);
            }
        }
    }
}
