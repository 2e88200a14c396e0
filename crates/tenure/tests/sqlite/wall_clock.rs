//! The time of day is for showing: when it jumps, nobody loses or gains a lease.

use crate::{HOUR, StoreLocation, everything, grant, take};
use std::time::Duration;
use tenure::core::{Change, Decision, Scope, Snapshot, StoredReply, Write};
use tenure::store::{Renewal, Renewed, RequestId, Store, StoreExt, Transaction, transact_with};

const HOUR_MS: i64 = 3_600_000;

#[tokio::test]
async fn jumps_of_the_time_of_day_change_nothing_about_who_holds() {
    for jump_ms in [HOUR_MS, -HOUR_MS, 100 * 365 * 24 * HOUR_MS, -100 * 365 * 24 * HOUR_MS] {
        let place = StoreLocation::new();
        let store = place.open();
        let token = take(&store, "a", 1).await.unwrap();
        place.clock.advance(Duration::from_secs(10));
        let before = everything(&store).await;

        place.clock.jump_wall(jump_ms);
        let store = place.open();
        let after = everything(&store).await;
        assert_eq!(after.holds[0].left, before.holds[0].left, "{jump_ms}");
        assert_eq!(after.holds[0].held_for, before.holds[0].held_for, "{jump_ms}");
        assert_eq!((after.next, after.revision), (before.next, before.revision), "{jump_ms}");
        // What is shown follows the time of day that people see.
        assert_eq!(after.holds[0].expires_at.0, before.holds[0].expires_at.0 + jump_ms);

        let resources = vec![crate::resource("a")];
        let renewal = Renewal { grant: grant(1), token, resources, ttl: HOUR, bind: None };
        assert_eq!(store.renew(&[renewal]).await.unwrap(), [Renewed::Renewed]);
        place.clock.advance(HOUR - Duration::from_millis(1));
        assert!(!everything(&store).await.holds[0].lapsed(), "{jump_ms}");
        place.clock.jump_wall(-jump_ms);
        place.clock.advance(Duration::from_millis(1));
        assert!(everything(&store).await.holds[0].lapsed(), "{jump_ms}");
    }
}

#[tokio::test]
async fn a_time_of_day_before_1970_is_no_obstacle() {
    let place = StoreLocation::new();
    place.clock.jump_wall(-2_000_000_000_000);
    let store = place.open();
    take(&store, "task:old", 1).await.unwrap();
    let seen = everything(&store).await;
    assert!(
        seen.holds[0].acquired_at.0 < 0 && seen.holds[0].expires_at > seen.holds[0].acquired_at
    );
    let events = store.events(Default::default(), 9).await.unwrap();
    assert_eq!(events[0].at, seen.holds[0].acquired_at);
    assert!(store.read(&Scope::Everything).await.is_ok());
}

#[tokio::test]
async fn answers_are_kept_whatever_the_time_of_day_does() {
    let place = StoreLocation::new();
    let store = place.open();
    let answer =
        |slot: usize| StoredReply { slot: slot.to_string(), number: 1, text: "yes".into() };
    let put = async |slot: usize| {
        let writes = vec![Write::Answer(answer(slot))];
        let change = Change { writes, ..Change::default() };
        let decide = move |_: &Snapshot| Decision::Write(change.clone());
        store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
    };
    let get = async |slot: usize| {
        let request = RequestId { slot: slot.to_string(), number: 1 };
        let rule = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
        transact_with(&store, Scope::Everything, Some(request), rule).await.unwrap().1
    };
    put(1).await;
    for jump_ms in [100 * HOUR_MS, -200 * HOUR_MS] {
        place.clock.jump_wall(jump_ms);
        put(2).await;
        assert_eq!(get(1).await, Some(answer(1)), "{jump_ms}");
    }
    // They go when they have been of no use for long, by the clock that is never set.
    place.clock.advance(HOUR);
    put(3).await;
    assert_eq!((get(1).await, get(3).await), (None, Some(answer(3))));
}
