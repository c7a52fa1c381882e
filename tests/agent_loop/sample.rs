//! A sample of the requests of random conversations, as they go out on the wire, for a judge outside.
//!
//! The conversations are the same at every run. Of all their requests those are taken that show something new first: a message
//! of another shape, or in another neighbourhood. Where [`FILE`] names a file, they are left there, a line each:
//! `.ci/judge/loop.py` has botocore look at all of them.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use action_group::{
    agent::{
        bedrock::Bedrock,
        drive::Model,
        model::{ModelReply, ModelRequest},
    },
    dev::{database::http_client, sdk_config},
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    chance::{chance, limits},
    legal,
    property::converse,
    support::{Converse, Reply},
};

/// The environment variable that names the file.
const FILE: &str = "LOOP_REQUESTS";
/// The most requests of a sample.
const MOST: usize = 200;

/// The kind of a block, and what there is to it.
fn kind(block: &Value) -> String {
    let (name, inner) = block.as_object().and_then(|fields| fields.iter().next()).expect("a block of some kind");
    let member = |value: &Value| value.as_object().and_then(|fields| fields.keys().next().cloned());
    let members: Vec<_> = inner["content"].as_array().into_iter().flatten().filter_map(member).collect();
    match name.as_str() {
        "toolUse" => format!("call of {} with {:?}", inner["name"], member(&inner["input"])),
        "toolResult" => format!("{} {members:?}", inner["status"]),
        other => other.to_owned(),
    }
}

/// What a request shows: each message's shape, with that of the one before, and what else there is.
fn features(request: &Value) -> BTreeSet<String> {
    let messages = request["messages"].as_array().expect("messages");
    let shape = |message: &Value| {
        let blocks = message["content"].as_array().expect("content");
        format!("{}: {}", message["role"], blocks.iter().map(kind).collect::<Vec<_>>().join(", "))
    };
    let shapes: Vec<_> = messages.iter().map(shape).collect();
    let tools = request["toolConfig"]["tools"].as_array().map(Vec::len);
    let rest = format!("{tools:?} tools, limited: {}", request.get("maxOutputTokens").is_some());
    let pairs = shapes.windows(2).map(|pair| pair.join(" then ")).collect::<Vec<_>>();
    shapes.into_iter().chain(pairs).chain([rest]).collect()
}

/// The sample.
fn sample() -> Vec<ModelRequest> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (chances, mut seen, mut sample) = (prop::collection::vec(chance(), 1..60), BTreeSet::new(), Vec::new());
    while sample.len() < MOST {
        let (limits, chances) = (limits(), &chances).new_tree(&mut runner).expect("a conversation").current();
        for request in converse(limits, &chances).expect("a conversation that keeps its promises") {
            let new = features(&json!(request));
            if sample.len() < MOST && !new.is_subset(&seen) {
                seen.extend(new);
                sample.push(request);
            }
        }
    }
    sample
}

#[tokio::test]
async fn requests_of_random_conversations_go_out_as_they_were_made() {
    let answer =
        json!({"output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}}, "stopReason": "end_turn"});
    let endpoint = Converse::answering(move |_| Reply::Whole(answer.clone())).await;
    let model = Bedrock::new(&sdk_config(&endpoint.endpoint(), http_client()), "a-model");
    let sample = sample();
    for request in &sample {
        let asked = model.converse(request, Duration::from_mins(1), &mut |_| {}).await;
        let ModelReply { stop_reason, .. } = asked.expect("a reply");
        assert_eq!(stop_reason, "end_turn");
    }
    let (sent, mut lines) = (endpoint.requests(), String::new());
    assert_eq!(sent.len(), MOST);
    for (sent, made) in sent.iter().zip(&sample) {
        assert_eq!(
            (&sent["messages"], &sent["toolConfig"]),
            (&json!(made.messages), &made.tool_config.clone().unwrap())
        );
        assert_eq!(sent["inferenceConfig"]["maxTokens"].as_u64(), made.max_output_tokens.map(u64::from));
        assert_eq!(legal::history::faults(sent), [""; 0], "{sent}");
        let _ = writeln!(lines, "{sent}"); // writing to a String cannot fail
    }
    let shown: BTreeSet<_> = sample.iter().flat_map(|request| features(&json!(request))).collect();
    for what in ["text", "reasoningContent", "no_such_tool", "\"error\" [\"text\"]", "\"success\" [\"json\"]"] {
        assert!(shown.iter().any(|feature| feature.contains(what)), "no request shows {what}");
    }
    if let Some(file) = std::env::var_os(FILE) {
        std::fs::write(file, lines).expect("the file can be written");
    }
}
