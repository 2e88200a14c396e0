//! Every store passes the conformance suite whole, and so does one that promises no more than it must.

mod loose;

use async_trait::async_trait;
use loose::Loose;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::store::{FileOptions, FileStore, MemoryStore, SqliteOptions, SqliteStore, Store};
use tenure::world::{Clock, ManualClock, SystemClock};
use tenure::{ClaimRequest, Claims, Client};
use tenure_conformance::{Harness, run_all};

/// Long enough for a busy machine, and short enough to be slept through.
const SHORT: Duration = Duration::from_millis(120);

#[derive(Default)]
struct Memory {
    clock: Arc<ManualClock>,
}

#[async_trait]
impl Harness for Memory {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::with_clock(self.clock.clone()))
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        store.clone()
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }

    async fn replace(&self, _: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    fn short_lease(&self) -> Duration {
        SHORT
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn cases_at_once(&self) -> usize {
        1
    }
}

/// SQLite stores in one folder.
struct Sqlite {
    folder: TempDir,
    made: AtomicUsize,
    clock: Arc<dyn Clock>,
    /// The same clock, where it can be moved; otherwise time is slept through.
    manual: Option<Arc<ManualClock>>,
}

impl Sqlite {
    fn new(clock: Arc<dyn Clock>, manual: Option<Arc<ManualClock>>) -> Sqlite {
        let folder = tempfile::tempdir().unwrap();
        Sqlite { folder, made: AtomicUsize::new(0), clock, manual }
    }

    fn open(&self, path: &Path) -> Arc<dyn Store> {
        let options = SqliteOptions {
            clock: self.clock.clone(),
            // So seldom that only a wake can be what woke.
            poll_interval: Duration::from_secs(3600),
            ..SqliteOptions::default()
        };
        Arc::new(SqliteStore::open_with(path, options).unwrap())
    }
}

fn path_of(store: &Arc<dyn Store>) -> PathBuf {
    store.info().url.strip_prefix("sqlite:").unwrap().into()
}

#[async_trait]
impl Harness for Sqlite {
    async fn fresh(&self) -> Arc<dyn Store> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.open(&self.folder.path().join(format!("{number}.db")))
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        self.open(&path_of(store))
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let path = path_of(&store);
        assert_eq!(Arc::strong_count(&store), 1, "somebody else still has the store open");
        drop(store);
        self.open(&path)
    }

    async fn replace(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let path = path_of(store);
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
        Some(self.open(&path))
    }

    fn short_lease(&self) -> Duration {
        SHORT
    }

    async fn pass(&self, time: Duration) {
        match &self.manual {
            Some(clock) => clock.advance(time),
            // The store counts whole milliseconds.
            None => tokio::time::sleep(time + Duration::from_millis(2)).await,
        }
    }

    fn cases_at_once(&self) -> usize {
        if self.manual.is_some() { 1 } else { 4 }
    }
}

/// File stores in one folder.
struct Files {
    folder: TempDir,
    made: AtomicUsize,
    clock: Arc<dyn Clock>,
    /// The same clock, where it can be moved; otherwise time is slept through.
    manual: Option<Arc<ManualClock>>,
}

impl Files {
    fn new(clock: Arc<dyn Clock>, manual: Option<Arc<ManualClock>>) -> Files {
        let folder = tempfile::tempdir().unwrap();
        Files { folder, made: AtomicUsize::new(0), clock, manual }
    }

    fn open(&self, folder: &Path) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        // So seldom that only a wake can be what woke.
        let poll_interval = Duration::from_secs(3600);
        let options = FileOptions { clock, poll_interval, ..FileOptions::default() };
        Arc::new(FileStore::open_with(folder, options).unwrap())
    }
}

fn folder_of(store: &Arc<dyn Store>) -> PathBuf {
    store.info().url.strip_prefix("file:").unwrap().into()
}

#[async_trait]
impl Harness for Files {
    async fn fresh(&self) -> Arc<dyn Store> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.open(&self.folder.path().join(number.to_string()))
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        self.open(&folder_of(store))
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let folder = folder_of(&store);
        assert_eq!(Arc::strong_count(&store), 1, "somebody else still has the store open");
        drop(store);
        self.open(&folder)
    }

    async fn replace(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let folder = folder_of(store);
        std::fs::remove_dir_all(&folder).unwrap();
        Some(self.open(&folder))
    }

    fn short_lease(&self) -> Duration {
        SHORT
    }

    async fn pass(&self, time: Duration) {
        match &self.manual {
            Some(clock) => clock.advance(time),
            // The store counts whole milliseconds.
            None => tokio::time::sleep(time + Duration::from_millis(2)).await,
        }
    }

    fn cases_at_once(&self) -> usize {
        if self.manual.is_some() { 1 } else { 4 }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_conform() {
    let clock = Arc::new(ManualClock::new());
    run_all(&Files::new(clock.clone(), Some(clock))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_conform_on_the_real_clock() {
    run_all(&Files::new(Arc::new(SystemClock), None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    run_all(&Memory::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms() {
    let clock = Arc::new(ManualClock::new());
    run_all(&Sqlite::new(clock.clone(), Some(clock))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms_on_the_real_clock() {
    run_all(&Sqlite::new(Arc::new(SystemClock), None)).await;
}

#[derive(Default)]
struct LooseStores {
    clock: Arc<ManualClock>,
}

#[async_trait]
impl Harness for LooseStores {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(Loose::new(self.clock.clone(), None))
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        store.clone()
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }

    async fn replace(&self, _: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    fn short_lease(&self) -> Duration {
        // As short as etcd can keep.
        Duration::from_secs(2)
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn cases_at_once(&self) -> usize {
        1
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_promises_no_more_than_it_must_conforms() {
    run_all(&LooseStores::default()).await;
}

fn tasks(count: usize) -> Vec<NewTask> {
    let new = |number| NewTask::new(format!("t{number}").parse().unwrap(), "a task");
    (0..count).map(new).collect()
}

#[tokio::test]
async fn a_change_beyond_the_limits_of_a_store_is_refused_whole() {
    let store = Arc::new(Loose::new(Arc::default(), Some(8)));
    let client = Client::builder().label("w").with_store(store).unwrap();
    let refused = client.tasks().add(tasks(9)).await.unwrap_err().to_string();
    assert!(refused.contains("writes 9 records, and the store takes 8 at once"), "{refused}");
    assert_eq!(client.tasks().tallies().await.unwrap(), []);
    client.tasks().add(tasks(8)).await.unwrap();
    assert_eq!(client.tasks().tallies().await.unwrap()[0].count, 8);
}

/// Two locks of such a store have the same token; each is verified, broken and released by its own
/// name.
#[tokio::test]
async fn the_resource_and_the_token_name_a_hold() {
    let store = Arc::new(Loose::new(Arc::default(), None));
    let client = Client::builder().label("w").with_store(store).unwrap();
    let (one, other) = (client.acquire("a").await.unwrap(), client.acquire("b").await.unwrap());
    assert_eq!(one.token(), other.token());
    one.release().await.unwrap();
    let held = client.look_everywhere().await.unwrap().holds;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0].hold.want.resource.to_string(), "b");
    other.release().await.unwrap();
}

/// Workers that are shown only some of the ready tasks still do each of them once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_task_is_overlooked_for_good_or_handed_out_twice() {
    let store: Arc<dyn Store> = Arc::new(Loose::new(Arc::default(), None));
    let client = |label: &str| Client::builder().label(label).with_store(store.clone()).unwrap();
    client("adder").tasks().add(tasks(60)).await.unwrap();
    let workers = (0..6).map(|number| {
        let client = client(&format!("w{number}"));
        tokio::spawn(async move {
            let mut done = Vec::new();
            while let Claims::Claimed { tasks, .. } =
                client.tasks().claim(&ClaimRequest::default()).await.unwrap()
            {
                for claimed in tasks {
                    done.push(claimed.task.id.to_string());
                    let proof = Proof::Grant(claimed.grant);
                    let finish = Finish::Complete { result: None };
                    let token = Some(claimed.token);
                    let id = &claimed.task.id;
                    client.tasks().finish(id, proof, token, None, finish).await.unwrap();
                }
            }
            done
        })
    });
    let mut done = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        done.extend(worker.await.unwrap());
    }
    done.sort();
    let mut all: Vec<String> = (0..60).map(|number| format!("t{number}")).collect();
    all.sort();
    assert_eq!(done, all);
}
