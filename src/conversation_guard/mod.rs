//! Limits of a conversation, for agents whose loops others run: a budget of calls, and a stop to calls that keep failing.
//!
//! A model may call a tool without end, or make the same failing call again and again; the program around it may have no
//! limit of its own. Each limit is off unless it is set:
//!
//! | limit | what is stopped | until |
//! | --- | --- | --- |
//! | [`calls`](ConversationLimits::calls) | every further call | the conversation ends |
//! | [`consecutive_failures`](ConversationLimits::consecutive_failures) | calls of the tool, a circuit breaker's | [`PAUSE`] after its last failure, then one call may try |
//! | [`identical_failures`](ConversationLimits::identical_failures) | the very same call: tool and canonical arguments | the same |
//!
//! A stopped call is not run, and is answered with a sentence that says why and what to do instead. Only failures count for
//! the last two, so that to poll with success is legal; to ask again for what waits or is in progress is no failure.
//!
//! The counts are kept where the door says ([`Memory`](crate::door::Memory)): in the answer, which comes back with the next event, or in one
//! item of the table of records. An event without a conversation has no limits.
//!
//! | file | its one idea |
//! | --- | --- |
//! | `counts` | what was counted, and what it stops: pure |
//! | `streak` | failures in a row, and when they stop the next call: pure |
//! | `words` | what a stopped call is told |
//! | `item` | the counts in the table of records |
//! | `watch` | one invocation: counts in, calls stopped, counts out |

mod counts;
mod item;
mod streak;
mod watch;
mod words;

use std::time::Duration;

pub use self::counts::{Counts, Failures, Tally};
pub(crate) use self::watch::Watch;

/// How long a tool or a call that keeps failing is left alone.
pub const PAUSE: Duration = Duration::from_mins(5);

/// The limits of a conversation. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationLimits {
    /// The most calls of one conversation.
    pub calls: Option<u32>,
    /// After how many failures in a row a tool is left alone.
    pub consecutive_failures: Option<u32>,
    /// After how many failures the same call is not made again.
    pub identical_failures: Option<u32>,
}

impl ConversationLimits {
    /// Whether there is no limit at all.
    pub const fn are_off(&self) -> bool {
        self.calls.is_none() && self.consecutive_failures.is_none() && self.identical_failures.is_none()
    }
}
