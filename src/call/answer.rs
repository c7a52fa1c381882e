//! A call's result: within what the door can answer with, and as a replay.

use serde_json::Value;

use crate::{
    idempotency::Stored,
    outcome::{Failure, left_out, too_large},
    readable,
    tool::{Definition, Effect},
};

/// A result, and whether it is an earlier call's.
pub(super) struct Answer {
    pub result: Value,
    pub replayed: bool,
}

/// Keeps a result within what the door can answer with, and readable. A read says how to ask for less; of an effect the model must
/// learn that it happened, whatever its size.
pub(super) fn fit(tool: &Definition, answer: Answer, limit: usize) -> Result<Answer, Failure> {
    let answer = Answer { result: readable::value(answer.result), ..answer };
    let size = json_size(&answer.result);
    if size <= limit {
        return Ok(answer);
    }
    if tool.effect != Effect::ReadOnly {
        return Ok(Answer { result: left_out(size), ..answer });
    }
    Err(too_large(size, limit, tool.wording.nothing.clone()))
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

/// The stored result as an answer.
pub(super) fn replay(stored: Stored) -> Answer {
    let result = match stored {
        Stored::Json(json) => serde_json::from_str(&json).unwrap_or(Value::String(json)),
        Stored::Omitted(size) => left_out(size),
    };
    Answer { result, replayed: true }
}
