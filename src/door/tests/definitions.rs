use serde_json::{Map, Value, json};

use crate::{
    door::{
        named,
        testing::{tool, toolbox, toolbox_of},
    },
    tool::{Effect, Route},
};

fn definitions(door: &str) -> Value {
    (named(door).unwrap().definitions)(&toolbox())
}

/// The definitions of one tool with these arguments.
fn of(door: &str, properties: &Value) -> Value {
    let tool = tool("some_tool", Effect::Once, Route::post("/some"), properties, &[]);
    (named(door).unwrap().definitions)(&toolbox_of(tool))
}

fn each_property(schema: &Value, visit: &mut dyn FnMut(&Map<String, Value>)) {
    for property in schema["properties"].as_object().into_iter().flatten().map(|(_, property)| property) {
        visit(property.as_object().unwrap());
        each_property(property, visit);
    }
}

#[test]
fn converse_gets_a_tool_config_with_the_whole_schema() {
    let config = definitions("converse");
    let tools = config["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 5);
    let first = &tools[0]["toolSpec"];
    assert_eq!(
        (&first["name"], &first["inputSchema"]["json"]["type"]),
        (&json!("create_shipping_label"), &json!("object"))
    );
    assert_eq!(first["inputSchema"]["json"]["additionalProperties"], false);
}

#[test]
fn a_converse_tool_is_strict_where_bedrock_knows_every_keyword_of_its_schema() {
    let strict =
        |argument: Value| of("converse", &json!({ "argument": argument }))["tools"][0]["toolSpec"]["strict"].clone();
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    for known in [
        json!({"type": "string", "description": "A text."}),
        json!({"type": "string", "enum": ["a", "b"]}),
        json!({"type": "string", "format": "email"}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        object.clone(),
    ] {
        assert_eq!(strict(known.clone()), true, "{known}");
    }
    let mut open = object.clone();
    open["additionalProperties"] = json!(true);
    let mut deep = object;
    deep["properties"]["a"]["pattern"] = json!("^a$");
    for unknown in [
        json!({"type": "string", "pattern": "^a$"}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "format": "iban"}),
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "array", "items": {"type": "integer", "maximum": 5}}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}),
        json!({"type": ["string", "null"]}),
        open,
        deep,
    ] {
        assert_eq!(strict(unknown.clone()), Value::Null, "{unknown}");
    }
}

#[test]
fn an_agents_function_has_its_rules_in_words_and_says_what_is_required() {
    let functions = definitions("agent-function");
    let search = functions["functions"].as_array().unwrap().iter().find(|f| f["name"] == "search_orders").unwrap();
    let expected = json!({
        "customer_id": { "type": "string", "description": "The customer. 1 to 40 characters.", "required": true },
        "status": {
            "type": "string",
            "description": "Only orders in this state. One of \"open\", \"shipped\", \"cancelled\".",
            "required": false,
        },
        "limit": { "type": "integer", "description": "The most orders to return. From 1 to 50.", "required": false },
        "tags": { "type": "array", "description": "Only orders with all of these. A list of texts.", "required": false },
    });
    assert_eq!(search["parameters"], expected);
}

#[test]
fn a_rule_has_the_same_words_in_a_description_and_in_a_fault() {
    for (schema, words) in [
        (json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }), "At least 0."),
        (json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.5 }), "Above 0. Below 1.5."),
        (json!({ "type": "integer", "multipleOf": 5 }), "Divisible by 5."),
        (json!({ "type": "string", "minLength": 1, "maxLength": 1 }), "Exactly 1 character."),
        (json!({ "type": "string", "minLength": 0 }), "The argument x."),
        (json!({ "type": "array", "items": { "type": "string" }, "maxItems": 1 }), "At most 1 item. A list of texts."),
    ] {
        let function = of("agent-function", &json!({ "x": schema }));
        assert_eq!(function["functions"][0]["parameters"]["x"]["description"], words);
    }
}

#[test]
fn only_a_tool_that_may_need_approval_asks_the_user_first() {
    let functions = definitions("agent-function");
    let enabled = |f: &&Value| f["requireConfirmation"] == "ENABLED";
    let functions = functions["functions"].as_array().unwrap();
    assert_eq!(functions.iter().filter(enabled).map(|f| &f["name"]).collect::<Vec<_>>(), ["refund_order"]);
    let paths = definitions("agent-openapi")["paths"].take();
    assert_eq!(paths["/orders/{order_id}/refunds"]["post"]["x-requireConfirmation"], "ENABLED");
    assert!(paths["/emails"]["post"].get("x-requireConfirmation").is_none());
}

#[test]
fn an_agent_knows_no_objects_and_no_long_descriptions() {
    let long = "word ".repeat(300);
    let schema =
        json!({ "address": { "type": "object", "description": long }, "plain": { "minimum": 1, "type": "number" } });
    let function = &of("agent-function", &schema)["functions"][0];
    let address = &function["parameters"]["address"];
    let description = address["description"].as_str().unwrap();
    assert_eq!(address["type"], "string");
    assert!(description.ends_with("As JSON.") && description.chars().count() <= 500);
    assert_eq!(function["parameters"]["plain"]["description"], "At least 1.");
    let bare = of("agent-function", &json!({ "x": { "type": "string" } }));
    assert_eq!(bare["functions"][0]["parameters"]["x"]["description"], "The argument x.");
}

#[test]
fn a_door_that_cannot_declare_the_fields_of_an_object_says_them() {
    let line = json!({ "type": "object", "description": "A line.", "required": ["sku"], "properties": {
        "sku": { "type": "string", "description": "What." },
        "count": { "type": "integer", "description": "How many.", "minimum": 1 },
    } });
    let prices = json!({ "type": "object", "description": "Prices.", "additionalProperties": { "type": "integer" } });
    let order = json!({ "type": "object", "description": "The order.", "required": ["lines"], "properties": {
        "lines": { "type": "array", "description": "Lines.", "items": line, "minItems": 1 }, "prices": prices,
    } });
    let function = of(
        "agent-function",
        &json!({ "line": line, "lines": { "type": "array", "items": line }, "order": order, "prices": prices }),
    );
    for (name, words) in [
        ("line", "A line. With sku (a text), count (a whole number of at least 1; optional). As JSON."),
        (
            "lines",
            "A list of objects. Each: A line. Each with sku (a text), count (a whole number of at least 1; optional).",
        ),
        (
            "order",
            "The order. With lines (a list of objects, at least 1 of them, each with sku (a text), count (a whole number of \
             at least 1; optional)), prices (an object with any names, each value a whole number; optional). As JSON.",
        ),
        ("prices", "Prices. Any names, each value a whole number. As JSON."),
    ] {
        assert_eq!(function["functions"][0]["parameters"][name]["description"], words);
    }
    let said = "Prices. Any names, each value a whole number.";
    let target = of("gateway", &json!({ "prices": prices }))[0]["inputSchema"]["properties"]["prices"].take();
    assert_eq!(target, json!({ "type": "object", "description": said }));
    let document = of("agent-openapi", &json!({ "prices": prices })).to_string();
    assert!(document.contains(said), "{document}");
}

#[test]
fn a_gateway_target_gets_the_five_words_it_knows() {
    let nested = json!({
        "to": { "type": "object", "additionalProperties": false, "required": ["zip"], "properties": {
            "zip": { "type": "string", "pattern": "^[0-9]{5}$" },
            "lines": { "type": "array", "maxItems": 3, "items": { "type": "string", "maxLength": 40 } },
        } },
    });
    for list in [definitions("gateway"), of("gateway", &nested)] {
        for tool in list.as_array().unwrap() {
            assert!(!tool["description"].as_str().unwrap().is_empty());
            each_property(&tool["inputSchema"], &mut |property| {
                let known = ["type", "description", "properties", "required", "items"];
                assert!(property.keys().all(|key| known.contains(&key.as_str())), "{property:?}");
                assert!(!property["description"].as_str().unwrap().is_empty());
            });
        }
    }
    let to = &of("gateway", &nested)[0]["inputSchema"]["properties"]["to"];
    assert_eq!(to["properties"]["zip"]["description"], "Pattern: ^[0-9]{5}$");
    assert_eq!(
        to["properties"]["lines"]["items"],
        json!({ "type": "string", "description": "At most 40 characters." })
    );
    assert_eq!(to["required"], json!(["zip"]));
}

#[test]
fn the_openapi_document_has_one_operation_for_each_tool() {
    let document = definitions("agent-openapi");
    assert_eq!(document["openapi"], "3.0.3");
    let get = &document["paths"]["/orders/{order_id}"]["get"];
    assert_eq!(get["operationId"], "get_order");
    let expected = json!([{
        "name": "order_id",
        "in": "path",
        "description": "The order.",
        "required": true,
        "schema": { "type": "string", "pattern": "^ORD-[0-9]{5}$", "example": "ORD-12345" },
    }]);
    assert_eq!(get["parameters"], expected);
    assert!(get.get("requestBody").is_none());
    let search = &document["paths"]["/orders"]["get"]["parameters"];
    assert_eq!(search.as_array().unwrap().iter().filter(|p| p["in"] == "query").count(), 4);
}

#[test]
fn a_post_has_the_rest_of_the_arguments_in_its_body() {
    let post = definitions("agent-openapi")["paths"]["/orders/{order_id}/refunds"]["post"].take();
    assert_eq!(post["parameters"].as_array().unwrap().len(), 1);
    let schema = &post["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["required"], json!(["amount_cents", "reason"]));
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["amount_cents", "reason"]);
    assert!(post["responses"]["200"]["description"].is_string());
}

#[test]
fn the_openapi_document_speaks_the_older_dialect() {
    let schema =
        json!({ "n": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9 }, "c": { "const": "x" } });
    let document = of("agent-openapi", &schema);
    let body = &document["paths"]["/some"]["post"]["requestBody"];
    let properties = &body["content"]["application/json"]["schema"]["properties"];
    let n = json!({
        "type": "number", "description": "The argument n.",
        "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": true,
    });
    assert_eq!(properties["n"], n);
    assert_eq!(properties["c"]["enum"], json!(["x"]));
    assert_eq!(body["required"], false);
}

#[test]
fn mcp_gets_the_result_of_tools_list_with_the_whole_schema() {
    let list = definitions("mcp");
    assert_eq!((list["tools"].as_array().unwrap().len(), &list["cacheScope"]), (5, &json!("public")));
    let search = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "search_orders").unwrap();
    assert_eq!(search["inputSchema"]["properties"]["limit"]["maximum"], 50);
    assert_eq!(search["inputSchema"]["additionalProperties"], false);
}

#[test]
fn a_flow_gets_a_node_for_each_tool_with_its_own_types() {
    let nodes = definitions("flow")["nodes"].take();
    let search = nodes.as_array().unwrap().iter().find(|node| node["name"] == "search_orders").unwrap();
    let types: Vec<_> = search["inputs"].as_array().unwrap().iter().map(|input| &input["type"]).collect();
    assert_eq!(types, ["String", "Number", "String", "Array"]);
    assert_eq!(search["type"], "LambdaFunction");
    assert_eq!(search["outputs"][0]["name"], "functionResponse");
}

#[test]
fn an_agent_that_returns_control_gets_the_definitions_of_its_functions() {
    assert_eq!(definitions("return-of-control"), definitions("agent-function"));
}
