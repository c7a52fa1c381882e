//! Settings: environment variables, read and checked in one place at start.
//!
//! A missing or bad one stops the start with a sentence that names the variable, what was found and what is valid; all
//! of them at once. `docs/settings.md` has the table. The tools of a deployment read their own through the same
//! [`Env`], so that their faults come out together with these:
//!
//! ```
//! use action_group::{env::Env, settings::Settings};
//!
//! let mut env = Env::of([("IDEMPOTENCY_TABLE", "tool-records"), ("RESERVE_MS", "800")]);
//! let settings = Settings::read(&mut env);
//! let orders = env.table("ORDERS_TABLE");
//! # let _ = (settings, orders);
//! assert!(env.finish().is_err()); // ORDERS_TABLE is not set
//! ```

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    aws::RetryMode,
    conversation_guard::ConversationLimits,
    door::{DOORS, Door, named},
    env::{Env, log_filter},
    runtime::LONGEST,
};

/// The time kept back before the deadline.
const RESERVE: Duration = Duration::from_millis(500);
/// At least the time that an answer takes, and as much again to record the outcome.
const RESERVE_RANGE: RangeInclusive<u64> = 250..=10_000;
/// The time for an invocation whose host gives no usable deadline.
const DEFAULT_BUDGET: Duration = Duration::from_secs(25);
const BUDGET_RANGE: RangeInclusive<u64> = 1_000..=900_000;
const _: () = assert!(
    Duration::from_millis(*BUDGET_RANGE.end()).as_millis() == LONGEST.as_millis(),
    "the longest budget is the longest time of an invocation"
);

/// What the function itself needs to know; tools have their own settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `SERVICE_NAME`: the name of this function in logs and metrics. Default: the Lambda function's name.
    pub service: String,
    /// `METRICS_NAMESPACE`: the namespace of the metrics. Default: `BedrockActionGroup`.
    pub metrics_namespace: String,
    /// `IDEMPOTENCY_TABLE`: the DynamoDB table of the records. Required.
    pub idempotency_table: String,
    /// `RESERVE_MS`: the time kept back before the deadline to record the outcome and answer. Default: 500 ms.
    pub reserve: Duration,
    /// `DEFAULT_BUDGET_MS`: the time for an invocation whose host gives no usable deadline. Default: 25 s.
    pub default_budget: Duration,
    /// `IDENTITY_HEADER`: the propagated header that names the gateway's user. Default: none does.
    pub identity_header: Option<String>,
    /// `RETRY_MODE`: how AWS clients retry, `adaptive` or `standard`. Default: adaptive.
    pub retry_mode: RetryMode,
    /// `CONVERSATION_MAX_CALLS`, `CONVERSATION_MAX_CONSECUTIVE_FAILURES`, `CONVERSATION_MAX_IDENTICAL_FAILURES`: the limits
    /// of a conversation whose loop others run.
    /// Default: none.
    pub limits: ConversationLimits,
    /// `DOORS`: the doors that are open, in the order of detection. Default: all.
    pub doors: Vec<&'static Door>,
}

impl Settings {
    /// Reads them. Faults are in `env`: call [`Env::finish`] before you use any of this.
    pub fn read(env: &mut Env) -> Self {
        let settings = Self {
            idempotency_table: env.table("IDEMPOTENCY_TABLE"),
            service: service(env),
            metrics_namespace: env.text(
                "METRICS_NAMESPACE",
                "BedrockActionGroup",
                "1 to 255 printable ASCII characters that do not begin with ':' or 'AWS/'",
                |text| is_label(text) && !text.starts_with("AWS/"),
            ),
            reserve: env.millis("RESERVE_MS", RESERVE, RESERVE_RANGE),
            default_budget: env.millis("DEFAULT_BUDGET_MS", DEFAULT_BUDGET, BUDGET_RANGE),
            identity_header: env.optional(
                "IDENTITY_HEADER",
                "the name of an HTTP header that names a user, and holds no secret",
                identity_header,
            ),
            retry_mode: retry_mode(env),
            limits: limits(env),
            doors: doors(env),
        };
        log_filter(env); // in use since before the settings were read; here its faults count
        if settings.default_budget <= settings.reserve {
            env.fault(format!(
                "DEFAULT_BUDGET_MS ({}) must be greater than RESERVE_MS ({}), or no call could ever run.",
                settings.default_budget.as_millis(),
                settings.reserve.as_millis()
            ));
        }
        settings
    }
}

fn service(env: &mut Env) -> String {
    const VALID: &str = "1 to 255 printable ASCII characters that do not begin with ':'";
    let parse = |text: &str| is_label(text).then(|| text.to_owned());
    env.optional("SERVICE_NAME", VALID, parse)
        .or_else(|| env.optional("AWS_LAMBDA_FUNCTION_NAME", VALID, parse))
        .unwrap_or_else(|| String::from("bedrock-action-group"))
}

fn retry_mode(env: &mut Env) -> RetryMode {
    match env.one_of("RETRY_MODE", "adaptive", &["adaptive", "standard"]) {
        "standard" => RetryMode::Standard,
        _ => RetryMode::Adaptive,
    }
}

/// The name of a header, but not of one that holds a token: who asks stands in the record of a call that waits for a person.
fn identity_header(text: &str) -> Option<String> {
    let name = http::HeaderName::try_from(text).ok()?;
    let is_secret = ["authorization", "proxy-authorization", "cookie"].contains(&name.as_str());
    (!is_secret).then(|| text.to_owned())
}

fn limits(env: &mut Env) -> ConversationLimits {
    let mut limit = |name, most: u32| {
        let valid = format!("a whole number from 1 to {most}, or not set for no limit");
        env.optional(name, &valid, |text| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|limit| is_plain && (1..=most).contains(limit))
        })
    };
    ConversationLimits {
        calls: limit("CONVERSATION_MAX_CALLS", 100_000),
        consecutive_failures: limit("CONVERSATION_MAX_CONSECUTIVE_FAILURES", 1_000),
        identical_failures: limit("CONVERSATION_MAX_IDENTICAL_FAILURES", 1_000),
    }
}

/// What the metrics can have as a namespace, and as the value of a dimension.
fn is_label(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && !text.starts_with(':')
        && !text.trim().is_empty()
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// In the order of detection, whatever the order in which they are named.
fn doors(env: &mut Env) -> Vec<&'static Door> {
    let names: Vec<&str> = DOORS.iter().map(|door| door.name).collect();
    let valid = format!("a comma list of {}", names.join(", "));
    let open = env.optional("DOORS", &valid, |text| {
        let listed: Vec<&str> = text.split(',').map(str::trim).collect();
        listed
            .iter()
            .all(|name| named(name).is_some())
            .then(|| DOORS.iter().filter(|door| listed.contains(&door.name)).collect::<Vec<_>>())
    });
    open.unwrap_or_else(|| DOORS.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SettingsError;

    const TABLE: (&str, &str) = ("IDEMPOTENCY_TABLE", "records");

    fn read(more: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let mut env = Env::of(std::iter::once(TABLE).chain(more.iter().copied()));
        let settings = Settings::read(&mut env);
        env.finish().map(|()| settings)
    }

    fn fault(more: &[(&str, &str)]) -> String {
        read(more).expect_err("a fault").to_string()
    }

    #[test]
    fn the_identity_header_is_the_name_of_a_header() {
        assert_eq!(read(&[("IDENTITY_HEADER", "X-User")]).unwrap().identity_header.as_deref(), Some("X-User"));
        for wrong in ["X User", "Authorization", "proxy-authorization", "Cookie"] {
            let told = fault(&[("IDENTITY_HEADER", wrong)]);
            assert!(told.contains(&format!("IDENTITY_HEADER is {wrong:?}")) && told.contains("no secret"), "{told}");
        }
    }

    #[test]
    fn only_the_table_has_no_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.service, "bedrock-action-group");
        assert_eq!(settings.metrics_namespace, "BedrockActionGroup");
        assert_eq!(settings.reserve, Duration::from_millis(500));
        assert_eq!(settings.default_budget, Duration::from_secs(25));
        assert_eq!(settings.doors.len(), DOORS.len());
        assert_eq!(settings.identity_header, None);

        let mut env = Env::of::<&str, &str>([]);
        Settings::read(&mut env);
        let error = env.finish().unwrap_err();
        assert_eq!(error.faults().len(), 1);
        assert!(error.to_string().contains("IDEMPOTENCY_TABLE is not set."), "{error}");
    }

    #[test]
    fn the_service_is_named_after_the_function_unless_it_has_a_name() {
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop")]).unwrap().service, "shop");
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop"), ("SERVICE_NAME", "x")]).unwrap().service, "x");
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop"), ("SERVICE_NAME", "")]).unwrap().service, "shop");
    }

    #[test]
    fn a_namespace_is_one_that_cloudwatch_takes() {
        assert_eq!(read(&[("METRICS_NAMESPACE", "My Shop/Tools")]).unwrap().metrics_namespace, "My Shop/Tools");
        for bad in [":x", "AWS/Lambda", "tab\there", "ü", " ", &"x".repeat(256)] {
            assert!(fault(&[("METRICS_NAMESPACE", bad)]).contains("METRICS_NAMESPACE is"), "{bad:?}");
        }
    }

    #[test]
    fn times_are_in_range_and_leave_room_for_a_call() {
        assert_eq!(read(&[("RESERVE_MS", "250")]).unwrap().reserve, Duration::from_millis(250));
        assert!(fault(&[("RESERVE_MS", "249")]).contains("from 250 to 10000"));
        assert!(fault(&[("DEFAULT_BUDGET_MS", "0")]).contains("from 1000 to 900000"));
        let fault = fault(&[("RESERVE_MS", "2000"), ("DEFAULT_BUDGET_MS", "2000")]);
        assert!(fault.contains("must be greater than RESERVE_MS"), "{fault}");
    }

    #[test]
    fn clients_retry_adaptively_unless_they_are_told_otherwise() {
        assert_eq!(read(&[]).unwrap().retry_mode, RetryMode::Adaptive);
        assert_eq!(read(&[("RETRY_MODE", "Standard")]).unwrap().retry_mode, RetryMode::Standard);
        assert!(fault(&[("RETRY_MODE", "legacy")]).contains("one of adaptive, standard"));
    }

    #[test]
    fn a_conversation_has_no_limits_unless_they_are_set() {
        assert!(read(&[]).unwrap().limits.are_off());
        let limits = [
            ("CONVERSATION_MAX_CALLS", "50"),
            ("CONVERSATION_MAX_CONSECUTIVE_FAILURES", "5"),
            ("CONVERSATION_MAX_IDENTICAL_FAILURES", "3"),
        ];
        let expected =
            ConversationLimits { calls: Some(50), consecutive_failures: Some(5), identical_failures: Some(3) };
        assert_eq!(read(&limits).unwrap().limits, expected);
        for bad in ["0", "-1", "+1", "1.5", "many", "100001", "99999999999"] {
            for (name, _) in limits {
                assert!(fault(&[(name, bad)]).contains(&format!("{name} is {bad:?}, but must be a whole number")));
            }
        }
    }

    #[test]
    fn every_named_door_has_to_exist() {
        assert!(fault(&[("DOORS", "back")]).contains("DOORS is \"back\", but must be a comma list of"));
        assert!(read(&[("DOORS", "")]).is_ok());
        if let (Some(first), Some(last)) = (DOORS.first(), DOORS.last()) {
            let list = format!("{}, {}", last.name, first.name);
            let names: Vec<_> = read(&[("DOORS", &list)]).unwrap().doors.iter().map(|door| door.name).collect();
            assert_eq!(names, [first.name, last.name], "the order of detection stays");
        }
    }

    #[test]
    fn the_document_names_every_setting() {
        let document = include_str!("../../docs/settings.md");
        let mut env = Env::of::<&str, &str>([]);
        Settings::read(&mut env);
        for name in env.names() {
            assert!(document.contains(&format!("| `{name}` |")), "docs/settings.md has no row for {name}");
        }
    }
}
