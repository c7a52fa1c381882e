//! Passes bytes on, and cuts connections as a load balancer does with idle ones.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A proxy of connections.
pub struct TcpProxy {
    address: SocketAddr,
    cut: watch::Sender<()>,
    accepted: Arc<AtomicUsize>,
}

impl TcpProxy {
    /// In front of `endpoint`, for example `http://127.0.0.1:8000`.
    pub async fn start(endpoint: &str) -> Self {
        let endpoint = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cut = watch::Sender::new(());
        let accepted = Arc::new(AtomicUsize::new(0));
        let (cuts, count) = (cut.clone(), Arc::clone(&accepted));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (endpoint, mut cut) = (endpoint.clone(), cuts.subscribe());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(endpoint).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cut, accepted }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes every connection that there is.
    pub fn cut(&self) {
        self.cut.send_replace(());
    }

    /// The connections so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}
