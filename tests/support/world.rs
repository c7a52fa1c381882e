//! The Lambda function with everything around it.

use std::path::Path;

use super::{Backends, CountingProxy, Database, FaultyProxy, Function, RuntimeApi};

/// A real program on a DynamoDB of its own, whose requests are counted. Ends with the value.
pub struct World {
    pub function: Function,
    pub proxy: CountingProxy,
    pub faults: FaultyProxy,
    pub backends: Backends,
    _database: Database,
}

impl World {
    /// Starts the program, and waits until it asks for work.
    pub async fn start(program: impl AsRef<Path>) -> Self {
        let mut world = Self::launch(program).await;
        world.function.ready().await;
        world
    }

    /// Starts another program on the same tables.
    pub async fn beside(&self, program: impl AsRef<Path>) -> Function {
        let settings =
            [("IDEMPOTENCY_TABLE", Database::RECORDS), ("AWS_ENDPOINT_URL_DYNAMODB", &self.proxy.endpoint())];
        let mut function = RuntimeApi::start().await.launch(program, &settings);
        function.ready().await;
        function
    }

    /// Starts the program.
    pub async fn launch(program: impl AsRef<Path>) -> Self {
        let database = Database::start().await;
        let faults = FaultyProxy::start(&database.endpoint()).await;
        let proxy = CountingProxy::start(&faults.endpoint()).await;
        let backends = Backends::start().await;
        let settings = [
            ("IDEMPOTENCY_TABLE", Database::RECORDS),
            ("ORDERS_TABLE", "orders"),
            ("REFUNDS_TABLE", "refunds"),
            ("CARRIER_URL", backends.endpoint()),
            ("MAIL_FROM", "shop@example.com"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &proxy.endpoint()),
            ("AWS_ENDPOINT_URL_SESV2", backends.endpoint()),
        ];
        let function = RuntimeApi::start().await.launch(program, &settings);
        Self { function, proxy, faults, backends, _database: database }
    }
}
