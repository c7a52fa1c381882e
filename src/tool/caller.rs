//! Who asks: what the door and the host say about the caller, apart from the arguments, which the model chooses.
//!
//! The model chooses the tool and its arguments, and nothing in a [`Caller`]. Who chose the rest differs:
//!
//! | value | set by | to be trusted as far as |
//! | --- | --- | --- |
//! | [`tenant`](Caller::tenant) | Lambda, from the invoker's request | IAM lets the invoker name this tenant |
//! | [`identity`](Caller::identity) | Lambda, from the invoker's Cognito credentials; else the header that `IDENTITY_HEADER` names | Cognito; else whoever writes that header |
//! | [`header`](Caller::header), [`query_parameter`](Caller::query_parameter) | the gateway's client; the gateway passes on what its target allows | the gateway's authoriser checks it, else not at all |
//! | [`session_attribute`](Caller::session_attribute), [`conversation`](Caller::conversation) | the application that calls `InvokeAgent`, or the program that forwards a Converse event | that application |
//!
//! Whoever may invoke the function itself chooses all but the first two, so that permission is the first thing to keep
//! tight. Nothing of it is ever logged (the conversation's id excepted), measured or answered. While a call waits for a
//! person, its record has the first two and the conversation's id, and the person reads them:
//!
//! ```
//! use action_group::tool::Caller;
//!
//! let caller = Caller::default().with_header("X-Shop", "oslo").with_tenant("t-1");
//! assert_eq!(caller.header("x-shop"), Some("oslo"));
//! assert_eq!(format!("{caller:?}"), "Caller { .. }");
//! ```

use std::{collections::BTreeMap, fmt};

/// Who asks, as far as the door and the host can tell. Empty values are no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Caller {
    conversation: Option<String>,
    identity: Option<String>,
    tenant: Option<String>,
    headers: Ambiguous,
    query_parameters: Ambiguous,
    session_attributes: BTreeMap<String, String>,
    prompt_session_attributes: BTreeMap<String, String>,
}

/// Values by name; nothing where two were given that differ. None is picked: a check may have seen the other one.
type Ambiguous = BTreeMap<String, Option<String>>;

impl Caller {
    /// The session or conversation, where the door has one and the event says it.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// The Cognito identity id of the invoker; where there is none, the header that `IDENTITY_HEADER` trusts.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// The tenant, of a function with tenant isolation.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// A header that the gateway has passed on; its name in any letter case. May be a bearer token.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(&name.to_ascii_lowercase())?.as_deref()
    }

    /// A query parameter that the gateway has passed on.
    pub fn query_parameter(&self, name: &str) -> Option<&str> {
        self.query_parameters.get(name)?.as_deref()
    }

    /// An attribute of the agent's session.
    pub fn session_attribute(&self, name: &str) -> Option<&str> {
        self.session_attributes.get(name).map(String::as_str)
    }

    /// An attribute of the agent's turn.
    pub fn prompt_session_attribute(&self, name: &str) -> Option<&str> {
        self.prompt_session_attributes.get(name).map(String::as_str)
    }

    /// The same with this conversation.
    #[must_use]
    pub fn with_conversation(self, id: impl Into<String>) -> Self {
        Self { conversation: some(id), ..self }
    }

    /// The same with this identity.
    #[must_use]
    pub fn with_identity(self, id: impl Into<String>) -> Self {
        Self { identity: some(id), ..self }
    }

    /// The same with this tenant.
    #[must_use]
    pub fn with_tenant(self, id: impl Into<String>) -> Self {
        Self { tenant: some(id), ..self }
    }

    /// The same with this header. One that is there already with another value becomes none.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        add(&mut self.headers, name.to_ascii_lowercase(), value.into());
        self
    }

    /// The same with this query parameter. One that is there already with another value becomes none.
    #[must_use]
    pub fn with_query_parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        add(&mut self.query_parameters, name.to_owned(), value.into());
        self
    }

    /// The same with this attribute of the session.
    #[must_use]
    pub fn with_session_attribute(mut self, name: &str, value: impl Into<String>) -> Self {
        self.session_attributes.insert(name.to_owned(), value.into());
        self
    }

    /// The same with this attribute of the turn.
    #[must_use]
    pub fn with_prompt_session_attribute(mut self, name: &str, value: impl Into<String>) -> Self {
        self.prompt_session_attributes.insert(name.to_owned(), value.into());
        self
    }
}

fn some(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

fn add(values: &mut Ambiguous, name: String, value: String) {
    let value = some(value);
    let held = values.entry(name).or_insert_with(|| value.clone());
    if *held != value {
        *held = None;
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller { .. }") // identities and tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_header_with_two_values_none_is_picked() {
        let caller = Caller::default().with_header("X-User", "a").with_header("x-user", "b").with_header("X-USER", "a");
        assert_eq!(caller.header("x-user"), None);
        let agreed = Caller::default().with_header("X-User", "a").with_header("x-user", "a");
        assert_eq!(agreed.header("X-USER"), Some("a"));
    }

    #[test]
    fn an_empty_value_names_nobody() {
        let caller = Caller::default().with_tenant("").with_identity("").with_conversation("").with_header("a", "");
        assert_eq!((caller.tenant(), caller.identity(), caller.conversation()), (None, None, None));
        assert_eq!(caller.header("a"), None);
    }

    #[test]
    fn no_value_is_in_the_debug_form() {
        let caller = Caller::default()
            .with_conversation("SECRET")
            .with_identity("SECRET")
            .with_tenant("SECRET")
            .with_header("SECRET", "SECRET")
            .with_query_parameter("SECRET", "SECRET")
            .with_session_attribute("SECRET", "SECRET")
            .with_prompt_session_attribute("SECRET", "SECRET");
        assert!(!format!("{caller:?}").contains("SECRET"));
    }
}
