//! A proxy before a server that can lose answers and delay requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// See the module. It ends with its test's runtime.
pub struct Proxy {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many packets with answers still pass; none are lost while it is negative.
    passes: AtomicI64,
    is_losing: AtomicBool,
    /// Whether it goes on losing after the first one.
    goes_on: AtomicBool,
    lost: AtomicUsize,
    delay_ms: AtomicU64,
}

impl Proxy {
    pub async fn start(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state: Arc<State> = Arc::default();
        let (server, shared) = (server.to_owned(), state.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, state) = (server.clone(), shared.clone());
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        carry(client, server, state).await;
                    }
                });
            }
        });
        Proxy { address, state }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// After so many more packets of answers, one is lost and its connection ends.
    pub fn lose_answers_after(&self, packets: i64) {
        self.state.passes.store(packets, Ordering::SeqCst);
        self.state.is_losing.store(true, Ordering::SeqCst);
    }

    /// The same for all answers from then on.
    pub fn lose_all_answers_after(&self, packets: i64) {
        self.state.goes_on.store(true, Ordering::SeqCst);
        self.lose_answers_after(packets);
    }

    pub fn pass_all(&self) {
        self.state.goes_on.store(false, Ordering::SeqCst);
        self.state.is_losing.store(false, Ordering::SeqCst);
    }

    /// Each packet of requests is kept back for so long.
    pub fn delay(&self, time: Duration) {
        self.state.delay_ms.store(time.as_millis() as u64, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }
}

impl State {
    /// Whether this packet is to be lost.
    fn loses(&self) -> bool {
        if !self.is_losing.load(Ordering::SeqCst) {
            return false;
        }
        if self.passes.fetch_sub(1, Ordering::SeqCst) > 0 {
            return false;
        }
        // Once: the next connection works.
        if !self.goes_on.load(Ordering::SeqCst) {
            self.is_losing.store(false, Ordering::SeqCst);
        }
        self.lost.fetch_add(1, Ordering::SeqCst);
        true
    }
}

async fn carry(client: TcpStream, server: TcpStream, state: Arc<State>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let slow = state.clone();
    let asking = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let delay_ms = slow.delay_ms.load(Ordering::SeqCst);
            if delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            }
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let answering = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if state.loses() {
                // The server has done what it was asked.
                tokio::time::sleep(Duration::from_millis(50)).await;
                return;
            }
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = asking => {}
        () = answering => {}
    }
}
