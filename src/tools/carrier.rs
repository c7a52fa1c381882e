//! The carriers' HTTP API: a seam that the local program fills with a carrier of its own.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use aws_smithy_types::date_time::{DateTime, Format};
use futures_util::future::BoxFuture;
use reqwest::{StatusCode, header::HeaderMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::ToolError;

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
    client: OnceLock<reqwest::Client>,
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
        Self { url: url.into(), client: OnceLock::new() }
    }

    /// The client, made at the first call: a cold start should not pay for TLS that it may never use.
    fn client(&self) -> Result<&reqwest::Client, ToolError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // An error says that the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none()) // a redirected request would carry the key to another host
            .connect_timeout(Duration::from_secs(3))
            .build()
            .map_err(|error| ToolError::internal(error).nothing_sent())?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn post(&self, order: LabelOrder) -> Result<String, ToolError> {
        let request = LabelRequest { order_id: order.order_id, carrier: order.carrier };
        let answer = self
            .client()?
            .post(format!("{}/labels", self.url.trim_end_matches('/')))
            .header("Idempotency-Key", order.idempotency_key)
            .timeout(order.time_left)
            .json(&request)
            .send()
            .await
            .map_err(not_sent_or_no_answer)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(refusal(status, retry_after(answer.headers(), SystemTime::now())));
        }
        let label: LabelAnswer = answer.json().await.map_err(not_sent_or_no_answer)?;
        Ok(label.label_id)
    }
}

impl Carrier for HttpCarrier {
    fn create_label(&self, order: LabelOrder) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(self.post(order))
    }
}

fn not_sent_or_no_answer(error: reqwest::Error) -> ToolError {
    let error = error.without_url();
    if error.is_builder() {
        ToolError::internal(error).nothing_sent()
    } else if error.is_connect() {
        ToolError::transient("The carrier cannot be reached for now.").with_source(error)
    } else {
        ToolError::no_answer("The carrier gave no clear answer.").with_source(error)
    }
}

/// What an answer other than 2xx means.
fn refusal(status: StatusCode, retry_after: Option<Duration>) -> ToolError {
    let source = format!("the carrier answered {status}");
    match (status, retry_after) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => {
            ToolError::transient("The carrier is too busy for now.").with_source(source).retry_after(wait)
        }
        (StatusCode::TOO_MANY_REQUESTS, None) => {
            ToolError::transient("The carrier is too busy for now.").with_source(source)
        }
        (StatusCode::UNPROCESSABLE_ENTITY, _) => ToolError::rejected(
            "The carrier does not take this order. Try another carrier, or tell the user that a person has to ship it.",
        )
        .with_source(source),
        // An earlier request with the same key is still at work.
        (StatusCode::CONFLICT, _) => ToolError::no_answer("The carrier gave no clear answer.").with_source(source),
        (status, _) if status.is_client_error() => ToolError::internal(source).nothing_sent(),
        _ => ToolError::no_answer("The carrier gave no clear answer.").with_source(source),
    }
}

/// `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get("retry-after")?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::from_str(value, Format::HttpDate).ok()?;
    Some(SystemTime::try_from(date).ok()?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

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
        assert!(!format!("{:?}", error.cause()).contains("127.0.0.1:1/"), "the URL may hold a credential");
    }

    #[test]
    fn each_status_says_whether_something_may_have_been_done() {
        let wait = Some(Duration::from_secs(7));
        let table = [
            (429, wait, ToolErrorKind::Transient, Phase::NothingSent),
            (429, None, ToolErrorKind::Transient, Phase::NothingSent),
            (503, wait, ToolErrorKind::Transient, Phase::NothingSent),
            (503, None, ToolErrorKind::Transient, Phase::MaybeDone),
            (500, None, ToolErrorKind::Transient, Phase::MaybeDone),
            (504, wait, ToolErrorKind::Transient, Phase::MaybeDone),
            (302, None, ToolErrorKind::Transient, Phase::MaybeDone),
            (409, None, ToolErrorKind::Transient, Phase::MaybeDone),
            (422, None, ToolErrorKind::Rejected, Phase::NothingSent),
            (401, None, ToolErrorKind::Internal, Phase::NothingSent),
        ];
        for (status, retry_after, kind, phase) in table {
            let error = refusal(StatusCode::from_u16(status).expect("a status"), retry_after);
            assert_eq!((error.kind(), error.phase()), (kind, phase), "{status}");
        }
        assert_eq!(refusal(StatusCode::TOO_MANY_REQUESTS, wait).retry_after, wait);
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        let read = |value: &'static str| {
            retry_after(&HeaderMap::from_iter([(reqwest::header::RETRY_AFTER, value.parse().expect("a value"))]), now)
        };
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:27 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }
}
