//! What passes the check, and how what does not is told.

use super::*;

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
