//! What only the SQLite store must show: damaged and foreign files, samples of each version, full and read-only disks, many
//! who open at once, reboots, clocks that jump, its views, its trimmed history, its
//! mailboxes and its batches.

mod damage;
mod disks;
mod history;
mod mailboxes;
mod one_shots;
mod opening;
mod reboot;
mod replaced;
mod samples;
mod together;
mod views;
mod wall_clock;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::{
    Change, Decision, EventKind, GrantId, Hold, Holder, Mode, NewEvent, Resource, Revision, Scope,
    Snapshot, Token, Want, Write,
};
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::store::{StoreError, StoreExt, transact_with};
use tenure::world::{Clock, ManualClock};

const HOUR: Duration = Duration::from_secs(3600);

/// A folder, the path of a store in it, and the clock of the machine.
struct StoreLocation {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl StoreLocation {
    fn new() -> StoreLocation {
        StoreLocation { folder: tempfile::tempdir().unwrap(), clock: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<SqliteStore, StoreError> {
        open_with(&self.path(), self.clock.clone())
    }

    /// What lies in the folder.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn open_with(path: &Path, clock: Arc<dyn Clock>) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_with(path, SqliteOptions { clock, ..SqliteOptions::default() })
}

fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

fn grant(number: u128) -> GrantId {
    GrantId::from_bits(number)
}

/// A change that holds this, with its event.
fn holding(name: &str, grant: GrantId, holder: &Holder, seen: &Snapshot) -> Change {
    let token = seen.next_token();
    let hold = Hold {
        want: Want { resource: resource(name), mode: Mode::Exclusive },
        grant,
        token,
        holder: holder.clone(),
        operation: None,
        ttl: HOUR,
        slot: None,
    };
    let kind = EventKind::Acquired { operation: None };
    let event = NewEvent::new(Some(resource(name)), holder.label.clone(), Some(token), kind);
    Change { writes: vec![Write::Hold(hold)], events: vec![event], ..Change::default() }
}

/// Holds this for an hour.
async fn take(store: &SqliteStore, name: &str, number: u128) -> Result<Token, StoreError> {
    let holder = Holder::anonymous("somebody".to_owned());
    let name = name.to_owned();
    let rule = move |seen: &Snapshot| {
        let change = holding(&name, grant(number), &holder, seen);
        (Decision::Write(change), seen.next_token())
    };
    let (_, token) = transact_with(store, Scope::Everything, None, rule).await?;
    Ok(token)
}

async fn everything(store: &SqliteStore) -> Snapshot {
    store.read(&Scope::Everything).await.unwrap()
}

async fn all_events(store: &SqliteStore) -> Vec<EventKind> {
    let events = store.events(Revision(0), u32::MAX).await.unwrap();
    events.into_iter().map(|event| event.event.kind).collect()
}

/// This test program, to run one of its ignored tests as another process that uses this store.
fn process(test: &str, store: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("TENURE_TEST_STORE", store);
    command
}

/// In such a process: the store that it is to use.
fn given_store() -> PathBuf {
    std::env::var_os("TENURE_TEST_STORE").expect("this test is run by another one").into()
}
