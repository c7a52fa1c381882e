//! The figures of `docs/performance.md` and `docs/time-and-retries.md`, of the program that `PROGRAM` names. Measures, and asserts nothing about time:
//!
//! ```sh
//! PROGRAM=target/lambda/action-group/bootstrap cargo test --test figures -- --ignored --nocapture
//! ```

#![cfg(all(feature = "dev", target_os = "linux"))] // the embedded DynamoDB, and /proc

mod support;

use std::{
    fs,
    time::{Duration, Instant},
};

use action_group::{
    aws::{self, RetryMode},
    dev,
};
use aws_sdk_dynamodb::{
    Client,
    config::{Builder, Region},
    types::AttributeValue,
};
use serde_json::{Value, json};
use support::{Bar, Database, Event, Fault, FaultyProxy, THROTTLED, World, draw};

const STARTS: usize = 21;
const CALLS: usize = 100;

fn program() -> String {
    std::env::var("PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_action-group").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, to be run by hand"]
async fn start_and_memory() {
    let mut starts = Vec::new();
    let mut at_start = Vec::new();
    for _ in 0..STARTS {
        let mut world = World::launch(program()).await;
        starts.push(world.function.ready().await.as_secs_f64() * 1e3);
        at_start.push(peak_memory(world.function.id()));
    }
    println!("start to first /next: {:.1} ms (median of {STARTS})", median(&mut starts));
    println!("peak memory at start: {:.1} MB", median(&mut at_start));

    let mut world = World::start(program()).await;
    for event in ["get-order", "refund-order", "create-shipping-label", "send-email"] {
        for _ in 0..CALLS {
            world.function.invoke(Event::file(&format!("converse/{event}.json"))).await.response();
        }
    }
    println!("peak memory after {} calls: {:.1} MB", 4 * CALLS, peak_memory(world.function.id()));
}

/// `VmHWM`, in MB.
fn peak_memory(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    kilobytes / 1024.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn label(id: &str, order: usize) -> Value {
    let input = json!({"order_id": format!("ORD-{order:05}"), "carrier": "dhl"});
    json!({"toolUse": {"toolUseId": id, "name": "create_shipping_label", "input": input}})
}

/// The reserve is used from the moment at which all work ends: ten calls hang, all records are settled, the answer is
/// posted. What that takes is the reserve less what is left at the end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, to be run by hand"]
async fn what_the_reserve_is_spent_on() {
    const RESERVE: Duration = Duration::from_millis(500);
    const RUNS: usize = 20;
    println!("| each DynamoDB request takes | and its first try is | settle and answer, median | worst of {RUNS} |");
    println!("| --- | --- | --- | --- |");
    for (delay, fault) in [(0, None), (5, None), (20, None), (50, None), (100, None), (20, Some(THROTTLED))] {
        let mut world = World::start(program()).await;
        world.faults.delay(Duration::from_millis(delay));
        let mut spent = Vec::new();
        for run in 0..RUNS {
            world.backend_faults.misbehave("/labels", [Fault::Silence; 10]);
            world.faults.misbehave("UpdateItem", fault.into_iter().collect::<Vec<_>>());
            let calls: Vec<_> = (0..10).map(|n| label(&format!("t{n}"), run * 10 + n)).collect();
            let event = Event::json(&json!({"role": "assistant", "content": calls}));
            let answer = world.function.invoke(event.time_left(Duration::from_millis(1_500))).await;
            assert!(answer.in_time);
            spent.push(RESERVE.saturating_sub(answer.to_spare).as_secs_f64() * 1e3);
        }
        let middle = median(&mut spent);
        let fate = fault.map_or("answered", |_| "throttled");
        println!("| {delay} ms | {fate} | {middle:.0} ms | {:.0} ms |", spent[RUNS - 1]);
    }
}

/// A client whose region, and so whose rate limiter and retry tokens, nobody else has.
fn client(endpoint: &str, mode: RetryMode, region: &str) -> Client {
    let sdk = dev::sdk_config(endpoint, dev::database::http_client());
    let config = Builder::from(&sdk).retry_config(aws::retries(mode)).region(Region::new(region.to_owned()));
    Client::from_conf(config.build())
}

async fn ask(client: &Client) -> (f64, bool) {
    let began = Instant::now();
    let key = AttributeValue::S("a".into());
    let well = client.get_item().table_name(Database::RECORDS).key("pk", key).send().await.is_ok();
    (began.elapsed().as_secs_f64(), well)
}

async fn adaptive_or_standard(mode: RetryMode) {
    const RUNS: usize = 5;
    const CALLS: usize = 30;
    let database = Database::start().await;
    let proxy = FaultyProxy::start(&database.endpoint()).await;
    let (mut once, mut after, mut thrice) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let of = |what: &str| client(&proxy.endpoint(), mode, &format!("{what}-{mode:?}-{run}"));
        proxy.misbehave("GetItem", [THROTTLED]);
        once.push(ask(&of("once")).await.0);
        after.push(ask(&of("once")).await.0);
        proxy.misbehave("GetItem", [THROTTLED; 3]);
        thrice.push(ask(&of("thrice")).await.0);
        proxy.misbehave("GetItem", []);
    }
    proxy.misbehave_often("GetItem", 20, THROTTLED);
    let many = client(&proxy.endpoint(), mode, &format!("many-{mode:?}"));
    let (mut times, mut well) = (Vec::new(), 0);
    for _ in 0..CALLS {
        let (time, ok) = ask(&many).await;
        times.push(time);
        well += usize::from(ok);
    }
    let all: f64 = times.iter().sum();
    let show = |what: &str, times: &mut Vec<f64>| {
        let middle = median(times);
        println!("| {mode:?} | {what} | {middle:.2} s | {:.2} s |", times[times.len() - 1]);
    };
    show("one throttle, then an answer", &mut once);
    show("the next call of another client in the region", &mut after);
    show("three throttles, and given up", &mut thrice);
    show(&format!("one of {CALLS} calls, every fifth request throttled"), &mut times);
    println!("{mode:?}: {CALLS} calls one after the other took {all:.1} s; {well} of them ended well");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, to be run by hand"]
async fn adaptive_and_standard() {
    println!("| mode | case | median | worst |\n| --- | --- | --- | --- |");
    tokio::join!(adaptive_or_standard(RetryMode::Standard), adaptive_or_standard(RetryMode::Adaptive));
}

/// Draws `docs/timeline.svg`: a label that is turned away once, not answered once, and then made.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "draws, to be run by hand"]
async fn the_timeline_of_one_call() {
    let mut world = World::start(program()).await;
    world.faults.delay(Duration::from_millis(20));
    world.backend_faults.delay(Duration::from_millis(80));
    world.backend_faults.misbehave("/labels", [Fault::With(503, "retry-after", "1"), Fault::Silence]);
    let time = Duration::from_secs(10);
    let began = Instant::now();
    let answer = world.function.invoke(Event::json(&label("t1", 1)).time_left(time)).await;
    let answered = began.elapsed();
    assert_eq!(answer.response()["toolResult"]["status"], "success");

    let since = |at: Instant| at.saturating_duration_since(began);
    let requests = |served: Vec<support::Served>, lane, labels: &[&str], colours: &[&'static str]| {
        let draw = |(n, served): (usize, support::Served)| Bar {
            lane,
            label: labels[n].to_owned(),
            from: since(served.began),
            to: since(served.ended.expect("an end")),
            colour: colours[n],
        };
        served.into_iter().enumerate().map(draw).collect::<Vec<_>>()
    };
    let mut bars = requests(world.faults.served(), 1, &["acquire", "complete"], &["#48a", "#48a"]);
    bars.extend(requests(
        world.backend_faults.served(),
        2,
        &["1: 503, wait 1 s", "2: no answer, given up after 5 s", "3: made"],
        &["#d90", "#c44", "#4a4"],
    ));
    let first = world.backend_faults.served()[0].ended.expect("an end");
    let second = world.backend_faults.served()[1].began;
    bars.push(Bar {
        lane: 0,
        label: format!("one call: answered after {:.2} s", answered.as_secs_f64()),
        from: Duration::ZERO,
        to: answered,
        colour: "#bbb",
    });
    bars.push(Bar { lane: 3, label: "at least 1 s".into(), from: since(first), to: since(second), colour: "#ec8" });
    let marks = [(time.saturating_sub(Duration::from_millis(500)), "work ends"), (time, "Lambda ends it")];
    let lanes = ["function", "record table", "carrier", "wait"];
    let svg = draw("create_shipping_label (Keyed), 10 s left, timeout 5 s, reserve 0.5 s", &lanes, &bars, &marks);
    fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/timeline.svg"), svg).expect("the picture can be written");
}
