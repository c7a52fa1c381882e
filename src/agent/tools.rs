//! The tools that a conversation is offered, as data: what the model is told, and what the loop must know of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    door::CONVERSE,
    tool::{Effect, Toolbox},
};

/// The tools of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    /// The `toolSpec` entries of the `toolConfig`, by name.
    specs: BTreeMap<String, Value>,
    facts: BTreeMap<String, Facts>,
}

/// What the loop must know of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// What if it ran twice.
    pub effect: Effect,
    /// Whether some calls need a person's approval.
    pub may_need_approval: bool,
    /// The sentence that nothing was changed.
    pub nothing: String,
    /// The sentence that it is not known, and how to find out.
    pub unknown: String,
}

impl Tools {
    /// All tools of the deployment.
    pub fn of(toolbox: &Toolbox) -> Self {
        let config = (CONVERSE.definitions)(toolbox);
        let specs = config["tools"].as_array().into_iter().flatten();
        let specs = specs.filter_map(|tool| Some((tool["toolSpec"]["name"].as_str()?.to_owned(), tool.clone())));
        let facts = toolbox.iter().map(|entry| {
            let tool = entry.definition();
            let (nothing, unknown) = (tool.wording.nothing.clone().into(), tool.wording.unknown.clone().into());
            let facts = Facts { effect: tool.effect, may_need_approval: tool.may_need_approval, nothing, unknown };
            (tool.name.to_owned(), facts)
        });
        Self { specs: specs.collect(), facts: facts.collect() }
    }

    /// What is known of the tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Facts> {
        self.facts.get(name)
    }

    /// Whether others have the same tool of this name, or neither has one: its records can be found, and it takes the same
    /// arguments.
    pub(super) fn are_same(&self, others: &Self, name: &str) -> bool {
        let what = |tools: &Self| {
            let schema = tools.specs.get(name).map(|spec| spec["inputSchema"].clone());
            (tools.get(name).map(|facts| facts.effect), schema)
        };
        what(self) == what(others)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.facts.keys().map(String::as_str)
    }

    /// The `toolConfig` without what is withdrawn. `None` if there are no tools at all; if all are withdrawn, they stay,
    /// because Bedrock demands a tool where the conversation holds calls.
    pub(super) fn config(&self, withdrawn: &BTreeSet<String>) -> Option<Value> {
        let left: Vec<_> =
            self.specs.iter().filter(|(name, _)| !withdrawn.contains(*name)).map(|(_, spec)| spec).collect();
        let left = if left.is_empty() { self.specs.values().collect() } else { left };
        (!left.is_empty()).then(|| json!({ "tools": left }))
    }
}
