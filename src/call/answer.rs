//! A call's result: within what the door can answer with, and as a replay.

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::room::Room;
use crate::{
    idempotency::{Claim, Record, Stored},
    outcome::{Failure, crowded_out, left_out, too_large},
    readable,
    telemetry::Report,
    tool::{Definition, Effect, Success, ToolError, Write},
};

/// Text beyond this, in bytes, is written as JSON on a thread for work that blocks.
const MUCH: usize = 64_000;

/// What an attempt has made, in the forms that the rest of the call needs. Made within the attempt, so that a large result
/// takes of the attempt's time; and not on the threads on which all calls wait, so that it holds up no other's end.
pub(super) struct Made {
    pub result: Value,
    pub writes: Vec<Write>,
    /// What a record keeps of the result. Nothing reads that of a tool without effect.
    pub stored: Stored,
    size: usize,
}

impl Made {
    pub async fn of(effect: Effect, success: Success<Value>) -> Result<Self, ToolError> {
        if text_in(&success.result) <= MUCH {
            return Ok(Self::measured(effect, success));
        }
        Ok(spawn_blocking(move || Self::measured(effect, success)).await?)
    }

    fn measured(effect: Effect, Success { result, writes }: Success<Value>) -> Self {
        let result = readable::value(result);
        if effect == Effect::ReadOnly {
            let size = json_size(&result);
            return Self { result, writes, stored: Stored::Omitted(size), size };
        }
        let json = result.to_string();
        let size = json.len();
        Self { result, writes, stored: Stored::of(json), size }
    }

    /// The answer of the call that has made it.
    pub fn answer(self) -> Answer {
        Answer { result: self.result, size: self.size, replayed: false }
    }
}

/// A result with its size in bytes of JSON, and whether it is an earlier call's.
pub(super) struct Answer {
    pub result: Value,
    pub size: usize,
    pub replayed: bool,
}

/// Keeps a result within what the door can answer with, alone and beside the others of its event. A read says to ask for less,
/// or alone; of an effect the model must learn that it happened, whatever its size.
pub(super) fn fit(tool: &Definition, answer: Answer, limit: usize, room: &Room) -> Result<Answer, Failure> {
    let size = answer.size;
    if size <= limit && room.take(size) {
        return Ok(answer);
    }
    if tool.effect != Effect::ReadOnly {
        return Ok(Answer { result: left_out(size), ..answer });
    }
    let nothing = tool.wording.nothing.clone();
    Err(if size > limit { too_large(size, limit, nothing) } else { crowded_out(size, nothing) })
}

/// The bytes of a value's texts, and one for each value: less than its JSON has, and found without reading the texts.
fn text_in(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(text_in).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + text_in(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The bytes of a value's JSON, without making it.
fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A JSON value can always be written, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The result that this record keeps, for an execution by this claim: one that it has stored itself is no replay.
pub(super) fn recall(record: &Record, claim: &Claim, stored: Stored) -> Answer {
    Answer { replayed: record.owner != claim.owner, ..replay(stored) }
}

/// The result in the record that this claim could not settle: that of the execution that has superseded it, or its own,
/// whose commit was not answered.
pub(super) fn found(report: &mut Report, claim: &Claim, record: Option<Record>) -> Option<Answer> {
    let answer = record.and_then(|record| Some(recall(&record, claim, record.result.clone()?)));
    report.superseded |= answer.as_ref().is_none_or(|answer| answer.replayed);
    answer
}

/// The stored result as an answer.
pub(super) fn replay(stored: Stored) -> Answer {
    let (size, result) = match stored {
        // Readable when it was stored; whoever else can write to the table may have left something else.
        Stored::Json(json) => {
            (json.len(), readable::value(serde_json::from_str(&json).unwrap_or_else(|_| Value::String(json.clone()))))
        }
        Stored::Omitted(size) => (0, left_out(size)),
    };
    Answer { result, size, replayed: true }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::{CallContext, Policy, Tool, Toolbox};

    /// Do it.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    struct Any(Effect);

    impl Tool for Any {
        const NAME: &'static str = "any";
        type Args = Nothing;
        type Output = Value;

        fn policy(&self) -> Policy<Nothing> {
            Policy::new(self.0)
        }

        async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<Value>, ToolError> {
            Ok(Value::Null.into())
        }
    }

    /// Of results of these sizes, which are told.
    fn told(effect: Effect, sizes: [usize; 5]) -> [Option<bool>; 5] {
        let toolbox = Toolbox::builder().tool(Any(effect)).build().expect("a toolbox");
        let (tool, room) = (toolbox.iter().next().expect("a tool").definition(), Room::of(100));
        sizes.map(|size| {
            let answer = Answer { result: json!("x"), size, replayed: false };
            fit(tool, answer, 50, &room).ok().map(|answer| answer.result == json!("x"))
        })
    }

    #[test]
    fn results_have_the_room_in_the_order_in_which_they_come_and_one_that_has_none_takes_none() {
        let sizes = [40, 51, 50, 11, 10];
        assert_eq!(told(Effect::ReadOnly, sizes), [Some(true), None, Some(true), None, Some(true)]);
        let done = [true, false, true, false, true].map(Some);
        assert_eq!(told(Effect::Keyed, sizes), done, "what was done is told, without its result");
    }

    #[test]
    fn a_large_result_is_not_written_on_the_thread_that_waits_for_it() {
        use futures_util::FutureExt;
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime");
        for (padding, inline) in [(10, true), (MUCH, false)] {
            for effect in [Effect::ReadOnly, Effect::Keyed] {
                let result = json!({"padding": "x".repeat(padding), "more": [1, null]});
                let wanted = result.to_string().len();
                let made = runtime.block_on(async {
                    // The one thread for work that blocks is held up until the first poll is over.
                    let (held, until) = std::sync::mpsc::channel::<()>();
                    drop(spawn_blocking(move || until.recv()));
                    let mut making = Box::pin(Made::of(effect, result.into()));
                    let first = (&mut making).now_or_never();
                    assert_eq!(first.is_some(), inline, "{effect:?}, {padding}");
                    drop(held);
                    match first {
                        Some(made) => made,
                        None => making.await,
                    }
                });
                assert_eq!(made.expect("a result").size, wanted, "{effect:?}, {padding}");
            }
        }
    }
}
