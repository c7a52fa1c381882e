//! What is deployed around the function: the dashboard and the alarms follow the tools and the metrics, and each role may
//! do what the code does, and nothing else.
#![cfg(feature = "dev")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

use action_group::{
    agent::metrics::{OF_REQUESTS, OF_TURNS},
    call::longest,
    dev::{self, alarms, dashboard, stacks},
    env::Env,
    telemetry::{UNKNOWN_TOOL, metrics},
    tool::{Effect, Entry, Toolbox},
};
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What is generated, and belongs into these files.
fn generated() -> [(&'static str, String); 2] {
    let (toolbox, tables) = (toolbox(), stacks::tables());
    [
        ("infra/dashboard.yaml", dashboard::template(&toolbox, &tables)),
        ("infra/alarms.yaml", alarms::template(&toolbox, &tables)),
    ]
}

/// The file as it stands. With `UPDATE_TEMPLATE` it is written anew before any test reads it: tests run side by side.
fn read(name: &str) -> String {
    static UPDATED: Once = Once::new();
    UPDATED.call_once(|| {
        if std::env::var_os("UPDATE_TEMPLATE").is_some() {
            for (name, wanted) in generated() {
                fs::write(file(name), wanted).expect("the file can be written");
            }
        }
    });
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn toolbox() -> Toolbox {
    let example = |name: &str| match name {
        "CARRIER_URL" => "https://carrier.example.com",
        "MAIL_FROM" => "shop@example.com",
        _ => "a-table",
    };
    let mut env = Env::from_lookup(move |name| Some(example(name).into()));
    let settings = action_group::tools::Settings::read(&mut env);
    let sdk = dev::sdk_config("http://127.0.0.1:9", dev::database::http_client());
    action_group::tools::toolbox(action_group::tools::Backends::new(&settings, &sdk)).expect("tools without faults")
}

#[test]
fn the_dashboard_and_the_alarms_are_those_of_the_tools() {
    for (name, wanted) in generated() {
        assert!(
            read(name) == wanted,
            "{name} is not up to date. Mend it with: UPDATE_TEMPLATE=1 cargo test --test stack"
        );
    }
}

/// The widgets of the dashboard as it is checked in.
fn widgets() -> Vec<Value> {
    let template = read("infra/dashboard.yaml");
    let (_, body) = template.split_once("DashboardBody: !Sub |\n").expect("a body");
    let body: Value = serde_json::from_str(body).expect("the body is JSON");
    body["widgets"].as_array().expect("widgets").clone()
}

/// Tool and metric of each curve that is ours.
fn on_the_dashboard() -> BTreeSet<(String, String)> {
    let curves = widgets()
        .into_iter()
        .flat_map(|widget| widget["properties"]["metrics"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let ours = curves.filter(|curve| curve[0] == "${Namespace}").map(|curve| {
        assert_eq!((&curve[2], &curve[3], &curve[4]), (&"Service".into(), &"${Service}".into(), &"Tool".into()));
        (text(&curve[5]), text(&curve[1]))
    });
    ours.collect()
}

/// The resources of a template with their lines.
fn resources(template: &str) -> BTreeMap<String, Vec<String>> {
    let lines = template.lines().skip_while(|line| *line != "Resources:").skip(1);
    let lines = lines.take_while(|line| line.starts_with(' ') || line.is_empty());
    let mut resources = BTreeMap::<_, Vec<_>>::new();
    let mut current = String::new();
    for line in lines {
        match line.strip_prefix("  ").and_then(|line| line.strip_suffix(':')) {
            Some(name) if !name.starts_with([' ', '#']) => name.clone_into(&mut current),
            _ => resources.entry(current.clone()).or_default().push(line.to_owned()),
        }
    }
    resources
}

/// What stands after this key, without quotes.
fn values(lines: &[String], key: &str) -> Vec<String> {
    let value = |line: &String| {
        let line = line.trim().trim_start_matches("- ");
        Some(line.strip_prefix(key)?.strip_prefix(": ")?.trim_matches('"').to_owned())
    };
    lines.iter().filter_map(value).collect()
}

/// The metrics of each alarm, by its name.
fn alarms_by_name() -> BTreeMap<String, Vec<String>> {
    let resources = resources(&read("infra/alarms.yaml")).into_iter();
    let alarms = resources
        .filter(|(_, lines)| values(lines, "Type").first().is_some_and(|kind| kind == "AWS::CloudWatch::Alarm"));
    alarms.collect()
}

#[test]
fn every_metric_on_the_dashboard_and_in_the_alarms_exists_and_every_metric_is_shown() {
    let shown: BTreeSet<_> = on_the_dashboard().into_iter().map(|(_, metric)| metric).collect();
    let known: BTreeSet<_> = metrics::METRICS.iter().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(shown, known);
    let of_the_loop: BTreeSet<_> = OF_REQUESTS
        .iter()
        .map(|metric| metric.name)
        .chain(OF_TURNS.iter().map(|metric| metric.name))
        .map(String::from)
        .collect();
    let mut ours = 0;
    for (name, lines) in alarms_by_name() {
        let is_of_loop = name.starts_with("LoopModel") || name.starts_with("LoopTurn");
        if !is_of_loop && !lines.iter().any(|line| line.trim() == "- Name: \"Tool\"") {
            continue; // of the function or a table
        }
        let known = if is_of_loop { &of_the_loop } else { &known };
        for metric in values(&lines, "MetricName") {
            assert!(known.contains(&metric), "{name}: {metric}");
            ours += 1;
        }
    }
    assert!(ours > 0, "no tool has an alarm");
}

#[test]
fn every_tool_is_on_the_dashboard_and_has_its_alarms() {
    let shown = on_the_dashboard();
    let alarms = alarms_by_name();
    for tool in toolbox().names().chain([UNKNOWN_TOOL]) {
        assert!(shown.contains(&(tool.to_owned(), String::from("Calls"))), "{tool}");
    }
    for tool in toolbox().names() {
        let own = alarms.values().filter(|lines| values(lines, "Value").contains(&tool.to_owned())).count();
        assert!(own >= 3, "{tool} has {own} alarms");
    }
}

/// Whoever decides is another one than whoever is woken.
#[test]
fn a_call_that_waits_tells_those_who_decide_and_a_persons_refusal_tells_nobody() {
    let alarms = alarms_by_name();
    let counts = |lines: &&Vec<String>, metric: &str| values(lines, "MetricName").contains(&metric.to_owned());
    let waiting: Vec<_> = alarms.values().filter(|lines| counts(lines, "ApprovalRequired")).collect();
    let with_effect = toolbox().iter().filter(|entry| entry.definition().effect != Effect::ReadOnly).count();
    assert_eq!(waiting.len(), with_effect, "a tool may ask in its own code");
    // The loop asks before anything runs: of the tool there is no metric yet.
    assert!(counts(&&alarms["LoopTurnAwaitsApproval"], "StopAwaitingApproval"));
    for (name, lines) in &alarms {
        let tells = |topic: &str| values(lines, "\"Ref\"").contains(&topic.to_owned());
        let waits = counts(&lines, "ApprovalRequired") || counts(&lines, "StopAwaitingApproval");
        assert_eq!((tells("ApprovalTopicArn"), tells("TopicArn")), (waits, !waits), "{name}");
    }
    assert!(!alarms.values().any(|lines| counts(&lines, "RefusedByPerson")));
}

#[test]
fn the_metric_of_dead_processes_is_made_by_the_filter_that_stands_beside_the_alarm() {
    let resources = resources(&read("infra/alarms.yaml"));
    let metric = |name: &str| values(&resources[name], "MetricName");
    assert_eq!(metric("DeadProcesses"), metric("DeadProcess"));
    assert_eq!(metric("LoopDeadProcesses"), metric("DeadProcess"));
}

#[test]
fn what_belongs_to_the_loop_is_watched_where_there_is_one() {
    let resources = resources(&read("infra/alarms.yaml"));
    let of_loop = |lines: &Vec<String>| {
        ["LoopName", "LoopLogGroup", "LoopTable"]
            .iter()
            .any(|name| values(lines, "\"Ref\"").contains(&String::from(*name)))
    };
    let watched: Vec<_> = resources.iter().filter(|(_, lines)| of_loop(lines)).map(|(name, _)| name.as_str()).collect();
    assert_eq!(watched, ["LoopDeadProcesses", "LoopErrors", "LoopTableThrottled", "LoopThrottled"]);
    let is_own = |name: &&String| name.starts_with("LoopModel") || name.starts_with("LoopTurn");
    let own = resources.keys().filter(is_own).collect::<Vec<_>>();
    assert_eq!(own, ["LoopModelDenied", "LoopModelErrors", "LoopTurnAwaitsApproval"]);
    for (name, lines) in resources {
        let condition = values(&lines, "Condition");
        assert_eq!(condition == ["HasLoop"], name.starts_with("Loop"), "{name}");
    }
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-")).collect()
}

#[test]
fn every_alarm_has_a_runbook() {
    let anchors = anchors(&read("docs/operations.md"));
    for (name, lines) in alarms_by_name() {
        let text =
            lines.iter().find(|line| line.contains("${Runbook}#")).unwrap_or_else(|| panic!("{name} has no link"));
        let chapter = text.split("${Runbook}#").nth(1).expect("a link").trim_matches('"');
        assert!(anchors.contains(chapter), "{name}: docs/operations.md has no chapter {chapter}");
    }
}

#[test]
fn each_nested_stack_gets_what_its_template_asks_for() {
    let template = read("template.yaml");
    let resources = resources(&template);
    for (stack, name) in [("Dashboard", "infra/dashboard.yaml"), ("Alarms", "infra/alarms.yaml")] {
        let nested = read(name);
        let (parameters, _) = nested.split_once("\nResources:").expect("resources");
        let (_, parameters) = parameters.split_once("Parameters:\n").expect("parameters");
        let names = parameters.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
        for parameter in names.filter(|name| !name.starts_with(' ') && !["FaultPercent", "DeniedCount"].contains(name))
        {
            assert_eq!(values(&resources[stack], parameter).len(), 1, "{stack} does not get {parameter}");
        }
    }
}

/// What AWS itself does with a role, for the settings of the template: no line of ours calls it.
const PLUMBING: [&str; 9] = [
    "sqs:SendMessage",
    "sns:Publish",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "kms:Decrypt",
    "kms:Encrypt",
    "kms:GenerateDataKey",
];

/// What calls an SDK: an operation's method, or a write in a transaction, which needs the permission of that write and
/// none of its own.
const CALLS: [(&str, &str); 15] = [
    (".put_item()", "dynamodb:PutItem"),
    (".get_item()", "dynamodb:GetItem"),
    (".update_item()", "dynamodb:UpdateItem"),
    (".delete_item()", "dynamodb:DeleteItem"),
    (".query()", "dynamodb:Query"),
    (".scan()", "dynamodb:Scan"),
    (".batch_get_item()", "dynamodb:BatchGetItem"),
    (".batch_write_item()", "dynamodb:BatchWriteItem"),
    ("Put::builder()", "dynamodb:PutItem"),
    ("Update::builder()", "dynamodb:UpdateItem"),
    ("Delete::builder()", "dynamodb:DeleteItem"),
    ("ConditionCheck::builder()", "dynamodb:ConditionCheckItem"),
    (".send_email()", "ses:SendEmail"),
    (".converse()", "bedrock:InvokeModel"),
    (".converse_stream()", "bedrock:InvokeModelWithResponseStream"),
];

/// The sources of the Lambda programs: no tests, and nothing of the local program.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("src/dev") && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The role or policy that has to allow what this source calls. The approver is the only one that decides, and decides
/// only; the loop has what it calls itself, and the tools' policy beside it.
fn owner(source: &Path) -> &'static str {
    if source.starts_with(file("src/idempotency/approvals")) {
        "ApproverRole"
    } else if source.starts_with(file("src/agent")) {
        "LoopRole"
    } else {
        "ToolsPolicy"
    }
}

/// The actions that the SDK calls in the sources of this owner need.
fn needed(by: &str) -> BTreeSet<String> {
    let mut paths = Vec::new();
    sources(&file("src"), &mut paths);
    let mut needed = BTreeSet::new();
    for path in paths.into_iter().filter(|path| owner(path) == by) {
        let text = fs::read_to_string(&path).expect("a source");
        let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        for sdk in code.split("aws_sdk_").skip(1).filter_map(|rest| rest.split("::").next()) {
            let known = ["dynamodb", "sesv2", "bedrockruntime"];
            assert!(known.contains(&sdk), "{}: CALLS does not know aws_sdk_{sdk}", path.display());
        }
        needed.extend(called(code));
    }
    needed
}

/// The actions that this source needs. One that names no SDK needs none: a URL has a `.query()` as well.
fn called(code: &str) -> impl Iterator<Item = String> {
    let calls = CALLS.iter().filter(|(call, _)| code.contains("aws_sdk_") && code.contains(call));
    calls.map(|(_, action)| (*action).to_owned())
}

#[test]
fn only_the_calls_of_an_sdk_need_a_permission() {
    assert_eq!(called("use aws_sdk_dynamodb::Client; client.query()").collect::<Vec<_>>(), ["dynamodb:Query"]);
    assert_eq!(called("url.query()").count(), 0);
}

/// The actions of every role of the template.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let mut roles = BTreeMap::new();
    for (name, lines) in resources(&read("template.yaml")) {
        let is_role = values(&lines, "Type").first().is_some_and(|kind| kind.starts_with("AWS::IAM::"));
        let lists = values(&lines, "Action");
        let actions = lists
            .iter()
            .flat_map(|list| list.trim_matches(['[', ']']).split(','))
            .map(|action| action.trim().to_owned());
        let actions: BTreeSet<_> = actions.filter(|action| action != "sts:AssumeRole").collect();
        if is_role && !actions.is_empty() {
            roles.insert(name, actions);
        }
    }
    roles
}

#[test]
fn each_role_may_do_what_the_code_does_and_nothing_else() {
    let roles = allowed();
    let names: Vec<_> = roles.keys().map(String::as_str).collect();
    let known =
        ["ActionGroupRole", "AgentRole", "ApproverRole", "GatewayPolicy", "LoopRole", "Settings", "ToolsPolicy"];
    assert_eq!(names, known);
    for role in ["ApproverRole", "LoopRole", "ToolsPolicy"] {
        let used: BTreeSet<_> =
            roles[role].iter().filter(|action| !PLUMBING.contains(&action.as_str())).cloned().collect();
        assert_eq!(used, needed(role), "{role}: left is what template.yaml allows, right what the code calls");
    }
    // What the function does beside running tools is Lambda's.
    assert!(roles["ActionGroupRole"].iter().all(|action| PLUMBING.contains(&action.as_str())));
    // Bedrock and the gateway act by themselves.
    assert_eq!(roles["AgentRole"], BTreeSet::from([String::from("bedrock:InvokeModel")]));
    assert_eq!(roles["GatewayPolicy"], BTreeSet::from([String::from("lambda:InvokeFunction")]));
}

/// SAM publishes a version for new code only. Without this the alias would keep the settings of the version before.
#[test]
fn every_parameter_of_the_function_makes_a_new_version() {
    let template = read("template.yaml");
    let resources = resources(&template);
    let parameters = template.split_once("\nConditions:").expect("conditions").0;
    let is_parameter = |name: &&str| parameters.contains(&format!("\n  {name}:\n"));
    let function = resources["ActionGroup"].join("\n");
    let named = |text: &str| text.split([',', ']', '\n', ' ']).next().unwrap_or_default().to_owned();
    let mut used: BTreeSet<_> = function.split("!Ref ").skip(1).map(named).collect();
    used.retain(|name| is_parameter(&name.as_str()));
    for of_the_function in ["ReservedConcurrency", "DeploymentType"] {
        assert!(used.remove(of_the_function), "{of_the_function} is the function's, and no version's");
    }
    let settings = resources["Settings"].join("\n");
    let made_anew = settings.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()));
    let made_anew: BTreeSet<_> = made_anew.collect();
    assert_eq!(made_anew, used, "left is in the description of `Settings`, right are the parameters of `ActionGroup`");
    assert_eq!(values(&resources["ActionGroup"], "VersionDescription"), ["!Ref Settings"]);
    assert_eq!(values(&resources["Settings"], "Effect"), ["Deny"], "it is there for its name only");
}

#[test]
fn a_version_that_gets_its_calls_step_by_step_is_watched_by_the_faults_of_every_tool() {
    let alarms = resources(&read("infra/alarms.yaml"));
    let rule = alarms["VersionFaults"].join("\n");
    let wanted = toolbox().names().map(|tool| tool.split('_').map(capital).collect::<String>() + "ErrorRate").collect();
    let wanted: Vec<String> = [wanted, vec![String::from("DeadProcess"), String::from("FunctionErrors")]].concat();
    for alarm in wanted {
        assert!(alarms.contains_key(&alarm) && rule.contains(&format!("${{{alarm}}}")), "{alarm}: {rule}");
    }
    let function = resources(&read("template.yaml"))["ActionGroup"].join("\n");
    assert!(function.contains("!GetAtt Alarms.Outputs.VersionFaults"), "{function}");
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// What SAM reads of the mapping: off, unless a way is chosen that takes time.
#[test]
fn a_deployment_moves_all_calls_at_once_unless_another_way_is_chosen() {
    let template = read("template.yaml");
    let (_, mapping) = template.split_once("\n  Deployments:\n").expect("the mapping");
    let mapping: Vec<&str> = mapping.lines().take_while(|line| line.starts_with("    ")).map(str::trim).collect();
    let (at_once, gradual): (Vec<&str>, Vec<&str>) = mapping.iter().partition(|line| line.starts_with("AllAtOnce:"));
    assert_eq!(at_once, ["AllAtOnce: { Gradual: \"false\" }"]);
    assert!(!gradual.is_empty() && gradual.iter().all(|line| line.ends_with("{ Gradual: \"true\" }")), "{mapping:?}");
    let (_, parameter) = template.split_once("\n  DeploymentType:\n").expect("the parameter");
    let parameter = parameter.lines().take_while(|line| line.starts_with("    ")).collect::<String>();
    for way in mapping.iter().filter_map(|line| line.split(':').next()) {
        assert!(parameter.contains(way), "{way}: {parameter}");
    }
    assert!(parameter.contains("Default: AllAtOnce"), "{parameter}");
}

#[test]
fn what_becomes_of_a_turn_that_nobody_waits_for_is_told_to_the_destination_that_is_given() {
    let template = read("template.yaml");
    let resources = resources(&template);
    let lines = resources["LoopInvocations"].join("\n");
    for part in ["Qualifier: $LATEST", "MaximumRetryAttempts: 2", "OnSuccess: { Destination: !Ref LoopDestinationArn }"]
    {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert!(lines.contains("OnFailure: { Destination: !Ref LoopDestinationArn }"), "{lines}");
    assert!(resources["LoopRole"].iter().any(|line| line.trim() == "Resource: !Ref LoopDestinationArn"));
}

#[test]
fn no_permission_has_a_wildcard_but_that_of_x_ray() {
    let template = read("template.yaml");
    let lines: Vec<_> = template.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim().starts_with("Resource: \"*\"")) {
        assert!(lines[at - 1].contains("xray:"), "line {}: {line}", at + 1);
    }
    assert!(allowed().values().flatten().all(|action| !action.contains('*')));
}

/// A number of a parameter of the template.
fn number(parameter: &str, key: &str) -> u64 {
    let template = read("template.yaml");
    let mut lines = template.lines().skip_while(|line| line.trim_end() != format!("  {parameter}:"));
    lines.next().unwrap_or_else(|| panic!("there is no {parameter}"));
    let own: Vec<_> = lines.take_while(|line| line.starts_with("    ")).map(str::to_owned).collect();
    values(&own, key)[0].parse().unwrap_or_else(|_| panic!("{parameter}: {key}"))
}

#[test]
fn no_timeout_that_the_template_takes_is_too_short_for_a_tool() {
    let needed =
        |tool: &action_group::tool::Definition| longest(tool) + Duration::from_millis(number("ReserveMs", "Default"));
    for tool in toolbox().iter().map(Entry::definition) {
        let least = Duration::from_secs(number("TimeoutSeconds", "MinValue"));
        assert!(
            least >= needed(tool),
            "TimeoutSeconds may be {least:?}, but {} may need {:?}",
            tool.name,
            needed(tool)
        );
    }
    assert!(number("TimeoutSeconds", "MaxValue") <= 900, "Lambda's own limit");
}

/// What the process takes before a payload, with a margin, and how often a payload of the largest size is held at once:
/// measured, one of 6 MB takes 21 MB more than a small one.
const BASE_MB: u64 = 32;
const PAYLOAD_MB: u64 = 6;
const COPIES: u64 = 4;

#[test]
fn the_least_memory_that_the_template_takes_holds_the_largest_payload() {
    assert!(number("MemorySize", "MinValue") >= BASE_MB + PAYLOAD_MB * COPIES);
    assert!(number("MemorySize", "Default") >= number("MemorySize", "MinValue"));
}
