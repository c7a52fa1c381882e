//! The wait that a backend asks for before the next request, in any spelling.
//!
//! | header | value |
//! | --- | --- |
//! | `Retry-After` | seconds, or a date (RFC 9110, sections 10.2.3 and 5.6.7); a date that has passed is no wait |
//! | `x-amz-retry-after` | milliseconds |
//!
//! Seconds and milliseconds may have decimals, and several waits may be joined by commas, as proxies join headers: the
//! standard knows neither, and both are sent.

use std::time::{Duration, SystemTime};

/// The least wait, of several the longest. `now` is when the answer came.
pub fn retry_after<'a, I>(headers: impl Fn(&'static str) -> I, now: SystemTime) -> Option<Duration>
where
    I: Iterator<Item = &'a str>,
{
    let dates = headers("retry-after").filter_map(|text| latest(text, now));
    let seconds = headers("retry-after").filter_map(|text| longest(text, 1.0));
    let milliseconds = headers("x-amz-retry-after").filter_map(|text| longest(text, 1_000.0));
    dates.chain(seconds).chain(milliseconds).max()
}

fn longest(text: &str, in_a_second: f64) -> Option<Duration> {
    text.split(',').filter_map(|part| number(part, in_a_second)).max()
}

/// Two of the forms of a date have a comma of their own, after the day of the week.
fn latest(text: &str, now: SystemTime) -> Option<Duration> {
    let parts: Vec<_> = text.split(',').collect();
    let with_comma = parts.windows(2).filter_map(|pair| date(&pair.join(","), now));
    with_comma.chain(parts.iter().filter_map(|part| date(part, now))).max()
}

/// In any of three forms, of which two are obsolete and have to be read.
fn date(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// So many parts of a second. A number beyond all bounds is the longest wait, not none.
fn number(text: &str, in_a_second: f64) -> Option<Duration> {
    let text = text.trim();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: f64 = (is_number(whole) && is_number(decimals)).then(|| text.parse().ok())??;
    Some(Duration::try_from_secs_f64(number / in_a_second).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    /// What is read of these headers on Sun, 06 Nov 1994 08:49:37 GMT.
    fn read(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        retry_after(|name| headers.iter().filter(move |header| header.0 == name).map(|header| header.1), now)
    }

    #[test]
    fn retry_after_is_read_in_every_spelling() {
        assert_eq!(read(&[("retry-after", "120")]), Some(Duration::from_mins(2)));
        assert_eq!(read(&[("retry-after", "0")]), Some(Duration::ZERO));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]), Some(Duration::from_secs(10)));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT")]), Some(Duration::ZERO));
        assert_eq!(read(&[("x-amz-retry-after", "1500")]), Some(Duration::from_millis(1500)));
        assert_eq!(read(&[("retry-after", "1"), ("x-amz-retry-after", "1500")]), Some(Duration::from_millis(1500)));
        for nonsense in ["soon", "-1", "+1", "1.", ".5", "1.5.2", "1e3", "inf", "NaN", "0x10", "1 2", "", "."] {
            assert_eq!(read(&[("retry-after", nonsense)]), None, "{nonsense:?}");
        }
    }

    #[test]
    fn decimals_and_the_older_forms_of_a_date_are_read_as_well() {
        for (header, value, millis) in [
            ("retry-after", "1.5", 1_500),
            ("retry-after", "60.0", 60_000),
            ("retry-after", " 7 ", 7_000),
            ("x-amz-retry-after", "1500.0", 1_500),
            ("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT", 10_000),
            ("retry-after", "Sun Nov  6 08:49:47 1994", 10_000),
        ] {
            let wait = read(&[(header, value)]);
            assert_eq!(wait, Some(Duration::from_millis(millis)), "{header}: {value}");
        }
    }

    #[test]
    fn of_several_waits_the_longest_counts() {
        const TWICE: &[(&str, &str)] = &[("retry-after", "1"), ("retry-after", "9"), ("retry-after", "soon")];
        assert_eq!(read(TWICE), Some(Duration::from_secs(9)));
    }

    #[test]
    fn waits_that_a_proxy_joined_by_commas_are_read_each_by_itself() {
        for (header, value, millis) in [
            ("retry-after", "1, 9", 9_000),
            ("retry-after", "9,1.5", 9_000),
            ("retry-after", "soon, 9,", 9_000),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT, 9", 10_000),
            ("retry-after", "11, Sunday, 06-Nov-94 08:49:47 GMT", 11_000),
            ("retry-after", "Sun Nov  6 08:49:47 1994, Sun, 06 Nov 1994 08:49:57 GMT", 20_000),
            ("x-amz-retry-after", "1500, 900", 1_500),
        ] {
            let wait = read(&[(header, value)]);
            assert_eq!(wait, Some(Duration::from_millis(millis)), "{header}: {value}");
        }
        assert_eq!(read(&[("retry-after", "soon, later,")]), None);
    }
}
