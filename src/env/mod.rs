//! Environment variables, read by type, with every fault collected.
//!
//! A getter always hands back a value, so that reading goes on after a fault and a person sees all faults at once. The
//! value in the place of a faulty one is never used: [`Env::finish`] stops the start.
//!
//! ```
//! use std::time::Duration;
//! use action_group::env::Env;
//!
//! let mut env = Env::of([("PAUSE_MS", "soon"), ("DRY_RUN", "false")]);
//! let _pause = env.millis("PAUSE_MS", Duration::from_millis(200), 10..=5_000);
//! assert!(!env.flag("DRY_RUN", true));
//! let _table = env.table("ORDERS_TABLE");
//!
//! let faults = env.finish().unwrap_err();
//! assert_eq!(
//!     faults.faults()[0],
//!     "PAUSE_MS is \"soon\", but must be a whole number of milliseconds from 10 to 5000."
//! );
//! assert!(faults.faults()[1].starts_with("ORDERS_TABLE is not set. It must be the name or the ARN of a DynamoDB table"));
//! ```

mod log_filter;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    ops::RangeInclusive,
    time::Duration,
};

pub(crate) use self::log_filter::log_filter;
use crate::arguments::is_email;

/// The longest part of a faulty value that is shown.
const SHOWN: usize = 60;

type Lookup = Box<dyn Fn(&str) -> Option<OsString> + Send>;

/// Where settings come from, and what was wrong with them so far.
pub struct Env {
    lookup: Lookup,
    asked: BTreeSet<&'static str>,
    faults: Vec<String>,
}

impl Env {
    /// The variables of this process.
    pub fn process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// These variables and no others.
    pub fn of<N: Into<String>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let variables: BTreeMap<String, OsString> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self::from_lookup(move |name| variables.get(name).cloned())
    }

    /// Variables that are found by this function.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString> + Send + 'static) -> Self {
        Self { lookup: Box::new(lookup), asked: BTreeSet::new(), faults: Vec::new() }
    }

    /// The value as `parse` reads it; `None` where it is not set or empty, or where `parse` refuses it, which is a
    /// fault. `valid` ends the sentence "NAME is …, but must be".
    pub fn optional<T>(&mut self, name: &'static str, valid: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.asked.insert(name);
        let raw = (self.lookup)(name).filter(|value| !value.is_empty())?;
        let value = raw.to_str().and_then(parse);
        if value.is_none() {
            self.fault(format!("{name} is {}, but must be {valid}.", shown(name, &raw)));
        }
        value
    }

    /// As [`Env::optional`], but a fault where it is not set.
    pub fn required<T: Default>(
        &mut self,
        name: &'static str,
        valid: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        if !self.is_set(name) {
            self.asked.insert(name);
            self.fault(format!("{name} is not set. It must be {valid}."));
            return T::default();
        }
        self.optional(name, valid, parse).unwrap_or_default()
    }

    /// A text that passes `check`.
    pub fn text(&mut self, name: &'static str, default: &str, valid: &str, check: impl FnOnce(&str) -> bool) -> String {
        self.optional(name, valid, |text| check(text).then(|| text.to_owned())).unwrap_or_else(|| default.to_owned())
    }

    /// A whole number in this range.
    pub fn number(&mut self, name: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let valid = format!("a whole number from {} to {}", range.start(), range.end());
        self.optional(name, &valid, |text| in_range(text, &range)).unwrap_or(default)
    }

    /// A duration, given as a whole number of milliseconds in this range.
    pub fn millis(&mut self, name: &'static str, default: Duration, range: RangeInclusive<u64>) -> Duration {
        let valid = format!("a whole number of milliseconds from {} to {}", range.start(), range.end());
        self.optional(name, &valid, |text| in_range(text, &range)).map_or(default, Duration::from_millis)
    }

    /// `true` or `false`, in any letter case. Anything else is a fault, so that `no` is not taken for true.
    pub fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.optional(name, "true or false", |text| text.to_ascii_lowercase().parse().ok()).unwrap_or(default)
    }

    /// One of these words, in any letter case; hands back the word as it stands in the list.
    pub fn one_of(
        &mut self,
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
    ) -> &'static str {
        let valid = format!("one of {}", words.join(", "));
        self.optional(name, &valid, |text| words.iter().find(|word| word.eq_ignore_ascii_case(text)).copied())
            .unwrap_or(default)
    }

    /// The name or the ARN of a DynamoDB table. Required.
    pub fn table(&mut self, name: &'static str) -> String {
        const VALID: &str = "the name or the ARN of a DynamoDB table (3 to 255 letters, digits, '_', '-' and '.')";
        self.required(name, VALID, |text| is_table(text).then(|| text.to_owned()))
    }

    /// An absolute http or https URL to which a path can be added: without a user, a password and a query. Required.
    pub fn url(&mut self, name: &'static str) -> String {
        const VALID: &str =
            "an http or https URL without a password and a query, for example https://api.example.com/v1";
        self.required(name, VALID, |text| is_url(text).then(|| text.to_owned()))
    }

    /// An e-mail address, as the format `email` of arguments has it. Required.
    pub fn email(&mut self, name: &'static str) -> String {
        const VALID: &str = "an e-mail address, for example shop@example.com";
        self.required(name, VALID, |text| is_email(text).then(|| text.to_owned()))
    }

    /// Whether the variable has a value; an empty one is none.
    pub fn is_set(&self, name: &str) -> bool {
        (self.lookup)(name).is_some_and(|value| !value.is_empty())
    }

    /// Adds a fault that no getter could see, for example two settings that contradict each other. One sentence.
    pub fn fault(&mut self, sentence: impl Into<String>) {
        self.faults.push(sentence.into());
    }

    /// The names that were asked for, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.asked.iter().copied()
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Every fault, in the order in which the settings were read.
    pub fn finish(self) -> Result<(), SettingsError> {
        if self.faults.is_empty() { Ok(()) } else { Err(SettingsError { faults: self.faults }) }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("asked", &self.asked).field("faults", &self.faults).finish_non_exhaustive()
    }
}

/// Why the settings do not allow a start.
#[derive(Debug, thiserror::Error)]
#[error("The settings are not valid. {}", faults.join(" "))]
pub struct SettingsError {
    faults: Vec<String>,
}

impl SettingsError {
    /// One sentence for each fault.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

/// A faulty value as it may stand in a log: quoted, cut, and not at all where it may be a secret.
fn shown(name: &str, raw: &std::ffi::OsStr) -> String {
    const SECRET: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "CREDENTIAL", "KEY", "AUTH"];
    let Some(value) = raw.to_str() else { return String::from("not valid UTF-8") };
    let url_with_user = value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    let is_limit = name.starts_with("MAX_"); // `MAX_TOKENS` is a number, and no secret
    if url_with_user || !is_limit && SECRET.iter().any(|word| name.contains(word)) {
        return String::from("a value that is not shown here");
    }
    if value.chars().count() <= SHOWN {
        return format!("{value:?}");
    }
    format!("{:?}…", value.chars().take(SHOWN).collect::<String>())
}

/// Digits only: no sign, no space, no fraction.
fn in_range(text: &str, range: &RangeInclusive<u64>) -> Option<u64> {
    let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())??;
    range.contains(&number).then_some(number)
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>
fn is_table(text: &str) -> bool {
    let name = match text.split_once(":table/") {
        Some((arn, name)) => {
            let parts: Vec<&str> = arn.split(':').collect();
            let [_, partition, "dynamodb", region, account] = parts[..] else { return false };
            if parts[0] != "arn" || !partition.starts_with("aws") || region.is_empty() || account.len() != 12 {
                return false;
            }
            name
        }
        None => text,
    };
    (3..=255).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn is_url(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| {
        let plain =
            url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
        plain && url.has_host() && matches!(url.scheme(), "http" | "https")
    })
}

#[cfg(test)]
mod tests;
