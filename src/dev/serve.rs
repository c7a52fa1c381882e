//! `dev dynamodb`: the embedded DynamoDB for other programs: `cargo lambda watch`, the AWS CLI, the Lambda binary.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use super::{
    Trouble,
    account::{Tone, tell},
    database::{ACCESS_KEY, Embedded, REGION},
    output::print,
    seed::{CONVERSATIONS, IDEMPOTENCY, MAIL_FROM, NOWHERE, ORDERS, REFUNDS},
};

#[derive(Debug, Args)]
pub struct Dynamodb {
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8000, value_parser = port)]
    pub port: u16,
    /// Keep the database in this file. Without it, all is gone at the end.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "give a whole number up to 65535, such as 8000")
}

/// Serves until Ctrl-C.
pub async fn run(options: &Dynamodb) -> Result<ExitCode, Trouble> {
    let database = Embedded::start(options.db.as_deref(), options.port).await?;
    print(exports(&database.endpoint()))?;
    tell(Tone::Good, "Serving until Ctrl-C. Paste the lines above into the shell that runs the function.");
    tokio::signal::ctrl_c().await.map_err(|error| Trouble(format!("Ctrl-C cannot be waited for: {error}.")))?;
    Ok(ExitCode::SUCCESS)
}

/// What a shell needs to point the function here. Nothing sells labels or sends mail: both are refused a connection.
fn exports(endpoint: &str) -> String {
    format!(
        "export AWS_ENDPOINT_URL_DYNAMODB={endpoint}\n\
         export AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={ACCESS_KEY} AWS_REGION={REGION}\n\
         export IDEMPOTENCY_TABLE={IDEMPOTENCY} ORDERS_TABLE={ORDERS} REFUNDS_TABLE={REFUNDS} \
         CONVERSATIONS_TABLE={CONVERSATIONS}\n\
         export CARRIER_URL={NOWHERE} MAIL_FROM={MAIL_FROM} AWS_ENDPOINT_URL_SESV2={NOWHERE}\n"
    )
}
