//! Two clocks: the host ends the invocation at its deadline; ours ends a reserve earlier, to record the outcome and
//! answer.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time in which an attempt can be of use. A call with less left is refused at once, nothing changed.
pub const USEFUL: Duration = Duration::from_millis(50);

/// The time that is left for the answer when the outcome is recorded: to encode it, and to post it. Longer than the margin
/// of the runtime's guard, which else would answer in the place of calls that have ended well.
pub const ANSWER: Duration = Duration::from_millis(125);

/// When a call's work must be over, and when the host ends everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    work: Instant,
    host: Instant,
}

impl Deadline {
    /// The deadline of an invocation that the host ends at `host`, or of which it did not say: then `budget` from now.
    pub fn new(host: Option<Instant>, reserve: Duration, budget: Duration) -> Self {
        let now = Instant::now();
        let host = host.unwrap_or(now + budget);
        Self { work: host.checked_sub(reserve).unwrap_or(now).max(now), host: host.max(now) }
    }

    /// The time left for attempts, waits and retries. Never negative.
    pub fn time_left(&self) -> Duration {
        self.work.saturating_duration_since(Instant::now())
    }

    /// The time left to record how the call ended: all but what the answer takes.
    pub fn time_to_settle(&self) -> Duration {
        self.headroom().saturating_sub(ANSWER)
    }

    /// The time until the host ends the invocation.
    pub fn headroom(&self) -> Duration {
        self.host.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVE: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn work_ends_a_reserve_before_the_host_does() {
        let deadline = Deadline::new(Some(Instant::now() + Duration::from_secs(3)), RESERVE, Duration::ZERO);
        assert_eq!(deadline.time_left(), Duration::from_millis(2500));
        tokio::time::advance(Duration::from_millis(2600)).await;
        assert_eq!(deadline.time_left(), Duration::ZERO);
        assert_eq!(deadline.time_to_settle(), Duration::from_millis(275));
        assert_eq!(deadline.headroom(), Duration::from_millis(400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_has_passed_leaves_no_time_and_no_panic() {
        tokio::time::advance(Duration::from_secs(10)).await;
        let past = Instant::now() - Duration::from_secs(5);
        let deadline = Deadline::new(Some(past), RESERVE, Duration::from_secs(9));
        assert_eq!((deadline.time_left(), deadline.headroom()), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_deadline_the_budget_counts() {
        let deadline = Deadline::new(None, RESERVE, Duration::from_secs(9));
        assert_eq!(deadline.time_left(), Duration::from_millis(8500));
    }
}
