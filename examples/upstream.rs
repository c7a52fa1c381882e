//! A function on `lambda_runtime`'s own loop, which answers with what it gets. `tests/upstream.rs` shows how it ends.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(async |event: LambdaEvent<Value>| Ok::<_, Error>(event.payload))).await
}
