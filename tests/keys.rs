//! What makes two calls the same action, for any arguments; and what a record keeps of any result.

#[cfg(feature = "dev")]
mod support;

use std::time::Duration;

use action_group::{
    idempotency::{Key, KeyFault},
    tool::{Definition, Effect, Route, Scope, Wording},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn tool(name: &'static str) -> Definition {
    Definition {
        name,
        description: String::new(),
        schema: Value::Null,
        effect: Effect::Keyed,
        may_need_approval: false,
        timeout: Duration::from_secs(1),
        window: Duration::from_mins(1),
        key_version: 1,
        scope: Scope::Deployment,
        route: Route::post("/x"),
        wording: Wording::default(),
    }
}

fn key(value: &Value) -> Key {
    Key::new(&tool("t"), "s", value, value).expect("a key")
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A text in which prefixes, separators, quotes and characters of any length are likely.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-c:#\"\\\\0-9]{0,4}",
        Just(String::from("integer:9007199254740993")),
        Just(String::from("text:integer:9007199254740993")),
        Just(String::from("\u{1f600}é\u{0301}\u{7f}")),
    ]
}

/// Any JSON without nulls, whose numbers are integers.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        prop_oneof![Just(9_007_199_254_740_991_u64), Just(9_007_199_254_740_992), Just(9_007_199_254_740_993)]
            .prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The same JSON in another spelling: fields backwards, integers as fractions, every character escaped.
fn respelled(value: &Value) -> String {
    let list = |items: Vec<String>, open: &str, close: &str| format!("{open} {} {close}", items.join(" , "));
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(0) => String::from("-0.0"),
            Some(small) if small.unsigned_abs() < 1 << 53 => format!("{small}.0e0"),
            _ => number.to_string(),
        },
        Value::String(text) => escaped(text),
        Value::Array(items) => list(items.iter().map(respelled).collect(), "[", "]"),
        Value::Object(fields) => {
            let fields = fields.iter().rev().map(|(name, field)| format!("{}: {}", escaped(name), respelled(field)));
            list(fields.collect(), "{", "}")
        }
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{}\"", units.concat())
}

proptest! {
    #[test]
    fn the_spelling_of_arguments_makes_no_difference(value in value()) {
        prop_assert_eq!(key(&value), key(&read(&respelled(&value))));
    }

    #[test]
    fn different_arguments_are_different_actions(a in value(), b in value()) {
        prop_assert_eq!(a == b, key(&a) == key(&b), "{} and {}", a, b);
    }

    #[test]
    fn an_integer_and_its_neighbour_are_different_actions(integer in any::<u64>()) {
        prop_assert_ne!(key(&json!(integer)), key(&json!(integer.wrapping_add(1))));
        let signed = integer.cast_signed();
        prop_assert_ne!(key(&json!(signed)), key(&json!(signed.wrapping_sub(1))));
        prop_assert_ne!(key(&json!(integer)), key(&json!(integer.to_string())));
        prop_assert_ne!(key(&json!(integer)), key(&json!(format!("integer:{integer}"))));
    }

    #[test]
    fn the_order_of_a_list_makes_a_difference(mut items in prop::collection::vec(value(), 2..5)) {
        let before = json!(items);
        items.rotate_left(1);
        let after = json!(items);
        prop_assert_eq!(before == after, key(&before) == key(&after));
    }

    #[test]
    fn no_part_of_a_key_can_be_shifted_into_another(
        parts in prop::collection::vec("[ab]{0,3}", 4),
        others in prop::collection::vec("[ab]{0,3}", 4),
    ) {
        let digest = |parts: &[String]| {
            let name: &'static str = ["", "a", "b", "ab", "ba", "aab"][parts[0].len() % 6];
            let definition = Definition { key_version: u32::try_from(parts[3].len()).expect("small"), ..tool(name) };
            let key = Key::new(&definition, &parts[1], &json!(parts[2]), &json!({})).expect("a key");
            ((name, parts[1].clone(), parts[2].clone(), parts[3].len()), key.digest().to_owned())
        };
        let ((a, digest_a), (b, digest_b)) = (digest(&parts), digest(&others));
        prop_assert_eq!(a == b, digest_a == digest_b);
    }

    #[test]
    fn a_null_anywhere_in_a_key_is_refused(value in value(), at in 0_usize..3) {
        let holding = match at {
            0 => json!([value, null]),
            1 => json!({"a": value, "b": [{"c": null}]}),
            _ => Value::Null,
        };
        prop_assert_eq!(Key::new(&tool("t"), "s", &holding, &json!({})), Err(KeyFault));
        prop_assert!(Key::new(&tool("t"), "s", &value, &holding).is_ok(), "other arguments may be null");
    }
}

#[cfg(feature = "dev")]
mod record {
    use action_group::idempotency::{Acquired, Claim, State, Stored};
    use support::Database;

    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn a_record_keeps_any_result_and_any_claim_as_they_are(
            result in prop_oneof![value(), Just(Value::Null), Just(json!(1.5e300))],
            owner in "[0-9a-f]{1,32}",
            lease in 0_u64..100_000_000,
        ) {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let database = Database::start().await;
                let store = database.store();
                let key = key(&json!(owner));
                let claim = Claim {
                    owner,
                    effect: Effect::Keyed,
                    lease_until: store.now().plus(Duration::from_millis(lease)),
                    expires_at: store.now().plus(Duration::from_hours(24)),
                    for_approval: None,
                };
                let Acquired::Mine(guard) = store.acquire(&key, &claim, TIME).await.expect("an answer") else {
                    panic!("the key was free")
                };
                let stored = Stored::of(result.to_string());
                guard.complete(&stored, TIME).await.expect("an answer");
                let record = store.read(&key, TIME).await.expect("an answer").expect("a record");
                assert_eq!(record.state, State::Completed);
                assert_eq!((&record.owner, record.attempt, &record.result), (&claim.owner, 1, &Some(stored)));
                assert_eq!((record.lease_until, record.args_hash.as_str()), (claim.lease_until, key.args_hash()));
                assert_eq!(record.expires_at.as_millis() / 1000, claim.expires_at.as_secs_up());
            });
        }
    }
}
