//! How a call stands, without running it: whether a person has to decide first, and what its record says.

use serde_json::Value;

/// How a call stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing is recorded of it, and nobody has to decide first; or the pipeline refuses it without doing anything.
    Clear,
    /// A person has to decide, on the record with this key.
    Waits(String),
    /// A person has approved it.
    Approved,
    /// A person has refused it.
    Denied,
    /// It is done, with this result.
    Done(Value),
    /// Somebody is at it.
    Running,
    /// It may have been done.
    Unknown,
    /// The record could not be read.
    Unavailable,
}
