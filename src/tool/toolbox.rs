//! The tools of a deployment, checked when the list is made.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{AnyTool, Definition, Route, Tool, any::Typed};
use crate::arguments::Checker;

/// One tool with the check of its arguments.
pub struct Entry {
    tool: Arc<dyn AnyTool>,
    checker: Checker,
}

impl Entry {
    /// The tool.
    pub fn tool(&self) -> &dyn AnyTool {
        &*self.tool
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
    /// All faults at once, a sentence each: a bad or double name, a double route, a schema that some door cannot express.
    pub fn build(self) -> Result<Toolbox, ToolboxError> {
        let mut faults = Vec::new();
        let mut tools = BTreeMap::new();
        for tool in self.tools {
            let definition = tool.definition();
            let name = definition.name;
            faults.extend(name_fault(name));
            faults.extend(definition_faults(definition));
            let checker = Checker::new(&definition.schema);
            if tools.insert(name, Entry { tool, checker }).is_some() {
                faults.push(format!("There are two tools with the name {name:?}. Rename one of them."));
            }
        }
        faults.extend(double_routes(&tools));
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

/// An agent names a tool by its route alone: of two tools with one route, the wrong one would run.
fn double_routes(tools: &BTreeMap<&'static str, Entry>) -> Vec<String> {
    let mut owners = BTreeMap::new();
    let double = tools.iter().filter_map(|(name, entry)| {
        let Route { method, path } = &entry.definition().route;
        // The names in braces do not tell two paths apart.
        let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
        let owner = *owners.entry((method.name(), parts.collect::<Vec<_>>())).or_insert(name);
        (owner != name)
            .then(|| format!("The tools {owner:?} and {name:?} share the route {method} {path}. Change one."))
    });
    double.collect()
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
    use super::*;
    use crate::tool::{CallContext, Success, ToolError};

    /// Do nothing.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        /// What not to do.
        #[allow(dead_code, reason = "only its name counts")]
        id: String,
    }

    macro_rules! tool {
        ($type:ident, $name:literal, $route:expr) => {
            struct $type;
            impl Tool for $type {
                const NAME: &'static str = $name;
                const ROUTE: Option<Route> = $route;
                type Args = Args;
                type Output = ();
                async fn call(&self, _: Args, _: &CallContext) -> Result<Success<()>, ToolError> {
                    Ok(().into())
                }
            }
        };
    }

    tool!(Plain, "plain", None);
    tool!(Twin, "plain", Some(Route::post("/twin")));
    tool!(Named, "named", Some(Route::get("/things/{id}")));
    tool!(Other, "other", Some(Route::post("/things/{id}")));
    tool!(Same, "same", Some(Route::get("/things/{id}")));
    tool!(Bad, "get__order", None);

    fn faults(builder: ToolboxBuilder) -> Vec<String> {
        builder.build().map_or_else(|error| error.faults().to_vec(), |_| Vec::new())
    }

    #[test]
    fn tools_with_names_and_routes_of_their_own_make_a_toolbox() {
        assert_eq!(faults(Toolbox::builder().tool(Plain).tool(Named).tool(Other)), [""; 0]);
    }

    #[test]
    fn a_bad_name_a_double_name_and_a_double_route_are_all_told() {
        let faults = faults(Toolbox::builder().tool(Plain).tool(Twin).tool(Named).tool(Same).tool(Bad));
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("two tools with the name \"plain\""));
        assert!(faults[1].contains("\"get__order\" is not legal"));
        assert!(faults[2].contains("\"named\" and \"same\" share the route GET /things/{id}"));
    }

    #[test]
    fn a_toolbox_without_tools_is_none() {
        assert_eq!(faults(Toolbox::builder()), ["There are no tools. Add one with `.tool(…)`."]);
    }
}
