//! The Lambda function with everything around it.

use std::path::Path;

use super::{Backends, Database, FaultyProxy, Function, RuntimeApi, TcpProxy};

/// A real program on a DynamoDB of its own, whose requests are counted. Ends with the value.
pub struct World {
    pub function: Function,
    /// Between the program and DynamoDB.
    pub faults: FaultyProxy,
    /// Between the program and [`Backends`]: `/labels` is the carrier, `/v2/email/outbound-emails` is SES.
    pub backend_faults: FaultyProxy,
    /// The connections of SES.
    pub ses: TcpProxy,
    pub backends: Backends,
    _database: Database,
}

impl World {
    /// Starts the program, and waits until it asks for work.
    pub async fn start(program: impl AsRef<Path>) -> Self {
        Self::start_with(program, &[]).await
    }

    /// The same with these settings besides.
    pub async fn start_with(program: impl AsRef<Path>, more: &[(&str, &str)]) -> Self {
        let mut world = Self::launch_with(program, more).await;
        world.function.ready().await;
        world
    }

    /// Starts another program on the same tables.
    pub async fn beside(&self, program: impl AsRef<Path>) -> Function {
        let mut function = self.launch_beside(program, &[]).await;
        function.ready().await;
        function
    }

    /// Starts another program on the same tables and backends, with these settings besides.
    pub async fn launch_beside(&self, program: impl AsRef<Path>, more: &[(&str, &str)]) -> Function {
        let (dynamodb, carrier, ses) = (self.faults.endpoint(), self.backend_faults.endpoint(), self.ses.endpoint());
        let settings = [&settings(&dynamodb, &carrier, &ses)[..], more].concat();
        RuntimeApi::start().await.launch(program, &settings)
    }

    /// Starts the program.
    pub async fn launch(program: impl AsRef<Path>) -> Self {
        Self::launch_with(program, &[]).await
    }

    async fn launch_with(program: impl AsRef<Path>, more: &[(&str, &str)]) -> Self {
        let database = Database::start().await;
        let faults = FaultyProxy::start(&database.endpoint()).await;
        let backends = Backends::start().await;
        let backend_faults = FaultyProxy::start(backends.endpoint()).await;
        let ses = TcpProxy::start(&backend_faults.endpoint()).await;
        let (dynamodb, carrier, mail) = (faults.endpoint(), backend_faults.endpoint(), ses.endpoint());
        let settings = [&settings(&dynamodb, &carrier, &mail)[..], more].concat();
        let function = RuntimeApi::start().await.launch(program, &settings);
        Self { function, faults, backend_faults, ses, backends, _database: database }
    }
}

fn settings<'a>(dynamodb: &'a str, carrier: &'a str, ses: &'a str) -> [(&'a str, &'a str); 7] {
    [
        ("IDEMPOTENCY_TABLE", Database::RECORDS),
        ("ORDERS_TABLE", "orders"),
        ("REFUNDS_TABLE", "refunds"),
        ("CARRIER_URL", carrier),
        ("MAIL_FROM", "shop@example.com"),
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb),
        ("AWS_ENDPOINT_URL_SESV2", ses),
    ]
}
