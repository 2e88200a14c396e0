//! The file store where it cannot be written to, or only in part: one sentence with a hint, exit 3,
//! nothing that was reported is lost, and it works again afterwards.

use crate::faulty_disk::{FILL, with_disk};
use crate::support::{Ended, Engine, Running, StoreLocation, TENURE};

const STORE: &str =
    "export TENURE_STORE=file:disk/store TENURE_ROTATE_BYTES=3000; mkdir -p disk/store\n";

fn says_why(message: &str, words: &str) {
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].starts_with("Error: ") && lines[0].contains(words), "{message}");
    assert!(lines[1].starts_with("Hint: "), "{message}");
}

#[test]
fn a_full_disk_is_reported_and_nothing_reported_is_lost() {
    let place = StoreLocation::new();
    // The disk fills up while generations begin and tasks are archived, too.
    let script = format!(
        "{STORE}{FILL}
        $T -q acquire first >$D/first
        dd if=/dev/zero of=$D/disk/fill bs=4k count=200 2>/dev/null
        for n in $(seq 200); do
            $T -q tasks add T --id t$n --key k$n >>$D/out 2>$D/err; code=$?
            [ $code = 0 ] || break
            echo t$n >>$D/added
            $T -q tasks claim t$n --as w >/dev/null 2>&1 || continue
            $T -q tasks complete t$n --as w >/dev/null 2>&1 && echo t$n >>$D/completed
        done
        fill
        # The last block of the journal may have room for a few more.
        for n in $(seq 100); do
            $T -q tasks add T --id last$n 2>$D/err; code=$?
            [ $code = 0 ] || break
            echo last$n >>$D/added
        done
        echo $code >$D/code
        $T run -n other -- touch $D/ran; echo $? >$D/run-code
        $T --json tasks list >$D/list-full || exit 4
        rm $D/disk/fill $D/disk/more
        $T --json tasks list >$D/list-after
        $T --json locks >$D/locks
        $T doctor || exit 1
        $T run -n other -- true || exit 2
        $T release --grant $(cat $D/first) || exit 3
        $T locks cleanup; find $D/disk -name 'draft-*' >$D/drafts"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!((place.read("code"), place.read("run-code")), ("3\n".into(), "3\n".into()));
    says_why(&place.read("err"), "full");
    assert!(!place.path("ran").exists(), "a command ran without a lock");
    assert!(place.read("locks").contains("\"first\""));
    assert_eq!(place.read("drafts"), "");
    assert!(place.read("completed").lines().count() > 3, "{}", place.read("completed"));
    for list in ["list-full", "list-after"] {
        let list: serde_json::Value = serde_json::from_str(&place.read(list)).expect("JSON");
        let tasks = list["data"]["tasks"].as_array().expect("tasks").clone();
        let status =
            |id: &str| tasks.iter().find(|task| task["id"] == id).map(|t| t["status"].clone());
        for id in place.read("added").lines() {
            assert!(status(id).is_some(), "{id} was lost");
        }
        for id in place.read("completed").lines() {
            assert_eq!(status(id).expect("a task"), "completed", "{id}");
        }
    }
}

#[test]
fn a_disk_that_cannot_be_written_to_can_be_looked_at() {
    let place = StoreLocation::new();
    let script = format!(
        "{STORE}
        $T -q acquire x >/dev/null
        mount -o remount,ro $D/disk || exit 99
        $T run -n y -- touch $D/ran 2>$D/err; echo $? >$D/code
        $T --json locks >$D/locks || exit 1
        mount -o remount,rw $D/disk
        $T run -n x -- true; [ $? = 6 ]"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(place.read("code"), "3\n");
    says_why(&place.read("err"), "read-only");
    assert!(place.read("locks").contains("\"x\""));
    assert!(!place.path("ran").exists());
}

/// Runs the binary in a shell that may have so many files open.
fn with_files(place: &StoreLocation, limit: usize, words: &str) -> Ended {
    let mut shell = place.command("sh");
    let script = format!("ulimit -n {limit}; exec {TENURE} --store {} {words}", place.url());
    shell.args(["-c", &script]);
    Running::start(shell).end()
}

#[test]
fn too_few_files_make_nothing_half_done() {
    let place = StoreLocation::with(Engine::Files);
    place.acquire(&["first"]);
    let mut refused = 0;
    // With fewer than nine not even a runtime can be started.
    for limit in 9..24 {
        let name = format!("lock-{limit}");
        let ended = with_files(&place, limit, &format!("acquire -n {name}"));
        assert!(!ended.text().contains("panicked"), "{limit}: {ended:?}");
        let held = place.why(&name)["holders"].as_array().map_or(0, Vec::len);
        assert_eq!(held, usize::from(ended.code == 0), "{limit}: {ended:?}");
        refused += usize::from(ended.code == 3);
    }
    assert!(refused > 0, "no limit was too low");
    assert_eq!(place.run(&["doctor"]).code, 0);
}
