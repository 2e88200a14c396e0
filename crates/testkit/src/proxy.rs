//! A proxy for TCP connections that a test can cut, freeze and open again.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OPEN: u8 = 0;
const CUT: u8 = 1;
const FROZEN: u8 = 2;

/// Passes connections on to a port of the loopback interface.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    state: Arc<AtomicU8>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// Connections of earlier generations than this one are passed nothing.
    generation: Arc<AtomicU64>,
    late_commit: LateCommit,
    late_rollbacks: LateRollbacks,
}

/// How long the next commit is kept back, if so.
type LateCommit = Arc<Mutex<Option<Duration>>>;

/// So many milliseconds every rollback is kept back, with what follows it on the same connection.
type LateRollbacks = Arc<AtomicU64>;

impl Proxy {
    /// A proxy for the server at this port.
    pub fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(AtomicU8::new(OPEN));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (late_commit, late_rollbacks) = (LateCommit::default(), LateRollbacks::default());
        let (states, kept) = (state.clone(), streams.clone());
        let generation = Arc::new(AtomicU64::new(0));
        let generations = generation.clone();
        let late = (late_commit.clone(), late_rollbacks.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if states.load(Ordering::SeqCst) == CUT {
                    drop(client);
                    continue;
                }
                let generation = generations.load(Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let directions = [(&client, &server, Some(late.clone())), (&server, &client, None)];
                for (from, to, late) in directions {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let (state, newest) = (states.clone(), generations.clone());
                    let is_frozen = move || {
                        state.load(Ordering::SeqCst) == FROZEN
                            || newest.load(Ordering::SeqCst) > generation
                    };
                    std::thread::spawn(move || pass(from, to, is_frozen, late));
                }
                let mut kept = kept.lock().expect("no thread panics with it");
                kept.extend([client, server]);
            }
        });
        Proxy { port, state, streams, generation, late_commit, late_rollbacks }
    }

    /// Ends the client's side of the connection that sends the next commit to PostgreSQL, and passes
    /// the commit on so much later.
    pub fn delay_next_commit(&self, delay: Duration) {
        *self.late_commit.lock().expect("no thread panics with it") = Some(delay);
    }

    /// Passes every rollback on to PostgreSQL so much later, in order with what else its connection sends.
    pub fn delay_rollbacks(&self, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).expect("a short time");
        self.late_rollbacks.store(delay_ms, Ordering::SeqCst);
    }

    /// Ends all connections; new ones end at once.
    pub fn cut(&self) {
        self.state.store(CUT, Ordering::SeqCst);
        self.drop_connections();
    }

    /// Ends all connections; new ones are passed on.
    pub fn drop_connections(&self) {
        for stream in self.streams.lock().expect("no thread panics with it").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes nothing on, while all connections stay open, as a broken network does.
    pub fn freeze(&self) {
        self.state.store(FROZEN, Ordering::SeqCst);
    }

    /// Passes nothing more on over the connections that there are, which stay open, as when a firewall forgot
    /// them. New ones are passed on.
    pub fn forget_connections(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Passes everything on.
    pub fn open(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    is_frozen: impl Fn() -> bool,
    late: Option<(LateCommit, LateRollbacks)>,
) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_frozen() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let has = |word: &[u8]| bytes[..count].windows(word.len()).any(|part| part == word);
        let delay = late.as_ref().and_then(|(commit, _)| {
            has(b"COMMIT\0").then(|| commit.lock().expect("no thread panics with it").take())?
        });
        if let Some((_, rollbacks)) = late.as_ref().filter(|_| has(b"ROLLBACK")) {
            std::thread::sleep(Duration::from_millis(rollbacks.load(Ordering::SeqCst)));
        }
        if let Some(delay) = delay {
            let _ = from.shutdown(Shutdown::Both);
            std::thread::sleep(delay);
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
