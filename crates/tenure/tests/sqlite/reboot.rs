//! After a reboot or a power loss no number comes twice, and whoever ran before is dead.

use crate::{Place, all_events, everything, grant, holding, resource, take};
use std::path::Path;
use tenure::core::{
    Ask, Decision, EventKind, Evidence, Holder, Look, NoWitness, Observer, Outcome, Process,
    Reason, Seen, Want, Witness, rules,
};
use tenure::store::Store;
use tenure::store::sqlite::SqliteStore;

/// Further than changes could have been lost that were reported but not yet on disk.
const JUMP: u64 = 1 << 20;

#[tokio::test]
async fn tokens_jump_ahead_once_per_boot() {
    let place = Place::new();
    let before = take(&place.open(), "a", 1).await.unwrap();
    let same_boot = take(&place.open(), "b", 2).await.unwrap();
    assert_eq!(same_boot.0, before.0 + 1);

    place.clock.reboot("boot-2");
    let after = take(&place.open(), "c", 3).await.unwrap();
    assert!(after.0 >= same_boot.0 + JUMP, "{after} after {same_boot}");
    let same_boot = take(&place.open(), "d", 4).await.unwrap();
    assert_eq!(same_boot.0, after.0 + 1);
    let kinds = all_events(&place.open()).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::Rebooted).count(), 1);
}

/// Copies the database with its log, as a disk would keep it.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let name = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            name
        };
        let _ = std::fs::remove_file(name(to));
        if Path::new(&name(from)).exists() {
            std::fs::copy(name(from), name(to)).unwrap();
        }
    }
    let mut index = to.as_os_str().to_owned();
    index.push("-shm");
    let _ = std::fs::remove_file(index);
}

/// Gives out some tokens; returns the highest.
async fn give_out(store: &SqliteStore, first: u128) -> u64 {
    let mut highest = 0;
    for number in first..first + 50 {
        highest = take(store, &format!("lock {number}"), number).await.unwrap().0;
    }
    highest
}

#[tokio::test]
async fn tokens_that_a_power_loss_took_from_the_disk_do_not_come_again() {
    let place = Place::new();
    let disk = place.folder.path().join("what the disk has");
    let mut highest = 0;
    for boot in 1..=4 {
        place.clock.reboot(&format!("boot-{boot}"));
        let store = place.open();
        // What follows the opening is reported but not on disk when the power fails.
        copy(&place.path(), &disk);
        let given = give_out(&store, boot * 1_000).await;
        assert!(given > highest, "{given} after {highest}");
        highest = given;
        drop(store);
        copy(&disk, &place.path());
    }
    place.clock.reboot("boot-5");
    let next = everything(&place.open()).await.next;
    assert!(next > highest, "{next} after {highest}");
}

#[tokio::test]
async fn leases_and_places_that_no_process_is_tied_to_begin_anew() {
    let place = Place::new();
    let store = place.open();
    take(&store, "a", 1).await.unwrap();
    assert!(matches!(ask(&store, 2, &NoWitness).await, Outcome::Waiting { .. }));
    place.clock.advance(crate::HOUR / 2);
    drop(store);

    place.clock.reboot("boot-2");
    let seen = everything(&place.open()).await;
    assert_eq!((seen.holds[0].left, seen.waiters[0].left), (crate::HOUR, crate::HOUR));
    assert!(seen.holds[0].held_for.is_zero());
    place.clock.advance(crate::HOUR);
    assert!(everything(&place.open()).await.holds[0].lapsed());
}

/// Asks for the resource that everybody here wants, and queues.
async fn ask(store: &SqliteStore, number: u128, witness: &(dyn Witness + Sync)) -> Outcome {
    let ask = Ask {
        grant: grant(number),
        wants: vec![Want::exclusive(resource("a"))],
        holder: Holder::anonymous("asker".to_owned()),
        presence: None,
        operation: None,
        ttl: crate::HOUR,
        keeps: vec![],
        queue: Some(crate::HOUR),
    };
    let mut outcome = None;
    let mut decide = |seen: &Seen| {
        let (decision, answer) = rules::acquire(seen, &ask, witness);
        outcome = Some(answer);
        decision
    };
    store.transact(&Look::Everything, &mut decide).await.unwrap();
    outcome.unwrap()
}

/// Judges as somebody on this machine would under this boot, where no process has a number.
struct UnderBoot(&'static str);

impl Witness for UnderBoot {
    fn liveness(&self, evidence: &Evidence) -> tenure::core::Liveness {
        let observer =
            Observer { machine: "machine".into(), boot: self.0.into(), pid_namespace: 1 };
        observer.judge(evidence, &|_| Some(Some(7)), &|_| false)
    }
}

#[tokio::test]
async fn a_holder_of_the_boot_before_is_dead_and_replaced_at_once() {
    let place = Place::new();
    let store = place.open();
    let evidence = Evidence {
        host: "host".into(),
        machine: "machine".into(),
        boot: "boot-1".into(),
        pid_namespace: 1,
        process: Some(Process { pid: 10, start: 7 }),
        group: None,
    };
    let holder = Holder::anonymous("worker".to_owned()).with_evidence(evidence);
    let mut decide = |seen: &Seen| Decision::Write(holding("a", grant(1), &holder, seen));
    store.transact(&Look::Everything, &mut decide).await.unwrap();
    let alive = ask(&store, 2, &UnderBoot("boot-1")).await;
    assert!(matches!(alive, Outcome::Waiting { .. }), "{alive:?}");
    drop(store);

    place.clock.reboot("boot-2");
    // The process number is in use again, with the very same start: the boot tells them apart.
    let outcome = ask(&place.open(), 2, &UnderBoot("boot-2")).await;
    let Outcome::Granted(granted) = outcome else { panic!("{outcome:?}") };
    assert_eq!(granted.reason, Reason::ClaimedDead);
    assert_eq!(granted.takeovers[0].from.hold.grant, grant(1));
}
