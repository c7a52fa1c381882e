//! `dev schema`: the tool definitions that a door's caller wants.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::{
    Trouble,
    database::{http_client, sdk_config},
    output::print,
    seed,
};
use crate::{
    door::{self, DOORS},
    tool::Toolbox,
    tools::{self, Backends},
};

pub const HELP: &str = "\
Doors:
  gateway            the tool schema of a Lambda target
  mcp                the result of tools/list
  agent-function     the functionSchema of an action group
  agent-openapi      the OpenAPI document of an action group
  flow               the Lambda nodes of a flow
  converse           a toolConfig
  return-of-control  as agent-function

Examples:
  dev schema converse
  dev schema agent-openapi > openapi.json";

#[derive(Debug, Args)]
pub struct Schema {
    /// The door; the list is below.
    #[arg(value_name = "DOOR")]
    pub door: String,
}

/// Prints them as one JSON document.
pub fn run(options: &Schema) -> Result<ExitCode, Trouble> {
    let document = document(&options.door)?;
    print(format_args!("{document:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn document(name: &str) -> Result<Value, Trouble> {
    let door = door::named(name).ok_or_else(|| {
        let names: Vec<_> = DOORS.iter().map(|door| door.name).collect();
        Trouble(format!("There is no door {name:?}. The doors are {}.", names.join(", ")))
    })?;
    Ok((door.definitions)(&toolbox()?))
}

/// The tools, to be looked at only: nothing is started or reached.
pub(super) fn toolbox() -> Result<Toolbox, Trouble> {
    let settings = tools::Settings::read(&mut seed::env());
    let backends = Backends::new(&settings, &sdk_config(seed::NOWHERE, http_client()));
    tools::toolbox(backends).map_err(|error| Trouble(error.to_string()))
}
