//! Random models, outcomes, limits, kills, interruptions, persons: whatever comes, the loop ends, no limit is passed, every
//! request is one that Bedrock takes, and no call is handed out again whose end was saved.
//!
//! The world keeps what a real one keeps: the last saved state, and for each key of an effect that it was made. A kill
//! throws away all but that.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use action_group::{
    agent::{
        limits::{Limits, TimeLeft},
        model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
        run::{AgentRun, Next, ToolCall},
        stop::Stop,
    },
    call::Standing,
    outcome::{Changed, Failure, FailureKind, Outcome},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    chance::{Chance, chance, limits},
    legal,
    machine::tools,
};

/// What outlives a process.
struct World {
    saved: String,
    /// The effects that were made, by what their key is made of.
    effects: BTreeSet<String>,
    /// The calls that were handed out, by ordinal: the same one each time.
    handed_out: BTreeMap<usize, ToolCall>,
    /// The calls, by ordinal, that have a result in what is saved.
    settled: BTreeSet<usize>,
    /// Those that the last action has given a result.
    ended: Vec<usize>,
    limits: Limits,
    /// Of the turn.
    requests: u32,
    /// Of this driver, in a row.
    failures: u32,
    ran: Vec<usize>,
    told_tokens: u64,
    largest_reply: u64,
    /// All requests to the model.
    asked: Vec<ModelRequest>,
}

impl World {
    fn save(&mut self, run: &AgentRun) {
        self.saved = serde_json::to_string(run).expect("JSON");
    }

    fn load(&mut self) -> AgentRun {
        self.failures = 0;
        let mut run: AgentRun = serde_json::from_str(&self.saved).expect("a run");
        run.resumed();
        run
    }

    /// A call as a pipeline with records treats it: what was made is not made again.
    fn run(&mut self, call: &ToolCall, chance: u8) -> Outcome {
        let before = self.handed_out.entry(call.ordinal).or_insert_with(|| call.clone());
        assert!(before == call, "handed out again as another call");
        assert!(!self.settled.contains(&call.ordinal), "handed out again after its end");
        if call.tool == "look" {
            return if chance < 3 { failed(FailureKind::NotFound) } else { success(false) };
        }
        if !matches!(call.tool.as_str(), "pay" | "mail") {
            return failed(FailureKind::UnknownTool);
        }
        let key = format!("{} {}", call.tool, call.input);
        match (self.effects.contains(&key), chance) {
            (true, _) => success(true),
            (false, 0) => failed(FailureKind::Rejected),
            (false, 1) => {
                Outcome::Failure(Failure::new(FailureKind::OutcomeUnknown, "?").with_changed(Changed::Unknown, "?"))
            }
            (false, 2) => Outcome::Failure(Failure::new(FailureKind::ApprovalRequired, "It waits.").awaiting(&"pay#2")),
            (false, 3) => {
                let failure = Failure::new(FailureKind::OutcomeUnknown, "?").with_changed(Changed::Unknown, "?");
                Outcome::Failure(failure.that_waits().awaiting(&"pay#3"))
            }
            (false, _) => {
                self.effects.insert(key);
                success(false)
            }
        }
    }
}

fn failed(kind: FailureKind) -> Outcome {
    Outcome::Failure(Failure::new(kind, "It did not work."))
}

fn success(replayed: bool) -> Outcome {
    Outcome::Success { result: json!([1]), replayed }
}

fn standing(chance: u8) -> Standing {
    match chance {
        0 => Standing::Waits(String::from("pay#1")),
        1 => Standing::Denied,
        2 => Standing::Unavailable,
        3 => Standing::Done(json!(1)),
        4 => Standing::Unknown,
        5 => Standing::WaitsInDoubt(String::from("pay#1")),
        6 => Standing::Refused(Failure::new(FailureKind::InvalidInput, "It is not taken.")),
        _ => Standing::Clear,
    }
}

fn reply(chance: &Chance) -> ModelReply {
    let mut body = json!({
        "output": {"message": {"role": "assistant", "content": chance.reply}},
        "stopReason": chance.stop_reason,
    });
    if let Some((input, output)) = chance.usage {
        body["usage"] = json!({"inputTokens": input, "outputTokens": output, "cacheReadInputTokens": 1});
    }
    ModelReply::from_converse(&body)
}

/// One action of a driver. True at the end of the turn.
fn act(run: &mut AgentRun, world: &mut World, chance: &Chance) -> bool {
    let time = TimeLeft(if chance.time == 0 { Duration::ZERO } else { Duration::from_secs(chance.time) });
    let outcome = |index: usize| chance.outcomes.get(index).copied().unwrap_or(7);
    match run.next(time) {
        Next::CallModel(request) => {
            let shown = json!(request);
            assert_eq!(legal::history::faults(&shown), [""; 0], "{shown}");
            assert!(world.told_tokens < world.limits.max_tokens, "a request without a token left");
            world.asked.push(request);
            if chance.fails == 0 {
                let kind =
                    if chance.kill.is_multiple_of(2) { ModelFailureKind::Model } else { ModelFailureKind::Throttled };
                run.model_failed(ModelFailure { kind, sentence: String::from("No.") });
                world.failures += 1;
                assert!(world.failures <= 2, "a driver asks twice at most for one answer");
                return false;
            }
            (world.requests, world.failures) = (world.requests + 1, 0);
            assert!(world.requests <= world.limits.max_steps + 1, "more than the steps and the closing request");
            if let Some((input, output)) = chance.usage {
                world.told_tokens += input + output + 1;
                world.largest_reply = world.largest_reply.max(input + output + 1);
            }
            run.model_replied(reply(chance));
        }
        Next::AskApproval(calls) | Next::ReadRecords(calls) => {
            let stands = |(index, call): (usize, &ToolCall)| (call.ordinal, standing(outcome(index)));
            run.records_read(calls.iter().enumerate().map(stands).collect());
        }
        Next::RunTools(calls) => {
            assert_eq!(
                json!(run),
                serde_json::from_str::<Value>(&world.saved).expect("JSON"),
                "handed out before it was saved"
            );
            let ended: Vec<_> = calls
                .iter()
                .enumerate()
                .map(|(index, call)| {
                    world.ran.push(call.ordinal);
                    (call.ordinal, world.run(call, outcome(index)))
                })
                .collect();
            world.ran.sort_unstable();
            world.ran.dedup();
            assert!(world.ran.len() <= world.limits.max_tool_calls as usize, "too many calls");
            // A driver may lose some of them. What asks for a person has no end yet.
            let lost = usize::from(chance.person == 0);
            let asks = |(_, outcome): &&(usize, Outcome)| outcome.failure().and_then(Failure::awaits).is_some();
            let waits: BTreeSet<_> = ended.iter().skip(lost).filter(asks).map(|(ordinal, _)| *ordinal).collect();
            world.ended = calls.iter().map(|call| call.ordinal).filter(|ordinal| !waits.contains(ordinal)).collect();
            run.tools_ended(ended.into_iter().skip(lost).collect());
            assert_eq!(
                waits.is_empty(),
                !matches!(run.next(TimeLeft::UNLIMITED), Next::Pause(_)),
                "it waits, if one asks"
            );
        }
        Next::Pause(waiting) => {
            assert!(!waiting.is_empty());
            return true;
        }
        Next::End(report) => {
            assert!(!report.answer.trim().is_empty());
            assert!(chance.time > 0 || report.stop != Stop::AwaitingApproval);
            return true;
        }
    }
    false
}

/// One conversation with these chances, and the requests that it has sent.
pub fn converse(limits: Limits, chances: &[Chance]) -> Result<Vec<ModelRequest>, TestCaseError> {
    let mut run = AgentRun::new(limits.clone(), tools()).with_system("Be brief.");
    run.ask("Please help.");
    let mut world = World {
        saved: String::new(),
        effects: BTreeSet::new(),
        handed_out: BTreeMap::new(),
        settled: BTreeSet::new(),
        ended: Vec::new(),
        limits,
        requests: 0,
        failures: 0,
        ran: Vec::new(),
        told_tokens: 0,
        largest_reply: 0,
        asked: Vec::new(),
    };
    world.save(&run);
    for chance in chances {
        // A driver first saves what it is given.
        world.save(&run);
        if chance.kill == 0 {
            run = world.load();
            world.save(&run);
        }
        let again = format!("{:?}", run.next(TimeLeft::UNLIMITED));
        prop_assert_eq!(again, format!("{:?}", run.next(TimeLeft::UNLIMITED)), "the same, if it is asked again");
        let before = (world.requests, world.told_tokens);
        let ended = act(&mut run, &mut world, chance);
        if chance.kill == 1 {
            run = world.load(); // what was not saved is lost
            (world.requests, world.told_tokens) = before; // nor can it be counted
            world.ended.clear();
        }
        world.settled.extend(std::mem::take(&mut world.ended));
        if ended {
            match chance.person {
                0..4 => {
                    world.save(&run);
                    run = world.load();
                }
                4 => run.interrupted(),
                _ => {
                    run.put_down();
                    world.save(&run);
                    run = world.load();
                    run.ask("And now?");
                    (world.requests, world.told_tokens, world.ran) = (0, 0, Vec::new());
                }
            }
        }
        // One answer may pass the limit of tokens, by what its model takes beyond the estimate; never two.
        prop_assert!(world.told_tokens <= world.limits.max_tokens + world.largest_reply);
    }
    // Left alone, with a model that only calls and a person that never answers, it ends in a bounded number of actions.
    let last = Chance {
        kill: 9,
        reply: json!([{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]),
        stop_reason: "tool_use",
        usage: Some((1, 1)),
        fails: 9,
        outcomes: vec![7; 6],
        time: 20,
        person: 7,
    };
    (world.requests, world.ran) = (0, Vec::new());
    let most = 4 * (world.limits.max_steps as usize + 3);
    let ended = (0..most).any(|_| {
        world.save(&run);
        act(&mut run, &mut world, &last)
    });
    prop_assert!(ended, "it goes on and on");
    Ok(world.asked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_comes_the_loop_ends_within_its_limits_and_no_call_runs_after_its_end(
        limits in limits(),
        chances in prop::collection::vec(chance(), 1..60),
    ) {
        converse(limits, &chances)?;
    }
}
