//! The metric lines of requests to the model: what CloudWatch takes, one for each request however it ends.

use std::time::Duration;

use action_group::agent::{
    limits::{Limits, Prices},
    metrics::OF_REQUESTS,
    model::ModelFailureKind,
    stop::Stop,
};
use serde_json::{Value, json};

use crate::{
    emf,
    machine::{calls, model_fails, says, wide},
    world::{Replies, World},
};

/// The lines of requests, checked and read.
fn requests(world: &World) -> Vec<Value> {
    let text = world.lines.text();
    let read = |line: &str| -> Value {
        assert_eq!(emf::faults(line), [""; 0], "{line}");
        serde_json::from_str(line).expect("JSON")
    };
    text.split_inclusive('\n').map(read).filter(|line| line.get("ModelRequests").is_some()).collect()
}

#[tokio::test]
async fn every_request_to_the_model_leaves_a_line_with_its_tokens_and_nothing_of_its_text() {
    let (world, model) =
        (World::stopped(), Replies::new([calls([("a", "look", json!({"what": "SECRET-1"}))]), says("SECRET-2.")]));
    world.drive(&model).await;
    let lines = requests(&world);
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert!(!line.to_string().contains("SECRET"), "{line}");
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Service"]]));
        assert_eq!((&line["ModelInputTokens"], &line["ModelOutputTokens"]), (&json!(20), &json!(10)));
        assert_eq!(
            (&line["ModelErrors"], &line["outcome"], &line["conversation"]),
            (&json!(0), &json!("answered"), &json!("c"))
        );
        for metric in OF_REQUESTS {
            assert_eq!(line.get(metric.name).is_some(), metric.is_in_every_line, "{}", metric.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn how_a_request_failed_and_how_often_the_client_tried_is_in_its_line() {
    let world = World::stopped();
    let model = Replies::new([]).failing(model_fails(ModelFailureKind::Throttled)).tried([true, true, false]);
    assert_eq!(world.drive(&model).await.report.stop, Stop::ModelFailed);
    let [line] = &requests(&world)[..] else { panic!("one line") };
    assert_eq!(
        (&line["ModelErrors"], &line["ModelThrottled"], &line["outcome"]),
        (&json!(1), &json!(1), &json!("throttled"))
    );
    assert_eq!((&line["ModelRetries"], &line["ModelThrottles"]), (&json!(2), &json!(2)));
    assert!(line["ModelEstimatedTokens"].as_u64() > Some(10), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_or_dropped_leaves_its_line() {
    let (world, model) = (World::stopped(), Replies::new([]).stammering("Let me see: it is"));
    let ends = world.ending.clone();
    let later = async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        ends.begin();
    };
    tokio::join!(world.drive(&model), later);
    let dropped = World::stopped();
    assert!(tokio::time::timeout(Duration::from_secs(5), dropped.drive(&model)).await.is_err());
    for (world, is_counted) in [(world, true), (dropped, false)] {
        let [line] = &requests(&world)[..] else { panic!("one line") };
        assert_eq!((&line["ModelGivenUp"], &line["ModelErrors"]), (&json!(1), &json!(0)));
        assert_eq!(line["ModelLatency"], json!(5000.0));
        assert_eq!(line["ModelEstimatedTokens"].as_u64() > Some(10), is_counted, "{line}");
    }
}

#[tokio::test]
async fn what_a_request_cost_is_told_where_there_are_prices() {
    let prices = Prices { input: 100_000.0, output: 300_000.0, cache_read: 0.0, cache_write: 0.0 };
    let (world, model) = (World::stopped(), Replies::new([says("Hello.")]));
    let run = world.run(Limits { prices: Some(prices), ..wide() });
    world.driver(&model).drive("c", run, None, &mut |_| {}).await.expect("it is saved");
    assert_eq!(requests(&world)[0]["ModelCost"], json!(5.0), "20 tokens of input cost 2, 10 of output 3");
}
