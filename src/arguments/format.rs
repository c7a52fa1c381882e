//! The formats of texts that the dialect knows, and what they mean. A format outside of this table is refused at start,
//! because a rule that the model is told must also be checked.
//!
//! | format | means |
//! | --- | --- |
//! | `email` | `local@domain` in ASCII: no quotes, no comments, no display name, a domain of two labels or more |
//! | `uri` | a scheme, a colon, and the rest without spaces and control characters |
//! | `date`, `date-time` | `2026-01-31`, `2026-01-31T12:00:00Z` (RFC 3339), a day that exists |
//! | `uuid` | 32 hexadecimal digits in groups of 8, 4, 4, 4, 12 |
//! | `ipv4`, `ipv6`, `ip` | an address, without a port or a mask |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_smithy_types::date_time::{DateTime, Format};

/// What the dialect knows of a format.
pub(super) struct Known {
    /// The name in schemas.
    pub(super) name: &'static str,
    /// In words, with an article.
    pub(super) words: &'static str,
    /// A text that keeps it.
    pub(super) example: &'static str,
    /// Whether a text keeps it.
    pub(super) holds: fn(&str) -> bool,
}

/// Every format of the dialect.
pub(super) static FORMATS: [Known; 8] = [
    Known { name: "email", words: "an e-mail address", example: "user@example.com", holds: is_email },
    Known { name: "uri", words: "a URI", example: "https://example.com/", holds: is_uri },
    Known { name: "date", words: "a date as YYYY-MM-DD", example: "2026-01-31", holds: is_date },
    Known {
        name: "date-time",
        words: "a date and time with its zone (RFC 3339)",
        example: "2026-01-31T12:00:00Z",
        holds: is_date_time,
    },
    Known { name: "uuid", words: "a UUID", example: "3f2b8c1e-5a4d-4e6f-9a7b-1c2d3e4f5a6b", holds: is_uuid },
    Known {
        name: "ipv4",
        words: "an IPv4 address",
        example: "192.0.2.1",
        holds: |text| text.parse::<Ipv4Addr>().is_ok(),
    },
    Known {
        name: "ipv6",
        words: "an IPv6 address",
        example: "2001:db8::1",
        holds: |text| text.parse::<Ipv6Addr>().is_ok(),
    },
    Known { name: "ip", words: "an IP address", example: "192.0.2.1", holds: |text| text.parse::<IpAddr>().is_ok() },
];

/// The format of this name.
pub(super) fn known(name: &str) -> Option<&'static Known> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The part of RFC 5321 that mail systems take and nobody mistakes. Line breaks, spaces and a second address have no
/// place in it, so an address can become a header.
pub(crate) fn is_email(text: &str) -> bool {
    text.len() <= 254
        && text.split_once('@').is_some_and(|(local, domain)| {
            local.len() <= 64
                && local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom_byte))
                && domain.contains('.')
                && domain.split('.').all(is_label)
        })
}

fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

fn is_label(label: &str) -> bool {
    let inner_is_good = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (1..=63).contains(&label.len()) && inner_is_good && !label.starts_with('-') && !label.ends_with('-')
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte))
    })
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && is_date_time(&format!("{text}T00:00:00Z"))
}

fn is_date_time(text: &str) -> bool {
    text.is_ascii() && DateTime::from_str(text, Format::DateTimeWithOffset).is_ok()
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_an_example_that_keeps_it_and_refuses_what_could_break_out() {
        for format in &FORMATS {
            assert!((format.holds)(format.example), "{}", format.name);
            for bad in ["", " ", "someone", "\u{0}", "é", &"a".repeat(100_000)] {
                assert!(!(format.holds)(bad), "{}: {bad:?}", format.name);
            }
            for bad in ["\n", "\r\n", " ", "\u{2028}", "\u{0}"] {
                assert!(!(format.holds)(&format!("{}{bad}", format.example)), "{}: {bad:?} at the end", format.name);
                assert!(!(format.holds)(&format!("{bad}{}", format.example)), "{}: {bad:?} at the start", format.name);
            }
        }
    }

    #[test]
    fn an_email_address_is_one_plain_address() {
        for good in ["a@example.org", "first.last+tag@mail.example.co.uk", "o'neil@example.com"] {
            assert!(is_email(good), "{good}");
        }
        for bad in [
            "someone",
            "a@",
            "@example.org",
            "a@localhost",
            "a@example.org\nBcc: b@example.org",
            "a@example.org,b@example.org",
            "a@example.org b@example.org",
            "Ann <a@example.org>",
            "a@b@example.org",
            "\"a b\"@example.org",
            "a..b@example.org",
            ".a@example.org",
            "a@-example.org",
            "a@example..org",
            "a@[192.0.2.1]",
            "ä@example.org",
            "a@exämple.org",
        ] {
            assert!(!is_email(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_date_is_a_day_that_exists() {
        for good in ["2024-02-29", "2026-12-31"] {
            assert!(is_date(good), "{good}");
        }
        for bad in ["2026-02-29", "2026-13-01", "2026-1-31", "31.01.2026", "2026-01-31T00:00:00Z", "2026-01-3é"] {
            assert!(!is_date(bad), "{bad}");
        }
        assert!(is_date_time("2026-01-31T12:00:00.5+02:00"));
        for bad in ["2026-01-31T12:00:00", "2026-01-31", "2026-01-31T25:00:00Z"] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }
}
