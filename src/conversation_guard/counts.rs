//! What was counted in a conversation, and what it stops. No clock and no store in here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ConversationLimits,
    streak::{Streak, lengthen},
    words::Stop,
};
use crate::{
    call::Call,
    clock::Timestamp,
    idempotency::{canonical, digest_of},
    outcome::{Failure, Outcome},
};

/// The longest text of counts, in bytes. One that is longer is none of ours.
const LONGEST: usize = 4_000;

/// The counts of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// All calls, those that were stopped included.
    pub calls: u32,
    /// The failures.
    #[serde(flatten)]
    pub failures: Failures,
}

/// The failures of a conversation, by tool and by call; a success takes its own out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failures {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<String, Streak>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    same: BTreeMap<String, Streak>,
}

/// What counts of one call: its tool, and a digest of the whole of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    tool: Option<String>,
    digest: String,
}

impl Tally {
    /// Of a call to a tool that `exists`, or to none. What could not be read of the arguments counts as well.
    pub fn of(call: &Call, exists: bool) -> Self {
        let arguments = serde_json::Value::Object(call.arguments.values.clone());
        let faults: Vec<_> = call.arguments.faults.iter().map(ToString::to_string).collect();
        let digest = digest_of([call.tool.as_bytes(), &canonical(&arguments), faults.join("\n").as_bytes()]);
        Self { tool: exists.then(|| call.tool.clone()), digest: digest[..16].to_owned() }
    }
}

impl Failures {
    /// The failures in a text that [`write`](Self::write) has made; none where it is something else.
    pub fn read(text: &str) -> Self {
        read(text)
    }

    /// The failures as a short text.
    pub fn write(&self) -> String {
        write(self)
    }
}

fn read<T: Default + serde::de::DeserializeOwned>(text: &str) -> T {
    Some(text).filter(|text| text.len() <= LONGEST).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn write(counts: &impl Serialize) -> String {
    serde_json::to_string(counts).unwrap_or_default() // numbers and texts can always be written
}

impl Counts {
    /// The counts in a text that [`write`](Self::write) has made; none where it is something else.
    pub fn read(text: &str) -> Self {
        read(text)
    }

    /// The counts as a short text.
    pub fn write(&self) -> String {
        write(self)
    }

    /// Counts a call, and says why it must not run. `beside` are the calls of the same event that will: nobody knows yet how
    /// they end, so that of equal calls no more run than may fail, and a trial is one call. What has never failed may be asked
    /// for as often as one likes.
    pub fn admit(
        &mut self,
        limits: &ConversationLimits,
        tally: &Tally,
        beside: &[Tally],
        now: Timestamp,
    ) -> Option<Failure> {
        self.calls = self.calls.saturating_add(1);
        self.stop(limits, tally, beside, now).map(Stop::failure)
    }

    fn stop(&self, limits: &ConversationLimits, tally: &Tally, beside: &[Tally], now: Timestamp) -> Option<Stop> {
        if let Some(most) = limits.calls.filter(|most| self.calls > *most) {
            return Some(Stop::Calls(most));
        }
        let equal = beside.iter().filter(|other| *other == tally).count();
        let same = limits.identical_failures.zip(self.failures.same.get(&tally.digest));
        if let Some((_, streak)) = same.filter(|(limit, streak)| streak.stops_equal(*limit, equal, now)) {
            return Some(Stop::Same(streak.length()));
        }
        let is_tried = beside.iter().any(|other| other.tool == tally.tool);
        let of_tool = limits.consecutive_failures.zip(self.failures.tools.get(tally.tool.as_ref()?));
        of_tool
            .filter(|(limit, streak)| streak.stops(*limit, is_tried, now))
            .map(|(_, streak)| Stop::Tool(streak.length()))
    }

    /// Counts how a call has ended that was not stopped here. A success ends its streaks; what waits for a person or is
    /// in progress is to be asked for again, and is neither.
    pub fn note(&mut self, limits: &ConversationLimits, tally: &Tally, outcome: &Outcome, now: Timestamp) {
        let kept = [
            limits.consecutive_failures.and(tally.tool.as_ref()).map(|tool| (&mut self.failures.tools, tool)),
            limits.identical_failures.map(|_| (&mut self.failures.same, &tally.digest)),
        ];
        for (streaks, name) in kept.into_iter().flatten() {
            match outcome.failure().map(Failure::waits) {
                None => drop(streaks.remove(name)),
                Some(true) => {}
                Some(false) => lengthen(streaks, name, now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::conversation_guard::PAUSE;
    use crate::{call::Arguments, outcome::FailureKind};

    const NOW: Timestamp = Timestamp::from_secs(1_764_468_000);
    const LIMITS: ConversationLimits =
        ConversationLimits { calls: Some(100), consecutive_failures: Some(3), identical_failures: Some(2) };

    fn tally(tool: &str, arguments: Value) -> Tally {
        let call = Call { tool: tool.into(), arguments: Arguments::from_json(arguments), ..Call::default() };
        Tally::of(&call, true)
    }

    fn failed(kind: FailureKind) -> Outcome {
        Outcome::Failure(Failure::new(kind, "It failed."))
    }

    fn done() -> Outcome {
        Outcome::Success { result: json!(1), replayed: false }
    }

    /// The counts after calls that end so, each of which is admitted.
    fn after(limits: &ConversationLimits, calls: impl IntoIterator<Item = (Tally, Outcome)>) -> Counts {
        let mut counts = Counts::default();
        for (tally, outcome) in calls {
            assert_eq!(counts.admit(limits, &tally, &[], NOW), None);
            counts.note(limits, &tally, &outcome, NOW);
        }
        counts
    }

    fn stopped(counts: &Counts, limits: &ConversationLimits, tally: &Tally, now: Timestamp) -> Option<String> {
        counts.clone().admit(limits, tally, &[], now).map(|failure| {
            assert_eq!((failure.kind(), failure.retryable()), (FailureKind::Rejected, false));
            assert!(failure.message().ends_with("This call changed nothing."), "{}", failure.message());
            failure.message()
        })
    }

    #[test]
    fn a_conversation_has_no_more_calls_than_its_budget() {
        let limits = ConversationLimits { calls: Some(2), ..ConversationLimits::default() };
        let mut counts = after(&limits, [(tally("a", json!({})), done()), (tally("b", json!({})), done())]);
        for _ in 0..3 {
            let failure = counts.admit(&limits, &tally("c", json!({})), &[], NOW).expect("a stop");
            assert!(failure.message().contains("has had 2 tool calls"), "{}", failure.message());
        }
        let later = NOW.plus(PAUSE * 1_000);
        assert!(stopped(&counts, &limits, &tally("c", json!({})), later).is_some(), "time is no help");
    }

    #[test]
    fn the_same_failing_call_is_stopped_however_its_arguments_are_spelt_and_another_one_is_not() {
        let call = |text: &str| tally("a", serde_json::from_str(text).expect("JSON"));
        let fails = |text: &str| (call(text), failed(FailureKind::NotFound));
        let counts = after(&LIMITS, [fails(r#"{"x":1,"y":"é"}"#), fails(r#"{"y":"\u00e9","x":1.0}"#)]);
        let text = stopped(&counts, &LIMITS, &call(r#"{"y":"é","x":1e0}"#), NOW).expect("a stop");
        assert!(text.contains("with the same arguments, has failed 2 times"), "{text}");
        assert_eq!(stopped(&counts, &LIMITS, &call(r#"{"x":2,"y":"é"}"#), NOW), None);
        assert_eq!(stopped(&counts, &LIMITS, &tally("b", json!({ "x": 1, "y": "é" })), NOW), None);
    }

    #[test]
    fn a_tool_that_fails_in_a_row_is_left_alone_until_the_pause_is_over_and_then_tried_once() {
        let call = |n: u64| tally("a", json!({ "n": n }));
        let mut counts = after(&LIMITS, (0..3).map(|n| (call(n), failed(FailureKind::Transient))));
        let text = stopped(&counts, &LIMITS, &call(9), NOW).expect("a stop");
        assert!(text.contains("last 3 calls of this tool"), "{text}");
        assert_eq!(stopped(&counts, &LIMITS, &tally("b", json!({})), NOW), None, "another tool");
        let later = NOW.plus(PAUSE);
        assert_eq!(counts.admit(&LIMITS, &call(9), &[], later), None, "the trial");
        counts.note(&LIMITS, &call(9), &failed(FailureKind::Transient), later);
        assert!(stopped(&counts, &LIMITS, &call(10), later).is_some(), "the trial has failed");
        counts.note(&LIMITS, &call(11), &done(), later);
        assert_eq!(stopped(&counts, &LIMITS, &call(10), later), None);
    }

    #[test]
    fn of_equal_calls_of_one_event_no_more_run_than_may_fail() {
        let (call, other) = (tally("a", json!({ "n": 1 })), tally("a", json!({ "n": 2 })));
        let mut counts = after(&LIMITS, [(call.clone(), failed(FailureKind::NotFound))]);
        assert_eq!(counts.admit(&LIMITS, &call, &[], NOW), None);
        assert_eq!(counts.admit(&LIMITS, &call, std::slice::from_ref(&other), NOW), None);
        let failure = counts.admit(&LIMITS, &call, std::slice::from_ref(&call), NOW).expect("a stop");
        assert!(failure.message().contains("has failed once in this conversation"), "{}", failure.message());
        assert_eq!(counts.admit(&LIMITS, &other, &[other.clone(), other.clone()], NOW), None, "it has never failed");
    }

    #[test]
    fn a_trial_is_one_call_of_an_event() {
        let call = |n: u64| tally("a", json!({ "n": n }));
        let mut counts = after(&LIMITS, (0..3).map(|n| (call(n), failed(FailureKind::Transient))));
        let later = NOW.plus(PAUSE);
        assert_eq!(counts.admit(&LIMITS, &call(9), &[tally("b", json!({}))], later), None, "the trial");
        assert!(counts.admit(&LIMITS, &call(10), &[call(9)], later).is_some());
        let mut same = after(&LIMITS, vec![(call(1), failed(FailureKind::Transient)); 2]);
        assert_eq!(same.admit(&LIMITS, &call(1), &[], later), None, "the trial");
        assert!(same.admit(&LIMITS, &call(1), &[call(1)], later).is_some());
    }

    #[test]
    fn to_ask_again_for_what_is_done_waits_or_runs_is_no_failure_and_a_success_ends_a_streak() {
        let same = || tally("a", json!({}));
        let waits = [FailureKind::ApprovalRequired, FailureKind::InProgress].map(failed);
        let in_doubt = Outcome::Failure(Failure::new(FailureKind::OutcomeUnknown, "It waits.").that_waits());
        for outcome in waits.into_iter().chain([in_doubt, done()]) {
            let counts = after(&LIMITS, vec![(same(), outcome); 20]);
            assert_eq!(counts.failures, Failures::default());
        }
        let fails = || (same(), failed(FailureKind::Timeout));
        after(&LIMITS, [fails(), (same(), done()), fails(), (same(), done()), fails()]);
    }

    #[test]
    fn every_other_kind_of_failure_counts() {
        for kind in FailureKind::ALL {
            let counts = after(&LIMITS, [(tally("a", json!({})), failed(kind))]);
            let is_counted = counts.failures != Failures::default();
            let waits = [FailureKind::ApprovalRequired, FailureKind::InProgress].contains(&kind);
            assert_eq!(is_counted, !waits, "{kind}");
        }
    }

    #[test]
    fn a_name_that_is_no_tools_stops_no_other_name() {
        let unknown = |name: &str| Tally::of(&Call { tool: name.into(), ..Call::default() }, false);
        let fails = |name: &str| (unknown(name), failed(FailureKind::UnknownTool));
        let counts = after(&LIMITS, [fails("x"), fails("y"), fails("z"), fails("x")]);
        assert!(stopped(&counts, &LIMITS, &unknown("x"), NOW).is_some());
        assert_eq!(stopped(&counts, &LIMITS, &unknown("w"), NOW), None);
    }

    #[test]
    fn a_limit_that_is_off_counts_and_stops_nothing() {
        let counts =
            after(&ConversationLimits::default(), vec![(tally("a", json!({})), failed(FailureKind::Internal)); 50]);
        assert_eq!(counts.failures, Failures::default());
        assert!(ConversationLimits::default().are_off() && !LIMITS.are_off());
    }

    #[test]
    fn the_counts_stay_small_and_the_latest_are_kept() {
        let mut counts = Counts::default();
        for n in 0..500_u64 {
            let tally = tally(&format!("{n:0>40}"), json!({ "n": n }));
            counts.note(&LIMITS, &tally, &failed(FailureKind::Internal), Timestamp::from_secs(n));
        }
        counts.calls = u32::MAX;
        let text = counts.write();
        assert!(text.len() < LONGEST, "{}", text.len());
        assert_eq!(Counts::read(&text), counts);
        assert!(text.contains(&format!("{:0>40}", 499)) && !text.contains(&format!("{:0>40}", 1)));
    }

    #[test]
    fn a_text_that_is_none_of_ours_is_no_counts() {
        for text in ["", "null", "7", "{}", "[]", r#"{"calls":-1}"#, r#"{"calls":"many"}"#, &"[".repeat(9_000)] {
            assert_eq!(Counts::read(text), Counts::default(), "{text}");
        }
        assert_eq!(Counts::read(r#"{"calls":7}"#).calls, 7);
    }
}
