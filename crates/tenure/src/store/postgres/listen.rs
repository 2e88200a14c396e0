//! Hearing of wakes and of changes, over a connection of its own.
//!
//! Messages are hints: the connection may break, and a pooler between may not pass them on. Then
//! waiters and watchers look by themselves, more often.

use super::Inner;
use super::names::Names;
use super::session::Value;
use super::write::wake_word;
use crate::store::wake_registry::WakeRegistry;
use crate::watched::Watched;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tenure_core::GrantId;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Notification};

/// How long a message to oneself may take before it is clear that none arrive.
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);

/// The pauses before the connection is made anew.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What can be expected of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It was not needed yet.
    Off,
    /// The connection is being made.
    Starting,
    /// Messages arrive.
    On,
    /// No messages arrive here: it must be looked often.
    Never,
}

/// The listener of one store handle.
pub(super) struct Listener {
    turns: WakeRegistry,
    channel: String,
    hearing: Watched<Hearing>,
    /// Counts messages about changes.
    changes: Watched<u64>,
    /// Whether anyone here watches for changes.
    watches: AtomicBool,
    /// How many wakes each request has found by looking.
    found: Mutex<HashMap<GrantId, i64>>,
    client: Mutex<Option<Arc<Client>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    pub(super) fn new(names: &Names, pooled: bool) -> Listener {
        Listener {
            turns: WakeRegistry::default(),
            channel: names.own_channel(uuid::Uuid::new_v4().as_u128()),
            hearing: Watched::new(if pooled { Hearing::Never } else { Hearing::Off }),
            changes: Watched::new(0),
            watches: AtomicBool::new(false),
            found: Mutex::default(),
            client: Mutex::default(),
            task: Mutex::default(),
        }
    }

    /// The name under which this process is woken.
    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    pub(super) fn hearing(&self) -> Hearing {
        self.hearing.get()
    }

    /// Whether a place in a queue may be taken: a wake will be heard, or never will be.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.hearing.get(), Hearing::On | Hearing::Never)
    }

    /// From now on wakes for this request are kept.
    pub(super) fn expect(&self, grant: GrantId) {
        self.turns.expect(grant);
        self.found.lock().remove(&grant);
    }

    pub(super) fn forget(&self, grant: GrantId) {
        self.turns.forget(grant);
        self.found.lock().remove(&grant);
    }

    /// Whether there were more wakes than were found before.
    pub(super) fn has_more_wakes(&self, grant: GrantId, wakes: i64) -> bool {
        self.found.lock().insert(grant, wakes).unwrap_or(0) < wakes
    }

    /// Sleeps until this request is woken, or patience ends.
    pub(super) async fn turn(&self, grant: GrantId, patience: Duration) {
        self.turns.wait(grant, patience).await;
    }

    /// How many messages about changes came so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Sleeps until another message about changes comes.
    pub(super) async fn changed(&self, since: u64, patience: Duration) {
        let more = self.changes.wait_for(|count| count > since);
        let _ = tokio::time::timeout(patience, more).await;
    }

    /// Starts to listen, and waits until it is known whether messages arrive.
    pub(super) async fn start(&self, inner: &Arc<Inner>) {
        if self.hearing.get() == Hearing::Off {
            let mut task = self.task.lock();
            if task.is_none() {
                *task = Some(tokio::spawn(listen(Arc::downgrade(inner))));
            }
        }
        let known =
            self.hearing.wait_for(|hearing| matches!(hearing, Hearing::On | Hearing::Never));
        let _ = tokio::time::timeout(ECHO_TIMEOUT * 2, known).await;
    }

    /// From now on changes are to be told to this process.
    pub(super) async fn watch(&self, inner: &Arc<Inner>) {
        self.start(inner).await;
        if self.watches.swap(true, Ordering::SeqCst) {
            return;
        }
        let client = self.client.lock().clone();
        if let Some(client) = client {
            watch_changes(&client, &inner.names).await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

/// Writers tell of changes while some process shares this lock.
async fn watch_changes(client: &Client, names: &Names) {
    let sql = format!("SELECT pg_catalog.pg_advisory_lock_shared({}, 2)", names.space);
    let _ = tokio::time::timeout(ECHO_TIMEOUT, client.batch_execute(&sql)).await;
}

/// Keeps a connection for messages, until the store is closed.
async fn listen(inner: Weak<Inner>) {
    let mut pause = PAUSE_MIN;
    loop {
        let Some(store) = inner.upgrade() else { return };
        let listener = &store.listener;
        match hear(&store).await {
            Ok(mut ended) => {
                pause = PAUSE_MIN;
                // What was told meanwhile was not heard: all look again.
                listener.turns.wake_where(|_| true);
                listener.changes.update(|count| count + 1);
                let store_gone = inner.clone();
                drop(store);
                while ended.recv().await.is_some() {}
                let Some(store) = store_gone.upgrade() else { return };
                if store.listener.hearing.get() == Hearing::On {
                    store.listener.hearing.update(|_| Hearing::Starting);
                }
                *store.listener.client.lock() = None;
            }
            Err(Deaf) if listener.hearing.get() == Hearing::Never => return,
            Err(Deaf) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// No message came, or no connection.
struct Deaf;

/// Connects and tries whether messages arrive. Returns what ends with the connection.
async fn hear(inner: &Arc<Inner>) -> Result<mpsc::UnboundedReceiver<()>, Deaf> {
    let listener = &inner.listener;
    listener.hearing.update(|hearing| match hearing {
        Hearing::Off => Hearing::Starting,
        other => other,
    });
    let (client, mut connection) = inner.pool.connector().connect().await.map_err(|_| Deaf)?;
    let (heard, mut echoes) = mpsc::unbounded_channel();
    let (alive, ended) = mpsc::unbounded_channel();
    let weak = Arc::downgrade(inner);
    tokio::spawn(async move {
        let _alive = alive;
        loop {
            let message = std::future::poll_fn(|context| connection.poll_message(context)).await;
            match message {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    let Some(inner) = weak.upgrade() else { return };
                    if notification.payload() == ECHO {
                        let _ = heard.send(());
                    }
                    inner.listener.hear(&notification);
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    });
    let changes = inner.names.changes_channel();
    let own = &listener.channel;
    let sql = format!("LISTEN {own}; LISTEN {changes}");
    let listening = tokio::time::timeout(ECHO_TIMEOUT, client.batch_execute(&sql)).await;
    listening.map_err(|_| Deaf)?.map_err(|_| Deaf)?;
    // Over another connection: a pooler passes on what comes while it serves the same client.
    let session = inner.pool.get().await.map_err(|_| Deaf)?;
    let echo = [Value::Text(own.clone()), Value::Text(ECHO.to_owned())];
    session.query("SELECT pg_notify($1, $2)::text", &echo).await.map_err(|_| Deaf)?;
    drop(session);
    let echo = tokio::time::timeout(ECHO_TIMEOUT, echoes.recv()).await;
    if !matches!(echo, Ok(Some(()))) {
        listener.hearing.update(|_| Hearing::Never);
        return Err(Deaf);
    }
    if listener.watches.load(Ordering::SeqCst) {
        watch_changes(&client, &inner.names).await;
    }
    *listener.client.lock() = Some(Arc::new(client));
    listener.hearing.update(|_| Hearing::On);
    Ok(ended)
}

const ECHO: &str = "echo";

impl Listener {
    fn hear(&self, notification: &Notification) {
        match notification.channel() == self.channel {
            true => self.turns.wake_where(|grant| wake_word(grant) == notification.payload()),
            false => self.changes.update(|count| count + 1),
        }
    }
}
