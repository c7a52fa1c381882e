//! What the schema of a Rust type says, and which schemas do not start.

use super::*;

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
fn a_type_that_contains_itself_has_one_fault_which_names_its_argument() {
    /// A node.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Node {
        /// What is below.
        children: Vec<Node>,
    }
    /// A tree.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Tree {
        /// The top.
        root: Node,
    }
    let faults = schema_faults(&schema_of::<Tree>().1);
    let told = "The argument root.children[] has a type that contains itself. No door can describe it; flatten it.";
    assert_eq!(faults, [told]);
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
