//! The tools of a deployment, checked when the list is made.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{AnyTool, Definition, Effect, Tool, any::Typed};
use crate::arguments::Checker;

/// One tool with the check of its arguments.
pub struct Entry {
    tool: Arc<dyn AnyTool>,
    checker: Checker,
}

impl Entry {
    /// The tool.
    pub const fn tool(&self) -> &Arc<dyn AnyTool> {
        &self.tool
    }

    /// The tool as data.
    pub fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    /// The check of its arguments.
    pub const fn checker(&self) -> &Checker {
        &self.checker
    }
}

/// The tools of a deployment, by name. Iterates in the order of the names, so that what is generated is stable.
pub struct Toolbox {
    tools: BTreeMap<&'static str, Entry>,
}

impl Toolbox {
    /// Starts a list.
    pub fn builder() -> ToolboxBuilder {
        ToolboxBuilder { tools: Vec::new() }
    }

    /// Tools as they are, without the checks of [`ToolboxBuilder::build`].
    #[cfg(test)]
    pub(crate) fn unchecked(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Self {
        let entry = |tool: Arc<dyn AnyTool>| {
            let (name, checker) = (tool.definition().name, Checker::new(&tool.definition().schema));
            (name, Entry { tool, checker })
        };
        Self { tools: tools.into_iter().map(entry).collect() }
    }

    /// The tool of exactly this name. Nothing is trimmed, cut or folded: a name that is nearly right is another name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.tools.get(name)
    }

    /// The tools, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.tools.values()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.keys().copied()
    }

    /// Puts something in the place of each tool, for example a wrapper that measures it.
    #[must_use]
    pub fn map(self, wrap: impl Fn(Arc<dyn AnyTool>) -> Arc<dyn AnyTool>) -> Self {
        let tools = self.tools.into_iter().map(|(name, entry)| (name, Entry { tool: wrap(entry.tool), ..entry }));
        Self { tools: tools.collect() }
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Toolbox").field(&self.tools.keys()).finish()
    }
}

/// Collects tools; [`ToolboxBuilder::build`] checks them.
pub struct ToolboxBuilder {
    tools: Vec<Arc<dyn AnyTool>>,
}

impl ToolboxBuilder {
    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(Typed::new(tool)));
        self
    }

    /// Checks names and schemas.
    ///
    /// # Errors
    ///
    /// All faults at once, a sentence each: a bad or double name, a schema that some door cannot express.
    pub fn build(self) -> Result<Toolbox, ToolboxError> {
        let mut faults = Vec::new();
        let mut tools = BTreeMap::new();
        let mut routes = BTreeMap::new();
        for tool in self.tools {
            let definition = tool.definition();
            let name = definition.name;
            faults.extend(name_fault(name));
            faults.extend(definition_faults(definition));
            let route = format!("{} {}", definition.route.method, definition.route.path);
            if let Some(other) = routes.insert(route.clone(), name).filter(|other| *other != name) {
                faults.push(format!(
                    "The tools {other:?} and {name:?} have the same route, {route}. Change one of them."
                ));
            }
            let checker = Checker::new(&definition.schema);
            if tools.insert(name, Entry { tool, checker }).is_some() {
                faults.push(format!("There are two tools with the name {name:?}. Rename one of them."));
            }
        }
        if tools.is_empty() {
            faults.push(String::from("There are no tools. Add one with `.tool(…)`."));
        }
        if faults.is_empty() { Ok(Toolbox { tools }) } else { Err(ToolboxError { faults }) }
    }
}

/// Why a name is not legal at every door.
fn name_fault(name: &str) -> Option<String> {
    let parts_are_good =
        name.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()));
    (!parts_are_good || name.len() > 40).then(|| {
        format!(
            "The tool name {name:?} is not legal at every door. Use letters and digits, single underscores between them, \
             and 40 characters at most, for example \"get_order\"."
        )
    })
}

fn definition_faults(definition: &Definition) -> Vec<String> {
    let name = definition.name;
    let mut faults = crate::arguments::schema_faults(&definition.schema);
    if definition.description.trim().is_empty() {
        faults.push(String::from(
            "The struct of the arguments has no doc comment; it is the description that the model reads.",
        ));
    }
    for parameter in definition.route.path_parameters() {
        if !definition.requires(parameter) {
            faults.push(format!(
                "The route {:?} names {parameter:?}, which is no required argument.",
                definition.route.path
            ));
        }
    }
    if definition.effect == Effect::ReadOnly && definition.may_need_approval {
        faults.push(String::from("A ReadOnly tool has no record that a person could approve. Give it another effect."));
    }
    if definition.window <= definition.timeout {
        faults
            .push(String::from("The window in which an equal call is the same action is not longer than one attempt."));
    }
    faults.into_iter().map(|fault| format!("Tool {name:?}: {fault}")).collect()
}

/// Why a toolbox cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{}", faults.join("\n"))]
pub struct ToolboxError {
    faults: Vec<String>,
}

impl ToolboxError {
    /// One sentence for each fault.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tool::{CallContext, Policy, Route, Success, ToolError};

    /// Do it.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        /// What.
        #[allow(dead_code, reason = "only its schema counts here")]
        thing: Option<String>,
    }

    /// A tool with one thing wrong, or nothing.
    struct Sample<const WRONG: u8>;

    /// Another tool on the route of the good one.
    struct Squatter;

    impl Tool for Squatter {
        const NAME: &'static str = "squatter";
        const ROUTE: Option<Route> = Some(Route::post("/good"));
        type Args = Args;
        type Output = ();

        async fn call(&self, _: Args, _: &CallContext) -> Result<Success<()>, ToolError> {
            Ok(().into())
        }
    }

    const NAMES: [&str; 4] = ["good", "bad-name", "good", "a_name_that_is_longer_than_forty_characters"];

    impl<const WRONG: u8> Tool for Sample<WRONG> {
        const NAME: &'static str = NAMES[WRONG as usize % NAMES.len()];
        const ROUTE: Option<Route> = if WRONG == 4 { Some(Route::get("/things/{thing}")) } else { None };
        type Args = Args;
        type Output = ();

        fn policy(&self) -> Policy<Args> {
            match WRONG {
                8 => Policy::new(Effect::ReadOnly).approve_when(|_| true),
                12 => Policy::new(Effect::Keyed).window(Duration::from_secs(1)),
                _ => Policy::new(Effect::ReadOnly),
            }
        }

        async fn call(&self, _: Args, _: &CallContext) -> Result<Success<()>, ToolError> {
            Ok(().into())
        }
    }

    fn faults(builder: ToolboxBuilder) -> Vec<String> {
        builder.build().err().map(|error| error.faults().to_vec()).unwrap_or_default()
    }

    #[test]
    fn a_tool_without_fault_goes_in() {
        assert_eq!(faults(Toolbox::builder().tool(Sample::<0>)), [""; 0]);
    }

    #[test]
    fn every_fault_of_every_tool_is_told_at_once_and_by_the_tools_name() {
        let found = faults(Toolbox::builder().tool(Sample::<1>).tool(Sample::<0>).tool(Sample::<2>).tool(Sample::<3>));
        let about = |words: &str| found.iter().any(|fault| fault.contains(words));
        assert!(about("\"bad-name\" is not legal"), "{found:?}");
        assert!(about("two tools with the name \"good\""), "{found:?}");
        assert!(about("longer_than_forty_characters\" is not legal"), "{found:?}");
    }

    #[test]
    fn a_policy_that_cannot_be_kept_does_not_start() {
        for (builder, words) in [
            (Toolbox::builder().tool(Sample::<4>), "no required argument"),
            (Toolbox::builder().tool(Sample::<8>), "no record that a person could approve"),
            (Toolbox::builder().tool(Sample::<12>), "not longer than one attempt"),
            (Toolbox::builder().tool(Sample::<0>).tool(Squatter), "have the same route, POST /good"),
            (Toolbox::builder(), "There are no tools"),
        ] {
            let found = faults(builder);
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        }
    }
}
