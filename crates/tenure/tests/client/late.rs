//! What is handed out can be trusted at that moment, however late the store answered.

use crate::faulty::{ALWAYS, Faulty};
use crate::{Stores, ensure_becomes_free, held, lease, on_every_store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure::core::rules::tasks::{Heartbeat, NewTask};
use tenure::core::{Proof, Section, Status};
use tenure::store::Renewed;
use tenure::world::{ManualClock, SystemWorld};
use tenure::{
    ClaimRequest, Claims, Client, Error, Finish, GUARD_LEASE, Next, Runner, Swarm, Trust, Wait,
    WorkEvent,
};

on_every_store!(
    a_grant_that_came_too_late_is_renewed_before_it_is_handed_out,
    where_every_answer_comes_too_late_nothing_is_handed_out_or_kept,
    a_claim_that_came_too_late_is_made_again,
    where_every_claim_comes_too_late_the_task_is_untouched,
    a_section_that_a_runner_keeps_is_trusted_anew_with_its_next_task,
    a_worker_goes_on_after_answers_that_came_too_late,
    a_renewal_that_came_too_late_is_a_loss,
    a_heartbeat_that_came_too_late_is_a_loss,
    a_confirmation_that_came_too_late_is_a_loss,
    a_short_lease_covers_what_asks_for_a_longer_one,
    a_guard_whose_first_answer_was_lost_gives_back_when_it_is_dropped,
    those_who_watch_a_lease_are_told_of_its_end,
);

struct Place {
    clock: Arc<ManualClock>,
    store: Arc<Faulty>,
    client: Client,
}

impl Place {
    fn of(stores: &Stores) -> Place {
        let (clock, store) = (Arc::new(ManualClock::new()), Faulty::new(stores.handle()));
        let world = SystemWorld::new().with_clock(clock.clone());
        let client = Client::builder().world(world).with_store(store.clone()).unwrap();
        Place { clock, store, client }
    }

    fn answers_late(&self, times: u32) {
        self.store.answer_late(times, &self.clock, GUARD_LEASE);
    }
}

async fn a_grant_that_came_too_late_is_renewed_before_it_is_handed_out(stores: &Stores) {
    let place = Place::of(stores);
    place.answers_late(1);
    let guard = held(place.client.request("a").hold().await.unwrap());
    assert!(guard.is_held());
    assert_eq!(place.store.renewals.load(Ordering::SeqCst), 1);
    drop(guard);
    ensure_becomes_free(&stores.anonymous(), "a").await;
    place.answers_late(1);
    let lease = lease(place.client.request("a").detached()).await;
    assert!(place.client.is_trusted(&lease));
}

async fn where_every_answer_comes_too_late_nothing_is_handed_out_or_kept(stores: &Stores) {
    let place = Place::of(stores);
    place.answers_late(ALWAYS);
    let error = place.client.request("a").hold().await.unwrap_err();
    assert!(matches!(error, Error::TooLate), "{error:?}");
    ensure_becomes_free(&stores.anonymous(), "a").await;
}

async fn with_task(place: &Place) {
    let task = NewTask::new("t".parse().unwrap(), "T");
    place.client.tasks().add(vec![task]).await.unwrap();
}

async fn a_claim_that_came_too_late_is_made_again(stores: &Stores) {
    let place = Place::of(stores);
    with_task(&place).await;
    // Looking for dead workers comes first.
    place.client.tasks().recover().await.unwrap();
    place.answers_late(2);
    let work = place.client.tasks().request(ClaimRequest::default()).take_work().await.unwrap();
    let work = work.expect("a task");
    assert!(work[0].is_held());
    assert_eq!(work[0].task().attempts, 1);
}

async fn where_every_claim_comes_too_late_the_task_is_untouched(stores: &Stores) {
    let place = Place::of(stores);
    with_task(&place).await;
    place.answers_late(ALWAYS);
    let error = place.client.tasks().claim(&ClaimRequest::default()).await.unwrap_err();
    assert!(matches!(error, Error::TooLate), "{error:?}");
    let task = place.client.tasks().get(&"t".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((task.status, task.attempts, task.tries.len()), (Status::Pending, 0, 0));
    place.answers_late(0);
    let claims = place.client.tasks().claim(&ClaimRequest::default()).await.unwrap();
    assert!(matches!(claims, Claims::Claimed { .. }));
}

async fn a_section_that_a_runner_keeps_is_trusted_anew_with_its_next_task(stores: &Stores) {
    let place = Place::of(stores);
    let tasks = place.client.tasks();
    tasks.put_section(&Section::named("narrow")).await.unwrap();
    let in_section = |name: &str| NewTask {
        section: Some("narrow".to_owned()),
        ..NewTask::new(name.parse().unwrap(), name)
    };
    tasks.add(vec![in_section("one"), in_section("two")]).await.unwrap();
    let runner = Runner::new(&place.client, ClaimRequest::default());
    let Next::Work(work) = runner.next(Wait::No).await.unwrap() else { panic!("no task") };
    runner.finish(work, Finish::completed()).await.unwrap();
    // Renewals did not arrive for longer than it may trust the section, by a clock that is ahead of the store's.
    place.clock.advance(ClaimRequest::default().section_ttl);
    let Next::Work(work) = runner.next(Wait::No).await.unwrap() else { panic!("no task") };
    assert!(work.is_held());
}

async fn a_worker_goes_on_after_answers_that_came_too_late(stores: &Stores) {
    let place = Place::of(stores);
    with_task(&place).await;
    // Three claims and what called them off, and one more.
    place.answers_late(7);
    let swarm = Swarm::new(&place.client, ClaimRequest::default());
    let late = Arc::new(AtomicBool::new(false));
    let told = late.clone();
    let watcher = move |event| {
        if matches!(event, WorkEvent::Trouble { .. }) {
            told.store(true, Ordering::SeqCst);
        }
    };
    let report = swarm.run(|_| async { Finish::completed() }, watcher).await.unwrap();
    assert_eq!(report.completed, 1);
    assert!(late.load(Ordering::SeqCst), "no answer was too late");
}

async fn a_renewal_that_came_too_late_is_a_loss(stores: &Stores) {
    let place = Place::of(stores);
    let lease = lease(place.client.request("a").detached()).await;
    let proof = Proof::Grant(lease.grant);
    let renew = async || place.client.renew(&proof, None, None).await.unwrap().remove(0).1;
    assert_eq!(renew().await, Renewed::Renewed);
    place.answers_late(1);
    assert_eq!(renew().await, Renewed::Lost);
}

async fn a_heartbeat_that_came_too_late_is_a_loss(stores: &Stores) {
    let place = Place::of(stores);
    with_task(&place).await;
    let claims = place.client.tasks().claim(&ClaimRequest::default()).await.unwrap();
    let Claims::Claimed { tasks, .. } = claims else { panic!("no task") };
    let (id, proof) = (&tasks[0].task.id, Proof::Grant(tasks[0].grant));
    let beat = async || {
        let proof = proof.clone();
        place.client.tasks().heartbeat(id, proof, None, Some(GUARD_LEASE)).await.unwrap()
    };
    assert!(matches!(beat().await, Heartbeat::Renewed { .. }));
    place.answers_late(1);
    assert!(matches!(beat().await, Heartbeat::NotYours(_)));
}

async fn a_confirmation_that_came_too_late_is_a_loss(stores: &Stores) {
    let place = Place::of(stores);
    let guard = held(place.client.request("a").hold().await.unwrap());
    assert!(guard.confirm().await.unwrap());
    place.answers_late(1);
    assert!(!guard.confirm().await.unwrap());
    assert!(!guard.is_held());
}

/// The margin that suits the longer lease may be longer than the whole short one.
async fn a_short_lease_covers_what_asks_for_a_longer_one(stores: &Stores) {
    let place = Place::of(stores);
    let outer = place.client.request("a").ttl(Duration::from_secs(4)).hold().await.unwrap();
    let outer = held(outer);
    let inner = place.client.request("a").under(outer.grant()).ttl(Duration::from_secs(60));
    let inner = held(inner.margin(Duration::from_secs(5)).hold().await.unwrap());
    assert!(inner.is_held());
}

async fn a_guard_whose_first_answer_was_lost_gives_back_when_it_is_dropped(stores: &Stores) {
    let place = Place::of(stores);
    place.store.unknown_changes.store(1, Ordering::SeqCst);
    drop(held(place.client.request("a").hold().await.unwrap()));
    ensure_becomes_free(&stores.anonymous(), "a").await;
}

async fn those_who_watch_a_lease_are_told_of_its_end(stores: &Stores) {
    let client = stores.anonymous();
    let guard = held(client.request("a").ttl(Duration::from_secs(1)).hold().await.unwrap());
    let trust = guard.trust();
    assert!(!trust.left().is_zero() && trust.margin() < Duration::from_secs(1));
    let told = Arc::new(AtomicBool::new(false));
    let (tell, seen): (_, Trust) = (told.clone(), trust.clone());
    let watcher: Arc<dyn Fn() + Send + Sync> =
        Arc::new(move || tell.store(seen.left().is_zero(), Ordering::SeqCst));
    trust.watch(&watcher);
    client.break_hold("a", guard.token(), "stuck").await.unwrap();
    guard.lost().await;
    assert!(told.load(Ordering::SeqCst) && trust.left().is_zero());
}
