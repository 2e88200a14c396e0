//! A request or a claim that is dropped at any of its steps leaves nothing held, queued or claimed.
//! Over a server the same is shown by `crates/server/tests/called_off.rs`.

use async_trait::async_trait;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{GrantId, Status};
use tenure::store::{
    Answer, Committed, Maintained, Maintenance, MemoryStore, Query, Renewal, Renewed, Signal,
    Store, StoreError, StoreInfo, Transaction, Waited,
};
use tenure::world::{VirtualWorld, World};
use tenure::{ClaimRequest, Client, Wait};
use tokio::task::yield_now;

/// A store that lets others run before and after each call, so that a call can be dropped there.
struct Yielding(MemoryStore);

#[async_trait]
impl Store for Yielding {
    fn info(&self) -> StoreInfo {
        self.0.info()
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        yield_now().await;
        let committed = self.0.transact(transaction).await;
        yield_now().await;
        committed
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.0.renew(renewals).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        yield_now().await;
        self.0.query(query).await
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        yield_now().await;
        let waited = self.0.wait(signal, patience).await;
        yield_now().await;
        waited
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.0.maintain(work).await
    }
}

struct Scene {
    world: VirtualWorld,
    store: Arc<dyn Store>,
}

impl Scene {
    fn new() -> Scene {
        let world = VirtualWorld::new(1);
        let store = Arc::new(Yielding(MemoryStore::with_clock(world.clock())));
        Scene { world, store }
    }

    fn client(&self) -> Client {
        Client::builder().world(self.world.clone()).with_store(self.store.clone()).unwrap()
    }

    /// Polls a future so often, and drops it; says whether it was done by then.
    async fn drop_after<T>(&self, polls: usize, future: impl Future<Output = T>) -> bool {
        let mut future = pin!(future);
        for _ in 0..polls {
            let done = tokio::select! {
                biased;
                _ = &mut future => true,
                () = std::future::ready(()) => false,
            };
            if done {
                return true;
            }
            yield_now().await;
        }
        false
    }

    /// Lets the background do what it has to do.
    async fn settle(&self) {
        self.world.sleep(Duration::from_millis(100)).await;
    }
}

/// A future that is not done after so many polls waits for something else.
const POLLS_MAX: usize = 60;

#[tokio::test(start_paused = true)]
async fn an_acquire_of_what_is_free() {
    let scene = Scene::new();
    let (client, other) = (scene.client(), scene.client());
    let mut dropped = 0;
    for polls in 0..POLLS_MAX {
        let done = scene.drop_after(polls, client.acquire("a")).await;
        scene.settle().await;
        let seen = other.look_everywhere().await.unwrap();
        assert_eq!((seen.holds, seen.waiters), (vec![], vec![]), "dropped after {polls} polls");
        dropped += usize::from(!done);
    }
    assert!((2..POLLS_MAX).contains(&dropped), "{dropped}");
}

#[tokio::test(start_paused = true)]
async fn an_acquire_of_what_is_held() {
    let scene = Scene::new();
    let (client, other) = (scene.client(), scene.client());
    let guard = other.acquire("a").await.unwrap();
    let mut queued = 0;
    for polls in 0..POLLS_MAX {
        let done = scene.drop_after(polls, client.acquire("a")).await;
        assert!(!done);
        queued += other.look_everywhere().await.unwrap().waiters.len();
        scene.settle().await;
        let waiters = other.look_everywhere().await.unwrap().waiters;
        assert_eq!(waiters, vec![], "dropped after {polls} polls");
    }
    assert!(queued > 0, "some had a place when they were dropped");
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim() {
    let scene = Scene::new();
    let (client, other) = (scene.client(), scene.client());
    let task = NewTask { section: Some("s".to_owned()), ..NewTask::new("t".parse().unwrap(), "t") };
    other.tasks().add(vec![task]).await.unwrap();
    let mut dropped = 0;
    for polls in 0..POLLS_MAX {
        let runner = Some(GrantId::from_bits(1 + polls as u128));
        let request = ClaimRequest { runner, ..ClaimRequest::default() };
        let claim = client.tasks().request(request).wait(Wait::Forever);
        if scene.drop_after(polls, claim.take()).await {
            break;
        }
        scene.settle().await;
        assert_eq!(other.look_everywhere().await.unwrap().holds, vec![], "after {polls} polls");
        let task = other.tasks().find("t").await.unwrap();
        assert_eq!((task.status, task.attempts), (Status::Pending, 0), "after {polls} polls");
        dropped += 1;
    }
    assert!((2..POLLS_MAX).contains(&dropped), "{dropped}");
}
