//! Why this project has a loop of its own: `lambda_runtime`'s ends the process on a client context that it cannot parse.
//! When this test fails, upstream is mended: `src/runtime/` can give way to `lambda_runtime::run`.

mod support;

use serde_json::json;
use support::{Event, RuntimeApi, example};

#[tokio::test]
async fn the_loop_of_lambda_runtime_ends_on_a_client_context_that_holds_an_object() {
    let api = RuntimeApi::start().await;
    let mut function = api.launch(example("upstream"), &[]);
    let plain = Event::json(&json!({})).client_context(r#"{"custom":{"bedrockAgentCoreToolName":"t___get_order"}}"#);
    assert_eq!(function.invoke(plain).await.response(), json!({}));

    let propagated = r#"{"custom":{"bedrockAgentCorePropagatedHeaders":{"x-user":"u-1"}}}"#;
    let ended = function.try_invoke(Event::json(&json!({})).client_context(propagated)).await;
    assert_eq!(ended.unwrap_err().code(), Some(1));
}
