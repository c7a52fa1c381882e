//! The carrier's API and SES, as far as the demo tools use them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};

/// Both, at one address; keeps what was really done.
pub struct Backends {
    endpoint: String,
    books: Books,
}

type Books = Arc<Mutex<Done>>;

/// What was done.
#[derive(Default)]
struct Done {
    /// How often each label was asked for, by its idempotency key. It is made once.
    labels: BTreeMap<String, usize>,
    /// How often each mail was sent, by its subject.
    mails: BTreeMap<String, usize>,
}

impl Backends {
    /// Starts them.
    pub async fn start() -> Self {
        let books = Books::default();
        let router = Router::new()
            .route("/labels", post(label))
            .route("/v2/email/outbound-emails", post(mail))
            .with_state(Arc::clone(&books));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, books }
    }

    /// Their URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How many labels were bought and mails were sent.
    pub fn done(&self) -> usize {
        let books = self.books.lock().unwrap();
        books.labels.len() + books.mails.values().sum::<usize>()
    }

    /// How many mails were sent with this subject.
    pub fn mails(&self, subject: &str) -> usize {
        self.books.lock().unwrap().mails.get(subject).copied().unwrap_or_default()
    }

    /// How many labels were bought, and how often one was asked for again.
    pub fn labels(&self) -> (usize, usize) {
        let books = self.books.lock().unwrap();
        (books.labels.len(), books.labels.values().map(|asked| asked - 1).sum())
    }
}

async fn label(State(books): State<Books>, headers: HeaderMap) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap();
    *books.lock().unwrap().labels.entry(key.to_owned()).or_default() += 1;
    Json(json!({"label_id": format!("LBL-{}", &key[..10])}))
}

async fn mail(State(books): State<Books>, Json(mail): Json<Value>) -> Json<Value> {
    let subject = mail["Content"]["Simple"]["Subject"]["Data"].as_str().unwrap().to_owned();
    let mut books = books.lock().unwrap();
    let sent = books.mails.entry(subject.clone()).or_default();
    *sent += 1;
    Json(json!({"MessageId": format!("{subject}-{sent}")}))
}
