//! Failures in a row of one tool or of one call: how they are remembered, and when they stop the next call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PAUSE;
use crate::clock::Timestamp;

/// The most tools, and the most calls, whose failures are remembered: the latest ones.
const REMEMBERED: usize = 24;

/// Failures in a row, and when the last one was, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Streak(u32, u64);

impl Streak {
    /// How many failures.
    pub const fn length(self) -> u32 {
        self.0
    }

    /// Whether it stops the next call: as long as the pause lasts, and then until the one call that may try has ended.
    pub fn stops(self, limit: u32, is_tried: bool, now: Timestamp) -> bool {
        let is_left_alone = Timestamp::from_secs(self.1).plus(PAUSE) > now;
        self.0 >= limit && (is_left_alone || is_tried)
    }

    /// Whether it stops the next equal call, beside which so many run: below the limit no more run than may fail.
    pub fn stops_equal(self, limit: u32, beside: usize, now: Timestamp) -> bool {
        let may_have_failed = self.0.saturating_add(u32::try_from(beside).unwrap_or(u32::MAX));
        (self.0 < limit && may_have_failed >= limit) || self.stops(limit, beside > 0, now)
    }
}

/// One more failure; the oldest streaks are forgotten.
pub(super) fn lengthen(streaks: &mut BTreeMap<String, Streak>, name: &str, now: Timestamp) {
    let failures = streaks.get(name).map_or(0, |streak| streak.0);
    streaks.insert(String::from(name), Streak(failures.saturating_add(1), now.as_secs()));
    while streaks.len() > REMEMBERED {
        let oldest = streaks.iter().min_by_key(|(_, streak)| streak.1).map(|(name, _)| name.clone());
        oldest.map(|name| streaks.remove(&name));
    }
}
