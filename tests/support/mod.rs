//! What the integration tests share.
//!
//! | part | stands for |
//! | --- | --- |
//! | [`RuntimeApi`] | the Lambda service: starts the real program, hands out invocations, collects answers |
//! | [`Backends`] | the carrier's API and SES |
//! | [`CountingProxy`] | a counter between the program and DynamoDB |
//! | [`FaultyProxy`] | a network, or a DynamoDB, that fails |
//! | [`Network`] | the way to DynamoDB and to the backends, which breaks when it is told to |
//! | [`Database`] | DynamoDB |
//! | [`World`] | all of them around the real program |

#![allow(dead_code, unused_imports)] // each test program uses a part

mod backends;
mod counting_proxy;
#[cfg(feature = "dev")]
mod database;
mod faulty_proxy;
mod network;
mod runtime_api;
#[cfg(feature = "dev")]
mod world;

pub use backends::Backends;
pub use counting_proxy::CountingProxy;
#[cfg(feature = "dev")]
pub use database::{Database, client};
pub use faulty_proxy::{Fault, FaultyProxy, LOST, THROTTLED};
pub use network::{Break, BreakingProxy, Network};
pub use runtime_api::{Answer, Event, Function, RuntimeApi};
#[cfg(feature = "dev")]
pub use world::World;

/// The path of a program in `examples/`, which `cargo test` has built.
pub fn example(name: &str) -> std::path::PathBuf {
    let mut path = std::path::PathBuf::from(env!("CARGO_BIN_EXE_action-group"));
    path.pop();
    path.extend(["examples", name]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is missing: run `cargo build --examples` first", path.display());
    path
}
