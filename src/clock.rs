//! The wall clock, as records and log lines need it, and one that tests can stop.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_smithy_types::{DateTime, date_time::Format};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

/// A moment, in milliseconds since 1970. On the wire: `lease_until` in milliseconds, `expires_at` in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// From seconds since 1970.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since 1970, those that are over: what an `expires_at` is compared with.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Whole seconds since 1970, rounded up, so that nothing expires early.
    pub const fn as_secs_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// This much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// As a person reads it, and a program too: `2026-11-30T09:48:21Z`, in UTC (RFC 3339).
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.as_secs()).unwrap_or(i64::MAX);
        match DateTime::from_secs(seconds).fmt(Format::DateTime) {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "{seconds} s since 1970"), // beyond the year 9999
        }
    }
}

/// The same text.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        // Beyond what the system can tell, which no clock shows, the beginning of time is as good as any.
        UNIX_EPOCH.checked_add(Duration::from_millis(time.0)).unwrap_or(UNIX_EPOCH)
    }
}

/// Where the time of day comes from.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    System,
    Tokio { started: Instant, at: Timestamp },
}

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `at` now and goes with tokio's time, so that a test can stop it and move it.
    pub fn following_tokio(at: Timestamp) -> Self {
        Self(Source::Tokio { started: Instant::now(), at })
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        match self.0 {
            Source::System => SystemTime::now().into(),
            Source::Tokio { started, at } => at.plus(started.elapsed()),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
