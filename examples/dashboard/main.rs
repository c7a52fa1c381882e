//! Draws the dashboard of `infra/dashboard.yaml` from a load that it makes: `cargo run --example dashboard -- docs/dashboard.svg`.
//!
//! The load runs through the real function on the embedded DynamoDB, an hour of it in some seconds; the metric lines that it
//! leaves are put together as CloudWatch does, minute by minute. The panels are those of the template. Only those of AWS's
//! own metrics (the function, the tables) are left out, since there is no AWS here. The times are given by the load and not
//! measured, so that the picture changes with the code only.

mod draw;
mod load;

use std::{error::Error, fs};

use action_group::dev::panels::panels;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| String::from("docs/dashboard.svg"));
    let hour = load::hour().await?;
    let calls: usize = hour.minutes.iter().map(Vec::len).sum();
    fs::write(&path, draw::draw(&panels(&hour.toolbox), &hour.minutes))?;
    println!("{calls} calls are drawn in {path}");
    Ok(())
}
