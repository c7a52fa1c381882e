//! What an HTTP answer means for a tool. Pure: status, headers, body and the time of day decide.
//!
//! | status | the tool error | promise |
//! | --- | --- | --- |
//! | 429 | [`ToolError::transient`] | turned away: nothing was done |
//! | 429 that states a spent quota | [`ToolError::rejected`] | nothing was done, and waiting does not help |
//! | 503 with `Retry-After` | [`ToolError::transient`] | turned away: nothing was done |
//! | 500, 502, 503, 504, 408 | [`ToolError::no_answer`] | it may have been done |
//! | 3xx | [`ToolError::internal`] | it may have been done: 303 is how a POST that went well is answered |
//! | any other 4xx | [`ToolError::internal`] | nothing was done |
//!
//! Why does a `Retry-After` make a 503 safe? Who says when to come back has turned the request away, knowingly. A 503
//! without it is also what a proxy says whose backend died half-way through the request. A gateway's 502 and 504 never say
//! anything about the backend. What is safe to repeat then depends on the effect: a `ReadOnly` or `Keyed` tool is tried
//! again after either, a `Once` tool only where the promise is that nothing was done.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::retry_after;
use crate::tool::{ToolError, fault::Answered};

/// A wait beyond this is no pause but the end of a quota.
const DAY: Duration = Duration::from_hours(24);

/// The words by which APIs say that a quota is spent, without case and punctuation.
const SPENT: [&str; 8] = [
    "billinghardlimitreached",
    "creditsexhausted",
    "dailylimitexceeded",
    "insufficientquota",
    "monthlylimitexceeded",
    "quotaexceeded",
    "quotaexhausted",
    "servicequotaexceededexception",
];

/// A whole answer of an [`HttpBackend`](super::HttpBackend), whatever its status.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpAnswer {
    pub(super) service: &'static str,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    pub(super) at: SystemTime,
}

impl HttpAnswer {
    /// The body of a 2xx.
    ///
    /// # Errors
    ///
    /// Any other status, by the table above. Match those that mean something else in your API first.
    pub fn success(self) -> Result<Bytes, ToolError> {
        if self.status.is_success() { Ok(self.body) } else { Err(self.refusal()) }
    }

    /// The JSON of a 2xx.
    ///
    /// # Errors
    ///
    /// As [`HttpAnswer::success`]; JSON that cannot be read is no clear answer.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        let text = unclear(self.service);
        serde_json::from_slice(&self.success()?).map_err(|error| ToolError::no_answer(text).with_source(error))
    }

    /// What an answer other than 2xx means.
    pub fn refusal(&self) -> ToolError {
        let Self { service, status, .. } = self;
        let wait =
            retry_after(|name| self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()), self.at);
        let error = match *status {
            StatusCode::TOO_MANY_REQUESTS if self.is_spent(wait) => ToolError::rejected(format!(
                "The quota for {} is used up. Trying again will not help; tell the user.",
                lower_first(service)
            )),
            StatusCode::TOO_MANY_REQUESTS => busy(service),
            StatusCode::SERVICE_UNAVAILABLE if wait.is_some() => busy(service),
            StatusCode::REQUEST_TIMEOUT => ToolError::no_answer(unclear(service)),
            status if status.is_client_error() => ToolError::internal(self.cause()).nothing_sent(),
            status if status.is_server_error() => ToolError::no_answer(unclear(service)),
            _ => ToolError::internal(self.cause()),
        };
        let error = if error.cause().is_some() { error } else { error.with_source(self.cause()) };
        match wait {
            Some(wait) => error.retry_after(wait),
            None => error,
        }
    }

    /// The answer as a cause: its status names it in the log. For a status that your API means otherwise:
    /// `ToolError::rejected(…).with_source(answer.cause())`.
    pub fn cause(&self) -> impl std::error::Error + Send + Sync + 'static + use<> {
        Answered { service: self.service, status: self.status }
    }

    /// Whether a 429 says that its quota is spent, so that a pause does not help.
    fn is_spent(&self, wait: Option<Duration>) -> bool {
        wait.is_some_and(|wait| wait > DAY)
            || self.headers.get("x-should-retry").is_some_and(|value| value == "false")
            || serde_json::from_slice(&self.body).is_ok_and(|body| says_spent(&body))
    }
}

/// Looks for the words as values of their own, such as a `code`; a sentence that holds them may say anything.
fn says_spent(body: &Value) -> bool {
    match body {
        Value::String(text) => {
            let bare: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            SPENT.contains(&bare.to_ascii_lowercase().as_str())
        }
        Value::Array(all) => all.iter().any(says_spent),
        Value::Object(fields) => fields.values().any(says_spent),
        _ => false,
    }
}

fn busy(service: &str) -> ToolError {
    ToolError::transient(format!("{service} is too busy for now."))
}

fn unclear(service: &str) -> String {
    format!("{service} gave no clear answer.")
}

/// `The carrier` within a sentence.
fn lower_first(service: &str) -> String {
    service.strip_prefix("The ").map_or_else(|| service.to_owned(), |rest| format!("the {rest}"))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::tool::{
        Phase::{self, MaybeDone, NothingSent},
        ToolErrorKind::{self, Internal, Rejected, Transient},
    };

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: Duration = Duration::from_secs(784_111_777);

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> HttpAnswer {
        let headers = headers.iter().fold(HeaderMap::new(), |mut all, (name, value)| {
            all.append(*name, value.parse().unwrap());
            all
        });
        let status = StatusCode::from_u16(status).unwrap();
        HttpAnswer { service: "The carrier", status, headers, body: body.into(), at: UNIX_EPOCH + NOW }
    }

    fn meaning(answer: &HttpAnswer) -> (ToolErrorKind, Phase, Option<Duration>) {
        let error = answer.refusal();
        (error.kind(), error.phase(), error.retry_after)
    }

    #[test]
    fn each_status_says_whether_something_may_have_been_done() {
        const WAIT: &[(&str, &str)] = &[("retry-after", "7")];
        let seven = Some(Duration::from_secs(7));
        for (status, headers, wanted) in [
            (429, &[][..], (Transient, NothingSent, None)),
            (429, WAIT, (Transient, NothingSent, seven)),
            (503, WAIT, (Transient, NothingSent, seven)),
            (503, &[], (Transient, MaybeDone, None)),
            (500, WAIT, (Transient, MaybeDone, seven)),
            (502, &[], (Transient, MaybeDone, None)),
            (504, &[], (Transient, MaybeDone, None)),
            (408, &[], (Transient, MaybeDone, None)),
            (303, &[], (Internal, MaybeDone, None)),
            (400, &[], (Internal, NothingSent, None)),
            (401, &[], (Internal, NothingSent, None)),
            (404, &[], (Internal, NothingSent, None)),
        ] {
            assert_eq!(meaning(&answer(status, headers, "")), wanted, "{status}");
        }
    }

    #[test]
    fn a_429_that_states_a_spent_quota_is_not_worth_a_wait() {
        for spent in [
            answer(
                429,
                &[],
                r#"{"error":{"message":"You …","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ),
            answer(429, &[], r#"{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}"#),
            answer(429, &[("x-should-retry", "false")], ""),
            answer(429, &[("retry-after", "86401")], ""),
            answer(429, &[("retry-after", "99999999999999999999999")], ""),
        ] {
            assert_eq!(spent.refusal().kind(), Rejected, "{spent:?}");
        }
        assert_eq!(
            answer(429, &[], r#"{"code":"insufficient_quota"}"#).refusal().text,
            "The quota for the carrier is used up. Trying again will not help; tell the user."
        );
    }

    #[test]
    fn a_429_that_only_speaks_of_quotas_is_a_pause() {
        for body in
            ["", "quota exceeded", r#"{"code":"rate_limit_exceeded"}"#, r#"{"message":"Quota exceeded, wait."}"#]
        {
            assert_eq!(answer(429, &[("retry-after", "1")], body).refusal().kind(), Transient, "{body}");
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_leaves_open_what_was_done() {
        let error = answer(200, &[], "<html>").json::<Value>().expect_err("no JSON");
        assert_eq!((error.kind(), error.phase()), (Transient, MaybeDone));
    }

    #[test]
    fn no_word_of_the_answer_reaches_the_model() {
        let error = answer(500, &[], "SECRET-1 at db.internal").refusal();
        assert_eq!(error.text, "The carrier gave no clear answer.");
        assert!(!format!("{:?}", error.cause()).contains("SECRET"));
    }
}
