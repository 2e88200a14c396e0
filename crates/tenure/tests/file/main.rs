//! What only the file store must show: damaged and foreign files, generations and the archive,
//! reboots and power loss, and what is held as `held/` shows it.

mod answers;
mod archive;
mod damage;
mod generations;
mod reboot;
mod replaced;
mod retention;
mod samples;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::Client;
use tenure::core::{
    Change, Decision, EventKind, GrantId, Hold, Holder, Mode, NewEvent, Resource, Scope, Snapshot,
    Token, Want, Write,
};
use tenure::store::{FileOptions, FileStore};
use tenure::store::{Store, StoreError, StoreExt, Transaction, transact_with};
use tenure::world::ManualClock;

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

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("store").join(name)
    }

    /// The file of a generation.
    fn journal(&self, generation: u64) -> PathBuf {
        self.path(&format!("journal/{generation:08}.jsonl"))
    }

    fn newest(&self) -> u64 {
        (1..).take_while(|generation| self.has_or_had(*generation)).last().unwrap()
    }

    fn has_or_had(&self, generation: u64) -> bool {
        files(&self.path("journal")).iter().any(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            name.parse::<u64>().is_ok_and(|number| number >= generation)
        })
    }

    fn open(&self) -> FileStore {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<FileStore, StoreError> {
        let options = FileOptions { clock: self.clock.clone(), ..FileOptions::default() };
        FileStore::open_with(&self.folder.path().join("store"), options)
    }

    fn client(&self) -> Client {
        Client::builder().with_store(Arc::new(self.open())).unwrap()
    }

    /// All files with what is in them, the queue of writers and its mark aside.
    fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = files(&self.folder.path().join("store"));
        all.retain(|path| !path.starts_with(self.path("side")));
        all.sort();
        all.into_iter().map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files
}

fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

/// Holds this for an hour, with an operation of so many bytes.
async fn take_much(store: &FileStore, name: &str, bytes: usize) -> Result<Token, StoreError> {
    let resource = resource(name);
    let rule = move |seen: &Snapshot| {
        let token = seen.next_token();
        let hold = Hold {
            want: Want { resource: resource.clone(), mode: Mode::Exclusive },
            grant: GrantId::from_bits(u128::from(token.0)),
            token,
            holder: Holder::anonymous("somebody".to_owned()),
            operation: (bytes > 0).then(|| "x".repeat(bytes)),
            ttl: HOUR,
            slot: None,
        };
        let kind = EventKind::Acquired { operation: None };
        let event = NewEvent::new(Some(resource.clone()), "somebody", Some(token), kind);
        let writes = vec![Write::Hold(hold)];
        let change = Change { writes, events: vec![event], ..Change::default() };
        (Decision::Write(change), token)
    };
    let (_, token) = transact_with(store, Scope::Everything, None, rule).await?;
    Ok(token)
}

async fn take(store: &FileStore, name: &str) -> Result<Token, StoreError> {
    take_much(store, name, 0).await
}

async fn give_back(store: &FileStore, name: &str, token: Token) {
    let write = Write::DropHold {
        resource: resource(name),
        grant: GrantId::from_bits(u128::from(token.0)),
    };
    let change = Change { writes: vec![write], ..Change::default() };
    let decide = move |_: &Snapshot| Decision::Write(change.clone());
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
}

/// The names of what is held.
async fn held(store: &FileStore) -> Vec<String> {
    let seen = store.read(&Scope::Everything).await.unwrap();
    let mut names: Vec<String> =
        seen.holds.iter().map(|seen| seen.hold.want.resource.to_string()).collect();
    names.sort();
    names
}

/// Takes and gives back until the next generation has begun.
async fn begin_next_generation(place: &StoreLocation, store: &FileStore) {
    let before = place.newest();
    while place.newest() == before {
        let token = take_much(store, "filler", 20_000).await.unwrap();
        give_back(store, "filler", token).await;
    }
}

async fn is_in_order(store: &FileStore) {
    for finding in store.check().await.unwrap() {
        assert!(finding.ok, "{finding:?}");
    }
}
