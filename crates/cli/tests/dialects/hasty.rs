//! Tenure beside programs that race among themselves.
//!
//! They delete without looking, leave files empty for a moment and write over each other's. Tenure
//! cannot make them exclude each other, nor keep them from deleting its own lock. What it must do
//! all the same: judge nothing as stale that another validly holds, and exclude its own.
//!
//! Whatever these programs remove goes to a graveyard, so that what became of each lock file is
//! known. One that was published, is not in its place and not in the graveyard was taken by tenure.

use crate::contention::{Rounds, contend};
use crate::folder::{Dialect, Folder};
use std::collections::BTreeSet;
use std::path::Path;

/// How many of 1200 valid locks may be missing. Some are: tenure swaps its file for a stale one,
/// finds that another was there by then, and before it has put that back a hasty program removes,
/// without a look, what is in its place. It would have removed the lock itself. That is rare, but how
/// rare is left to chance, so this bound only shows that tenure neither misjudges nor creates over
/// what is there, which costs dozens. That it looks after each swap is shown by `takeover`, and in
/// the tests of `lock_file`.
const CAUGHT_MAX: usize = 14;

/// After how many seconds these programs take each other's locks for stale. A lock can be stranded:
/// tenure's removal of its own file catches a new one of theirs, whose owner lets go, without a look,
/// before it is back. It then stays until it is stale, and with their usual limit of five minutes
/// the run would stand still for that long. How that happens is shown in the tests of `lock_file`.
const STRANDED_LIMIT: &str = "10";

/// The marks of all lock files in a folder, and of the one that is still in its place.
fn marks(folder: &Folder) -> BTreeSet<String> {
    let graves = std::fs::read_dir(folder.path(".graveyard")).expect("a graveyard");
    let graves = graves.map(|grave| grave.expect("a grave").path());
    graves.chain([folder.lock()]).filter_map(|path| mark(&path)).collect()
}

fn mark(path: &Path) -> Option<String> {
    let fields: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    Some(fields["nonce"].as_str()?.to_owned())
}

fn nothing_valid_is_taken(dialect: Dialect) {
    let folder = Folder::new(dialect);
    let rounds = Rounds { foreign: 400, tenure: 200 };
    // Every fourth of theirs is left behind, stale.
    let logs = contend(&folder, "hasty", rounds, &["4", STRANDED_LIMIT]);

    let valid: BTreeSet<String> = logs.noted("nonce").map(str::to_owned).collect();
    let left: BTreeSet<String> = logs.noted("left").map(str::to_owned).collect();
    let buried = marks(&folder);
    let caught: Vec<&String> = valid.difference(&buried).collect();
    assert!(caught.len() <= CAUGHT_MAX, "valid locks that nobody else removed: {caught:?}");

    let stale_taken = left.difference(&buried).count();
    let claimed = logs.noted("took").count();
    println!(
        "  {} valid locks, {} lost among others; {} stale ones, {stale_taken} taken by tenure, \
         which found {claimed} stale",
        valid.len(),
        caught.len(),
        left.len(),
    );
    // Some that it judged were gone when it came; and stale ones get lost like valid ones.
    assert!(stale_taken <= claimed + CAUGHT_MAX, "more is missing than tenure says it took");
    assert!(claimed > 0, "nothing was there to take over");
    assert_eq!(logs.overlaps().tenure, 0, "two of tenure's own at once");
    assert_eq!(logs.by_tenure(), 4 * rounds.tenure);
    let aside = folder.path(".tenure/aside");
    assert!(!aside.exists(), "a file that was being written was set aside");
}

#[test]
fn nothing_valid_is_taken_from_hasty_workers() {
    nothing_valid_is_taken(Dialect::Worker);
}

#[test]
fn nothing_valid_is_taken_from_a_hasty_swarm() {
    nothing_valid_is_taken(Dialect::Swarm);
}

#[test]
fn nothing_valid_is_taken_from_hasty_sessions() {
    nothing_valid_is_taken(Dialect::Memory);
}
