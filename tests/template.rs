//! `template.yaml`, the README and the code say the same.
#![cfg(feature = "dev")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use action_group::dev::template::{Definitions, regenerate};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of the mapping below `heading`, with the values that stand beside them.
fn mapping(template: &str, heading: &str) -> Vec<(String, String)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = template.lines().skip_while(|line| line.trim() != heading);
    let heading = lines.next().unwrap_or_else(|| panic!("template.yaml has no `{heading}`"));
    lines
        .take_while(|line| line.trim().is_empty() || indent(line) > indent(heading))
        .filter(|line| indent(line) == indent(heading) + 2)
        .filter_map(|line| line.trim().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.split(" #").next().unwrap_or_default().trim().to_owned()))
        .collect()
}

#[test]
fn the_tool_schemas_in_the_template_are_those_of_the_code() {
    let template = read("template.yaml");
    let wanted = regenerate(&template, &definitions()).expect("blocks that are named and closed");
    if std::env::var_os("UPDATE_TEMPLATE").is_some() {
        fs::write(file("template.yaml"), wanted).expect("template.yaml can be written");
        return;
    }
    let differs = template.lines().zip(wanted.lines()).position(|(is, should)| is != should);
    assert!(
        template == wanted,
        "template.yaml differs from the tools, first in line {}. Mend it with: UPDATE_TEMPLATE=1 cargo test --test template",
        differs.map_or(template.lines().count(), |index| index + 1)
    );
}

#[test]
fn the_template_has_every_generated_block() {
    let template = read("template.yaml");
    for block in ["agent functions", "agent alias", "gateway tools"] {
        assert!(template.contains(&format!("# BEGIN generated: {block}\n")), "{block}");
    }
}

#[test]
fn every_variable_of_the_template_is_in_the_readme() {
    let template = read("template.yaml");
    let set: BTreeSet<_> = mapping(&template, "Variables:").into_iter().map(|(name, _)| name).collect();
    assert!(set.contains("IDEMPOTENCY_TABLE"), "{set:?}");
    let readme = read("README.md");
    let mut told: BTreeSet<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        .collect();
    told.remove("RUST_LOG"); // for local use: Lambda's own setting is ApplicationLogLevel
    assert_eq!(set, told);
}

#[test]
fn every_parameter_of_the_template_is_in_the_readme() {
    let template = read("template.yaml");
    let readme = read("README.md");
    let deploy = readme.split("\n## ").find(|section| section.starts_with("Deploy\n")).expect("a section Deploy");
    let parameters = mapping(&template, "Parameters:");
    assert!(parameters.len() > 10, "{parameters:?}");
    for (name, _) in parameters {
        assert!(deploy.contains(&format!("`{name}`")), "{name} is not explained");
    }
}

// TODO(merge): the real toolbox.
fn definitions() -> Definitions {
    let text = |name: &str| serde_json::json!({"type": "string", "description": name, "required": true});
    Definitions {
        agent_function: serde_json::json!({"functions": [{
            "name": "get_order",
            "description": "Look up one order.",
            "parameters": {"order_id": text("The order's number.")},
            "requireConfirmation": "DISABLED",
        }]}),
        gateway: serde_json::json!([{
            "name": "get_order",
            "description": "Look up one order.",
            "inputSchema": {
                "type": "object",
                "properties": {"order_id": {"type": "string", "description": "The order's number."}},
                "required": ["order_id"],
            },
        }]),
    }
}
