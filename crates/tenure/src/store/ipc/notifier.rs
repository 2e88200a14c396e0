//! How processes notify each other: a mailbox to wake a waiter, and a change signal for watchers.
//!
//! Neither ever touches the database's own files: closing any descriptor on those would drop the
//! locks that SQLite holds on them.

use crate::platform::access;
use crate::store::StoreError;
use crate::store::wake_registry::WakeRegistry;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenure_core::{GrantId, Revision};
use tokio::sync::Notify;

/// The file that writers touch after a change. Its name is part of the store's format.
const SIGNAL_FILE: &str = "bell";

/// The mailbox of one store handle, messages to other mailboxes, and the change signal.
pub(crate) struct Notifier {
    side: PathBuf,
    address: String,
    turns: Arc<WakeRegistry>,
    /// Opened when the first request of this handle has to wait.
    mailbox: Mutex<Option<Listener>>,
    /// The file that writers touch after a change; none in a read-only store.
    signal: Option<File>,
    /// Watches that file, from the first wait for a change on.
    watcher: OnceLock<Option<SignalWatcher>>,
}

impl Notifier {
    pub(crate) fn open(side: &Path, look_only: bool) -> io::Result<Notifier> {
        let mut options = OpenOptions::new();
        options.create(!look_only).truncate(false).write(true);
        super::ensure_regular(&side.join(SIGNAL_FILE))?;
        let signal = match access::open(&mut options, &side.join(SIGNAL_FILE)) {
            Err(_) if look_only => None,
            signal => Some(signal?),
        };
        Ok(Notifier {
            side: side.to_owned(),
            address: uuid::Uuid::new_v4().simple().to_string(),
            turns: Arc::default(),
            mailbox: Mutex::new(None),
            signal,
            watcher: OnceLock::new(),
        })
    }

    /// Where this handle's waiting requests are woken.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A request of this handle is about to wait. Must come before its place can be seen.
    pub(crate) fn expect(&self, grant: GrantId) {
        self.turns.expect(grant);
        let mut mailbox = self.mailbox.lock();
        if mailbox.is_none() {
            // Without a mailbox the request still looks again from time to time.
            *mailbox = Listener::start(&self.side, &self.address, self.turns.clone()).ok();
        }
    }

    /// A request waits no longer.
    pub(crate) fn forget(&self, grant: GrantId) {
        self.turns.forget(grant);
    }

    /// Wakes a request, of this handle or of another process.
    pub(crate) fn wake(&self, grant: GrantId, address: &str) {
        if address == self.address {
            self.turns.wake(grant);
        } else {
            send(&self.side, address, grant);
        }
    }

    /// Sleeps until the request is woken or patience ends.
    pub(crate) async fn wait(&self, grant: GrantId, patience: Duration) {
        self.turns.wait(grant, patience).await;
    }

    /// Tells watchers that something changed. Checking whether there are any costs half as much as
    /// a write; a watcher that starts meanwhile reads the store after that.
    #[expect(clippy::disallowed_methods, reason = "a sign of presence, not the writers' queue")]
    pub(crate) fn signal_change(&self) {
        let Some(signal) = &self.signal else { return };
        if signal.try_lock().is_ok() {
            let _ = signal.unlock();
            return;
        }
        let _ = std::os::unix::fs::FileExt::write_at(signal, b".", 0);
    }

    /// Notified at every change. `None` where the system cannot watch files.
    fn changes(&self) -> Option<Arc<Notify>> {
        let watcher =
            self.watcher.get_or_init(|| SignalWatcher::start(&self.side.join(SIGNAL_FILE)).ok());
        watcher.as_ref().map(|watcher| watcher.changed.clone())
    }

    /// Returns the newest revision as soon as it is beyond `since`, or when patience ends. Looks
    /// at every change signal, and from time to time where the system cannot watch files.
    pub(crate) async fn changed(
        &self,
        newest: impl Fn() -> Result<Revision, StoreError>,
        since: Revision,
        patience: Duration,
        poll_interval: Duration,
    ) -> Result<Revision, StoreError> {
        if patience.is_zero() {
            // Watching takes a thread; a caller that does not wait needs none.
            return newest();
        }
        let begun = tokio::time::Instant::now();
        let changes = self.changes();
        loop {
            let changed = changes.as_ref().map(|changes| changes.notified());
            tokio::pin!(let changed = async {
                match changed {
                    Some(changed) => changed.await,
                    None => std::future::pending().await,
                }
            };);
            let newest = newest()?;
            let left = patience.saturating_sub(begun.elapsed());
            if newest > since || left.is_zero() {
                return Ok(newest);
            }
            let _ = tokio::time::timeout(left.min(poll_interval), changed).await;
        }
    }

    /// What dead processes left behind: their mailboxes and temporary files.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let mut leftovers = orphans(&self.side);
        for folder in [self.side.clone(), self.side.join("wake")] {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            leftovers.extend(entries.map(|entry| entry.path()).filter(|path| is_abandoned(path)));
        }
        leftovers
    }

    /// Removes what dead processes left behind; returns how many files.
    pub(crate) fn tidy(&self) -> usize {
        self.leftovers().iter().filter(|path| std::fs::remove_file(path).is_ok()).count()
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        let mailbox = self.mailbox.lock().take();
        if let Some(listener) = mailbox {
            listener.stop(&self.side, &self.address);
        }
    }
}

/// How old a temporary file must be to count as abandoned: writing one takes milliseconds.
const ABANDONED_AGE: Duration = Duration::from_secs(600);

/// Whether this is a temporary file abandoned by a crashed writer.
fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = name.starts_with("draft-") || name.ends_with(".new");
    let age = || std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    temporary && age().is_some_and(|age| age >= ABANDONED_AGE)
}

struct SignalWatcher {
    changed: Arc<Notify>,
    /// Locked shared by every watcher, so that writers know that there is one.
    _presence: File,
    _watcher: notify::RecommendedWatcher,
}

impl SignalWatcher {
    fn start(signal: &Path) -> notify::Result<SignalWatcher> {
        use notify::Watcher;
        let presence = File::open(signal)?;
        presence.lock_shared()?;
        let changed = Arc::new(Notify::new());
        let notify = changed.clone();
        let mut watcher = notify::recommended_watcher(move |_| notify.notify_waiters())?;
        watcher.watch(signal, notify::RecursiveMode::NonRecursive)?;
        Ok(SignalWatcher { changed, _presence: presence, _watcher: watcher })
    }
}

use fifo::{Listener, orphans, send};

mod fifo {
    use super::*;
    use crate::platform::{fork, mailbox};
    use std::io::Read;

    /// Asks the listener to end; no request has this id.
    const STOP: [u8; 16] = [0; 16];

    /// One in so many new mailboxes also clears away those of dead processes: together they keep
    /// the folder small, and a thousand that start at once do not all look at a thousand.
    const TIDY_ONE_IN: u8 = 32;

    fn path(side: &Path, address: &str) -> PathBuf {
        side.join("wake").join(address)
    }

    pub(super) fn send(side: &Path, address: &str, grant: GrantId) {
        mailbox::send(&path(side, address), &grant.to_bits().to_be_bytes());
    }

    /// A thread that reads the mailbox and wakes the requests that the messages name.
    pub(super) struct Listener;

    impl Listener {
        pub(super) fn start(
            side: &Path,
            address: &str,
            turns: Arc<WakeRegistry>,
        ) -> io::Result<Listener> {
            let mut pipe = mailbox::create(&path(side, address))?;
            let lucky = address.bytes().fold(0_u8, u8::wrapping_add) % TIDY_ONE_IN == 0;
            if lucky {
                for orphan in orphans(side) {
                    let _ = std::fs::remove_file(orphan);
                }
            }
            std::thread::Builder::new().name("tenure-wake".to_owned()).spawn(move || {
                let mut message = [0; 16];
                while pipe.read_exact(&mut message).is_ok() && message != STOP {
                    let _inside = fork::inside();
                    turns.wake(GrantId::from_bits(u128::from_be_bytes(message)));
                }
            })?;
            Ok(Listener)
        }

        pub(super) fn stop(self, side: &Path, address: &str) {
            let path = path(side, address);
            mailbox::send(&path, &STOP);
            let _ = std::fs::remove_file(path);
        }
    }

    pub(super) fn orphans(side: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(side.join("wake")) else { return vec![] };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        // One that ends in `.new` is being made right now.
        paths.filter(|path| path.extension().is_none() && mailbox::is_orphan(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_temporary_file_is_abandoned_and_removed() {
        let side = tempfile::tempdir().unwrap();
        std::fs::create_dir(side.path().join("wake")).unwrap();
        let notifier = Notifier::open(side.path(), false).unwrap();
        let make = |name: &str, age: Duration| {
            let file = File::create(side.path().join(name)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - age).unwrap();
        };
        make("draft-old", ABANDONED_AGE * 2);
        make("draft-new", Duration::ZERO);
        make("wake/old.new", ABANDONED_AGE * 2);
        assert_eq!(notifier.leftovers().len(), 2);
        assert_eq!(notifier.tidy(), 2);
        assert_eq!(notifier.leftovers().len(), 0);
        assert!(side.path().join("draft-new").exists() && side.path().join(SIGNAL_FILE).exists());
    }
}
