use serde_json::{Value, json};

use super::{call, call_in, faults, invalid, unavailable};
use crate::{
    door::testing::{answer, file, replay, success},
    outcome::FailureKind,
};

#[test]
fn a_result_and_an_error_are_data_for_the_next_node() {
    let outcome = |outcome| answer(file("flow/get-order.json"), vec![outcome]);
    assert_eq!(outcome(success(json!({ "id": 1 }))), json!({ "ok": true, "result": { "id": 1 } }));
    assert_eq!(outcome(replay(json!([1]))), json!({ "ok": true, "replayed": true, "result": [1] }));
    for failed in [invalid(), unavailable()] {
        let error = failed.failure().unwrap().to_json();
        assert_eq!(outcome(failed), json!({ "ok": false, "error": error }));
    }
}

#[test]
fn values_are_taken_as_they_are() {
    let arguments = call("flow/search-orders-tags.json").arguments;
    assert_eq!((&arguments.values["limit"], &arguments.values["tags"]), (&json!(2), &json!(["vip", "two words"])));
    let text = call("flow/number-as-text.json").arguments;
    assert_eq!((&text.values["amount_cents"], text.faults.len()), (&json!("1500"), 0), "left for the check to refuse");
}

#[test]
fn the_older_spelling_of_the_inputs_is_read_and_two_that_differ_are_a_fault() {
    assert_eq!(call("flow/older-spelling.json").arguments.values["order_id"], "ORD-12345");
    let both = call("flow/both-spellings.json").arguments;
    assert!(both.values.is_empty() && faults(&both)[0].contains("different values"), "{both:?}");
}

#[test]
fn a_number_is_the_same_value_in_each_of_its_spellings() {
    let both = |one: Value, other: Value| {
        let entry = |value: Value| json!([{ "name": "limit", "value": value }]);
        let node = json!({ "name": "search_orders", "inputs": entry(one), "nodeInputs": entry(other) });
        call_in(json!({ "flow": {}, "node": node })).arguments
    };
    let spelt = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (one, other) in
        [("1", "1.0"), ("1.0", "1"), ("0", "-0.0"), ("100", "1e2"), ("[1]", "[1.0]"), (r#"{"a":1}"#, r#"{"a":1.0}"#)]
    {
        assert_eq!(faults(&both(spelt(one), spelt(other))), Vec::<String>::new(), "{one} and {other}");
    }
    for (one, other) in
        [("1", "2"), ("1", "\"1\""), ("9007199254740993", "9007199254740992.0"), ("[1]", "[1,1]"), ("1", "true")]
    {
        assert_eq!(faults(&both(spelt(one), spelt(other))).len(), 1, "{one} and {other}");
    }
}

#[test]
fn absent_and_null_inputs_are_none_and_an_object_is_a_fault() {
    for name in ["flow/no-inputs.json", "flow/null-inputs.json"] {
        let arguments = call(name).arguments;
        assert!(arguments.values.is_empty() && arguments.faults.is_empty(), "{name}");
    }
    let object = call("flow/inputs-are-an-object.json").arguments;
    assert!(faults(&object)[0].contains("inputs of the node must be a list"), "{object:?}");
}

#[test]
fn the_nodes_name_is_the_tools_name_and_nothing_else_is_tried() {
    let renamed = call("flow/node-is-no-tool.json");
    assert_eq!((renamed.tool.as_str(), renamed.objection), ("OrderNode", None));
    let nameless = call("flow/no-name.json").objection.unwrap();
    assert_eq!(nameless.kind(), FailureKind::UnknownTool);
    assert!(nameless.message().contains("refund_order"));
}
