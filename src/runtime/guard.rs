//! The last guard of an invocation: whatever the handler does, something is answered before the deadline.
//!
//! The handler answers for panicking and hanging tools by itself, call by call. This guard is for a fault of the handler:
//! the caller then gets one error for the whole invocation, which does not say that nothing was done.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

use super::{Answer, FunctionError};

/// The time that posting an error takes, generously. Whoever serves invocations must have answered before.
pub(crate) const MARGIN: Duration = Duration::from_millis(75);
/// The longest time that Lambda gives an invocation.
pub(crate) const LONGEST: Duration = Duration::from_mins(15);
/// Even an invocation that comes too late gets a moment to say so itself.
const LEAST: Duration = Duration::from_millis(100);

/// When the handler has to have answered. An invocation without a deadline has the longest time there is.
pub(super) fn ends(deadline: Option<Instant>, now: Instant) -> Instant {
    let latest = match deadline {
        Some(deadline) => deadline.checked_sub(MARGIN).unwrap_or(now),
        None => now + LONGEST,
    };
    latest.max(now + LEAST)
}

/// Runs `serving` on a thread of `work`, and answers for it if it panics or is not done by `ends`.
pub(super) async fn answer(
    work: &Handle,
    ends: Instant,
    request_id: &str,
    serving: impl Future<Output = Answer> + Send + 'static,
) -> Answer {
    let mut task = work.spawn(serving);
    match timeout_at(ends, &mut task).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => {
            tracing::error!(request_id, "The handler panicked.");
            Err(internal(
                "The function failed by a fault of its own. It is not known whether anything was changed. \
                 The log says where, under the id of this request.",
            ))
        }
        Err(_) => {
            task.abort();
            tracing::error!(request_id, "The handler did not answer in time, and was stopped.");
            Err(internal(
                "The function did not answer in time, and was stopped. It is not known whether anything was changed.",
            ))
        }
    }
}

/// A fault of ours, in one or two flat sentences.
pub(super) fn internal(sentences: &str) -> FunctionError {
    FunctionError::new("Internal", sentences)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use serde_json::json;

    use super::*;

    /// The time that the handler has of ten seconds.
    const TIME: Duration = Duration::from_millis(9_925);

    async fn guarded(serving: impl Future<Output = Answer> + Send + 'static) -> Answer {
        let deadline = Instant::now() + Duration::from_secs(10);
        answer(&Handle::current(), ends(Some(deadline), Instant::now()), "id", serving).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_goes_through_unchanged() {
        assert_eq!(guarded(async { Ok(json!({"a": 1})) }).await, Ok(json!({"a": 1})));
        let refused = Err(internal("x"));
        assert_eq!(guarded(std::future::ready(refused.clone())).await, refused);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_becomes_a_flat_error_without_its_text() {
        let error = guarded(async { panic!("SECRET-1") }).await.unwrap_err();
        assert_eq!(error.error_type, "Internal");
        assert!(!error.error_message.contains("SECRET"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hang_is_answered_before_the_deadline_and_dropped() {
        struct Flag(Arc<AtomicBool>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Flag(Arc::clone(&dropped));
        let start = Instant::now();
        let error = guarded(async move {
            let _flag = flag;
            std::future::pending().await
        })
        .await
        .unwrap_err();
        assert_eq!(start.elapsed(), TIME);
        assert!(error.error_message.contains("not known whether anything was changed"), "{error}");
        tokio::task::yield_now().await;
        assert!(dropped.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_at_the_last_moment_still_counts() {
        let late = TIME.saturating_sub(Duration::from_millis(1));
        let answer = guarded(async move {
            tokio::time::sleep(late).await;
            Ok(json!(1))
        });
        assert_eq!(answer.await, Ok(json!(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_passed_deadline_leaves_a_moment_and_an_unknown_one_the_longest_budget() {
        let now = Instant::now();
        assert_eq!(ends(Some(now), now), now + LEAST);
        assert_eq!(ends(None, now), now + LONGEST);
        assert_eq!(ends(Some(now + Duration::from_secs(10)), now), now + TIME);
    }
}
