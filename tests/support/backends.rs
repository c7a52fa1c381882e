//! The carrier's API and SES, as far as the demo tools use them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};

type Count = Arc<AtomicUsize>;

/// Both, at one address; counts what was really done.
pub struct Backends {
    endpoint: String,
    done: Count,
}

impl Backends {
    /// Starts them.
    pub async fn start() -> Self {
        let done = Count::default();
        let router = Router::new()
            .route("/labels", post(label))
            .route("/v2/email/outbound-emails", post(mail))
            .with_state(Arc::clone(&done));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, done }
    }

    /// Their URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How many labels were bought and mails were sent.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

async fn label(State(done): State<Count>) -> Json<Value> {
    let number = done.fetch_add(1, Ordering::SeqCst);
    Json(json!({"label_id": format!("LBL-{number}")}))
}

async fn mail(State(done): State<Count>) -> Json<Value> {
    let number = done.fetch_add(1, Ordering::SeqCst);
    Json(json!({"MessageId": format!("mail-{number}")}))
}
