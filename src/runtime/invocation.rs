//! An invocation's headers, read without ever refusing one.
//!
//! | header | if it is missing or nonsense |
//! | --- | --- |
//! | `lambda-runtime-aws-request-id` | the request id is empty, and nobody can be answered |
//! | `lambda-runtime-deadline-ms` | the deadline is not known, and the configured budget counts |
//! | `lambda-runtime-client-context` | there is none; its bytes are kept as they are, the handler reads them |
//! | `lambda-runtime-cognito-identity` | there is none |
//! | the others | empty, or none |

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use lambda_runtime::Context;
use tokio::time::Instant;

/// A deadline further back than this is no deadline: `cargo lambda watch` always sends 1970.
const LONG_PAST: Duration = Duration::from_hours(1);
/// No function runs as long as this.
const FAR_AHEAD: Duration = Duration::from_hours(24);

/// What the headers of an invocation say.
pub(super) struct Incoming {
    /// Its `client_context` stays empty: its type cannot hold what the gateway sends.
    pub(super) context: Context,
    pub(super) invocation_id: Option<HeaderValue>,
    pub(super) client_context: Option<Bytes>,
    pub(super) deadline: Option<Instant>,
}

impl Incoming {
    /// Reads the headers. `wall` and `now` are the same moment.
    pub(super) fn read(headers: &HeaderMap, wall: SystemTime, now: Instant) -> Self {
        let epoch_ms = headers.get("lambda-runtime-deadline-ms").and_then(|v| v.to_str().ok()?.trim().parse().ok());
        let text = |name| headers.get(name).map(|v: &HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned());

        let mut context = Context::default();
        context.request_id = text("lambda-runtime-aws-request-id").unwrap_or_default();
        context.deadline = epoch_ms.unwrap_or_default();
        context.invoked_function_arn = text("lambda-runtime-invoked-function-arn").unwrap_or_default();
        context.xray_trace_id = text("lambda-runtime-trace-id").filter(|id| !id.is_empty());
        context.tenant_id = text("lambda-runtime-aws-tenant-id").filter(|id| !id.is_empty());
        context.identity = headers
            .get("lambda-runtime-cognito-identity")
            .and_then(|value| serde_json::from_slice(value.as_bytes()).ok());
        Self {
            context,
            invocation_id: headers.get("lambda-runtime-invocation-id").cloned(),
            client_context: headers
                .get("lambda-runtime-client-context")
                .map(|value| Bytes::copy_from_slice(value.as_bytes()))
                .filter(|bytes| !bytes.is_empty()),
            deadline: epoch_ms.and_then(|ms| deadline(ms, wall, now)),
        }
    }
}

/// The moment of a deadline in milliseconds since 1970: in the future, or `now` when it has only just passed.
fn deadline(epoch_ms: u64, wall: SystemTime, now: Instant) -> Option<Instant> {
    let wall = wall.duration_since(UNIX_EPOCH).ok()?;
    let deadline = Duration::from_millis(epoch_ms);
    let ahead = deadline.saturating_sub(wall);
    (wall.saturating_sub(deadline) <= LONG_PAST && ahead <= FAR_AHEAD).then(|| now + ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &[u8])]) -> Incoming {
        let headers =
            pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_bytes(value).unwrap()));
        Incoming::read(&headers.collect(), SystemTime::now(), Instant::now())
    }

    fn in_ms(ahead: i64) -> Option<i64> {
        const WALL: i64 = 1_790_000_000_000;
        let wall = UNIX_EPOCH + Duration::from_millis(WALL.unsigned_abs());
        let now = Instant::now();
        let left = deadline((WALL + ahead).unsigned_abs(), wall, now)?.duration_since(now);
        Some(i64::try_from(left.as_millis()).unwrap())
    }

    #[test]
    fn a_deadline_ahead_is_kept_to_the_millisecond() {
        assert_eq!(in_ms(9_990), Some(9_990));
        assert_eq!(in_ms(0), Some(0));
        assert_eq!(in_ms(5_400_000), Some(5_400_000));
    }

    #[test]
    fn a_deadline_just_past_is_zero_time_left() {
        assert_eq!(in_ms(-1), Some(0));
        assert_eq!(in_ms(-3_600_000), Some(0));
    }

    #[test]
    fn a_deadline_long_past_or_far_ahead_is_no_deadline() {
        assert_eq!(in_ms(-3_600_001), None);
        assert_eq!(in_ms(86_400_001), None);
        assert_eq!(read(&[("lambda-runtime-deadline-ms", b"600000")]).deadline, None, "cargo lambda watch");
        assert_eq!(read(&[("lambda-runtime-deadline-ms", b"18446744073709551615")]).deadline, None);
    }

    #[test]
    fn a_missing_or_garbled_deadline_is_no_deadline() {
        assert_eq!(read(&[]).deadline, None);
        for nonsense in [&b""[..], b"soon", b"-1", b"1e12", b"99999999999999999999999999", b"\xff\xfe"] {
            assert_eq!(read(&[("lambda-runtime-deadline-ms", nonsense)]).deadline, None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_client_context_is_kept_byte_for_byte() {
        for raw in [
            &br#"{"custom":{"bedrockAgentCorePropagatedHeaders":{"a":"b"}}}"#[..],
            br#"{"client":null,"custom":null,"env":null}"#,
            b"null",
            b"not json",
            b"\xff\xc3\xa9",
        ] {
            let incoming = read(&[("lambda-runtime-client-context", raw)]);
            assert_eq!(incoming.client_context.as_deref(), Some(raw));
        }
        assert_eq!(read(&[("lambda-runtime-client-context", b"")]).client_context, None);
    }

    #[test]
    fn an_identity_that_cannot_be_read_is_no_identity() {
        for raw in [&b"{}"[..], b"null", b"", b"\xff", b"[]"] {
            assert!(read(&[("lambda-runtime-cognito-identity", raw)]).context.identity.is_none());
        }
        let good = read(&[("lambda-runtime-cognito-identity", br#"{"identityId":"i","identityPoolId":"p"}"#)]);
        assert_eq!(good.context.identity.unwrap().identity_id, "i");
    }

    #[test]
    fn headers_that_are_no_text_are_read_as_far_as_they_go() {
        let incoming = read(&[
            ("lambda-runtime-aws-request-id", b"id-1"),
            ("lambda-runtime-trace-id", b"Root=\xff"),
            ("lambda-runtime-invoked-function-arn", b"\xc3\xa9"),
            ("lambda-runtime-invocation-id", b"\xfe"),
        ]);
        assert_eq!(incoming.context.request_id, "id-1");
        assert_eq!(incoming.context.xray_trace_id.as_deref(), Some("Root=\u{fffd}"));
        assert_eq!(incoming.context.invoked_function_arn, "é");
        assert_eq!(incoming.invocation_id.unwrap().as_bytes(), b"\xfe");
    }

    #[test]
    fn missing_headers_leave_empty_fields() {
        let incoming = read(&[]);
        assert_eq!(incoming.context.request_id, "");
        assert!(incoming.context.xray_trace_id.is_none() && incoming.invocation_id.is_none());
    }
}
