//! `tenure update`: a file that many change is never half written, and no change is lost.

use crate::faulty_disk::{FILL, with_disk};
use crate::support::{Dice, Ended, Running, Signal, StoreLocation, TENURE, is_installed, until};
use std::path::Path;
use std::time::{Duration, Instant};

const WRITERS: usize = 100;

fn write(place: &StoreLocation, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(place.path(name), content).expect("a file in the scratch folder");
}

/// What an update whose command is a shell script came to.
fn update(place: &StoreLocation, options: &[&str], script: &str) -> Ended {
    place.run(&[&["update", "file"], options, &["--", "sh", "-c", script]].concat())
}

/// What others left or made beside the file.
fn drafts(place: &StoreLocation) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("")).expect("the scratch folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".tenure-")).collect()
}

#[test]
fn one_hundred_concurrent_updates_are_all_kept() {
    if !is_installed("jq") {
        crate::support::skip("there is no `jq` here");
        return;
    }
    let place = StoreLocation::new();
    write(&place, "counter.json", "{\"n\": 0}\n");
    let start = |_| place.start(&["update", "counter.json", "--", "jq", ".n += 1"]);
    let writers: Vec<Running> = (0..WRITERS).map(start).collect();
    for writer in writers {
        let ended = writer.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let content: serde_json::Value = serde_json::from_str(&place.read("counter.json")).unwrap();
    assert_eq!(content["n"], WRITERS);
    assert_eq!(drafts(&place), [""; 0]);
}

#[test]
fn an_update_killed_at_any_moment_leaves_the_old_file_or_the_new_one() {
    const ROUNDS: usize = 60;
    let place = StoreLocation::new();
    let content = |letter: &str| letter.repeat(300_000) + "\n";
    let (old, new) = (content("a"), content("b"));
    write(&place, "old", &old);
    write(&place, "new", &new);
    write(&place, "file", &old);
    let script = "cat >/dev/null; head -c 150000 new; tail -c +150001 new";
    // The first one makes the store, which takes longer.
    assert_eq!(update(&place, &[], script).code, 0);
    let begun = Instant::now();
    assert_eq!(update(&place, &[], script).code, 0);
    let usual = begun.elapsed();
    let mut dice = Dice::new();
    let (mut kept, mut replaced) = (0, 0);
    for _ in 0..ROUNDS {
        write(&place, "file", &old);
        let running = place.start(&["update", "file", "--", "sh", "-c", script]);
        let longest = usize::try_from(usual.as_micros()).expect("a short time") * 5 / 4;
        std::thread::sleep(Duration::from_micros(dice.below(longest) as u64));
        running.kill();
        match place.read("file") {
            content if content == old => kept += 1,
            content if content == new => replaced += 1,
            other => panic!("neither old nor new, but {} bytes", other.len()),
        }
    }
    println!("{kept} old, {replaced} new; an update takes {usual:.1?}");
    // Whatever the dead left is cleared away by the next, and nobody waits for them.
    let ended = update(&place, &["-w", "50"], "tr b c");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(drafts(&place), [""; 0]);
}

#[test]
fn a_draft_of_a_killed_update_is_removed_by_the_next_one_and_by_doctor() {
    let place = StoreLocation::new();
    write(&place, "file", "old\n");
    for cleaner in [&["update", "file", "-w", "50", "--", "cat"][..], &["doctor"]] {
        let script = "echo half; touch $D/ready; exec sleep 300";
        let updater = place.start(&["update", "file", "--", "sh", "-c", script]);
        place.wait_for("ready");
        assert_eq!(drafts(&place).len(), 1);
        // Not while its writer lives.
        assert_eq!(place.run(&["doctor"]).code, 0);
        assert_eq!(drafts(&place).len(), 1);
        updater.kill();
        assert_eq!(drafts(&place).len(), 1);
        let ended = place.run(cleaner);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(drafts(&place), [""; 0], "{cleaner:?}");
        assert_eq!(place.read("file"), "old\n");
        std::fs::remove_file(place.path("ready")).expect("the sign");
    }
}

#[test]
fn an_update_whose_lease_is_broken_changes_nothing() {
    let place = StoreLocation::new();
    write(&place, "file", "old\n");
    let script = "echo new; touch $D/ready; while :; do sleep 0.02; done";
    let updater = place.start(&["update", "file", "--grace", "50ms", "--", "sh", "-c", script]);
    place.wait_for("ready");
    let held = place.json(&["locks"])["locks"][0]["resource"].as_str().expect("a lock").to_owned();
    let ended = place.run(&["break", &held, "--force", "--reason", "test"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = updater.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert_eq!(place.read("file"), "old\n");
    assert_eq!(drafts(&place), [""; 0]);
    place.is_deserted();
}

/// The command is done before the loss is noticed: the last look, just before the file is replaced,
/// is what counts.
#[test]
fn a_lease_that_is_broken_at_the_very_end_is_noticed_before_the_file_is_replaced() {
    let place = StoreLocation::new();
    write(&place, "file", "old\n");
    let script =
        "$T --store $TENURE_STORE break \"$TENURE_RESOURCE\" --force --reason test >&2; echo new";
    let ended = update(&place, &[], script);
    assert_eq!(ended.code, 8, "{ended:?}");
    assert_eq!(place.read("file"), "old\n");
}

#[test]
fn a_command_that_fails_or_prints_nothing_or_something_else_changes_nothing() {
    let place = StoreLocation::new();
    write(&place, "file", "{\"a\": 1}\n");
    for (options, script, code) in [
        (&[][..], "echo new; exit 3", 3),
        (&[], "echo new; kill -KILL $$", 137),
        (&[], "true", 1),
        (&["--validate", "json"], "echo '{\"a\": '", 1),
        (&["--validate", "yaml"], "echo 'a: [1'", 1),
        (&["--validate", "toml"], "echo 'a ='", 1),
        (&[], "echo more >>file; cat", 1),
        (&[], "printf '{\"a\": 1}\\n' >other; mv other file; cat", 1),
        (&["--grace", "100ms"], "echo new; sleep 300 & exit 0", 1),
    ] {
        write(&place, "file", "{\"a\": 1}\n");
        let ended = update(&place, options, script);
        assert_eq!(ended.code, code, "{script}: {ended:?}");
        assert!(ended.stderr.starts_with("Error: "), "{script}: {ended:?}");
        assert!(place.read("file").starts_with("{\"a\": 1}\n"), "{script}");
        assert_eq!(drafts(&place), [""; 0], "{script}");
        assert_eq!(place.json(&["locks"])["locks"].as_array().map(Vec::len), Some(0), "{script}");
    }
    place.is_deserted();
    assert_eq!(update(&place, &["--allow-empty"], "true").code, 0);
    assert_eq!(place.read("file"), "");
}

#[test]
fn no_way_of_reading_and_writing_brings_it_to_a_halt() {
    let place = StoreLocation::new();
    let large = "x".repeat(1_000_000) + "\n";
    for (script, expected) in [
        ("head -c 1000000 /dev/zero | tr '\\0' y; cat", "y".repeat(1_000_000) + &large),
        ("exec <&-; echo closed", "closed\n".to_owned()),
        ("head -c 10; echo", "x".repeat(10) + "\n"),
        ("echo unread", "unread\n".to_owned()),
        ("cat; cat; cat", large.clone()),
    ] {
        write(&place, "file", &large);
        let ended = update(&place, &[], script);
        assert_eq!(ended.code, 0, "{script}: {ended:?}");
        assert!(place.read("file") == expected, "{script}");
    }
}

#[test]
fn a_flood_stays_on_disk_and_out_of_memory() {
    let place = StoreLocation::new();
    let file = std::fs::File::create(place.path("file")).expect("a file");
    file.set_len(100 << 20).expect("100 MiB of nothing");
    // Far less address space than the file has content.
    let mut command = place.command("sh");
    let script = "ulimit -v 1000000; ulimit -d 60000; \"$T\" --store \"$0\" update file -- sh -c 'cat; echo end'";
    command.args(["-c", script, &place.url()]);
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let length = std::fs::metadata(place.path("file")).expect("the file").len();
    assert_eq!(length, (100 << 20) + 4);
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let place = StoreLocation::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    assert_eq!(
        Running::start({
            let mut command = place.command("mkfifo");
            command.arg(place.path("pipe"));
            command
        })
        .end()
        .code,
        0
    );
    for name in ["folder", "pipe", "/dev/null"] {
        for arguments in [&["update", name, "--", "cat"][..], &["append", name, "--line", "x"]] {
            let ended = place.run(arguments);
            assert_eq!(ended.code, 1, "{ended:?}");
            assert!(ended.stderr.contains("not a file"), "{ended:?}");
        }
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let place = StoreLocation::new();
    let script = format!(
        "{FILL}
        cd $D/disk; export TENURE_STORE=sqlite:$D/tenure.db
        echo old >file; fill; rm more
        $T update file -- head -c 200000 /dev/zero 2>$D/err; echo $? >$D/code
        $T append file --line \"$(head -c 100000 /dev/zero | tr '\\0' x)\" 2>$D/append-err
        echo $? >$D/append-code
        cp file $D/kept; ls -A >$D/names; rm fill
        $T update file -- sh -c 'cat; echo new' && $T append file --line last && cp file $D/after"
    );
    let Some(ended) = with_disk(&place, "1m", &script) else { return };
    assert_eq!(ended.code, 0, "{ended:?}");
    for (code, message) in [("code", "err"), ("append-code", "append-err")] {
        let message = place.read(message);
        assert_eq!(place.read(code), "1\n", "{message}");
        assert!(message.contains("no space"), "{message}");
    }
    assert_eq!((place.read("kept"), place.read("names")), ("old\n".into(), "file\nfill\n".into()));
    assert_eq!(place.read("after"), "old\nnew\nlast\n");
}

#[test]
fn a_disk_that_is_read_only_is_told_before_the_command_runs() {
    let place = StoreLocation::new();
    let script = "
        cd $D/disk; export TENURE_STORE=sqlite:$D/tenure.db; echo old >file
        mount -o remount,ro $D/disk || exit 99
        $T update file -- touch $D/ran 2>$D/err; echo $? >$D/code
        $T update new -- touch $D/ran 2>>$D/err; echo $? >>$D/code
        cat file";
    let Some(ended) = with_disk(&place, "1m", script) else { return };
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "old\n"), "{ended:?}");
    assert_eq!(place.read("code"), "1\n1\n", "{}", place.read("err"));
    assert!(!place.path("ran").exists(), "the command ran in vain");
}

/// Runs the binary under test in this folder, with no store named.
fn run_in(place: &StoreLocation, folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.current_dir(folder).args(arguments);
    Running::start(command).end()
}

#[test]
fn every_way_to_a_file_is_one_resource_and_globs_that_match_it_exclude() {
    let place = StoreLocation::new();
    let (repository, elsewhere) = (place.path("repository"), place.path("elsewhere"));
    let deep = repository.join("deep/er");
    for folder in [&deep, &elsewhere] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let init = run_in(&place, &repository, &["init"]);
    assert_eq!(init.code, 0, "{init:?}");
    let file = repository.join("deep/state.json");
    std::fs::write(&file, "{}\n").expect("a file");
    std::os::unix::fs::symlink(&file, elsewhere.join("link.json")).expect("a link");
    std::os::unix::fs::symlink(&repository, elsewhere.join("way")).expect("a link");
    let absolute = file.to_str().expect("a path of text");
    let ways = [
        (&repository, "deep/state.json"),
        (&repository, "./deep//er/../state.json"),
        (&deep, "../state.json"),
        (&elsewhere, "link.json"),
        (&elsewhere, "way/deep/state.json"),
        (&elsewhere, absolute),
    ];
    for held in ["path:deep/*.json", "path:deep/state.json", "path:**"] {
        let taken = run_in(&place, &repository, &["acquire", "-q", held]);
        assert_eq!(taken.code, 0, "{taken:?}");
        for (folder, way) in ways {
            let ended = run_in(&place, folder, &["update", "-n", way, "--", "cat"]);
            assert_eq!(ended.code, 6, "{held} and {way}: {ended:?}");
        }
        let released =
            run_in(&place, &repository, &["release", "--grant", taken.stdout.trim_end()]);
        assert_eq!(released.code, 0, "{released:?}");
    }
    for (folder, way) in ways {
        let ended = run_in(&place, folder, &["update", "-n", "--json", way, "--", "cat"]);
        assert_eq!(ended.code, 0, "{way}: {ended:?}");
        assert_eq!(ended.json()["data"]["resource"], "path:deep/state.json");
    }
}

#[test]
fn an_update_that_waits_for_another_sees_its_result() {
    let place = StoreLocation::new();
    write(&place, "file", "one\n");
    let script = "cat; echo two; touch $D/ready; until [ -e $D/go ]; do sleep 0.02; done";
    let first = place.start(&["update", "file", "--", "sh", "-c", script]);
    place.wait_for("ready");
    let second = place.start(&["update", "file", "-w", "50", "--", "sh", "-c", "cat; echo three"]);
    let held = place.json(&["locks"])["locks"][0]["resource"].as_str().expect("a lock").to_owned();
    until("the second in the queue", || {
        (place.why(&held)["waiters"].as_array()?.len() == 1).then_some(())
    });
    assert_eq!(update(&place, &["-n", "-E", "42"], "cat").code, 42);
    place.touch("go");
    assert_eq!((first.end().code, second.end().code), (0, 0));
    assert_eq!(place.read("file"), "one\ntwo\nthree\n");
}

#[test]
fn a_polite_signal_ends_the_command_and_leaves_nothing() {
    let place = StoreLocation::new();
    write(&place, "file", "old\n");
    let script = "trap 'exit 5' TERM; echo new; touch $D/ready; while :; do sleep 0.02; done";
    let updater = place.start(&["update", "file", "--", "sh", "-c", script]);
    place.wait_for("ready");
    updater.signal(Signal::TERM);
    assert_eq!(updater.end().code, 5);
    assert_eq!((place.read("file"), drafts(&place)), ("old\n".into(), vec![]));
}
