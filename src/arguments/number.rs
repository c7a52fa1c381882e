//! Exact numbers. Nothing is rounded and nothing is guessed: a value is a whole number, or it is not.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Below this a double holds every whole number. This one itself is also what 2^53 + 1 becomes.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A float that is a whole number and surely the one that was meant, as that whole number.
pub(super) fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[allow(clippy::cast_possible_truncation)] // whole, and below 2^53
    (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64)
}

/// Whether the number can be handed on as a double without becoming another.
pub(super) fn fits_double(number: &Number) -> bool {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the very thing that is asked
    number.as_i128().is_none_or(|whole| (whole as f64) as i128 == whole)
}

/// The order of two numbers, exact also where one is a float and the other has more digits than a float.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_mixed(a, b.as_f64().unwrap_or(f64::NAN)),
        (None, Some(b)) => compare_mixed(b, a.as_f64().unwrap_or(f64::NAN)).reverse(),
        (None, None) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn compare_mixed(whole: i128, float: f64) -> Ordering {
    #[allow(clippy::cast_possible_truncation)] // saturates, and 64 bits are far from the ends of 128
    let floor = float.floor() as i128;
    whole.cmp(&floor).then(if float.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })
}

/// A JSON number as it stands in a text: digits, not yet a value.
pub(super) struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads by the grammar of JSON: no `+5`, no `.5`, no `0x10`, no `10,000`.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, rest) = digits(rest);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => Some(digits(rest)).filter(|(fraction, _)| !fraction.is_empty())?,
            None => ("", rest),
        };
        let exponent = match rest.strip_prefix(['e', 'E']) {
            Some(rest) => read_exponent(rest)?,
            None if rest.is_empty() => 0,
            None => return None,
        };
        let is_json = !whole.is_empty() && (whole == "0" || !whole.starts_with('0'));
        is_json.then_some(Self { negative, whole, fraction, exponent })
    }

    /// The whole number that it is, if it is one and 64 bits hold it. `10.0` and `1e1` are 10.
    pub(super) fn to_whole(&self) -> Option<Value> {
        let digits = [self.whole, self.fraction].concat();
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Some(Value::from(0));
        }
        let dropped = digits.len() - digits.trim_end_matches('0').len();
        let shift = self.exponent.saturating_sub(length(self.fraction)).saturating_add(length(&digits[..dropped]));
        let zeros = usize::try_from(shift).ok().filter(|zeros| significant.len().saturating_add(*zeros) <= 20)?;
        let size: i128 = format!("{significant}{}", "0".repeat(zeros)).parse().ok()?;
        let value = if self.negative { -size } else { size };
        i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).ok()
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn read_exponent(text: &str) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (size, rest) = digits(rest);
    if size.is_empty() || !rest.is_empty() {
        return None;
    }
    let size = size.parse().unwrap_or(i64::MAX); // only digits, so there are too many of them
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: impl Into<Value>) -> Number {
        value.into().as_number().expect("a number").clone()
    }

    #[test]
    fn a_text_is_read_as_exactly_its_number_or_not_at_all() {
        let read = |text: &str| Decimal::read(text).and_then(|decimal| decimal.to_whole());
        for (text, value) in [
            ("10", 10),
            ("-10", -10),
            ("10.0", 10),
            ("1e3", 1000),
            ("1.5E+3", 1500),
            ("15000e-1", 1500),
            ("0", 0),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(read(text), Some(Value::from(value)), "{text}");
        }
        assert_eq!(read("18446744073709551615"), Some(Value::from(u64::MAX)));
        for text in ["1.9", "1e-1", "18446744073709551616", "-9223372036854775809", "1e400", "1e99999999999999999999"] {
            assert_eq!(read(text), None, "{text}");
            assert!(Decimal::read(text).is_some(), "{text} is a JSON number");
        }
        for text in
            ["", "-", "+5", "05", ".5", "5.", "0x10", "1e", "1e+", "1e5x", "10,000", "1_000", "NaN", "inf", "٣", "1 2"]
        {
            assert!(Decimal::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn numbers_are_ordered_exactly_beyond_the_digits_of_a_double() {
        assert_eq!(compare(&number(9_007_199_254_740_993_i64), &number(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(compare(&number(u64::MAX), &number(18_446_744_073_709_551_616.0)), Ordering::Less);
        assert_eq!(compare(&number(1), &number(1.5)), Ordering::Less);
        assert_eq!(compare(&number(-1), &number(-1.5)), Ordering::Greater);
        assert_eq!(compare(&number(1e300), &number(u64::MAX)), Ordering::Greater);
        assert_eq!(compare(&number(2), &number(2.0)), Ordering::Equal);
    }

    #[test]
    fn only_a_float_that_is_surely_the_number_meant_becomes_whole() {
        assert_eq!(whole(&number(1500.0)), Some(1500));
        assert_eq!(whole(&number(-0.0)), Some(0));
        assert_eq!(whole(&number(9_007_199_254_740_991.0)), Some(9_007_199_254_740_991));
        for unsure in ["9007199254740993.0", "9007199254740992.0", "-9007199254740993.0", "9007199254740994.0"] {
            assert_eq!(whole(&number(serde_json::from_str::<Value>(unsure).expect("a number"))), None, "{unsure}");
        }
        assert_eq!(whole(&number(1500.5)), None);
    }
}
