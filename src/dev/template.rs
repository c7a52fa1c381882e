//! Keeps the tool schemas in `template.yaml` equal to the code.
//!
//! CloudFormation wants what the doors export, spelled in its own way. The blocks between these comments are written
//! by [`regenerate`]; everything else in the file is left as it is, and a block that is not there is not missed.
//!
//! | block | what stands in it |
//! | --- | --- |
//! | `# BEGIN generated: agent functions` | `FunctionSchema.Functions` of a classic agent's action group |
//! | `# BEGIN generated: agent alias` | a description that changes with the functions and the model, so that the alias moves to a new version |
//! | `# BEGIN generated: gateway tools` | `ToolSchema.InlinePayload` of a gateway target |
//!
//! `UPDATE_TEMPLATE=1 cargo test --test template` writes the file; without the variable that test fails when the file
//! is out of date.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::yaml::yaml;
use crate::{
    door::{AGENT_FUNCTION, GATEWAY},
    tool::Toolbox,
};

const BEGIN: &str = "# BEGIN generated: ";
const END: &str = "# END generated: ";

/// The tool definitions that go into the template, as the doors export them.
#[derive(Clone, Debug, PartialEq)]
pub struct Definitions {
    /// `{"functions": [{name, description, parameters, requireConfirmation}]}`.
    pub agent_function: Value,
    /// `[{name, description, inputSchema}]`.
    pub gateway: Value,
}

impl Definitions {
    /// What the doors export for these tools.
    pub fn of(toolbox: &Toolbox) -> Self {
        Self { agent_function: (AGENT_FUNCTION.definitions)(toolbox), gateway: (GATEWAY.definitions)(toolbox) }
    }

    /// The YAML of a block, if there is a block of this name.
    fn block(&self, name: &str) -> Option<Value> {
        let functions = || cloudformation(&self.agent_function["functions"]);
        match name {
            "agent functions" => Some(functions()),
            "agent alias" => {
                let text = format!("Tools {}, model ${{AgentModelId}}", digest(&functions()));
                Some(json!({"Description": {"Fn::Sub": text}}))
            }
            "gateway tools" => Some(cloudformation(&self.gateway)),
            _ => None,
        }
    }
}

/// Why a template cannot be regenerated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A block of a name that nothing generates.
    #[error(
        "Line {line}: there is no generated block {name:?}. Write `agent functions`, `agent alias` or `gateway tools`."
    )]
    Unknown {
        /// The line of the comment, counted from 1.
        line: usize,
        /// The name in it.
        name: String,
    },
    /// A block without an end.
    #[error("Line {line}: the generated block {name:?} has no end. Add the line `# END generated: {name}`.")]
    Open {
        /// The line of the comment, counted from 1.
        line: usize,
        /// The name in it.
        name: String,
    },
}

/// The template with its generated blocks made anew.
///
/// # Errors
///
/// If a block has an unknown name or no end.
pub fn regenerate(template: &str, definitions: &Definitions) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(template.len());
    let mut lines = template.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(name) = line.trim_start().strip_prefix(BEGIN) else { continue };
        let (line_number, name) = (index + 1, name.trim_end());
        let block = definitions
            .block(name)
            .ok_or_else(|| TemplateError::Unknown { line: line_number, name: name.to_owned() })?;
        let end = lines
            .find(|(_, line)| line.trim().strip_prefix(END) == Some(name))
            .ok_or_else(|| TemplateError::Open { line: line_number, name: name.to_owned() })?;
        yaml(&block, line.len() - line.trim_start().len(), &mut out);
        out.push_str(end.1);
        out.push('\n');
    }
    Ok(out)
}

/// The same definitions with CloudFormation's spelling: `inputSchema` is `InputSchema`. The names of parameters and
/// properties are the tools' own and stay as they are.
fn cloudformation(definition: &Value) -> Value {
    match definition {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (pascal(key), renamed(key, value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(cloudformation).collect(),
        scalar => scalar.clone(),
    }
}

fn renamed(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("parameters" | "properties", Value::Object(named)) => {
            let named: Map<_, _> = named.iter().map(|(name, schema)| (name.clone(), cloudformation(schema))).collect();
            Value::Object(named)
        }
        _ => cloudformation(value),
    }
}

fn pascal(key: &str) -> String {
    let mut letters = key.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Twelve hexadecimal digits that change with the value.
fn digest(value: &Value) -> String {
    let mut text = String::new();
    yaml(value, 0, &mut text);
    Sha256::digest(text).iter().take(6).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // to a String, so it cannot fail
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions() -> Definitions {
        Definitions {
            agent_function: json!({"functions": [{
                "name": "get_order",
                "description": "Find one order: \"now\".",
                "parameters": {"order_id": {"type": "string", "description": "The order.", "required": true}},
                "requireConfirmation": "DISABLED",
            }]}),
            gateway: json!([{
                "name": "get_order",
                "description": "Find one order.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "on": {"type": "string"},
                        "properties": {"type": "array", "items": {"type": "object", "properties": {"items": {"type": "string"}}}},
                    },
                    "required": ["on"],
                },
            }]),
        }
    }

    fn block(name: &str) -> String {
        let template = format!("a: 1\n  # BEGIN generated: {name}\n  stale\n  # END generated: {name}\nb: 2\n");
        regenerate(&template, &definitions()).unwrap()
    }

    #[test]
    fn agent_functions_are_spelled_as_cloudformation_wants_them() {
        assert_eq!(
            block("agent functions"),
            r#"a: 1
  # BEGIN generated: agent functions
  - Name: "get_order"
    Description: "Find one order: \"now\"."
    Parameters:
      "order_id":
        Type: "string"
        Description: "The order."
        Required: true
    RequireConfirmation: "DISABLED"
  # END generated: agent functions
b: 2
"#
        );
    }

    #[test]
    fn names_of_properties_are_never_respelled() {
        assert_eq!(
            block("gateway tools"),
            r#"a: 1
  # BEGIN generated: gateway tools
  - Name: "get_order"
    Description: "Find one order."
    InputSchema:
      Type: "object"
      Properties:
        "on":
          Type: "string"
        "properties":
          Type: "array"
          Items:
            Type: "object"
            Properties:
              "items":
                Type: "string"
      Required:
        - "on"
  # END generated: gateway tools
b: 2
"#
        );
    }

    #[test]
    fn the_alias_changes_with_any_function() {
        let before = block("agent alias");
        assert!(before.contains("${AgentModelId}"), "a parameter of the agent: {before}");
        let mut changed = definitions();
        changed.agent_function["functions"][0]["description"] = json!("Find two orders.");
        assert_ne!(regenerate(&before, &changed).unwrap(), before);
        assert_eq!(regenerate(&before, &definitions()).unwrap(), before);
    }

    #[test]
    fn a_template_without_blocks_stays_as_it_is() {
        assert_eq!(regenerate("a: 1\n# b\n", &definitions()).unwrap(), "a: 1\n# b\n");
    }

    #[test]
    fn a_block_that_nothing_generates_is_a_fault() {
        let fault = regenerate("x\n# BEGIN generated: agent\n", &definitions()).unwrap_err();
        assert_eq!(fault, TemplateError::Unknown { line: 2, name: String::from("agent") });
    }

    #[test]
    fn a_block_without_an_end_is_a_fault_and_swallows_nothing() {
        let fault = regenerate("# BEGIN generated: gateway tools\nrest\n", &definitions()).unwrap_err();
        assert_eq!(fault, TemplateError::Open { line: 1, name: String::from("gateway tools") });
    }
}
