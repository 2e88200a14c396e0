//! Every store passes the conformance suite whole.

use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tenure::conformance::{Harness, run_all};
use tenure::store::MemoryStore;
use tenure::store::Store;
use tenure::store::{FileOptions, FileStore};
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::world::{Clock, ManualClock, SystemClock};

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
