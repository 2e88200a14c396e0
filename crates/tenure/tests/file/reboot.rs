//! After a reboot or a power loss no number comes twice, and what the disk lost is set aside.

use crate::{HOUR, StoreLocation, held, is_in_order, take};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tenure::core::{EventKind, Revision, Scope};
use tenure::store::{FileOptions, FileStore, Store, StoreExt};

/// Further than changes could have been lost that were reported but not yet on disk.
const JUMP: u64 = 1 << 20;

#[tokio::test]
async fn tokens_jump_ahead_once_per_boot() {
    let place = StoreLocation::new();
    let before = take(&place.open(), "a").await.unwrap();
    assert_eq!(take(&place.open(), "b").await.unwrap().0, before.0 + 1);
    place.clock.reboot("boot-2");
    let after = take(&place.open(), "c").await.unwrap();
    assert!(after.0 >= before.0 + 1 + JUMP, "{after} after {before}");
    assert_eq!(take(&place.open(), "d").await.unwrap().0, after.0 + 1);
    let events = place.open().events(Revision(0), u32::MAX).await.unwrap();
    let rebooted = events.iter().filter(|event| event.event.kind == EventKind::Rebooted);
    assert_eq!(rebooted.count(), 1);
}

#[tokio::test]
async fn tokens_that_a_power_loss_took_from_the_disk_do_not_come_again() {
    let place = StoreLocation::new();
    let mut highest = 0;
    for boot in 1..=4 {
        place.clock.reboot(&format!("boot-{boot}"));
        let store = place.open();
        // What follows the opening is reported but not on disk when the power fails.
        let disk = std::fs::read(place.journal(1)).unwrap();
        for number in 0..50 {
            let token = take(&store, &format!("lock {boot}-{number}")).await.unwrap().0;
            assert!(token > highest, "{token} after {highest}");
            highest = token;
        }
        drop(store);
        std::fs::write(place.journal(1), disk).unwrap();
    }
    place.clock.reboot("boot-5");
    assert!(place.open().read(&Scope::Everything).await.unwrap().next > highest);
}

#[tokio::test]
async fn leases_begin_anew() {
    let place = StoreLocation::new();
    take(&place.open(), "a").await.unwrap();
    place.clock.advance(HOUR / 2);
    place.clock.reboot("boot-2");
    let store = place.open();
    assert_eq!(store.read(&Scope::Everything).await.unwrap().holds[0].left, HOUR);
    place.clock.advance(HOUR);
    assert!(store.read(&Scope::Everything).await.unwrap().holds[0].lapsed());
}

#[tokio::test]
async fn holes_that_a_power_loss_left_are_set_aside_and_reported() {
    let place = StoreLocation::new();
    let store = place.open();
    for name in ["a", "b", "c"] {
        take(&store, name).await.unwrap();
    }
    drop(store);
    let mut bytes = std::fs::read(place.journal(1)).unwrap();
    let lines: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    // Of `b` the disk has nothing but zeros, of `c` it has all.
    bytes[lines[1] + 1..lines[2]].fill(0);
    std::fs::write(place.journal(1), &bytes).unwrap();
    assert!(place.open().read(&Scope::Everything).await.is_err(), "under the same boot");

    place.clock.reboot("boot-2");
    let store = place.open();
    assert_eq!(held(&store).await, ["a"]);
    is_in_order(&store).await;
    let aside: Vec<_> = std::fs::read_dir(place.path("aside")).unwrap().collect();
    assert_eq!(aside.len(), 1);
    let kept = std::fs::read(aside[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(kept, bytes[lines[1] + 1..]);
    let findings = store.check().await.unwrap();
    assert!(findings.iter().any(|finding| finding.message.contains("unreadable")), "{findings:?}");
    assert!(take(&store, "d").await.unwrap().0 > JUMP);
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(path).unwrap())),
        }
    }
    found
}

#[tokio::test]
async fn a_look_does_not_write_down_that_the_machine_was_rebooted() {
    let place = StoreLocation::new();
    let folder = place.folder.path().join("store");
    let token = take(&place.open(), "a").await.unwrap();
    std::fs::remove_file(folder.join("side/bell")).unwrap();
    let before = files(&folder);
    place.clock.reboot("boot-2");
    let clock = place.clock.clone();
    let options = FileOptions { clock, look_only: true, ..FileOptions::default() };
    let store = FileStore::open_with(&folder, options).unwrap();
    assert_eq!(held(&store).await.len(), 1);
    assert_eq!(store.info().ended_boots, ["boot-1"], "who looks knows it");
    drop(store);
    assert!(files(&folder) == before);
    place.clock.reboot("boot-1");
    assert_eq!(take(&place.open(), "b").await.unwrap().0, token.0 + 1, "it did not count");
}

#[tokio::test]
async fn a_boot_id_that_cannot_be_read_is_no_reboot() {
    let place = StoreLocation::new();
    let mut token = take(&place.open(), "a").await.unwrap();
    place.clock.advance(HOUR / 2);
    for (number, boot) in ["", "boot-1", "", "", "boot-1"].into_iter().enumerate() {
        place.clock.show_boot_as(boot);
        let store = place.open();
        let next = take(&store, &format!("lock {number}")).await.unwrap();
        assert_eq!(next.0, token.0 + 1, "tokens jumped at {boot:?}");
        token = next;
        let seen = store.read(&Scope::Everything).await.unwrap();
        assert_eq!(seen.holds[0].left, HOUR / 2, "the lease began anew at {boot:?}");
        assert!(store.info().ended_boots.is_empty());
    }
}

#[tokio::test]
async fn a_store_made_where_no_boot_id_can_be_read_goes_on_where_it_can() {
    let place = StoreLocation::new();
    place.clock.show_boot_as("");
    let first = take(&place.open(), "a").await.unwrap();
    place.clock.show_boot_as("boot-1");
    let second = take(&place.open(), "b").await.unwrap();
    assert_eq!(second.0, first.0 + 1);
    place.clock.reboot("boot-2");
    let store = place.open();
    assert!(take(&store, "c").await.unwrap().0 > second.0 + JUMP);
    assert_eq!(store.info().ended_boots, ["boot-1"]);
    // They are known in the next generation too.
    crate::begin_next_generation(&place, &store).await;
    assert_eq!(place.open().info().ended_boots, ["boot-1"]);
}

#[tokio::test]
async fn a_clock_that_went_back_tells_of_a_reboot_where_no_id_does() {
    let place = StoreLocation::new();
    let first = take(&place.open(), "a").await.unwrap();
    place.clock.reboot("");
    let store = place.open();
    assert_eq!(store.read(&Scope::Everything).await.unwrap().holds[0].left, HOUR);
    assert!(take(&store, "b").await.unwrap().0 > first.0 + JUMP);
    assert_eq!(store.info().ended_boots, ["boot-1"]);
}
