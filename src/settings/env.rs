//! Environment variables, read by type, with every fault collected.
//!
//! A getter always hands back a value, so that reading goes on after a fault and a person sees all faults at once. The
//! value in the place of a faulty one is never used: [`Env::finish`] stops the start.
//!
//! ```
//! use std::time::Duration;
//! use action_group::settings::Env;
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

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    ops::RangeInclusive,
    time::Duration,
};

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

    /// An e-mail address. Required.
    pub fn email(&mut self, name: &'static str) -> String {
        self.required(name, "an e-mail address, for example shop@example.com", |text| {
            let (user, host) = text.rsplit_once('@')?;
            let plain = text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | ',' | ';'));
            (plain && !user.is_empty() && host.contains('.')).then(|| text.to_owned())
        })
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
    if url_with_user || SECRET.iter().any(|word| name.contains(word)) {
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
mod tests {
    use super::*;

    fn fault_of(name: &'static str, value: &str, read: impl FnOnce(&mut Env)) -> Option<String> {
        let mut env = Env::of([(name, value)]);
        read(&mut env);
        env.finish().err().map(|error| error.faults().join("\n"))
    }

    #[test]
    fn a_number_is_digits_in_range_and_nothing_else() {
        let read = |env: &mut Env| {
            env.number("N", 5, 1..=9);
        };
        assert_eq!(fault_of("N", "9", read), None);
        for bad in ["0", "10", "-1", "+1", " 1", "1.0", "0x1", "ten", "99999999999999999999999"] {
            let fault = fault_of("N", bad, read).unwrap_or_else(|| panic!("{bad:?} was taken"));
            assert_eq!(fault, format!("N is {bad:?}, but must be a whole number from 1 to 9."));
        }
    }

    #[test]
    fn an_empty_value_counts_as_not_set() {
        let mut env = Env::of([("N", ""), ("T", ""), ("F", "")]);
        assert_eq!(env.number("N", 5, 1..=9), 5);
        assert!(env.flag("F", true));
        env.table("T");
        let error = env.finish().unwrap_err();
        assert_eq!(error.faults().len(), 1);
        assert!(error.faults()[0].starts_with("T is not set."), "{error}");
    }

    #[test]
    fn false_is_not_true_and_other_words_are_faults() {
        let mut env = Env::of([("A", "False"), ("B", "TRUE"), ("C", "no")]);
        assert!(!env.flag("A", true));
        assert!(env.flag("B", false));
        env.flag("C", false);
        assert_eq!(env.finish().unwrap_err().faults(), ["C is \"no\", but must be true or false."]);
    }

    #[test]
    fn a_word_is_found_in_any_letter_case() {
        let mut env = Env::of([("W", "Dhl"), ("X", "post")]);
        assert_eq!(env.one_of("W", "ups", &["dhl", "ups"]), "dhl");
        assert_eq!(env.one_of("X", "ups", &["dhl", "ups"]), "ups");
        assert_eq!(env.finish().unwrap_err().faults(), ["X is \"post\", but must be one of dhl, ups."]);
    }

    #[test]
    fn a_table_is_a_name_or_an_arn() {
        let read = |env: &mut Env| {
            env.table("T");
        };
        for good in ["orders", "a.b-c_1", "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"] {
            assert_eq!(fault_of("T", good, read), None, "{good}");
        }
        for bad in [
            "ab",
            "with space",
            "orders\n",
            "arn:aws:s3:::orders",
            "arn:aws:dynamodb:eu-west-1:123:table/orders",
            "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/index/x",
            &"x".repeat(256),
        ] {
            assert!(fault_of("T", bad, read).is_some(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_url_is_absolute_and_holds_neither_a_password_nor_a_query() {
        let read = |env: &mut Env| {
            env.url("U");
        };
        assert_eq!(fault_of("U", "http://127.0.0.1:9000/v1", read), None);
        for bad in [
            "api.example.com",
            "/v1",
            "ftp://example.com",
            "http://",
            "localhost:80",
            "https://a.b/?key=c",
            "https://a.b/#c",
        ] {
            assert!(fault_of("U", bad, read).is_some(), "{bad:?} was taken");
        }
        let fault = fault_of("U", "https://me:hunter2@example.com", read).unwrap();
        assert!(fault.contains("not shown") && !fault.contains("hunter2"), "{fault}");
    }

    #[test]
    fn an_email_is_one_plain_address() {
        let read = |env: &mut Env| {
            env.email("M");
        };
        assert_eq!(fault_of("M", "shop@example.com", read), None);
        for bad in ["shop", "@example.com", "shop@localhost", "Shop <shop@example.com>", "a@b.c,d@e.f", "a b@c.d"] {
            assert!(fault_of("M", bad, read).is_some(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_secret_is_never_shown_and_a_long_value_is_cut() {
        let read_secret = |env: &mut Env| {
            env.number("CARRIER_API_KEY", 1, 1..=1);
        };
        let fault = fault_of("CARRIER_API_KEY", "hunter2", read_secret).unwrap();
        assert!(!fault.contains("hunter2"), "{fault}");
        let read_long = |env: &mut Env| {
            env.number("N", 1, 1..=1);
        };
        let fault = fault_of("N", &"é".repeat(5_000), read_long).unwrap();
        assert!(fault.chars().count() < 200, "{fault}");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_a_fault() {
        use std::os::unix::ffi::OsStringExt;
        let mut env = Env::of([("N", OsString::from_vec(vec![0xff, 0xfe]))]);
        env.number("N", 1, 1..=1);
        let error = env.finish().unwrap_err();
        assert_eq!(error.faults(), ["N is not valid UTF-8, but must be a whole number from 1 to 1."]);
    }

    #[test]
    fn all_faults_come_out_together_in_the_order_of_reading() {
        let mut env = Env::of([("B", "x")]);
        env.table("A");
        env.number("B", 1, 1..=1);
        env.fault("C and D contradict each other.");
        let faults = env.finish().unwrap_err().faults().to_vec();
        assert_eq!(faults.len(), 3);
        assert!(faults[0].starts_with('A') && faults[1].starts_with('B') && faults[2].starts_with('C'));
    }
}
