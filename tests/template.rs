//! `template.yaml`, the README and the code say the same.
#![cfg(feature = "dev")]

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Once, time::Duration};

use action_group::{
    agent::{settings::LoopSettings, store::ConversationTable},
    call::longest,
    dev::{
        self,
        template::{Definitions, regenerate},
    },
    env::Env,
    settings::Settings,
    tool::{Entry, Toolbox},
};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The file. With `UPDATE_TEMPLATE` the template is written anew before any test reads it: tests run side by side.
fn read(name: &str) -> String {
    static UPDATED: Once = Once::new();
    UPDATED.call_once(|| {
        if std::env::var_os("UPDATE_TEMPLATE").is_some() {
            let wanted = regenerated(&as_it_stands("template.yaml"));
            fs::write(file("template.yaml"), wanted).expect("template.yaml can be written");
        }
    });
    as_it_stands(name)
}

fn as_it_stands(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn regenerated(template: &str) -> String {
    regenerate(template, &definitions()).expect("blocks that are named and closed")
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
    let wanted = regenerated(&template);
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
    let set = names(&mapping(&template, "Variables:"));
    assert!(set.contains("IDEMPOTENCY_TABLE"), "{set:?}");
    let readme = read("README.md");
    let mut told: BTreeSet<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        .collect();
    told.retain(|name| !is_set_otherwise(name));
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

fn toolbox() -> Toolbox {
    let mut env = Env::from_lookup(|name| Some(example(name).into()));
    let tools = action_group::tools::Settings::read(&mut env);
    let sdk = dev::sdk_config("http://127.0.0.1:9", dev::database::http_client());
    let backends = action_group::tools::Backends::new(&tools, &sdk);
    action_group::tools::toolbox(backends).expect("tools without faults")
}

fn definitions() -> Definitions {
    Definitions::of(&toolbox())
}

#[test]
fn the_timeout_of_the_function_is_longer_than_that_of_every_tool_with_its_retries() {
    let template = read("template.yaml");
    let default = |name: &str| {
        let all = mapping(&template, &format!("{name}:"));
        let value = all.into_iter().find(|(key, _)| key == "Default").expect("a default").1;
        value.parse::<u64>().expect("a number")
    };
    let timeout = Duration::from_secs(default("TimeoutSeconds"));
    for tool in toolbox().iter().map(Entry::definition) {
        let needed = longest(tool) + Duration::from_millis(default("ReserveMs"));
        assert!(timeout > needed, "TimeoutSeconds is {timeout:?}, but {} may need {needed:?}", tool.name);
    }
}

/// A good value of a setting that has no default.
fn example(name: &str) -> String {
    let value = match name {
        "CARRIER_URL" => "https://carrier.example.com",
        "MAIL_FROM" => "shop@example.com",
        _ => "a-table",
    };
    value.to_owned()
}

/// Reads all settings from these variables, as the function does at start.
fn start(variables: Vec<(String, String)>) -> Env {
    let mut env = Env::of(variables);
    Settings::read(&mut env);
    action_group::tools::Settings::read(&mut env);
    env
}

/// The variables that the template gives to the function of this name, with the defaults of its parameters.
fn variables(template: &str, function: &str) -> Vec<(String, String)> {
    let parameter = |name: &str| {
        let default = mapping(template, &format!("{name}:")).into_iter().find(|(key, _)| key == "Default");
        default.map_or_else(|| example("a table"), |(_, value)| value)
    };
    let (_, resource) = template.split_once(&format!("\n  {function}:\n")).expect("a function of this name");
    mapping(resource, "Variables:")
        .into_iter()
        .map(|(name, value)| {
            let value = value.strip_prefix("!Ref ").map_or_else(|| value.clone(), parameter);
            (name, value.trim_matches('"').to_owned())
        })
        .collect()
}

/// What the C library reads, and no setting of ours.
const ALLOCATOR: &str = "MALLOC_TRIM_THRESHOLD_";

/// The names of those that are settings of the program.
fn names(variables: &[(String, String)]) -> BTreeSet<String> {
    variables.iter().map(|(name, _)| name.clone()).filter(|name| !is_set_otherwise(name)).collect()
}

#[test]
fn both_functions_give_memory_back_at_once() {
    for function in ["ActionGroup", "Loop"] {
        let variables = variables(&read("template.yaml"), function);
        assert!(variables.contains(&(ALLOCATOR.to_owned(), String::from("131072"))), "{function}: {variables:?}");
    }
}

#[test]
fn the_template_sets_every_setting_to_a_valid_value() {
    let variables = variables(&read("template.yaml"), "ActionGroup");
    let set = names(&variables);
    let env = start(variables);
    let known: BTreeSet<_> = env.names().map(str::to_owned).filter(|name| !is_set_otherwise(name)).collect();
    assert_eq!(set, known);
    env.finish().expect("valid settings");
}

#[test]
fn the_template_starts_the_loop_with_valid_settings_and_misspells_none() {
    let variables = variables(&read("template.yaml"), "Loop");
    let set = names(&variables);
    for (name, value) in [("MODEL_ID", "amazon.nova-lite-v1:0"), ("RESERVE_MS", "3000"), ("CONVERSATION_HOURS", "24")] {
        assert!(variables.contains(&(name.to_owned(), value.to_owned())), "{name}: {variables:?}");
    }
    let mut env = start(variables);
    LoopSettings::read(&mut env);
    let known: BTreeSet<_> = env.names().map(str::to_owned).collect();
    assert!(set.is_subset(&known), "{:?} are no settings", set.difference(&known).collect::<Vec<_>>());
    env.finish().expect("valid settings");
}

/// Whether the parameter of this name takes the value.
fn takes(template: &str, parameter: &str, value: &str) -> bool {
    let pattern = mapping(template, &format!("{parameter}:")).into_iter().find(|(key, _)| key == "AllowedPattern");
    let (_, pattern) = pattern.unwrap_or_else(|| panic!("{parameter} has no AllowedPattern"));
    regex_lite::Regex::new(&pattern).expect("a pattern").is_match(value)
}

#[test]
fn the_parameters_of_the_conversations_limits_take_what_the_settings_take() {
    let template = read("template.yaml");
    for (parameter, setting, most) in [
        ("ConversationMaxCalls", "CONVERSATION_MAX_CALLS", 100_000),
        ("ConversationMaxConsecutiveFailures", "CONVERSATION_MAX_CONSECUTIVE_FAILURES", 1_000),
        ("ConversationMaxIdenticalFailures", "CONVERSATION_MAX_IDENTICAL_FAILURES", 1_000),
    ] {
        for (value, valid) in [(0, false), (1, true), (most - 1, true), (most, true), (most + 1, false)] {
            let value = value.to_string();
            assert_eq!(takes(&template, parameter, &value), valid, "{parameter}: {value}");
            let mut variables = variables(&template, "ActionGroup");
            variables.retain(|(name, _)| name != setting);
            variables.push((setting.to_owned(), value.clone()));
            assert_eq!(start(variables).finish().is_ok(), valid, "{setting}: {value}");
        }
    }
}

#[test]
fn the_parameter_of_the_loops_model_takes_ids_and_arns() {
    let template = read("template.yaml");
    for (value, valid) in [
        ("amazon.nova-lite-v1:0", true),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", true),
        ("arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0", true),
        ("arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3d4e5f6", true),
        ("arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", true),
        ("arn:aws:s3:::bucket", false),
        ("arn:aws:bedrock:eu-west-1:123456789012:inference-profile/*", false),
        ("a model", false),
    ] {
        assert_eq!(takes(&template, "LoopModelId", value), valid, "{value}");
    }
}

#[test]
fn what_only_the_loop_needs_is_made_with_the_loop_only() {
    let template = read("template.yaml");
    for resource in
        ["Loop", "LoopInvocations", "LoopLogs", "LoopRole", "ConversationsTable", "LoopName", "ConversationsTableName"]
    {
        let condition = mapping(&template, &format!("{resource}:")).into_iter().find(|(key, _)| key == "Condition");
        assert_eq!(condition.map(|(_, value)| value).as_deref(), Some("HasLoop"), "{resource}");
    }
}

#[test]
fn only_the_loop_may_ask_a_model_and_touch_conversations() {
    let template = read("template.yaml");
    let (_, role) = template.split_once("\n  LoopRole:\n").expect("the loop's role");
    let role = role.split("\n\n").next().unwrap_or_default();
    for action in ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream", "dynamodb:Query", "ToolsPolicy"] {
        assert!(role.contains(action), "{action}");
    }
    let elsewhere = template.replace(role, "");
    assert!(!elsewhere.contains("bedrock:InvokeModelWithResponseStream"));
    assert!(!elsewhere.contains("!GetAtt ConversationsTable.Arn"));
}

#[test]
fn the_conversations_do_not_outlive_the_records_of_any_tool() {
    let toolbox = toolbox();
    let day = Duration::from_hours(24);
    assert_eq!(ConversationTable::fault(day, &toolbox), None);
    let fault = ConversationTable::fault(day + Duration::from_hours(1), &toolbox).expect("a fault");
    assert!(fault.starts_with("CONVERSATION_HOURS is 25, but the records of"), "{fault}");
}

/// Lambda sets its own, and the C library has one; the log level is `LoggingConfig.ApplicationLogLevel`.
fn is_set_otherwise(name: &str) -> bool {
    name.starts_with("AWS_") || name == "RUST_LOG" || name == ALLOCATOR
}

#[test]
fn the_local_settings_start_the_function() {
    let variables = read("infra/local.env")
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    start(variables).finish().expect("valid settings");
}
