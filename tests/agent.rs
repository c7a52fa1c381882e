//! The loop as a Lambda function: the real program, the real SDK, a scripted model behind HTTP, a DynamoDB.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod emf;
mod support;

use std::{collections::BTreeSet, time::Duration};

use action_group::agent::metrics::OF_TURNS;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use support::{
    Answer, Backends, Break, Converse, Database, Event, FaultyProxy, Function, Network, Reply, RuntimeApi, calls, says,
};

const AGENT: &str = env!("CARGO_BIN_EXE_agent");

/// The program with everything around it.
struct Shop {
    network: Network,
    model: Converse,
    counter: FaultyProxy,
    database: Database,
    backends: Backends,
    settings: Vec<(&'static str, String)>,
}

impl Shop {
    async fn open(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Converse::start(replies).await).await
    }

    async fn with(model: Converse) -> Self {
        let (database, backends, network) = (Database::start().await, Backends::start().await, Network::new());
        let counter = FaultyProxy::start(&database.endpoint()).await;
        let dynamodb = network.proxy(&counter.endpoint()).await.endpoint();
        let systems = network.proxy(backends.endpoint()).await.endpoint();
        let asked = network.proxy(&model.endpoint()).await.endpoint();
        let settings = vec![
            ("IDEMPOTENCY_TABLE", Database::RECORDS.to_owned()),
            ("CONVERSATIONS_TABLE", String::from("conversations")),
            ("ORDERS_TABLE", String::from("orders")),
            ("REFUNDS_TABLE", String::from("refunds")),
            ("CARRIER_URL", systems.clone()),
            ("MAIL_FROM", String::from("shop@example.com")),
            ("MODEL_ID", String::from("a-model")),
            ("SYSTEM_PROMPT", String::from("Be brief.")),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb),
            ("AWS_ENDPOINT_URL_SESV2", systems),
            ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", asked),
        ];
        Self { network, model, counter, database, backends, settings }
    }

    /// Starts the program, or another one, on the same tables.
    async fn launch(&self, program: &str) -> Function {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        RuntimeApi::start().await.launch(program, &settings)
    }

    /// What is left to refund of an order.
    async fn refundable(&self, order_id: &str) -> u64 {
        let key = AttributeValue::S(order_id.to_owned());
        let got = self.database.client().get_item().table_name("orders").key("order_id", key).send().await.unwrap();
        got.item().unwrap()["refundable_cents"].as_n().unwrap().parse().unwrap()
    }

    /// Every lease is over: nobody who held one lives.
    async fn time_passes(&self) {
        for (table, keys) in [("conversations", &["conversation", "step"][..]), (Database::RECORDS, &["pk"])] {
            let items = self.database.client().scan().table_name(table).send().await.unwrap().items.unwrap();
            for item in items.iter().filter(|item| item.contains_key("lease_until")) {
                let key = keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
                let past = AttributeValue::N(String::from("0"));
                let update = self.database.client().update_item().table_name(table).set_key(Some(key));
                let update = update.update_expression("SET lease_until = :past");
                update.expression_attribute_values(":past", past).send().await.unwrap();
            }
        }
    }
}

fn message(text: &str) -> Event {
    Event::json(&json!({"conversation": "c-1", "message": text}))
}

fn resume() -> Event {
    Event::json(&json!({"conversation": "c-1", "resume": true}))
}

fn report(answer: &Answer) -> Value {
    let answer = answer.response();
    assert_eq!((&answer["ok"], &answer["conversation"]), (&json!(true), &json!("c-1")), "{answer}");
    answer["report"].clone()
}

fn refund(id: &str, cents: u64) -> (&str, &'static str, Value) {
    (id, "refund_order", json!({"order_id": "ORD-12345", "amount_cents": cents, "reason": "damaged"}))
}

fn get_order(id: &str) -> (&str, &'static str, Value) {
    (id, "get_order", json!({"order_id": "ORD-12345"}))
}

/// Bedrock takes no other request: roles take turns, each call is answered once, in the next message, and nothing is blank.
fn assert_is_valid(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    let ids = |message: &Value, block: &str| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter().filter_map(|part| part.get(block));
        blocks.map(|block| block["toolUseId"].as_str().unwrap().to_owned()).collect()
    };
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], if index % 2 == 0 { "user" } else { "assistant" }, "{request}");
        assert!(!message["content"].as_array().unwrap().is_empty(), "{request}");
        assert!(message["content"].as_array().unwrap().iter().all(|part| part["text"] != ""), "{request}");
        let asked = ids(message, "toolUse");
        assert_eq!(asked.len(), asked.iter().collect::<BTreeSet<_>>().len(), "{request}");
        let answered = messages.get(index + 1).map(|next| ids(next, "toolResult")).unwrap_or_default();
        assert_eq!(asked, answered, "{request}");
    }
    assert_eq!(messages.len() % 2, 1, "{request}");
    assert_eq!(request["toolConfig"]["tools"].as_array().unwrap().len(), 5, "{request}");
}

#[tokio::test]
async fn a_turn_runs_its_tools_and_the_next_environment_goes_on_with_the_conversation() {
    let shop = Shop::open([
        calls([get_order("a"), refund("b", 1_500)]),
        calls([("a", "create_shipping_label", json!({"order_id": "ORD-12345", "carrier": "dhl"}))]),
        says("It is refunded, and the label is made."),
        says("You are welcome."),
    ])
    .await;
    let mut function = shop.launch(AGENT).await;
    let said = report(&function.invoke(message("Refund 15 of ORD-12345, and send it again.")).await);
    assert_eq!(
        (&said["stop"], &said["answer"]),
        (&json!("end_turn"), &json!("It is refunded, and the label is made."))
    );
    assert_eq!((&said["steps"], &said["tool_calls"]), (&json!(3), &json!(3)));
    assert_eq!(shop.refundable("ORD-12345").await, 23_500);
    assert_eq!(shop.backends.labels().0, 1);
    assert!(function.output().contains(r#""door":"agent""#), "calls of the loop are told from those of a door");
    drop(function);

    let said = report(&shop.launch(AGENT).await.invoke(message("Thanks!")).await);
    assert_eq!(said["answer"], "You are welcome.");
    let requests = shop.model.requests();
    assert_eq!(requests.len(), 4);
    requests.iter().for_each(assert_is_valid);
    assert_eq!(
        requests[0]["messages"],
        json!([
            {"role": "user", "content": [{"text": "Refund 15 of ORD-12345, and send it again."}]},
        ])
    );
    assert_eq!(requests[0]["system"], json!([{"text": "Be brief."}]));
    let results = &requests[1]["messages"][2]["content"];
    assert_eq!(results[0]["toolResult"]["content"][0]["json"]["order_id"], "ORD-12345");
    assert_eq!(
        (&results[0]["toolResult"]["status"], &results[1]["toolResult"]["status"]),
        (&json!("success"), &json!("success"))
    );
    assert_eq!(requests[3]["messages"].as_array().unwrap().len(), 7);
}

/// The metric lines that have this metric, checked and read.
fn lines_of(output: &str, metric: &str) -> Vec<Value> {
    let lines = output.split_inclusive('\n').filter(|line| line.contains("CloudWatchMetrics") && line.contains(metric));
    let read = |line: &str| {
        assert_eq!(emf::faults(line), [""; 0], "{line}");
        serde_json::from_str(line).unwrap()
    };
    lines.map(read).collect()
}

#[tokio::test]
async fn a_turn_leaves_a_line_for_each_request_and_one_for_itself() {
    let throttled = Reply::Refused(429, "ThrottlingException");
    let mut shop = Shop::open([calls([get_order("a")]), throttled, says("SECRET-1.")]).await;
    shop.settings.push(("PRICES", String::from("1000,10000,0,0")));
    let mut function = shop.launch(AGENT).await;
    report(&function.invoke(message("SECRET-2")).await);
    let output = function.output_when(|output| output.contains("\"Turns\"")).await;
    let requests = lines_of(&output, "\"ModelRequests\"");
    let counts = |line: &Value| {
        ["ModelInputTokens", "ModelErrors", "ModelRetries", "ModelThrottles"].map(|name| line[name].as_u64())
    };
    assert_eq!(
        requests.iter().map(counts).collect::<Vec<_>>(),
        [[10, 0, 0, 0], [10, 0, 1, 1]].map(|line| line.map(Some))
    );
    let [turn] = &lines_of(&output, "\"Turns\"")[..] else { panic!("{output}") };
    let names = ["Turns", "TurnSteps", "TurnToolCalls", "TurnTokens", "StopEndTurn"];
    assert_eq!(names.map(|name| turn[name].as_u64()), [1, 2, 1, 30, 1].map(Some), "{turn}");
    assert!(turn["TurnCost"].as_f64().is_some_and(|cost| (0.1199..0.1201).contains(&cost)), "{turn}");
    assert!(requests.iter().chain([turn]).all(|line| !line.to_string().contains("SECRET")));
    for metric in OF_TURNS {
        assert_eq!(
            turn.get(metric.name).is_some(),
            metric.is_in_every_line || ["StopEndTurn", "TurnCost"].contains(&metric.name)
        );
    }
}

#[tokio::test]
async fn a_turn_costs_a_fixed_number_of_requests_and_each_step_two_more() {
    let look = |id| calls([get_order(id)]);
    let shop = Shop::open([says("Hello."), look("a"), says("It is open."), look("b"), look("c"), says("Still.")]).await;
    let mut function = shop.launch(AGENT).await;
    let mut counts = Vec::new();
    for text in ["Hello", "How is it?", "And now?"] {
        report(&function.invoke(message(text)).await);
        let count = shop.counter.take();
        // Each look-up is a GetItem of the tool's.
        counts.push(
            ["UpdateItem", "Query", "TransactWriteItems"].map(|operation| count.get(operation).copied().unwrap_or(0)),
        );
    }
    // The first finds no conversation to read; each takes the lease, and lets it go.
    assert_eq!(counts, [[2, 0, 2], [2, 1, 4], [2, 1, 6]]);
}

#[tokio::test]
async fn a_model_that_never_answers_costs_one_request_and_the_hand_off_is_in_time() {
    let shop = Shop::open([Reply::Silence]).await;
    let mut function = shop.launch(AGENT).await;
    function.ready().await;
    let answer = function.invoke(message("Hello").time_left(Duration::from_millis(2_500))).await;
    assert!(answer.in_time);
    let said = report(&answer);
    assert_eq!(shop.model.requests().len(), 1);
    assert_eq!((&said["stop"], &said["resume"]), (&json!("time"), &json!("continue")), "{said}");

    shop.model.then([says("Hello.")]);
    let said = report(&function.invoke(resume()).await);
    assert_eq!((&said["stop"], &said["answer"]), (&json!("end_turn"), &json!("Hello.")));
    shop.model.requests().iter().for_each(assert_is_valid);
}

#[tokio::test]
async fn too_little_time_for_a_step_is_a_hand_off_without_a_request() {
    let shop = Shop::open([says("Hello.")]).await;
    let mut function = shop.launch(AGENT).await;
    function.ready().await;
    let said = report(&function.invoke(message("Hello").time_left(Duration::from_millis(1_200))).await);
    assert_eq!((&said["stop"], shop.model.requests().len()), (&json!("time"), 0));
    assert_eq!(report(&function.invoke(resume()).await)["answer"], "Hello.");
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_pauses_its_whole_batch_and_runs_after_the_decision() {
    let shop = Shop::open([calls([refund("a", 60_000), get_order("b")]), says("Done.")]).await;
    let large = json!({"order_id": "ORD-20001", "amount_cents": 60_000, "reason": "damaged"});
    shop.model.then([calls([("a", "refund_order", large), refund("b", 100)]), says("Done.")]);
    let mut function = shop.launch(AGENT).await;
    let said = report(&function.invoke(message("Refund them.")).await);
    assert_eq!((&said["stop"], &said["resume"]), (&json!("awaiting_approval"), &json!("decide")));
    assert_eq!(shop.refundable("ORD-12345").await, 25_000, "nothing of the batch has run");
    let still = report(&function.invoke(resume()).await);
    assert_eq!(still["stop"], "awaiting_approval", "nobody has decided");

    let mut approver = shop.launch(env!("CARGO_BIN_EXE_approver")).await;
    let id = said["waiting"][0]["approval_id"].as_str().expect("an id");
    let decision = json!({"action": "approve", "id": id, "by": "ada"});
    assert_eq!(approver.invoke(Event::json(&decision)).await.response()["ok"], true);
    let said = report(&function.invoke(resume()).await);
    assert_eq!((&said["stop"], &said["answer"]), (&json!("end_turn"), &json!("Done.")));
    assert_eq!((shop.refundable("ORD-20001").await, shop.refundable("ORD-12345").await), (60_000, 24_900));
    assert_eq!(shop.model.requests().len(), 2);
    shop.model.requests().iter().for_each(assert_is_valid);
}

#[tokio::test]
async fn what_is_no_event_is_refused_and_a_conversation_that_is_not_there_is_said() {
    let shop = Shop::open([says("Hello.")]).await;
    let mut function = shop.launch(AGENT).await;
    for nonsense in [json!({}), json!({"conversation": "c-1"}), json!([]), json!({"toolUse": {}})] {
        assert_eq!(function.invoke(Event::json(&nonsense)).await.error()["errorType"], "InvalidPayload", "{nonsense}");
    }
    let answer = function.invoke(resume()).await.response();
    assert_eq!((&answer["ok"], &answer["error"]["kind"]), (&json!(false), &json!("not_found")));
    assert_eq!(answer["error"]["retryable"], false);
    assert!(shop.model.requests().is_empty());
}

#[tokio::test]
async fn the_line_of_a_turn_that_could_not_be_driven_names_the_cause() {
    let mut shop = Shop::open([says("Hello.")]).await;
    for (name, value) in &mut shop.settings {
        if *name == "CONVERSATIONS_TABLE" {
            *value = "no-such-table".into();
        }
    }
    let mut function = shop.launch(AGENT).await;
    let answer = function.invoke(message("Hello?")).await.response();
    assert_eq!(answer["error"]["kind"], "unavailable", "{answer}");
    let log = function.output_when(|output| output.contains("a turn could not be driven")).await;
    let line = log.lines().find(|line| line.contains("a turn could not be driven")).expect("a line");
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["fault"], "ResourceNotFoundException", "{line}");
}

#[tokio::test]
async fn an_invocation_that_lambda_repeats_says_nothing_twice() {
    let shop = Shop::with(Converse::answering(does_all).await).await;
    let event = || message("Do it.").id("8d3c7d4e-0000-4000-8000-000000000001");
    let first = report(&shop.launch(AGENT).await.invoke(event()).await);
    let second = report(&shop.launch(AGENT).await.invoke(event()).await);
    assert_eq!(first, second, "the turn has ended: its report is given again");
    assert_eq!(shop.model.requests().len(), 2);
    report(&shop.launch(AGENT).await.invoke(message("Do it.")).await);
    assert_eq!(shop.model.requests().len(), 3, "the same words of another invocation are another message");
}

#[tokio::test]
async fn arguments_that_are_nested_too_deeply_are_refused_and_the_conversation_can_be_read_again() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({"order_id": inner}));
    let shop = Shop::open([calls([("a", "get_order", deep)]), says("No."), says("Hello.")]).await;
    let function = &mut shop.launch(AGENT).await;
    let refused = report(&function.invoke(message("Where is it?")).await);
    assert_eq!((&refused["failed"][0]["outcome"], &refused["answer"]), (&json!("invalid_input"), &json!("No.")));
    assert_eq!(report(&function.invoke(message("Are you there?")).await)["answer"], "Hello.");
}

#[tokio::test]
async fn a_setting_that_is_missing_stops_the_start_with_its_name() {
    let mut shop = Shop::open([says("Hello.")]).await;
    shop.settings.retain(|(name, _)| *name != "MODEL_ID");
    let mut function = shop.launch(AGENT).await;
    assert!(!function.ended().await.success());
    let error = function.start_error().expect("a reason")["errorMessage"].to_string();
    assert!(error.contains("MODEL_ID is not set. It must be the id or the ARN of a Bedrock model"), "{error}");
}

#[tokio::test]
async fn of_two_invocations_of_one_conversation_one_drives_and_the_other_is_told() {
    let shop = Shop::open([Reply::Silence]).await;
    let mut one = shop.launch(AGENT).await;
    let first = one.hand_out(message("Hello").id("first-one").time_left(Duration::from_secs(30)));
    let mut two = shop.launch(AGENT).await;
    one.output_when(|_| !shop.model.requests().is_empty()).await;
    let answer = two.invoke(message("Hello?")).await.response();
    assert_eq!((&answer["ok"], &answer["error"]["kind"]), (&json!(false), &json!("busy")), "{answer}");
    assert_eq!(answer["error"]["retryable"], true);
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("the invocation first-one, until 2"), "who has it, and until when: {said}");
    assert_eq!(shop.model.requests().len(), 1, "the second has not asked the model");
    one.signal("TERM");
    let said = report(&first.await.expect("an answer"));
    assert_eq!(said["stop"], "interrupted", "{said}");
    assert!(one.ended().await.success());
}

#[tokio::test]
async fn a_request_that_a_signal_or_a_kill_cuts_off_counts_in_the_turn_that_is_resumed() {
    for signal in ["TERM", "KILL"] {
        let shop = Shop::open([calls([get_order("a")]), Reply::Silence]).await;
        let mut one = shop.launch(AGENT).await;
        let first = one.hand_out(message("How is it?").time_left(Duration::from_secs(30)));
        one.output_when(|_| shop.model.requests().len() == 2).await;
        one.signal(signal);
        let said = if signal == "TERM" { Some(report(&first.await.expect("an answer"))) } else { None };
        one.ended().await;
        assert!(said.is_none_or(|said| said["estimated"]["inputTokens"].as_u64() > Some(15)), "{signal}");
        shop.time_passes().await;
        shop.model.then([says("It is open.")]);
        let said = report(&shop.launch(AGENT).await.invoke(resume()).await);
        assert_eq!((&said["stop"], &said["usage"]["inputTokens"]), (&json!("end_turn"), &json!(20)), "{signal}");
        // The answer before has told 15, and the result that the request holds has come since.
        let estimated = said["estimated"]["inputTokens"].as_u64().unwrap();
        assert!((16..1_000).contains(&estimated), "{signal}: {said}");
    }
}

#[tokio::test]
async fn the_line_of_a_request_that_a_signal_cuts_off_has_its_attempts() {
    let shop = Shop::open([Reply::Refused(429, "ThrottlingException"), Reply::Silence]).await;
    let function = shop.launch(AGENT).await;
    let answer = function.hand_out(message("How is it?").time_left(Duration::from_secs(30)));
    function.output_when(|_| shop.model.requests().len() == 2).await;
    function.signal("TERM");
    report(&answer.await.expect("an answer"));
    let output = function.output_when(|output| output.contains("\"Turns\"")).await;
    let [line] = &lines_of(&output, "\"ModelRequests\"")[..] else { panic!("{output}") };
    let counts = ["ModelGivenUp", "ModelRetries", "ModelThrottles"].map(|name| line[name].as_u64());
    assert_eq!(counts, [1, 1, 1].map(Some), "{line}");
}

/// A model that makes an effect of each kind, and says so when they have been made.
fn does_all(request: &Value) -> Reply {
    if request["messages"].as_array().unwrap().len() > 1 {
        return says("Done.");
    }
    let mail = json!({"to": "ada@example.com", "subject": "Refund", "body": "It is on its way."});
    let label = json!({"order_id": "ORD-12345", "carrier": "dhl"});
    calls([refund("a", 100), ("b", "create_shipping_label", label), ("c", "send_email", mail)])
}

/// One turn with one trouble, resumed until it has ended. Gives false if the trouble never came: the turn has fewer requests.
async fn survives(number: usize, trouble: Break) -> bool {
    let shop = Shop::with(Converse::answering(does_all).await).await;
    let mut function = shop.launch(AGENT).await;
    function.ready().await;
    shop.network.break_at([(number, trouble)]);
    let first = function.hand_out(message("Do it."));
    let mut said = tokio::select! {
        answer = first => Some(report(&answer.expect("an answer"))),
        () = shop.network.time_to_die() => None,
    };
    drop(function); // SIGKILL
    let came = said.is_none();
    shop.network.break_at([]);
    let mut function = shop.launch(AGENT).await;
    let mut deliveries = 0;
    while said.as_ref().is_none_or(|said| said["stop"] != "end_turn") {
        deliveries += 1;
        assert!(deliveries < 10, "{trouble:?} at request {number}: no end of {said:?}");
        shop.time_passes().await;
        let mut answer = function.invoke(resume()).await;
        if answer.response()["error"]["kind"] == "not_found" {
            answer = function.invoke(message("Do it.")).await; // it was killed before it had heard anything
        }
        // What the dead process has sent may arrive as late as this, and takes the lease again.
        let is_late = answer.response()["error"]["kind"] == "busy";
        said = if is_late { None } else { Some(report(&answer)) };
    }
    let what = format!("{trouble:?} at request {number}: {said:?}");
    assert_eq!(shop.refundable("ORD-12345").await, 24_900, "{what}");
    assert_eq!(shop.backends.labels().0, 1, "{what}");
    assert!(shop.backends.mails("Refund") <= 1, "{what}");
    shop.model.requests().iter().for_each(assert_is_valid);
    came
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_killed_at_any_request_is_resumed_and_no_effect_is_made_twice() {
    let sweeps = [Break::KillBefore, Break::KillDuring, Break::KillAfter].map(|trouble| {
        tokio::spawn(async move {
            let mut requests = 0;
            while survives(requests, trouble).await {
                requests += 1;
            }
            assert!(requests > 10, "only {requests} requests were broken by {trouble:?}");
        })
    });
    for sweep in sweeps {
        sweep.await.expect("every turn survives");
    }
}
