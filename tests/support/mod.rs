//! What the integration tests share.
//!
//! | part | stands for |
//! | --- | --- |
//! | [`RuntimeApi`] | the Lambda service: starts the real program, hands out invocations, collects answers |
//! | [`Backends`] | the carrier's API and SES |
//! | [`Converse`] | Bedrock: a model whose replies and failures are scripted, through `Converse` and `ConverseStream` |
//! | [`FaultyProxy`] | a network, a DynamoDB or another backend that fails, or is slow; counts the requests |
//! | [`TcpProxy`] | a load balancer that closes idle connections |
//! | [`Network`] | the way to DynamoDB and to the backends, which breaks when it is told to |
//! | [`Database`] | DynamoDB |
//! | [`Scripted`] | a DynamoDB without a socket, for tests by a stopped clock |
//! | [`Lines`], [`Faults`] | where metric lines go, and the causes in log lines |
//! | [`pipeline`], [`call`], [`terms`] | one call, without a door; what a handler in front of it needs |
//! | [`World`] | all of them around the real program |

#![allow(dead_code, unused_imports)] // each test program uses a part

mod backends;
mod converse;
#[cfg(feature = "dev")]
mod database;
mod endpoint;
mod faulty_proxy;
mod lines;
mod network;
mod pipeline;
mod runtime_api;
mod scripted;
mod tcp_proxy;
mod timeline;
#[cfg(feature = "dev")]
mod world;

pub use backends::Backends;
pub use converse::{Converse, Reply, calls, says};
#[cfg(feature = "dev")]
pub use database::{Database, client};
pub use faulty_proxy::{Fault, FaultyProxy, LOST, Served, THROTTLED, WRONG};
pub use lines::{Faults, Lines};
pub use network::{Break, BreakingProxy, Network};
pub use pipeline::{call, pipeline, terms, within};
pub use runtime_api::{Answer, Event, Function, RuntimeApi};
pub use scripted::Scripted;
pub use tcp_proxy::TcpProxy;
pub use timeline::{Bar, draw};
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
