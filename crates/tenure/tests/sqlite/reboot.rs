//! After a reboot or a power loss no number comes twice, and whoever ran before is dead.

use crate::{StoreLocation, all_events, everything, grant, holding, resource, take};
use std::path::Path;
use tenure::core::{
    Ask, Decision, EventKind, Evidence, Holder, NoWitness, Observer, Outcome, Process, Reason,
    Scope, Snapshot, Want, Witness, rules,
};
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::store::{Store, Transaction, transact_with};

/// Further than changes could have been lost that were reported but not yet on disk.
const JUMP: u64 = 1 << 20;

#[tokio::test]
async fn tokens_jump_ahead_once_per_boot() {
    let place = StoreLocation::new();
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
    let place = StoreLocation::new();
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
    let place = StoreLocation::new();
    let store = place.open();
    take(&store, "a", 1).await.unwrap();
    assert!(matches!(ask(&store, 2, NoWitness).await, Outcome::Waiting { .. }));
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
async fn ask(store: &SqliteStore, number: u128, witness: impl Witness + Send + 'static) -> Outcome {
    let ask = Ask {
        grant: grant(number),
        wants: vec![Want::exclusive(resource("a"))],
        holder: Holder::anonymous("asker".to_owned()),
        presence: None,
        operation: None,
        ttl: crate::HOUR,
        keeps: vec![],
        owner: Default::default(),
        queue: Some(crate::HOUR),
    };
    let rule = move |seen: &Snapshot| rules::acquire(seen, &ask, &witness);
    transact_with(store, Scope::Everything, None, rule).await.unwrap().1
}

/// Judges as somebody on this machine would under this boot, where no process has a number.
struct UnderBoot {
    boot: &'static str,
    /// As the store tells.
    ended: Vec<String>,
}

impl UnderBoot {
    fn new(boot: &'static str, store: &SqliteStore) -> UnderBoot {
        UnderBoot { boot, ended: store.info().ended_boots }
    }
}

impl Witness for UnderBoot {
    fn liveness(&self, evidence: &Evidence) -> tenure::core::Liveness {
        let (boot, ended_boots) = (self.boot.into(), self.ended.clone());
        let observer = Observer { boot, pid_namespace: 1, ended_boots };
        observer.judge(evidence, &|_| Some(Some(7)), &|_| false)
    }
}

#[tokio::test]
async fn a_holder_of_the_boot_before_is_dead_and_replaced_at_once() {
    let place = StoreLocation::new();
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
    let decide = move |seen: &Snapshot| Decision::Write(holding("a", grant(1), &holder, seen));
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
    let alive = ask(&store, 2, UnderBoot::new("boot-1", &store)).await;
    assert!(matches!(alive, Outcome::Waiting { .. }), "{alive:?}");
    // From elsewhere, another boot says nothing, whatever the machine is called.
    let elsewhere = ask(&store, 2, UnderBoot::new("boot-2", &store)).await;
    assert!(matches!(elsewhere, Outcome::Waiting { .. }), "{elsewhere:?}");
    drop(store);

    place.clock.reboot("boot-2");
    // The process number is in use again, with the very same start: the boot tells them apart.
    let store = place.open();
    let outcome = ask(&store, 2, UnderBoot::new("boot-2", &store)).await;
    let Outcome::Granted(granted) = outcome else { panic!("{outcome:?}") };
    assert_eq!(granted.reason, Reason::ClaimedDead);
    assert_eq!(granted.takeovers[0].from.hold.holder.label, "worker");
}

#[tokio::test]
async fn the_boots_that_ended_are_remembered_and_not_for_ever() {
    let place = StoreLocation::new();
    assert!(place.open().info().ended_boots.is_empty());
    for boot in 2..=100 {
        place.clock.reboot(&format!("boot-{boot}"));
        drop(place.open());
    }
    let ended = place.open().info().ended_boots;
    assert_eq!(ended.len(), 64);
    assert_eq!((ended[0].as_str(), ended[63].as_str()), ("boot-36", "boot-99"));
}

/// What is written of the store. Who reads leaves marks in the shared memory beside the database.
fn written(place: &StoreLocation) -> Vec<(String, Vec<u8>)> {
    let path = place.path();
    let side = std::fs::read_dir(path.with_file_name("store.db.side")).into_iter().flatten();
    let names = side.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = names.map(|name| (name, vec![])).collect();
    for suffix in ["", "-wal"] {
        let path = path.with_file_name(format!("store.db{suffix}"));
        files.push((suffix.to_owned(), std::fs::read(path).unwrap_or_default()));
    }
    files
}

#[tokio::test]
async fn a_look_does_not_write_down_that_the_machine_was_rebooted() {
    let place = StoreLocation::new();
    let token = take(&place.open(), "a", 1).await.unwrap();
    std::fs::remove_file(place.path().with_file_name("store.db.side").join("bell")).unwrap();
    let before = written(&place);
    assert_eq!(before.len(), 5, "two locks, the folder of mailboxes, the database, its log");
    place.clock.reboot("boot-2");
    let clock = place.clock.clone();
    let options = SqliteOptions { clock, look_only: true, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&place.path(), options).unwrap();
    assert_eq!(everything(&store).await.holds[0].hold.token, token);
    assert_eq!(store.info().ended_boots, ["boot-1"], "who looks knows it");
    drop(store);
    assert!(written(&place) == before);
    place.clock.reboot("boot-1");
    assert_eq!(take(&place.open(), "b", 2).await.unwrap().0, token.0 + 1, "it did not count");
}

#[tokio::test]
async fn a_boot_id_that_cannot_be_read_is_no_reboot() {
    let place = StoreLocation::new();
    let mut token = take(&place.open(), "a", 1).await.unwrap();
    place.clock.advance(crate::HOUR / 2);
    for (number, boot) in ["", "boot-1", "", "", "boot-1"].into_iter().enumerate() {
        place.clock.show_boot_as(boot);
        let store = place.open();
        let next = take(&store, &format!("lock {number}"), 10 + number as u128).await.unwrap();
        assert_eq!(next.0, token.0 + 1, "tokens jumped at {boot:?}");
        token = next;
        let seen = everything(&store).await;
        assert_eq!(seen.holds[0].left, crate::HOUR / 2, "the lease began anew at {boot:?}");
        assert!(store.info().ended_boots.is_empty());
    }
    assert!(!all_events(&place.open()).await.contains(&EventKind::Rebooted));
}

#[tokio::test]
async fn a_store_made_where_no_boot_id_can_be_read_goes_on_where_it_can() {
    let place = StoreLocation::new();
    place.clock.show_boot_as("");
    let first = take(&place.open(), "a", 1).await.unwrap();
    place.clock.show_boot_as("boot-1");
    let second = take(&place.open(), "b", 2).await.unwrap();
    assert_eq!(second.0, first.0 + 1);
    place.clock.reboot("boot-2");
    assert!(take(&place.open(), "c", 3).await.unwrap().0 > second.0 + JUMP);
    assert_eq!(place.open().info().ended_boots, ["boot-1"]);
}

#[tokio::test]
async fn a_clock_that_went_back_tells_of_a_reboot_where_no_id_does() {
    let place = StoreLocation::new();
    let first = take(&place.open(), "a", 1).await.unwrap();
    place.clock.reboot("");
    let store = place.open();
    assert_eq!(everything(&store).await.holds[0].left, crate::HOUR);
    assert!(take(&store, "b", 2).await.unwrap().0 > first.0 + JUMP);
    assert_eq!(store.info().ended_boots, ["boot-1"]);
}
