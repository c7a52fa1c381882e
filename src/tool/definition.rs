//! What doors and the pipeline know of a tool: data, made once at start.

use std::{fmt, time::Duration};

use serde_json::Value;

use super::{Effect, Scope, Wording};

/// The method of an OpenAPI route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Arguments are path and query parameters.
    Get,
    /// Arguments are path parameters, and the rest is the body.
    Post,
}

impl Method {
    /// The name in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a tool stands in an OpenAPI action group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path template, for example `/orders/{order_id}`; each name in braces is an argument.
    pub path: std::borrow::Cow<'static, str>,
}

impl Route {
    /// `GET path`.
    pub const fn get(path: &'static str) -> Self {
        Self { method: Method::Get, path: std::borrow::Cow::Borrowed(path) }
    }

    /// `POST path`.
    pub const fn post(path: &'static str) -> Self {
        Self { method: Method::Post, path: std::borrow::Cow::Borrowed(path) }
    }

    /// The names in braces.
    pub fn path_parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
    }
}

/// A tool as data.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name.
    pub name: &'static str,
    /// What the model reads: the doc comment of the arguments' struct.
    pub description: String,
    /// The JSON Schema of the arguments: an object, without `$ref`, `null` types, titles and formats of numbers.
    pub schema: Value,
    /// What if it ran twice.
    pub effect: Effect,
    /// Whether some calls need a person's approval.
    pub may_need_approval: bool,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// How long an equal call is the same action.
    pub window: Duration,
    /// The version of the key.
    pub key_version: u32,
    /// Among whom the key counts.
    pub scope: Scope,
    /// The OpenAPI route.
    pub route: Route,
    /// The closing sentences.
    pub wording: Wording,
}

impl Definition {
    /// A tool of which a test needs no more than the name and the effect: the defaults of a policy, no arguments.
    #[cfg(test)]
    pub(crate) fn sample(name: &'static str, effect: Effect) -> Self {
        Self {
            name,
            description: String::from("A tool."),
            schema: serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false}),
            effect,
            may_need_approval: false,
            timeout: super::Policy::<()>::DEFAULT_TIMEOUT,
            window: super::Policy::<()>::DEFAULT_WINDOW,
            key_version: 1,
            scope: Scope::default(),
            route: Route::post("/tool"),
            wording: Wording::default(),
        }
    }

    /// The argument names in the schema, with each one's schema.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema["properties"].as_object().into_iter().flatten()
    }

    /// Whether the argument must be given.
    pub fn requires(&self, argument: &str) -> bool {
        self.schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == argument))
    }
}
