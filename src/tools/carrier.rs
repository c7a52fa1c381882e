//! The carriers' HTTP API: a seam that the local program fills with a carrier of its own.

use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{HttpBackend, ToolError};

/// Who carries the parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs)] // three names; with documentation they would be three schemas
pub enum CarrierName {
    Dhl,
    Ups,
    Fedex,
}

/// One label to buy.
#[derive(Clone, Debug)]
pub struct LabelOrder {
    /// The order whose parcel it is for.
    pub order_id: String,
    /// Who carries it.
    pub carrier: CarrierName,
    /// Two requests with this key are the same label.
    pub idempotency_key: String,
    /// When to give up.
    pub time_left: Duration,
}

/// Sells labels, and one label only for each idempotency key.
pub trait Carrier: Send + Sync + 'static {
    /// The id of the label, bought now or by an earlier request with the same key.
    fn create_label(&self, order: LabelOrder) -> BoxFuture<'_, Result<String, ToolError>>;
}

/// The carriers' API: `POST <url>/labels` with the header `Idempotency-Key`.
#[derive(Debug)]
pub struct HttpCarrier {
    url: String,
    http: HttpBackend,
}

#[derive(Serialize)]
struct LabelRequest {
    order_id: String,
    carrier: CarrierName,
}

#[derive(Deserialize)]
struct LabelAnswer {
    label_id: String,
}

impl HttpCarrier {
    /// The API at this base URL, for example `https://api.carrier.example/v1`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), http: HttpBackend::new("The carrier") }
    }

    async fn post(&self, order: LabelOrder) -> Result<String, ToolError> {
        let request = self
            .http
            .client()?
            .post(format!("{}/labels", self.url.trim_end_matches('/')))
            .header("Idempotency-Key", order.idempotency_key)
            .json(&LabelRequest { order_id: order.order_id, carrier: order.carrier });
        let answer = self.http.send(request, order.time_left).await?;
        match answer.status.as_u16() {
            // An earlier request with the same key is still at work.
            409 => Err(ToolError::no_answer("The carrier gave no clear answer.").with_source(answer.cause())),
            422 => Err(ToolError::rejected(
                "The carrier does not take this order. Try another carrier, or tell the user that a person has to ship it.",
            )
            .with_source(answer.cause())),
            _ => Ok(answer.json::<LabelAnswer>()?.label_id),
        }
    }
}

impl Carrier for HttpCarrier {
    fn create_label(&self, order: LabelOrder) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(self.post(order))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::tool::{Phase, ToolErrorKind};

    fn order() -> LabelOrder {
        LabelOrder {
            order_id: "ORD-12345".into(),
            carrier: CarrierName::Dhl,
            idempotency_key: "f00d".into(),
            time_left: Duration::from_secs(20),
        }
    }

    /// Serves one request with these bytes; gives the carrier's URL and what it was sent.
    async fn carrier(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                socket.read_buf(&mut request).await.expect("a request");
            }
            socket.write_all(answer.as_bytes()).await.expect("an answer");
            String::from_utf8(request).expect("text")
        });
        (url, task)
    }

    #[tokio::test]
    async fn a_label_is_bought_under_the_idempotency_key() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"label_id\":\"LBL-7\"}";
        let (url, request) = carrier(answer).await;
        assert_eq!(HttpCarrier::new(url).create_label(order()).await.expect("a label"), "LBL-7");
        let request = request.await.expect("the request");
        assert!(request.starts_with("POST /labels HTTP/1.1"), "{request}");
        assert!(request.contains("idempotency-key: f00d"), "{request}");
        assert!(request.ends_with(r#"{"order_id":"ORD-12345","carrier":"dhl"}"#), "{request}");
    }

    #[tokio::test]
    async fn a_broken_answer_leaves_open_whether_the_label_was_made() {
        let (url, _request) = carrier("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"label").await;
        let error = HttpCarrier::new(url).create_label(order()).await.expect_err("no answer");
        assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::MaybeDone));
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_was_sent() {
        let error = HttpCarrier::new("http://127.0.0.1:1").create_label(order()).await.expect_err("nobody there");
        assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::NothingSent));
        assert_eq!(error.fault().as_deref(), Some("ConnectionRefused"));
        assert!(!format!("{:?}", error.cause()).contains("127.0.0.1:1/"), "the URL may hold a credential");
    }

    #[tokio::test]
    async fn what_the_carrier_means_by_a_status_of_its_own_is_told() {
        let (url, _request) = carrier("HTTP/1.1 422 Unprocessable\r\ncontent-length: 0\r\n\r\n").await;
        let error = HttpCarrier::new(url).create_label(order()).await.expect_err("a refusal");
        assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Rejected, Phase::NothingSent));
        let (url, _request) = carrier("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n").await;
        let error = HttpCarrier::new(url).create_label(order()).await.expect_err("a refusal");
        assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::MaybeDone));
    }

    #[tokio::test]
    async fn the_carrier_says_when_to_come_back() {
        let (url, _request) = carrier("HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n").await;
        let error = HttpCarrier::new(url).create_label(order()).await.expect_err("a refusal");
        assert_eq!((error.phase(), error.retry_after), (Phase::NothingSent, Some(Duration::from_secs(7))));
    }
}
