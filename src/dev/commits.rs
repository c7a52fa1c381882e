//! An HTTP client for the AWS SDK that sees the commits of atomic effects.
//!
//! The pipeline commits an atomic effect by one `TransactWriteItems` whose first item is the record of the call, with
//! the key `<tool>#<digest>`. By that this client knows the tool, counts the call, and misbehaves after the commit.

use std::{
    collections::HashSet,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use aws_smithy_runtime_api::client::{
    connector_metadata::ConnectorMetadata,
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    },
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use serde_json::Value;

use super::{
    faults::{Backstage, Kind, Moment},
    faulty::killed,
};

/// The client, around another one.
pub fn watching(inner: SharedHttpClient, backstage: Arc<Backstage>) -> SharedHttpClient {
    SharedHttpClient::new(WatchingClient { inner, watch: Arc::new(Watch { backstage, tokens: Mutex::default() }) })
}

#[derive(Debug)]
struct WatchingClient {
    inner: SharedHttpClient,
    watch: Arc<Watch>,
}

impl HttpClient for WatchingClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(WatchingConnector { inner, watch: Arc::clone(&self.watch) })
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.inner.connector_metadata()
    }
}

#[derive(Debug)]
struct WatchingConnector {
    inner: SharedHttpConnector,
    watch: Arc<Watch>,
}

impl HttpConnector for WatchingConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let commit = Commit::in_request(&request).filter(|commit| self.watch.backstage.knows(&commit.tool));
        let answer = self.inner.call(request);
        match commit {
            None => answer,
            Some(commit) => HttpConnectorFuture::new(Arc::clone(&self.watch).after(commit, answer)),
        }
    }
}

/// An atomic effect on its way.
#[derive(Debug, PartialEq, Eq)]
struct Commit {
    tool: String,
    token: String,
}

impl Commit {
    fn in_request(request: &HttpRequest) -> Option<Self> {
        if !request.headers().get("x-amz-target")?.ends_with(".TransactWriteItems") {
            return None;
        }
        Self::in_body(&serde_json::from_slice(request.body().bytes()?).ok()?)
    }

    fn in_body(body: &Value) -> Option<Self> {
        let record = &body["TransactItems"][0];
        let key = record["Put"]["Item"]["pk"]["S"].as_str().or_else(|| record["Update"]["Key"]["pk"]["S"].as_str())?;
        let (tool, _) = key.split_once('#')?;
        let token = body["ClientRequestToken"].as_str().unwrap_or_default();
        Some(Self { tool: tool.to_owned(), token: token.to_owned() })
    }
}

/// What an answer says about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The writes are made.
    Committed,
    /// The tool's own writes were tried, and refused.
    Refused,
    /// The tool's writes were not tried: a replay, or no answer of a database.
    NotTried,
}

fn verdict(status: u16, body: &[u8]) -> Verdict {
    if status == 200 {
        return Verdict::Committed;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match body["CancellationReasons"][0]["Code"].as_str() {
        Some("None") => Verdict::Refused,
        _ => Verdict::NotTried,
    }
}

#[derive(Debug)]
struct Watch {
    backstage: Arc<Backstage>,
    /// The tokens of what is committed: a request with the same token commits nothing again.
    tokens: Mutex<HashSet<String>>,
}

impl Watch {
    async fn after(
        self: Arc<Self>,
        commit: Commit,
        answer: HttpConnectorFuture,
    ) -> Result<HttpResponse, ConnectorError> {
        let mut answer = answer.await?;
        let body = std::mem::replace(answer.body_mut(), SdkBody::taken()).collect().await;
        let body = body.map_err(ConnectorError::io)?.to_bytes();
        let verdict = verdict(answer.status().as_u16(), &body);
        *answer.body_mut() = SdkBody::from(body);
        self.count(&commit, verdict);
        if verdict == Verdict::Committed {
            match self.backstage.take(&commit.tool, |moment| moment == Moment::AfterEffect) {
                Some(Kind::KillAfterEffect) => killed(),
                Some(_) => pending().await,
                None => {}
            }
        }
        Ok(answer)
    }

    fn count(&self, commit: &Commit, verdict: Verdict) {
        let reached = match verdict {
            Verdict::NotTried => false,
            Verdict::Refused => true,
            Verdict::Committed if commit.token.is_empty() => true,
            Verdict::Committed => {
                self.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(commit.token.clone())
            }
        };
        if reached {
            self.backstage.count(&commit.tool);
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        Client,
        types::{AttributeValue, ConditionCheck, Put, TransactWriteItem},
    };
    use serde_json::json;

    use super::*;
    use crate::dev::{Embedded, database::http_client, sdk_config};

    fn backstage(faults: &[&str]) -> Arc<Backstage> {
        let faults = faults.iter().map(|fault| fault.parse().expect("a fault")).collect();
        Arc::new(Backstage::new(["refund_order"], faults).expect("known tools"))
    }

    /// Commits a record with one write of the tool: a condition on this order.
    async fn commit(client: Client, key: &str, order: &str, token: &str) -> bool {
        let record = Put::builder()
            .table_name("idempotency")
            .item("pk", AttributeValue::S(key.to_owned()))
            .condition_expression("attribute_not_exists(pk)");
        let order = ConditionCheck::builder()
            .table_name("orders")
            .key("order_id", AttributeValue::S(order.to_owned()))
            .condition_expression("attribute_exists(order_id)");
        client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(record.build().expect("a put")).build())
            .transact_items(TransactWriteItem::builder().condition_check(order.build().expect("a check")).build())
            .client_request_token(token)
            .send()
            .await
            .is_ok()
    }

    fn client(database: &Embedded, backstage: &Arc<Backstage>) -> Client {
        Client::new(&sdk_config(&database.endpoint(), watching(http_client(), Arc::clone(backstage))))
    }

    #[tokio::test]
    async fn a_commit_is_counted_once_and_a_replay_not_at_all() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let backstage = backstage(&[]);
        let client = client(&database, &backstage);
        let calls = || backstage.calls()["refund_order"];
        assert!(commit(client.clone(), "refund_order#1", "ORD-12345", "t1").await);
        assert_eq!(calls(), 1);
        assert!(commit(client.clone(), "refund_order#1", "ORD-12345", "t1").await, "the same request succeeds again");
        assert_eq!(calls(), 1, "the same request commits nothing again");
        assert!(!commit(client.clone(), "refund_order#1", "ORD-12345", "t2").await, "the record is there");
        assert_eq!(calls(), 1, "a replay reaches no backend");
        assert!(!commit(client.clone(), "refund_order#2", "ORD-00000", "t3").await, "no such order");
        assert_eq!(calls(), 2, "a refused write has reached the backend");
        assert!(commit(client, "other_tool#1", "ORD-12345", "t4").await);
        assert_eq!(calls(), 2, "other tools are no business of ours");
    }

    #[tokio::test]
    async fn a_hang_after_the_effect_leaves_the_effect_made_and_no_answer() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let backstage = backstage(&["refund_order=hang-after-effect*1"]);
        let client = client(&database, &backstage);
        let hanging = tokio::spawn(commit(client.clone(), "refund_order#1", "ORD-12345", "t1"));
        while backstage.calls()["refund_order"] == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!hanging.is_finished());
        hanging.abort();
        assert!(!commit(client.clone(), "refund_order#1", "ORD-12345", "t2").await, "the record is there");
        assert!(commit(client, "refund_order#2", "ORD-12345", "t3").await, "the fault is used up");
    }

    #[test]
    fn the_tool_is_known_by_the_record_in_the_first_item() {
        let body = json!({
            "ClientRequestToken": "t",
            "TransactItems": [{"Put": {"Item": {"pk": {"S": "refund_order#00ff"}}}}, {"Update": {}}],
        });
        let commit = Commit { tool: "refund_order".into(), token: "t".into() };
        assert_eq!(Commit::in_body(&body), Some(commit));
        assert_eq!(Commit::in_body(&json!({"TransactItems": [{"Update": {}}]})), None);
    }

    #[test]
    fn a_replay_is_no_call_and_a_refused_write_is_one() {
        let cancelled = |codes: [&str; 2]| {
            json!({"CancellationReasons": [{"Code": codes[0]}, {"Code": codes[1]}]}).to_string().into_bytes()
        };
        assert_eq!(verdict(200, b"{}"), Verdict::Committed);
        assert_eq!(verdict(400, &cancelled(["None", "ConditionalCheckFailed"])), Verdict::Refused);
        assert_eq!(verdict(400, &cancelled(["ConditionalCheckFailed", "None"])), Verdict::NotTried);
        assert_eq!(verdict(400, &cancelled(["ConditionalCheckFailed", "ConditionalCheckFailed"])), Verdict::NotTried);
        assert_eq!(verdict(400, br#"{"__type":"ThrottlingException"}"#), Verdict::NotTried);
        assert_eq!(verdict(503, b"<html>"), Verdict::NotTried);
    }
}
