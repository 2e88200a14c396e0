//! A disk that is full. It is a small one of the test's own, in a mount namespace of its own; where
//! that is not permitted, the test says so and shows nothing.

use crate::support::{Ended, Running, StoreLocation};

/// Runs a script in a shell with a disk of `$SIZE` at `$D/disk`; nothing if that is not permitted.
pub(crate) fn with_disk(place: &StoreLocation, size: &str, script: &str) -> Option<Ended> {
    std::fs::create_dir(place.path("disk")).expect("a folder");
    let mounted = "mount -t tmpfs -o size=$SIZE tmpfs $D/disk || exit 99";
    let mut command = place.command("unshare");
    command.env("SIZE", size).env("TENURE_STORE", "sqlite:disk/tenure.db");
    command.args(["--mount", "--map-root-user", "sh", "-c", &format!("{mounted}\n{script}")]);
    if !crate::support::is_installed("unshare") {
        crate::support::skip("there is no `unshare` here");
        return None;
    }
    let ended = Running::start(command).end();
    if ended.code == 99 || ended.stderr.contains("unshare failed") {
        crate::support::skip(&format!("no disk can be mounted here: {}", ended.stderr));
        return None;
    }
    Some(ended)
}

/// Fills the disk to the last byte.
pub(crate) const FILL: &str = "fill() {
    dd if=/dev/zero of=$D/disk/fill bs=4k 2>/dev/null
    dd if=/dev/zero of=$D/disk/more bs=1 2>/dev/null
}
";

#[test]
fn a_full_disk_is_reported_in_one_sentence_and_nothing_reported_is_lost() {
    let place = StoreLocation::new();
    // The log may have room for a few more before the disk is needed.
    let script = format!(
        "{FILL}
        $T -q acquire first >$D/first && fill
        for n in $(seq 1000); do
            $T -q acquire lock-$n >>$D/out 2>$D/err; code=$?
            [ $code = 0 ] || break
            echo lock-$n >>$D/held
        done
        echo $code >$D/code
        $T run -n other -- touch $D/ran; echo $? >$D/run-code
        $T --json locks >$D/locks-full
        $T doctor >$D/doctor-full; [ $? = 7 ] || exit 4
        rm $D/disk/fill $D/disk/more
        $T --json locks >$D/locks-after
        $T doctor || exit 1
        $T run -n other -- true || exit 2
        $T release --grant $(cat $D/first) || exit 3"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    let message = place.read("err");
    assert_eq!(place.read("code"), "3\n", "{message}");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].starts_with("Error: ") && lines[0].contains("full"), "{message}");
    assert!(lines[1].starts_with("Hint: "), "{message}");
    assert_eq!(place.read("run-code"), "3\n");
    assert!(place.read("doctor-full").contains("bytes free at"), "{}", place.read("doctor-full"));
    assert!(!place.path("ran").exists(), "a command ran without a lock");
    for held in place.read("held").lines().chain(["first"]) {
        for answer in ["locks-full", "locks-after"] {
            assert!(place.read(answer).contains(&format!("\"{held}\"")), "{held} in {answer}");
        }
    }
}

#[test]
fn a_disk_that_cannot_be_written_to_is_reported_in_one_sentence() {
    let place = StoreLocation::new();
    let script = "
        $T -q acquire x >/dev/null
        mount -o remount,ro $D/disk || exit 99
        $T run -n y -- touch $D/ran 2>$D/err; echo $? >$D/code
        mount -o remount,rw $D/disk
        $T run -n x -- true; [ $? = 6 ]";
    let Some(ended) = with_disk(&place, "1m", script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    let message = place.read("err");
    assert_eq!(place.read("code"), "3\n", "{message}");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].starts_with("Error: ") && lines[1].starts_with("Hint: "), "{message}");
    assert!(!place.path("ran").exists(), "a command ran without a lock");
}

#[test]
fn a_store_cannot_be_made_on_a_full_disk_and_can_be_made_later() {
    let place = StoreLocation::new();
    let script = format!(
        "{FILL}
        fill
        $T acquire x 2>$D/err; echo $? >$D/code
        rm $D/disk/fill $D/disk/more
        $T acquire x && $T doctor && ls -A $D/disk/tenure.db.side >$D/side"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    let message = place.read("err");
    assert_eq!(place.read("code"), "3\n", "{message}");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[1].starts_with("Hint: "), "{message}");
    assert!(!place.read("side").contains("draft"), "{}", place.read("side"));
}

#[test]
fn a_command_that_ran_while_the_disk_filled_up_keeps_its_own_exit_code() {
    let place = StoreLocation::new();
    let script = format!(
        "{FILL}
        $T run --ttl 10m x -- sh -c 'dd if=/dev/zero of=$D/disk/fill bs=4k 2>/dev/null; exit 7'
        echo $? >$D/code
        rm $D/disk/fill
        $T run -w 50 x -- true"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!((ended.code, place.read("code").as_str()), (0, "7\n"), "{ended:?}");
}
