//! What was cut off by a crash is cleared away; all else that is not as it was written is refused
//! with the right error, and stays as it is.

use crate::{StoreLocation, begin_next_generation, files, held, is_in_order, take};
use std::io::Write as _;
use std::path::Path;
use tenure::core::Scope;
use tenure::store::FileStore;
use tenure::store::{StoreError, StoreExt};

/// A store where `a`, `b` and `c` are held.
async fn used() -> StoreLocation {
    let place = StoreLocation::new();
    let store = place.open();
    for name in ["a", "b", "c"] {
        take(&store, name).await.unwrap();
    }
    place
}

fn change(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    how(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Whether opening, looking or writing says that it is damaged; all that can be done must.
async fn refusal(place: &StoreLocation) -> StoreError {
    let before = place.content();
    let error = match place.try_open() {
        Err(error) => error,
        Ok(store) => {
            take(&store, "d").await.expect_err("a change should have been refused");
            store.read(&Scope::Everything).await.expect_err("a look should have been refused")
        }
    };
    assert!(place.content() == before, "something was changed");
    error
}

async fn is_refused(place: &StoreLocation, what: &str) {
    let error = refusal(place).await;
    assert!(matches!(error, StoreError::Corrupt { .. }), "{what}: {error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("aside")), "{what}: {error}");
}

#[tokio::test]
async fn a_last_line_cut_anywhere_is_not_there_and_the_next_one_takes_its_place() {
    let place = used().await;
    let whole = std::fs::read(place.journal(1)).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for length in last..whole.len() {
        std::fs::write(place.journal(1), &whole[..length]).unwrap();
        let store = place.open();
        assert_eq!(held(&store).await, ["a", "b"], "cut to {length}");
        is_in_order(&store).await;
        take(&store, "d").await.unwrap();
        let store = place.open();
        assert_eq!(held(&store).await, ["a", "b", "d"], "cut to {length}");
        is_in_order(&store).await;
    }
}

#[tokio::test]
async fn a_changed_byte_anywhere_is_refused() {
    let place = used().await;
    let whole = std::fs::read(place.journal(1)).unwrap();
    // The end of the last line aside: without it the line was not written to its end.
    for at in (0..whole.len() - 1).step_by(7) {
        change(&place.journal(1), |bytes| bytes[at] ^= 4);
        is_refused(&place, &format!("byte {at}")).await;
        std::fs::write(place.journal(1), &whole).unwrap();
    }
    assert_eq!(held(&place.open()).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn one_who_has_it_open_refuses_what_was_damaged_meanwhile() {
    let place = used().await;
    let store = place.open();
    assert_eq!(held(&store).await.len(), 3);
    change(&place.journal(1), |bytes| bytes.extend_from_slice(b"{\"sum\":\"00000000\",}\n"));
    for error in [take(&store, "d").await.err(), store.read(&Scope::Everything).await.err()] {
        assert!(matches!(error, Some(StoreError::Corrupt { .. })), "{error:?}");
    }
    assert!(store.check().await.unwrap().iter().any(|finding| !finding.ok));
}

#[tokio::test]
async fn what_no_crash_leaves_is_refused() {
    type Damage = (&'static str, fn(&mut Vec<u8>));
    let damages: [Damage; 6] = [
        ("empty", Vec::clear),
        ("junk", |bytes| *bytes = b"hello\n".repeat(100)),
        ("without its first line", |bytes| {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            bytes.drain(..=end);
        }),
        ("with zeros at its end", |bytes| bytes.extend([0; 100])),
        ("with words at its end", |bytes| bytes.extend(b"no line begins so")),
        ("much junk", |bytes| bytes.extend(vec![b'j'; 8 << 20])),
    ];
    for (what, damage) in damages {
        let place = used().await;
        change(&place.journal(1), damage);
        is_refused(&place, what).await;
    }
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let place = used().await;
    change(&place.journal(1), |bytes| {
        let text = String::from_utf8(std::mem::take(bytes)).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let body = first[18..].replacen("\"tenure\":1", "\"tenure\":99", 1);
        let sum = crc32fast::hash(body.as_bytes());
        *bytes = format!("{{\"sum\":\"{sum:08x}\",{body}\n{rest}").into_bytes();
    });
    let error = refusal(&place).await;
    let StoreError::Unsupported { what, .. } = &error else { panic!("{error:?}") };
    assert!(what.contains("version 99"), "{what}");
}

#[tokio::test]
async fn a_renamed_generation_or_a_folder_in_its_place_is_refused() {
    let place = used().await;
    std::fs::rename(place.journal(1), place.journal(2)).unwrap();
    is_refused(&place, "renamed").await;

    let place = used().await;
    std::fs::create_dir(place.journal(2)).unwrap();
    is_refused(&place, "a folder").await;
}

#[tokio::test]
async fn a_state_that_was_cut_at_the_end_of_a_line_is_refused() {
    let place = used().await;
    begin_next_generation(&place, &place.open()).await;
    let newest = place.journal(place.newest());
    let whole = std::fs::read(&newest).unwrap();
    let ends: Vec<usize> =
        (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    assert!(ends.len() >= 4, "a header and three holds");
    for length in &ends[..3] {
        std::fs::write(&newest, &whole[..*length]).unwrap();
        is_refused(&place, &format!("cut to {length}")).await;
    }
}

#[tokio::test]
async fn a_journal_that_is_removed_while_it_is_used_takes_nothing_more() {
    let place = used().await;
    let store = place.open();
    take(&store, "d").await.unwrap();
    std::fs::remove_dir_all(place.path("journal")).unwrap();
    for error in [take(&store, "e").await.err(), store.read(&Scope::Everything).await.err()] {
        assert!(matches!(error, Some(StoreError::Gone { .. })), "{error:?}");
    }
    assert!(!place.path("journal").exists(), "an empty one was begun in its place");
}

#[tokio::test]
async fn a_folder_that_is_removed_while_it_is_used_takes_nothing_more() {
    let place = used().await;
    let store = place.open();
    take(&store, "d").await.unwrap();
    std::fs::remove_dir_all(place.path("")).unwrap();
    let error = take(&store, "e").await.unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    assert!(files(&place.path("")).is_empty());
}

/// What `held/` says of a resource.
fn shown(place: &StoreLocation, name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path(&format!("held/lock/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn what_happens_to_the_files_for_people_or_their_mark_hinders_nobody() {
    let place = used().await;
    let (file, mark) = (place.path("held/lock/b.json"), place.path("side/mark"));
    for junk in ["", "junk", "\u{0}\u{0}", "99999999999999999999 7"] {
        std::fs::write(&file, junk).unwrap();
        std::fs::write(&mark, junk).unwrap();
        let store = place.open();
        take(&store, "d").await.unwrap();
        assert_eq!(shown(&place, "b")["holders"][0]["token"], 2, "{junk:?}");
    }
    std::fs::File::create(&mark).unwrap().write_all(&[0xff; 1000]).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    std::fs::create_dir(place.path("held/lock/z.json")).unwrap();
    take(&place.open(), "e").await.unwrap();
    std::fs::remove_dir(&file).unwrap();
    let store = place.open();
    take(&store, "f").await.unwrap();
    assert_eq!(shown(&place, "b")["holders"][0]["token"], 2);
    is_in_order(&store).await;
}

#[tokio::test]
async fn a_pipe_in_the_place_of_any_file_makes_nobody_wait() {
    let names = ["journal/00000001.jsonl", "side/mark", "side/door", "side/seat", "side/bell"];
    for name in names {
        let place = used().await;
        let path = place.path(name);
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let error = place.try_open().err().unwrap_or_else(|| panic!("{name} was taken"));
        assert!(error.to_string().contains("regular file"), "{name}: {error}");
        assert!(error.hint().is_some(), "{name}: {error}");
    }
    let place = used().await;
    let path = place.path("held/lock/a.json");
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let store: FileStore = place.open();
    take(&store, "d").await.unwrap();
    assert!(store.check().await.is_ok());
}
