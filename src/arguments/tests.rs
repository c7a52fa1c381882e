//! The promises of the room as a whole, on arguments like those of the demo tools.

use std::collections::BTreeMap;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::*;

/// Look up one order.
#[derive(Deserialize, JsonSchema)]
struct GetOrder {
    /// The order, for example "ORD-12345".
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    #[allow(dead_code)]
    order_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Status {
    /// Not yet handed
    /// to the carrier.
    Open,
    /// On its way.
    Shipped,
    Cancelled,
}

/// Find orders of a customer.
///
/// The newest
/// come first.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct SearchOrders {
    /// The customer.
    #[schemars(length(min = 1, max = 20), extend("examples" = ["C-1"]))]
    customer_id: String,
    /// Only orders that stand there.
    status: Option<Status>,
    /// How many at most.
    #[schemars(range(min = 1, max = 50), extend("examples" = [10]))]
    limit: Option<u32>,
    /// Only orders with all of these tags.
    #[schemars(extend("examples" = [["gift"]]))]
    tags: Option<Vec<String>>,
}

/// Refund part or all of an order.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct RefundOrder {
    /// The order.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
    /// The amount in cents.
    #[schemars(range(min = 1), extend("examples" = [1500]))]
    amount_cents: i64,
    /// Why.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["damaged"]))]
    reason: String,
}

/// Send an e-mail.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct SendEmail {
    /// The recipient.
    #[schemars(email, extend("examples" = ["user@example.com"]))]
    to: String,
    /// The subject.
    subject: String,
    /// The text.
    body: String,
}

/// One of every kind of field.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Everything {
    /// 8 bits.
    byte: u8,
    /// 8 bits with a wider range than the type.
    #[schemars(range(min = -1000, max = 1000))]
    small: i8,
    /// 32 bits.
    int: i32,
    /// 64 bits.
    long: i64,
    /// 64 bits.
    ulong: u64,
    /// 128 bits.
    wide: u128,
    /// Not zero.
    some: std::num::NonZeroU16,
    /// A single.
    single: f32,
    /// A double.
    #[schemars(range(min = 0.5))]
    double: Option<f64>,
    /// Yes or no.
    flag: Option<bool>,
    /// One character.
    letter: char,
    /// An address.
    #[schemars(extend("examples" = ["192.0.2.1"]))]
    ip: Option<std::net::IpAddr>,
    /// A default.
    #[serde(default)]
    count: usize,
    /// Lists of numbers.
    lists: Vec<Vec<i16>>,
    /// A pair.
    pair: Option<[u8; 2]>,
    /// An object.
    address: Option<Address>,
    /// Numbers by name.
    limits: Option<BTreeMap<String, u8>>,
}

/// Where.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Address {
    /// The street.
    street: String,
    /// The number.
    number: Option<u16>,
}

fn checker<T: JsonSchema>() -> Checker {
    Checker::new(&schema_of::<T>().1)
}

fn faults<T: JsonSchema>(arguments: &Value) -> Vec<String> {
    let checker = checker::<T>();
    let arguments = checker.normalise(arguments.as_object().expect("an object").clone());
    checker.check(&arguments).iter().map(ToString::to_string).collect()
}

#[test]
fn the_schema_of_a_struct_is_in_the_dialect() {
    let (description, schema) = schema_of::<SearchOrders>();
    assert_eq!(description, "Find orders of a customer. The newest come first.");
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "customer_id": {
                    "type": "string", "description": "The customer.", "minLength": 1, "maxLength": 20, "examples": ["C-1"]
                },
                "status": {
                    "type": "string",
                    "description": "Only orders that stand there. \"open\": Not yet handed to the carrier. \"shipped\": On its way.",
                    "enum": ["cancelled", "open", "shipped"]
                },
                "limit": {
                    "type": "integer", "description": "How many at most.", "minimum": 1, "maximum": 50, "examples": [10]
                },
                "tags": {
                    "type": "array", "description": "Only orders with all of these tags.",
                    "items": {"type": "string"}, "examples": [["gift"]]
                }
            },
            "required": ["customer_id"],
            "additionalProperties": false
        })
    );
}

#[test]
fn the_schema_states_the_bounds_of_the_rust_type() {
    let properties = schema_of::<Everything>().1["properties"].take();
    for (name, least, most) in [
        ("byte", json!(0), json!(255)),
        ("small", json!(-128), json!(127)),
        ("int", json!(i32::MIN), json!(i32::MAX)),
        ("long", Value::Null, json!(i64::MAX)),
        ("ulong", json!(0), Value::Null),
        ("some", json!(1), json!(65535)),
        ("single", json!(f32::MIN), json!(f32::MAX)),
        ("double", json!(0.5), Value::Null),
    ] {
        assert_eq!((&properties[name]["minimum"], &properties[name]["maximum"]), (&least, &most), "{name}");
        assert!(properties[name].get("format").is_none(), "{name}");
    }
    assert_eq!(properties["address"]["additionalProperties"], false);
    let text = properties.to_string();
    for word in ["$ref", "$defs", "title", "null", "anyOf", "oneOf"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

#[test]
fn the_demo_schemas_have_no_faults() {
    fn none<T: JsonSchema>() {
        assert_eq!(schema_faults(&schema_of::<T>().1), [] as [String; 0]);
    }
    none::<GetOrder>();
    none::<SearchOrders>();
    none::<RefundOrder>();
    none::<SendEmail>();
    none::<Everything>();
}

#[test]
fn every_fault_is_told_at_once_with_its_path_the_rule_and_an_example() {
    assert_eq!(
        faults::<RefundOrder>(&json!({"order_id": "12345", "amount_cents": "ten", "currency": "EUR", "note": 1})),
        [
            "amount_cents must be a whole number of at least 1, but is the text \"ten\"; for example 1500.",
            "order_id must be a text that matches ^ORD-[0-9]{5}$, but is the text \"12345\"; for example \"ORD-12345\".",
            "reason is missing: a text of 1 to 200 characters; for example \"damaged\".",
            "currency is not an argument of this tool, which has amount_cents, order_id, reason.",
            "note is not an argument of this tool.",
        ]
    );
    assert_eq!(
        faults::<SearchOrders>(&json!({"customerId": "C-1", "status": "null", "limit": 500, "tags": ["a", 1, null]})),
        [
            "customer_id is missing: a text of 1 to 20 characters; for example \"C-1\".",
            "limit must be a whole number from 1 to 50, but is 500; for example 10.",
            "status must be one of \"cancelled\", \"open\", \"shipped\", but is the text \"null\"; for example \"cancelled\".",
            "tags[1] must be a text, but is 1; for example \"text\".",
            "tags[2] must be a text, but is null; for example \"text\".",
            "customerId is not an argument of this tool, which has customer_id, limit, status, tags; use customer_id.",
        ]
    );
    assert_eq!(
        faults::<SendEmail>(&json!({"to": "someone"})),
        [
            "body is missing: a text; for example \"text\".",
            "subject is missing: a text; for example \"text\".",
            "to must be an e-mail address, but is the text \"someone\"; for example \"user@example.com\".",
        ]
    );
}

#[test]
fn nested_faults_have_nested_paths() {
    let told = faults::<Everything>(&json!({
        "address": {"number": 70000, "city": "Oslo"}, "limits": {"a": 1, "b c": 256}, "lists": [[1], [2, "x"]], "pair": [1]
    }));
    for line in [
        "address.number must be a whole number from 0 to 65535, but is 70000; for example 10.",
        "address.street is missing: a text; for example \"text\".",
        "address.city is not a field of address, which has number, street.",
        "limits.\"b c\" must be a whole number from 0 to 255, but is 256; for example 10.",
        "lists[1][1] must be a whole number from -32768 to 32767, but is the text \"x\"; for example 10.",
        "pair must be a list of whole numbers, exactly 2 of them, but has 1.",
    ] {
        assert!(told.iter().any(|fault| fault == line), "{line} is not in {told:#?}");
    }
}

#[test]
fn only_a_value_that_keeps_the_rule_to_the_last_character_passes() {
    for order_id in ["ORD-12345\n", "\nORD-12345", " ORD-12345", "no. ORD-12345", "ORD-1234٣", "ord-12345", ""] {
        assert_eq!(faults::<GetOrder>(&json!({"order_id": order_id})).len(), 1, "{order_id:?}");
    }
    for to in ["someone", "a@example.org\nBcc: b@example.org", "a@example.org\r", " a@example.org"] {
        let told = faults::<SendEmail>(&json!({"to": to, "subject": "s", "body": "b"}));
        assert_eq!(told.len(), 1, "{to:?}");
        assert!(told[0].starts_with("to must be an e-mail address") && !told[0].contains('\n'), "{told:?}");
    }
    let refund =
        |reason: String| faults::<RefundOrder>(&json!({"order_id": "ORD-12345", "amount_cents": 1, "reason": reason}));
    assert_eq!(refund("😀".repeat(200)), [] as [String; 0]);
    assert_eq!(
        refund("😀".repeat(201)),
        ["reason must be a text of 1 to 200 characters, but has 201; for example \"damaged\"."]
    );
    assert_eq!(
        refund(String::new()),
        ["reason must be a text of 1 to 200 characters, but is empty; for example \"damaged\"."]
    );
}

#[test]
fn no_number_is_taken_for_another() {
    let told = |amount: Value| {
        faults::<RefundOrder>(&json!({"order_id": "ORD-12345", "amount_cents": amount, "reason": "x"})).pop()
    };
    for good in [json!(1), json!(1500.0), json!(1.5e3), json!(9_007_199_254_740_993_i64), json!(i64::MAX)] {
        assert_eq!(told(good.clone()), None, "{good}");
    }
    for (bad, words) in [
        (json!(0), "but is 0;"),
        (json!(-1500), "but is -1500;"),
        (json!(1500.5), "but is 1500.5;"),
        (json!("1500"), "but is the text \"1500\";"),
        (json!(true), "but is true;"),
        (json!(null), "but is null;"),
        (json!([1]), "but is a list;"),
        (json!({"a": 1}), "but is an object;"),
        (json!(9_223_372_036_854_775_808_u64), "but is 9223372036854775808, too large;"),
        (json!(1e300), "but is 1e+300, too large to be exact;"),
    ] {
        let told = told(bad.clone()).unwrap_or_default();
        assert!(told.starts_with("amount_cents must be a whole number") && told.contains(words), "{bad}: {told}");
    }
    let ratio = Checker::new(&json!({"type": "object", "properties": {"ratio": {"type": "number"}}}));
    assert_eq!(ratio.check(&json!({"ratio": 3})), []);
    assert_eq!(
        in_words(&ratio.check(&json!({"ratio": 9_007_199_254_740_993_i64}))),
        "ratio must be a number, but is 9007199254740993, too large to be exact; for example 10."
    );
}

#[test]
fn every_rule_of_the_dialect_is_checked() {
    for (schema, good, bad) in [
        (json!({"type": "integer", "multipleOf": 5}), json!(-10), json!(11)),
        (json!({"type": "integer", "enum": [1, 3]}), json!(3), json!(2)),
        (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0.5), json!(1)),
        (json!({"type": "number", "minimum": 0.5}), json!(0.5), json!(0.4)),
        (json!({"type": "string", "minLength": 2, "maxLength": 2}), json!("éé"), json!("é")),
        (json!({"type": "string", "format": "date"}), json!("2026-01-31"), json!("2026-02-31")),
        (json!({"type": "array", "items": {"type": "string"}, "minItems": 1}), json!(["a"]), json!([])),
        (json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}), json!([]), json!(["a", "b"])),
        (json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true}), json!([1, 2]), json!([1, 2, 1])),
        (json!({"type": "boolean"}), json!(false), json!("false")),
        (json!({"type": "object", "additionalProperties": {"type": "boolean"}}), json!({"a": true}), json!({"a": 1})),
    ] {
        let checker = Checker::new(&json!({"type": "object", "properties": {"a": schema}}));
        assert_eq!(checker.check(&json!({"a": good})), [], "{schema}");
        assert_eq!(checker.check(&json!({"a": bad})).len(), 1, "{schema}");
    }
}

#[test]
fn null_for_an_optional_argument_is_the_same_as_leaving_it_out() {
    let search = checker::<SearchOrders>();
    let given = json!({"customer_id": "C-1", "status": null, "limit": 10.0, "tags": null});
    assert_eq!(
        search.normalise(given.as_object().expect("an object").clone()),
        json!({"customer_id": "C-1", "limit": 10})
    );
    let everything = checker::<Everything>();
    let given = json!({"address": {"street": "a", "number": null}, "lists": [[1.0, 1.5, "1", true]], "unknown": null, "byte": null});
    assert_eq!(
        everything.normalise(given.as_object().expect("an object").clone()),
        json!({"address": {"street": "a"}, "lists": [[1, 1.5, "1", true]], "unknown": null, "byte": null})
    );
}

#[test]
fn whatever_the_size_of_what_was_sent_the_answer_is_short() {
    let long = "x".repeat(1_000_000);
    let mut given = json!({ "tags": vec![1; 1_000_000], "customer_id": long, "status": long });
    for index in 0..1000 {
        given[format!("{index}{long}").get(..100_000).expect("long enough")] = json!(1);
    }
    let faults = checker::<SearchOrders>().check(&given);
    let told = in_words(&faults);
    assert!(told.len() < 5_000, "{}", told.len());
    assert!(told.starts_with("At least 200 faults in the arguments:\n"), "{told}");
    assert!(told.ends_with("\nAnd 180 more."), "{told}");
}

#[test]
fn what_could_not_be_read_is_told_once() {
    let (_, schema) = schema_of::<RefundOrder>();
    let mut all = vec![read_text("amount_cents", &schema["properties"]["amount_cents"], "ten").expect_err("no number")];
    all.extend(Checker::new(&schema).check(&json!({"order_id": "ORD-12345", "reason": "x"})));
    assert_eq!(
        in_words(&all),
        "amount_cents must be a whole number of at least 1, written in digits, but is the text \"ten\"; \
         for example 1500."
    );
}

#[test]
fn arguments_that_are_no_object_are_one_fault() {
    let told = in_words(&checker::<GetOrder>().check(&json!([1])));
    assert_eq!(told, "The arguments must be a JSON object, but are a list.");
}

#[test]
fn a_schema_that_leaves_the_dialect_is_refused_in_words() {
    fn with(property: &Value) -> Vec<String> {
        schema_faults(&json!({"type": "object", "properties": {"a": property}, "additionalProperties": false}))
    }
    let text = |more: Value| {
        let mut schema = json!({"type": "string", "description": "A text."});
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        with(&schema)
    };
    for (faults, words) in [
        (with(&json!({"type": "string"})), "The argument a has no doc comment"),
        (text(json!({"description": "x".repeat(501)})), "more than 500 characters"),
        (text(json!({"pattern": "^a$"})), "no example"),
        (text(json!({"format": "email"})), "no example"),
        (text(json!({"format": "phone", "examples": ["1"]})), "format \"phone\""),
        (text(json!({"examples": ["abc"], "maxLength": 2})), "example \"abc\", which breaks"),
        (text(json!({"default": 1})), "default 1, which breaks"),
        (text(json!({"pattern": "ORD", "examples": ["ORD"]})), "the whole value"),
        (text(json!({"pattern": "^a|b$", "examples": ["a"]})), "the whole value"),
        (text(json!({"pattern": "^a\\$", "examples": ["a$"]})), "the whole value"),
        (text(json!({"pattern": "^(?=a)a$", "examples": ["a"]})), "cannot be checked"),
        (text(json!({"pattern": "^(?m)a$", "examples": ["a"]})), "cannot be checked"),
        (text(json!({"pattern": "^\\p{L}$", "examples": ["a"]})), "cannot be checked"),
        (text(json!({"minimum": 1})), "\"minimum\", which is not checked"),
        (text(json!({"contentEncoding": "base64"})), "\"contentEncoding\", which is not checked"),
        (with(&json!({"description": "d", "anyOf": [{"type": "string"}, {"type": "integer"}]})), "no single type"),
        (with(&json!({"description": "d", "type": ["string", "integer"]})), "no single type"),
        (with(&json!({"description": "d", "$ref": "#"})), "contains itself"),
        (with(&json!({"description": "d", "type": "array"})), "does not say of what"),
        (with(&json!({"description": "d", "type": "array", "items": {"type": "null"}})), "a[] has the type \"null\""),
        (schema_faults(&json!({"type": "string"})), "no struct with named fields"),
        (schema_faults(&json!({"type": "object", "properties": {}, "additionalProperties": true})), "does not name"),
        (
            schema_faults(
                &json!({"type": "object", "properties": {}, "required": ["b"], "additionalProperties": false}),
            ),
            "b is required, but is not described",
        ),
    ] {
        assert!(faults.len() == 1 && faults[0].contains(words), "{words:?}: {faults:#?}");
    }
    for good in ["^a$", "^(?:a|b)$", "^[|(]$", "^\\(?a\\)?$", "^$", "^é+$"] {
        let faults = text(json!({"pattern": good, "examples": [if good == "^$" { "" } else { "a" }]}));
        assert!(faults.iter().all(|fault| fault.contains("breaks its own")), "{good}: {faults:?}");
    }
    for name in ["", "_a", "a__b", "a-_b", "a b", "ä", "a.b", &"a".repeat(101)] {
        let faults = schema_faults(&json!({
            "type": "object", "properties": {name: {"type": "boolean", "description": "d"}}, "additionalProperties": false
        }));
        assert!(faults.len() == 1 && faults[0].contains("not legal at every door"), "{name:?}: {faults:?}");
    }
}

#[test]
fn types_that_no_door_can_describe_are_refused() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Tree {
        /// The branches.
        branches: Vec<Tree>,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Either {
        /// One or the other.
        this_or_that: Result<String, u8>,
        /// Two things.
        pair: (String, u8),
        /// Anything.
        anything: Value,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Open {
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    for (faults, count, words) in [
        (schema_faults(&schema_of::<Tree>().1), 1, "contains itself"),
        (schema_faults(&schema_of::<Either>().1), 3, "The argument this_or_that has no single type"),
        (schema_faults(&schema_of::<Open>().1), 1, "does not name"),
    ] {
        assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: {faults:#?}");
        assert!(faults.len() >= count, "{faults:#?}");
    }
}

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
