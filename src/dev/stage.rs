//! The function with everything around it: the embedded DynamoDB, the demo backends and the faults that were asked for.

use std::{fs::File, path::Path, sync::Arc};

use aws_config::SdkConfig;

use super::{
    Trouble,
    account::Told,
    backends::{DemoCarrier, DemoMailer},
    commits,
    database::{Embedded, Tables, http_client, sdk_config},
    effects::Effects,
    faults::{Backstage, Fault},
    faulty::Faulty,
    schema, seed,
};
use crate::{
    handler::Handler,
    tool::{AnyTool, Toolbox},
    tools::{self, Backends, Settings},
};

/// Ready to be called.
pub struct Stage {
    /// The function.
    pub handler: Handler,
    database: Embedded,
    backstage: Arc<Backstage>,
}

impl Stage {
    /// Sets it up: the database in memory or in this file, metric lines into that file or nowhere.
    pub async fn set(db: Option<&Path>, faults: Vec<Fault>, metrics: Option<File>) -> Result<Self, Trouble> {
        let backstage = Arc::new(Backstage::new(schema::toolbox()?.names(), faults)?);
        let database = Embedded::start(db, 0).await?;
        let sdk = sdk_config(&database.endpoint(), commits::watching(http_client(), Arc::clone(&backstage)));
        let toolbox = toolbox(database.tables(), &sdk)?.map(|tool| on_stage(tool, &backstage));
        Ok(Self { handler: handler(toolbox, &sdk, metrics), database, backstage })
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
fn toolbox(tables: &Tables, sdk: &SdkConfig) -> Result<Toolbox, Trouble> {
    let backends = Backends {
        carrier: Arc::new(DemoCarrier(tables.clone())),
        mailer: Arc::new(DemoMailer(tables.clone())),
        ..Backends::new(&Settings::read(seed::setting), sdk)
    };
    tools::toolbox(backends).map_err(|error| Trouble(error.to_string()))
}

/// The function itself: the one place where the local program and `main.rs` differ in how they build it.
fn handler(toolbox: Toolbox, sdk: &SdkConfig, metrics: Option<File>) -> Handler {
    let _records = (aws_sdk_dynamodb::Client::new(sdk), seed::IDEMPOTENCY);
    let _ = (toolbox, metrics);
    Handler {}
}
