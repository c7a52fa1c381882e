//! A tool without its types, so that tools can stand in one list.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CallContext, Definition, Effect, Policy, Reconciled, Route, Success, Tool, ToolError, definition::Method};
use crate::arguments;

/// What the policy says of one call's arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What makes two calls the same action.
    pub key: Value,
    /// Whether a person has to approve this call.
    pub needs_approval: bool,
}

/// A tool whose arguments and result are JSON. Implemented for every [`Tool`]; a wrapper around another tool (to
/// measure it, to make it fail) implements it by hand and goes in through [`Toolbox::map`](super::Toolbox::map).
pub trait AnyTool: Send + Sync + 'static {
    /// The tool as data.
    fn definition(&self) -> &Definition;

    /// What the policy says of these arguments, which have passed the schema.
    ///
    /// # Errors
    ///
    /// The sentence in which serde refuses them, for rules that the schema cannot say.
    fn plan(&self, arguments: &Value) -> Result<Plan, String>;

    /// Runs one attempt.
    fn call(&self, arguments: Value, context: CallContext) -> BoxFuture<'static, Result<Success<Value>, ToolError>>;

    /// Finds out what became of an effect whose outcome is not known.
    fn reconcile(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>>;
}

/// A [`Tool`] with what is known of it at start.
pub(super) struct Typed<T: Tool> {
    tool: Arc<T>,
    policy: Policy<T::Args>,
    definition: Definition,
}

impl<T: Tool> Typed<T> {
    pub(super) fn new(tool: T) -> Self {
        let policy = tool.policy();
        let (description, schema) = arguments::schema_of::<T::Args>();
        let definition = Definition {
            name: T::NAME,
            description,
            schema,
            effect: policy.effect,
            may_need_approval: policy.approval.is_some(),
            timeout: policy.timeout,
            window: policy.window,
            key_version: policy.version,
            scope: policy.scope,
            route: T::ROUTE.unwrap_or_else(|| Route { method: Method::Post, path: format!("/{}", T::NAME).into() }),
            wording: policy.wording.clone(),
        };
        Self { tool: Arc::new(tool), policy, definition }
    }
}

impl<T: Tool> AnyTool for Typed<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn plan(&self, arguments: &Value) -> Result<Plan, String> {
        let typed: T::Args =
            serde::Deserialize::deserialize(arguments).map_err(|fault: serde_json::Error| fault.to_string())?;
        Ok(Plan {
            key: self.policy.key.as_ref().map_or_else(|| arguments.clone(), |key| key(&typed)),
            needs_approval: self.policy.approval.as_ref().is_some_and(|test| test(&typed)),
        })
    }

    fn call(&self, arguments: Value, context: CallContext) -> BoxFuture<'static, Result<Success<Value>, ToolError>> {
        let (tool, effect) = (Arc::clone(&self.tool), self.definition.effect);
        Box::pin(async move {
            let typed = serde_json::from_value(arguments).map_err(|fault| ToolError::internal(fault).nothing_sent())?;
            let Success { result, writes } = tool.call(typed, &context).await?;
            Ok(Success { result: in_json(result, effect)?, writes })
        })
    }

    fn reconcile(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
        let (tool, effect) = (Arc::clone(&self.tool), self.definition.effect);
        Box::pin(async move {
            let typed = serde_json::from_value(arguments)?;
            Ok(match tool.reconcile(typed, &context).await? {
                Reconciled::Done(result) => Reconciled::Done(in_json(result, effect)?),
                Reconciled::NotDone => Reconciled::NotDone,
                Reconciled::Unknown => Reconciled::Unknown,
            })
        })
    }
}

/// The result as JSON. A result that cannot be written is a fault of the tool, but it unmakes no effect: what is done is
/// told as done, and is not done again for the sake of its result.
fn in_json<T: Serialize>(result: T, effect: Effect) -> Result<Value, ToolError> {
    match (serde_json::to_value(result), effect) {
        (Err(_), Effect::Keyed | Effect::Once) => {
            tracing::error!(result = std::any::type_name::<T>(), "The result of an effect cannot be written as JSON.");
            Ok(json!({"done": true, "note": "It was done. Its result cannot be told."}))
        }
        (result, _) => result.map_err(|fault| ToolError::internal(fault).nothing_sent()),
    }
}
