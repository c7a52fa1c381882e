//! The body of an operation: every media type is read, and nothing in it is passed over.

use serde_json::{Value, json};

use super::{call, call_in, faults};
use crate::{call::Call, door::testing::file};

/// The call of a refund with this `requestBody`.
fn with_body(request_body: &Value) -> Call {
    let mut body = file("agent-openapi/no-body.json").body;
    (body["apiPath"], body["httpMethod"]) = (json!("/orders/{order_id}/refunds"), json!("POST"));
    body["requestBody"] = request_body.clone();
    call_in(body)
}

#[test]
fn a_body_of_any_media_type_is_read() {
    assert_eq!(call("agent-openapi/other-media-type.json").arguments.values["reason"], "damaged");
    for content in [json!(null), json!({ "application/json": null }), json!({ "text/plain": { "properties": null } })] {
        let mut body = file("agent-openapi/no-body.json").body;
        body["requestBody"] = json!({ "content": content });
        assert!(call_in(body).arguments.faults.is_empty());
    }
}

#[test]
fn bodies_of_several_media_types_are_read_together_and_an_empty_one_shuts_none_out() {
    let form = json!({ "properties": [{ "name": "reason", "value": "damaged" }] });
    for empty in [json!(null), json!({}), json!({ "properties": [] }), json!({ "properties": null })] {
        let content = json!({ "application/json": empty, "application/x-www-form-urlencoded": form });
        let arguments = with_body(&json!({ "content": content })).arguments;
        assert_eq!((&arguments.values["reason"], arguments.faults.len()), (&json!("damaged"), 0), "{content}");
    }
    for media_type in ["application/json-patch+json", "application/jsonl", "text/plain"] {
        let other = json!({ "properties": [{ "name": "reason", "value": "late" }] });
        let arguments = with_body(&json!({ "content": { "application/json": form, media_type: other } })).arguments;
        assert!(!arguments.values.contains_key("reason"), "none is picked");
        assert!(faults(&arguments)[0].contains("different values"), "{arguments:?}");
    }
}

#[test]
fn a_body_of_another_shape_is_a_fault_and_never_left_out_in_silence() {
    for body in [
        json!("reason=damaged"),
        json!([{ "name": "reason", "value": "damaged" }]),
        json!(7),
        json!({ "content": "reason=damaged" }),
        json!({ "content": [{ "properties": [] }] }),
        json!({ "application/json": { "properties": [] } }),
        json!({ "content": { "application/json": "{}" } }),
        json!({ "content": { "application/json": [{ "name": "reason", "value": "damaged" }] } }),
        json!({ "content": { "application/json": { "body": "{\"reason\":\"damaged\"}" } } }),
        json!({ "content": { "application/json": { "properties": { "reason": "damaged" } } } }),
        json!({ "content": { "application/json": { "properties": "reason" } } }),
    ] {
        let arguments = with_body(&body).arguments;
        assert_eq!(faults(&arguments).len(), 1, "{body}");
        assert!(faults(&arguments)[0].contains("body"), "{body}: {arguments:?}");
    }
    for none in [json!(null), json!({}), json!({ "content": null }), json!({ "content": {} })] {
        assert_eq!(faults(&with_body(&none).arguments), Vec::<String>::new(), "{none}");
    }
}

#[test]
fn a_content_type_that_is_not_the_bodys_is_an_argument_like_any_other() {
    let mut body = file("agent-openapi/proxy-native-values.json").body;
    body["requestBody"]["content"]["application/json"]["properties"][0]["value"] = json!("text/plain");
    assert_eq!(call_in(body).arguments.values["contentType"], "text/plain");
}
