//! The figures of `docs/performance.md`, of the program that `PROGRAM` names. Measures, and asserts nothing about time:
//!
//! ```sh
//! PROGRAM=target/lambda/action-group/bootstrap cargo test --test figures -- --ignored --nocapture
//! ```

#![cfg(all(feature = "dev", target_os = "linux"))] // the embedded DynamoDB, and /proc

mod support;

use std::fs;

use support::{Event, World};

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
