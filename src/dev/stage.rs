//! The function with everything around it: the embedded DynamoDB, the demo backends and the faults that were asked for.

use std::{
    io::{Write, sink},
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_config::SdkConfig;

use super::{
    Trouble,
    account::Told,
    backends::{DemoCarrier, DemoMailer},
    commits,
    database::{Embedded, http_client, sdk_config},
    effects::Effects,
    faults::{Backstage, Fault},
    faulty::Faulty,
    output::create,
    schema, seed,
    tables::Tables,
};
use crate::{
    app,
    handler::Handler,
    settings::Settings,
    tool::{AnyTool, Toolbox},
    tools::{self, Backends},
};

/// Ready to be called.
pub struct Stage {
    /// The function.
    pub handler: Handler,
    /// The time that is kept back before a deadline.
    pub reserve: Duration,
    database: Embedded,
    backstage: Arc<Backstage>,
}

impl Stage {
    /// Sets it up: the database in memory or in this file, metric lines into that file or nowhere.
    pub async fn set(
        db: Option<&Path>,
        faults: Vec<Fault>,
        mail_log: bool,
        metrics: Option<&Path>,
    ) -> Result<Self, Trouble> {
        let (settings, own) = read_settings()?;
        let backstage = Arc::new(Backstage::new(schema::toolbox()?.names(), faults)?);
        let database = Embedded::start(db, 0).await?;
        let sdk = sdk_config(&database.endpoint(), commits::watching(http_client(), Arc::clone(&backstage)));
        let toolbox = toolbox(&own, database.tables(), mail_log, &sdk)?.map(|tool| on_stage(tool, &backstage));
        let metrics: Box<dyn Write + Send> = match metrics {
            Some(path) => Box::new(create(path)?), // which empties it: after all else that may fail
            None => Box::new(sink()),
        };
        let handler = app::assemble(&settings, toolbox, &sdk, metrics).map_err(|error| Trouble(error.to_string()))?;
        Ok(Self { handler, reserve: settings.reserve, database, backstage })
    }

    /// A client of the database, for what the program itself keeps there.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::new(&sdk_config(&self.database.endpoint(), http_client()))
    }

    /// The side effects that were really made.
    pub fn effects(&self) -> Result<Effects, Trouble> {
        Effects::read(self.database.tables(), self.backstage.calls())
    }
}

fn on_stage(tool: Arc<dyn AnyTool>, backstage: &Arc<Backstage>) -> Arc<dyn AnyTool> {
    Arc::new(Told(Arc::new(Faulty::new(tool, Arc::clone(backstage)))))
}

/// The tools of `src/tools`, with demo systems in the place of the carrier and the mailer.
fn toolbox(settings: &tools::Settings, tables: &Tables, mail_log: bool, sdk: &SdkConfig) -> Result<Toolbox, Trouble> {
    let backends = Backends {
        carrier: Arc::new(DemoCarrier(tables.clone())),
        mailer: Arc::new(DemoMailer { tables: tables.clone(), keeps_a_log: mail_log }),
        ..Backends::new(settings, sdk)
    };
    tools::toolbox(backends).map_err(|error| Trouble(error.to_string()))
}

fn read_settings() -> Result<(Settings, tools::Settings), Trouble> {
    let mut env = seed::env();
    let settings = (Settings::read(&mut env), tools::Settings::read(&mut env));
    env.finish().map_err(|error| Trouble(error.to_string()))?;
    Ok(settings)
}
