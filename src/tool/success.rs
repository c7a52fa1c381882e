//! What an attempt that went well hands back.

use std::{collections::HashMap, fmt};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use super::ToolError;

/// An item as DynamoDB has it.
pub type Item = HashMap<String, AttributeValue>;

type Explain = Box<dyn FnOnce(Option<&Item>) -> ToolError + Send>;

/// The result of an attempt, and for [`Effect::Atomic`](super::Effect::Atomic) the writes that are its effect.
///
/// `Ok(receipt.into())` is a result without writes.
pub struct Success<T> {
    /// What the model gets.
    pub result: T,
    /// What the pipeline commits together with the record: 99 at most. Writes of a tool that is not `Atomic` fail the
    /// call as `internal`, because nobody would commit them.
    pub writes: Vec<Write>,
}

impl<T> Success<T> {
    /// A result that holds only if all `writes` commit.
    pub fn with_writes(result: T, writes: Vec<Write>) -> Self {
        Self { result, writes }
    }
}

impl<T> From<T> for Success<T> {
    fn from(result: T) -> Self {
        Self { result, writes: Vec::new() }
    }
}

impl<T> fmt::Debug for Success<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Success").field("writes", &self.writes.len()).finish_non_exhaustive()
    }
}

/// What [`Tool::reconcile`](super::Tool::reconcile) has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciled<T> {
    /// It was done, with this result.
    Done(T),
    /// It surely was not done, and will not be: the call may run.
    NotDone,
    /// It cannot be told.
    Unknown,
}

/// One DynamoDB write of an atomic effect, and what it means when its condition fails.
pub struct Write {
    pub(crate) item: TransactWriteItem,
    pub(crate) explain: Option<Explain>,
}

impl Write {
    /// A write whose condition, if it has one, is not expected to fail; if it does, the call fails as `internal`.
    pub fn new(item: TransactWriteItem) -> Self {
        Self { item, explain: None }
    }

    /// Says what a failed condition means. `explain` gets the item as it stands, if the write asked for it with
    /// `ReturnValuesOnConditionCheckFailure=ALL_OLD` and there is one.
    #[must_use]
    pub fn or_else(mut self, explain: impl FnOnce(Option<&Item>) -> ToolError + Send + 'static) -> Self {
        self.explain = Some(Box::new(explain));
        self
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Write { .. }") // the item holds arguments
    }
}
