//! Whether to try again, and after how long. Pure: the random number and the time left are arguments.
//!
//! Why one layer? Three tries here, three in a client and three in the caller are twenty-seven requests to a backend that
//! is already down. What a client has retried is therefore not retried here, and a wait that leaves no time for another
//! attempt is not begun.

use std::time::Duration;

use super::{attempt::Ended, deadline::USEFUL};
use crate::tool::{Definition, Effect, Phase, ToolErrorKind};

/// How often one call asks the backend of its tool: attempts, the first included, and the question what became of an
/// effect. It holds also where a call goes on for another reason than a failure: a person has just approved it, the record
/// of an earlier call was in the way.
pub const MAX_REQUESTS: u32 = 3;
const BASE: Duration = Duration::from_millis(200);
const CAP: Duration = Duration::from_secs(5);
/// The least wait where a backend says when: "at once" (0) is said by backends that are busy all the same.
const LITTLE: Duration = Duration::from_millis(50);

/// The longest that all attempts of a call to this tool and the waits between them take. The commit of an atomic effect has
/// a timeout of its own, once: a commit that takes all its time is not sent again, and a conflict is told at once.
pub fn longest(tool: &Definition) -> Duration {
    let waits: Duration = (1..MAX_REQUESTS).map(ceiling).sum();
    let timeouts = if tool.effect == Effect::Atomic { MAX_REQUESTS + 1 } else { MAX_REQUESTS };
    tool.timeout.saturating_mul(timeouts).saturating_add(waits)
}

/// The wait before the attempt after `attempt`: full jitter, `random` in `[0, 1)`, and at least what the backend asked.
pub fn backoff(attempt: u32, random: f64, retry_after: Option<Duration>) -> Duration {
    let jittered = ceiling(attempt).mul_f64(random);
    retry_after.map_or(jittered, |least| least.saturating_add(jittered).max(LITTLE))
}

fn ceiling(attempt: u32) -> Duration {
    BASE.saturating_mul(1 << (attempt - 1).min(16)).min(CAP)
}

/// The wait before another attempt, after so many requests; `None` if there must not, or can not, be one.
pub fn decide(ended: &Ended, effect: Effect, requests: u32, time_left: Duration, random: f64) -> Option<Duration> {
    if requests >= MAX_REQUESTS || !is_transient(ended) || !is_safe(ended, effect) {
        return None;
    }
    let wait = backoff(requests, random, retry_after(ended));
    (wait.saturating_add(USEFUL) <= time_left).then_some(wait)
}

/// Whether the same attempt may end otherwise a little later, and nobody has tried that yet.
fn is_transient(ended: &Ended) -> bool {
    match ended {
        Ended::Failed(error) => error.kind() == ToolErrorKind::Transient && !error.already_retried,
        Ended::TimedOut | Ended::Conflict => true,
        // The store's client has sent a commit again already.
        Ended::CommitLost
        | Ended::StoreRefused
        | Ended::NoTime
        | Ended::Spent
        | Ended::Stopped(_)
        | Ended::Panicked => false,
    }
}

/// Whether the attempt can be repeated without doing twice what it may have done.
fn is_safe(ended: &Ended, effect: Effect) -> bool {
    effect != Effect::Once || ended.phase() == Phase::NothingSent
}

fn retry_after(ended: &Ended) -> Option<Duration> {
    match ended {
        Ended::Failed(error) => error.retry_after,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolError;

    const PLENTY: Duration = Duration::from_mins(1);

    fn again(ended: &Ended, effect: Effect) -> bool {
        decide(ended, effect, 1, PLENTY, 0.5).is_some()
    }

    #[test]
    fn once_is_repeated_only_if_surely_nothing_was_sent() {
        let throttled = Ended::Failed(ToolError::transient("Busy."));
        let lost = Ended::Failed(ToolError::no_answer("No answer."));
        assert!(again(&throttled, Effect::Once));
        assert!(!again(&lost, Effect::Once));
        assert!(!again(&Ended::TimedOut, Effect::Once));
        for effect in [Effect::ReadOnly, Effect::Keyed, Effect::Atomic] {
            assert!(again(&throttled, effect) && again(&lost, effect) && again(&Ended::TimedOut, effect));
        }
    }

    #[test]
    fn what_a_client_has_retried_is_not_retried_again() {
        assert!(!again(&Ended::Failed(ToolError::transient("Busy.").already_retried()), Effect::ReadOnly));
    }

    #[test]
    fn faults_of_the_model_and_of_ours_are_not_retried() {
        for error in [
            ToolError::invalid_input("x"),
            ToolError::not_found("x"),
            ToolError::rejected("x"),
            ToolError::denied("x"),
            ToolError::internal("x"),
        ] {
            assert!(!again(&Ended::Failed(error), Effect::ReadOnly));
        }
        assert!(!again(&Ended::Panicked, Effect::ReadOnly));
    }

    #[test]
    fn a_commit_is_tried_again_after_a_conflict_but_not_where_the_client_has_retried() {
        assert!(again(&Ended::Conflict, Effect::Atomic) && !again(&Ended::CommitLost, Effect::Atomic));
        assert!(!again(&Ended::StoreRefused, Effect::Atomic) && !again(&Ended::NoTime, Effect::Atomic));
    }

    #[test]
    fn there_are_three_attempts_in_all() {
        let busy = Ended::Failed(ToolError::transient("Busy."));
        assert!(decide(&busy, Effect::ReadOnly, 2, PLENTY, 0.0).is_some());
        assert!(decide(&busy, Effect::ReadOnly, 3, PLENTY, 0.0).is_none());
    }

    #[test]
    fn a_wait_that_leaves_no_time_for_an_attempt_is_not_begun() {
        let busy = Ended::Failed(ToolError::transient("Busy.").retry_after(Duration::from_secs(2)));
        assert!(decide(&busy, Effect::ReadOnly, 1, Duration::from_secs(2), 0.0).is_none());
        assert_eq!(decide(&busy, Effect::ReadOnly, 1, Duration::from_secs(3), 0.0), Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_wait_beyond_all_time_is_not_begun() {
        let busy = Ended::Failed(ToolError::transient("Busy.").retry_after(Duration::MAX));
        assert_eq!(decide(&busy, Effect::ReadOnly, 1, PLENTY, 0.5), None);
    }

    #[test]
    fn a_wait_of_nothing_is_a_little_wait() {
        assert_eq!(backoff(1, 0.0, Some(Duration::ZERO)), LITTLE);
        assert_eq!(backoff(1, 0.5, Some(Duration::ZERO)), BASE / 2);
    }

    #[test]
    fn the_longest_call_is_three_timeouts_and_two_waits_and_one_commit_of_an_atomic_effect() {
        for (effect, millis) in [(Effect::ReadOnly, 15_600), (Effect::Once, 15_600), (Effect::Atomic, 20_600)] {
            let tool = Definition { timeout: Duration::from_secs(5), ..Definition::sample("tool", effect) };
            assert_eq!(longest(&tool), Duration::from_millis(millis), "{effect:?}");
        }
    }

    #[test]
    fn the_jitter_is_full_and_capped() {
        assert_eq!(backoff(1, 0.0, None), Duration::ZERO);
        assert_eq!(backoff(1, 1.0, None), BASE);
        assert_eq!(backoff(2, 0.5, None), BASE);
        assert_eq!(backoff(40, 1.0, None), CAP);
    }
}
