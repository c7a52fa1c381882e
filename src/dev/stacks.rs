//! What the generated templates in `infra/` have in common. Each is a stack of its own: `template.yaml` nests them, and
//! without SAM they are deployed alone.

use std::fmt::Write as _;

use super::seed;
use crate::{settings::Settings, tools};

/// A parameter: its name, what it is, and its default if it has one.
pub(super) type Parameter<'a> = (&'a str, &'a str, Option<&'a str>);

pub(super) const SERVICE: Parameter<'static> = ("Service", "The function's SERVICE_NAME.", None);
pub(super) const NAMESPACE: Parameter<'static> =
    ("Namespace", "The function's METRICS_NAMESPACE.", Some("BedrockActionGroup"));
pub(super) const RUNBOOK: Parameter<'static> =
    ("Runbook", "Where docs/operations.md can be read: a URL, for those who are woken.", Some("docs/operations.md"));

/// The beginning of a template, up to its resources.
pub(super) fn head(command: &str, description: &str, parameters: &[Parameter<'_>]) -> String {
    let mut head = format!(
        "# Written by `{command}`, from the tools. Change the code, not this file.\n\
         AWSTemplateFormatVersion: \"2010-09-09\"\nDescription: {description}\n\nParameters:\n"
    );
    for (name, description, default) in parameters {
        let _ = writeln!(head, "  {name}:\n    Description: \"{description}\"\n    Type: String"); // to a String, so it cannot fail
        if let Some(default) = default {
            let _ = writeln!(head, "    Default: \"{default}\"");
        }
    }
    head.push('\n');
    head
}

/// The deployment's tables: every setting that ends in `_TABLE`, as the name of a parameter. `ORDERS_TABLE` is
/// `OrdersTable`.
pub fn tables() -> Vec<String> {
    let mut env = seed::env();
    Settings::read(&mut env);
    tools::Settings::read(&mut env);
    let mut tables: Vec<_> = env.names().filter(|name| name.ends_with("_TABLE")).map(pascal).collect();
    tables.sort();
    tables.dedup();
    tables
}

/// `refund_order` and `REFUND_ORDER` as CloudFormation spells names: `RefundOrder`.
pub(super) fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(letters.map(|c| c.to_ascii_lowercase()))
            .collect::<String>()
    };
    name.split('_').map(word).collect()
}
