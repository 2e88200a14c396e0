//! Full and read-only disks: one clear error, and nothing that was reported is lost.
//!
//! Each test mounts a small disk of its own in a process that sees its own mounts. Where that is
//! not allowed, it says so and shows nothing.
#![cfg(target_os = "linux")]

use crate::{StoreLocation, everything, given_store, open_with, process, take};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tenure::core::{Decision, Holder, Scope, Snapshot};
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::store::{Store, StoreError, StoreExt, Transaction};
use tenure::world::SystemClock;

/// Runs an ignored test with a disk of its own, of 600 kB, at the folder of the store.
#[expect(clippy::print_stderr, reason = "a test that shows nothing says so")]
fn on_a_small_disk(test: &str) {
    let place = StoreLocation::new();
    let script = r#"mount -t tmpfs -o size=600k tmpfs "$1" || exit 77; shift; exec "$@""#;
    let inner = process(test, &place.path());
    let outcome = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(place.folder.path())
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("TENURE_TEST_STORE", place.path())
        .output();
    match outcome {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("1 passed"), "{test} was not run: {said}");
        }
        Ok(output) if output.status.code() == Some(101) => panic!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        refused => {
            let why = "no disk can be mounted here, and CI must show this";
            assert!(std::env::var_os("CI").is_none(), "{why}: {refused:?}");
            eprintln!("skipped: no disk can be mounted here: {refused:?}");
        }
    }
}

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    open_with(path, Arc::new(SystemClock))
}

/// Takes what is left of the disk, but for so many bytes.
fn fill(path: &Path, leave: usize) {
    use std::io::Write;
    let mut filler = std::fs::File::create(path.with_file_name("filler")).unwrap();
    let mut written = 0;
    while let Ok(count @ 1..) = filler.write(&[1; 1024]) {
        written += count;
    }
    filler.set_len(written.saturating_sub(leave) as u64).unwrap();
}

fn free(path: &Path) {
    std::fs::remove_file(path.with_file_name("filler")).unwrap();
}

fn ensure_says_full(error: &StoreError) {
    let StoreError::Unavailable { reason, hint, .. } = error else { panic!("{error:?}") };
    assert!(reason.contains("full") || reason.contains("No space"), "{reason}");
    assert!(hint.is_some(), "{reason}");
}

#[test]
fn a_disk_that_fills_up_loses_nothing_that_was_reported() {
    on_a_small_disk("disks::fill_up_while_writing");
}

#[tokio::test]
#[ignore = "run on a small disk by the test above"]
async fn fill_up_while_writing() {
    let path = given_store();
    let store = open(&path).unwrap();
    take(&store, "before", 1).await.unwrap();
    for durable in [false, true] {
        fill(&path, 40_000);
        let mut reported: u128 = everything(&store).await.holds.len() as u128;
        let error = loop {
            match take_much(&store, reported + 1, durable).await {
                Ok(()) => reported += 1,
                Err(error) => break error,
            }
        };
        ensure_says_full(&error);
        // Still full: it says so again, and what was reported can be read.
        ensure_says_full(&take_much(&store, reported + 1, durable).await.unwrap_err());
        assert_eq!(everything(&store).await.holds.len() as u128, reported);
        free(&path);
        take_much(&store, reported + 1, durable).await.unwrap();
    }
    let expected = everything(&store).await.holds.len();
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!(everything(&store).await.holds.len(), expected);
    assert!(store.check().await.unwrap().iter().all(|finding| finding.ok));
}

/// Holds something, with many words.
async fn take_much(store: &SqliteStore, number: u128, durable: bool) -> Result<(), StoreError> {
    let holder = Holder::anonymous("x".repeat(2_000));
    let decide = move |seen: &Snapshot| {
        let name = format!("lock {number}");
        let change = crate::holding(&name, crate::grant(number), &holder, seen);
        Decision::Write(tenure::core::Change { durable, ..change })
    };
    store.transact(Transaction::new(Scope::Everything, decide)).await.map(drop)
}

#[test]
fn a_store_cannot_be_half_made_on_a_full_disk() {
    on_a_small_disk("disks::create_on_a_full_disk");
}

#[tokio::test]
#[ignore = "run on a small disk by the test above"]
async fn create_on_a_full_disk() {
    let path = given_store();
    for leave in (0..150_000).step_by(10_000) {
        fill(&path, leave);
        if let Err(error) = open(&path) {
            ensure_says_full(&error);
        }
        free(&path);
        let store = open(&path).unwrap();
        take(&store, "a", 1).await.unwrap();
        assert!(store.check().await.unwrap().iter().all(|finding| finding.ok));
        drop(store);
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                let drafts = std::fs::read_dir(&entry).unwrap();
                let drafts = drafts.filter(|name| {
                    name.as_ref().unwrap().file_name().to_string_lossy().starts_with("draft")
                });
                assert_eq!(drafts.count(), 0, "a draft was left");
                std::fs::remove_dir_all(entry).unwrap();
            } else {
                std::fs::remove_file(entry).unwrap();
            }
        }
    }
}

#[test]
fn a_read_only_disk_can_be_looked_at_and_not_written_to() {
    on_a_small_disk("disks::open_on_a_read_only_disk");
}

#[tokio::test]
#[ignore = "run on a small disk by the test above"]
async fn open_on_a_read_only_disk() {
    let path = given_store();
    let folder = path.parent().unwrap();
    let remount = |how: &str| {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", how]).arg(folder).status().unwrap().success());
    };
    remount("remount,ro");
    let error = open(&path).err().expect("nothing can be made there");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("writable"), "{error}");

    remount("remount,rw");
    take(&open(&path).unwrap(), "a", 1).await.unwrap();
    remount("remount,ro");
    let error = open(&path).err().expect("it cannot be written to");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.hint().is_some(), "{error}");

    let options = SqliteOptions { look_only: true, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&path, options).expect("one may look");
    assert_eq!(everything(&store).await.holds.len(), 1);
    let error = take(&store, "b", 2).await.expect_err("it cannot be written to");
    let StoreError::Unavailable { reason, hint, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("no write permission"), "{reason}");
    assert!(hint.as_ref().is_some_and(|hint| hint.contains("writable")), "{hint:?}");
}
