//! Refreshing the lock of a path while others read it, want it, or the disk fails: the ten tests
//! that its own programs ask for.

use crate::folder::{Dialect, Folder};
use crate::roles::{LEASE, variable};
use crate::support::{Over, Running, StoreLocation, is_installed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure::Wait;
use tenure::blocking::{Attempt, Client};
use tenure::core::GrantId;
use tenure::core::rules::Proof;
use tenure::store::Renewed;

/// Takes the lock and refreshes it `ROUNDS` times; a file `begun` says that it has it.
pub fn refresh() {
    let client = Client::open(&variable("URL")).expect("the store");
    let guard = client.acquire(variable("RESOURCE").as_str()).expect("the lock");
    std::fs::write("begun", "").expect("a sign");
    for _ in 0..variable("ROUNDS").parse().expect("a number") {
        assert!(renew(&client, guard.grant()), "a refresh said that the lock was lost");
    }
    guard.release().expect("an answer");
}

/// Refreshes once; says whether it is still held.
fn renew(client: &Client, grant: GrantId) -> bool {
    let proof = Proof::Grant(grant);
    let renewed = client.run(client.asynchronous().renew(&proof, None, None)).expect("an answer");
    renewed.len() == 1 && renewed[0].1 == Renewed::Renewed
}

fn hold(client: &Client, resource: &str) -> tenure::blocking::Guard {
    let request = client.request(resource).ttl(LEASE);
    match client.hold(request).expect("an answer") {
        Attempt::Held(guard) => guard,
        Attempt::Busy(busy) => panic!("{busy:?}"),
    }
}

/// What lies in the folder beside lock files and tenure's own records.
fn strays(folder: &Folder) -> Vec<String> {
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let mut strays = names(&folder.path(""));
    strays.retain(|name| !name.ends_with(".lock") && name != ".tenure" && name != ".takers");
    strays.extend(names(&folder.path(".tenure/drafts")));
    strays
}

/// Never absent, never torn, and each time another file: as fast as one can look.
#[test]
fn the_lock_is_there_and_whole_whenever_one_looks() {
    let folder = Folder::new(Dialect::Swarm);
    let mut command = folder.role("refresh");
    command.env("ROUNDS", "400");
    let mut refreshing = Running::start(command);
    folder.place.wait_for("begun");
    let (mut looks, mut inodes) = (0, BTreeSet::new());
    while inodes.len() < 200 {
        let bytes = match std::fs::read(folder.lock()) {
            Ok(bytes) => bytes,
            Err(_) if refreshing.has_ended() => break,
            // Given back after the last refresh, or absent in the middle.
            Err(error) => {
                let ended = refreshing.end();
                assert!(looks > 0 && ended.code == 0 && inodes.len() > 100, "{error}: {ended:?}");
                break;
            }
        };
        let said: Value = serde_json::from_slice(&bytes).expect("whole JSON, always");
        assert_eq!(said["filepath"], "src/main.py");
        if let Ok(meta) = std::fs::metadata(folder.lock()) {
            // Numbers are used again; together with the date they are not.
            inodes.insert((meta.ino(), meta.mtime_nsec()));
        }
        looks += 1;
    }
    println!("{looks} looks, {} different files", inodes.len());
    assert!(inodes.len() > 100, "it is replaced, not written over: {}", inodes.len());
    assert!(looks > inodes.len());
}

#[test]
fn fifty_refreshes_at_once_all_succeed() {
    let folder = Folder::new(Dialect::Swarm);
    let client = Client::open(&folder.url()).expect("the store");
    let guard = hold(&client, &folder.dialect.resource());
    let grant = guard.grant();
    std::thread::scope(|scope| {
        let refreshes: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    let client = Client::open(&folder.url()).expect("the store");
                    renew(&client, grant)
                })
            })
            .collect();
        for refresh in refreshes {
            assert!(refresh.join().expect("no panic"), "a refresh was refused");
        }
    });
    assert_eq!(folder.said()["tenure"]["token"], guard.token().0);
    drop(guard);
    assert_eq!(strays(&folder), Vec::<String>::new(), "no draft is left");
}

#[test]
fn nobody_gets_in_while_it_is_refreshed() {
    let folder = Folder::new(Dialect::Swarm);
    let client = Client::open(&folder.url()).expect("the store");
    let guard = hold(&client, &folder.dialect.resource());
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let arguments = [directory, folder.dialect.name(), "2000"];
    let foreign = Running::start(folder.foreign("try.py", &arguments));
    std::thread::scope(|scope| {
        let over = Over::default();
        for _ in 0..2 {
            let (flag, folder) = (over.flag(), &folder);
            scope.spawn(move || {
                let client = Client::open(&folder.url()).expect("the store");
                while !flag.load(Ordering::Relaxed) {
                    let resource = folder.dialect.resource();
                    let request = client.request(resource.as_str()).wait(Wait::No);
                    let attempt = client.hold(request).expect("an answer");
                    assert!(matches!(attempt, Attempt::Busy(_)), "another got it");
                }
            });
        }
        for _ in 0..150 {
            assert!(renew(&client, guard.grant()), "a refresh lost it");
        }
    });
    let ended = foreign.end();
    assert_eq!((ended.code, ended.stdout.trim()), (0, "2000 tries, 0 won"), "{ended:?}");
    assert_eq!(guard.release().expect("an answer"), tenure::ReleaseOutcome::Released);
    assert_eq!(strays(&folder), Vec::<String>::new());
}

/// The folder is on a small disk of its own that is full when the lock is to be refreshed.
#[test]
fn a_refresh_that_fails_leaves_the_lock_as_it_was_and_no_draft() {
    if !is_installed("unshare") {
        crate::support::skip("there is no `unshare` here");
        return;
    }
    let place = StoreLocation::new();
    std::fs::create_dir(place.path("disk")).expect("a folder");
    let script = r#"
        mount -t tmpfs -o size=256k tmpfs $D/disk || exit 99
        store="--store file:disk?dialect=swarm"
        grant=$($T $store -q acquire src/main.py --ttl 10m) || exit 10
        cat disk/*.lock >$D/before
        dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null; dd if=/dev/zero of=disk/fill2 bs=1 2>/dev/null
        $T $store renew --grant $grant 2>$D/err; echo $? >$D/code
        cat disk/*.lock >$D/during; ls disk/.tenure/drafts >$D/drafts
        rm disk/fill disk/fill2
        $T $store renew --grant $grant || exit 11
        $T $store release --grant $grant || exit 12
        ls disk >$D/after"#;
    let mut command = place.command("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]);
    let ended = Running::start(command).end();
    if ended.code == 99 || ended.stderr.contains("unshare failed") {
        crate::support::skip(&format!("no disk can be mounted here: {}", ended.stderr));
        return;
    }
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(place.read("code"), "3\n", "{}", place.read("err"));
    assert!(place.read("err").contains("the disk is full"), "{}", place.read("err"));
    assert!(!place.read("before").is_empty());
    assert_eq!(place.read("during"), place.read("before"));
    assert_eq!(place.read("drafts"), "");
    assert_eq!(place.read("after"), "");
}

#[test]
fn many_agents_on_different_files_do_not_meet() {
    let folder = Folder::new(Dialect::Swarm);
    let directory = folder.path("");
    let directory = directory.to_str().expect("a plain path");
    let agents: Vec<Running> = (0..8)
        .map(|number| {
            let (name, log) = (format!("src/{number}.py"), format!("log.{number}"));
            let owner = format!("agent-{number}");
            let arguments = ["careful", directory, &name, &owner, "40", &log];
            let mut command = folder.role("hold");
            command.env("RESOURCE", format!("path:{name}")).env("ROUNDS", "40").env("LOG", &log);
            match number % 2 {
                0 => Running::start(folder.foreign("hold.py", &arguments)),
                _ => Running::start(command),
            }
        })
        .collect();
    for agent in agents {
        let ended = agent.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let locks = std::fs::read_dir(folder.path("")).expect("a folder").flatten();
    let locks = locks.filter(|entry| entry.path().extension().is_some_and(|end| end == "lock"));
    assert_eq!(locks.count(), 0);
    assert_eq!(strays(&folder), Vec::<String>::new());
}

/// Threads of one process, over one client and over several.
#[test]
fn threads_of_one_process_exclude_each_other() {
    let folder = Folder::new(Dialect::Swarm);
    let (inside, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = Client::open(&folder.url()).expect("the store");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let client = match number % 2 {
                0 => shared.clone(),
                _ => Client::open(&folder.url()).expect("the store"),
            };
            let (folder, inside, done) = (&folder, &inside, &done);
            scope.spawn(move || {
                for _ in 0..15 {
                    let guard = hold(&client, &folder.dialect.resource());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 120);
}

#[test]
fn what_a_killed_refresh_leaves_is_found_and_removed() {
    let folder = Folder::new(Dialect::Swarm);
    let lease = folder.json(&["acquire", "src/main.py", "--ttl", "10m"]);
    let grant = lease["data"]["grant"].as_str().expect("a grant");
    let before = folder.said();
    let mut killed = folder.tenure(&["renew", "--grant", grant]);
    killed.env("TENURE_FAULT", "lock-drafted");
    assert_eq!(Running::start(killed).end().code, 128 + 9);
    assert_eq!(folder.said(), before, "the lock is as it was");
    assert_eq!(strays(&folder).len(), 1, "a draft is left");
    let doctor = folder.run(&["doctor"]);
    assert!(doctor.stdout.contains("1 of dead processes"), "{doctor:?}");
    let dry = folder.run(&["locks", "cleanup", "--dry-run"]);
    assert!(dry.stdout.contains("Would remove 1 file of a dead process"), "{dry:?}");
    assert_eq!(strays(&folder).len(), 1, "a dry run removes nothing");
    assert_eq!(folder.run(&["locks", "cleanup"]).code, 0);
    assert_eq!(strays(&folder), Vec::<String>::new());
    assert_eq!(folder.run(&["renew", "--grant", grant]).code, 0, "and it goes on");
}

#[test]
fn a_path_is_one_lock_however_it_is_written() {
    let folder = Folder::new(Dialect::Swarm);
    assert_eq!(folder.run(&["acquire", "./src//main.py"]).code, 0);
    assert!(folder.judged(Duration::ZERO).starts_with("held by"));
    assert_eq!(folder.run(&["acquire", "-n", "src/**"]).code, 6, "a glob that matches it");
}

/// What the file says of itself does not matter where its name says what it is about.
#[test]
fn a_lock_counts_by_its_name_even_if_it_calls_its_path_otherwise() {
    let folder = Folder::new(Dialect::Swarm);
    let content = folder.dialect.content("agent", Duration::ZERO);
    folder.put(&content.replace("src/main.py", "/home/somebody/src/main.py"));
    let refused = folder.run(&["acquire", "-n", "src/main.py"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("agent"), "{refused:?}");
}

/// What other programs leave in the folder is told, and set aside once no writer can be at it.
#[test]
fn temporary_files_and_folders_among_the_locks_are_told() {
    let folder = Folder::new(Dialect::Swarm);
    std::fs::write(folder.path("fresh.lock.tmp"), "{}").expect("a file");
    let left = folder.path("left.lock.tmp");
    std::fs::write(&left, "{}").expect("a file");
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(600);
    let file = std::fs::File::options().write(true).open(&left).expect("a file");
    file.set_modified(long_ago).expect("a date");
    std::fs::create_dir(folder.path("sub")).expect("a folder");
    let doctor = folder.run(&["doctor"]);
    assert_eq!(doctor.code, 7, "{doctor:?}");
    for (name, told) in [("left.lock.tmp", true), ("/sub ", true), ("fresh.lock.tmp", false)] {
        assert_eq!(doctor.stdout.contains(name), told, "{name}: {doctor:?}");
    }
    let dry = folder.run(&["locks", "cleanup", "--dry-run"]);
    assert!(dry.stdout.contains("Would remove 1 file"), "{dry:?}");
    let dry = folder.json(&["locks", "cleanup", "--dry-run"]);
    assert_eq!(dry["data"]["leftovers"], 1, "{dry}");
    assert!(left.exists(), "a dry run removes nothing");
    let cleaned = folder.run(&["locks", "cleanup"]);
    assert!(cleaned.stdout.contains("Removed 1 file"), "{cleaned:?}");
    assert!(!cleaned.stdout.contains("Nothing to clean up"), "{cleaned:?}");
    assert!(!left.exists() && folder.path("fresh.lock.tmp").exists());
    let kept = std::fs::read_dir(folder.path(".tenure/aside")).expect("a folder").count();
    assert_eq!(kept, 1, "nothing of others is deleted");
    assert_eq!(folder.run(&["locks", "cleanup"]).stdout.trim(), "Nothing to clean up");
}

#[test]
fn a_lock_that_cannot_be_read_is_listed_counts_for_every_glob_and_is_cleaned_up() {
    let folder = Folder::new(Dialect::Swarm);
    folder.put("half of a lo");
    let list = folder.run(&["locks", "list"]);
    assert!(list.stdout.contains(&format!("path:{}", Dialect::Swarm.file())), "{list:?}");
    for glob in ["src/**", "lib/*.py", "**"] {
        let refused = folder.run(&["acquire", "-n", glob]);
        assert_eq!(refused.code, 6, "it may be about a path of {glob}: {refused:?}");
        assert!(refused.stderr.contains("unreadable lock file"), "{refused:?}");
    }
    assert_eq!(folder.run(&["acquire", "-n", "src/main.py"]).code, 6, "it is about this one");
    assert_eq!(folder.run(&["acquire", "-n", "src/other.py"]).code, 0, "and not about that");
    assert_eq!(folder.run(&["tasks", "add", "t", "--file", "lib/**"]).code, 0);
    assert_eq!(folder.run(&["tasks", "claim", "--no-wait"]).code, 6, "nor a task with such files");

    folder.backdate(Duration::from_secs(10));
    let dry = folder.run(&["locks", "cleanup", "--dry-run"]);
    assert!(dry.stdout.contains("Would remove 1 hold"), "{dry:?}");
    assert_eq!(folder.run(&["acquire", "-n", "lib/*.py"]).code, 0, "its writer is gone");
    let cleaned = folder.run(&["locks", "cleanup"]);
    assert!(cleaned.stdout.contains("Removed 1 hold"), "{cleaned:?}");
    assert!(!folder.lock().exists());
    assert_eq!(std::fs::read_dir(folder.path(".tenure/aside")).expect("a folder").count(), 1);
}

/// A file of which only half is written is about its path, also for a request that looks at more.
#[test]
fn a_request_waits_out_a_lock_that_cannot_be_read() {
    for (name, label) in [("src/main.py", "one"), ("src/**", "two")] {
        let folder = Folder::new(Dialect::Swarm);
        folder.put("half of a lo");
        // What it keeps meanwhile makes it look at all that waits.
        assert_eq!(folder.run(&["acquire", "-n", "lib/other.py", "--as", label]).code, 0);
        let waited = folder.run(&["acquire", "-w", "60", &format!("path:{name}"), "--as", label]);
        assert_eq!(waited.code, 0, "{name}: {waited:?}");
    }
}

#[test]
fn a_path_on_the_command_line_is_relative_to_the_current_folder() {
    let folder = Folder::new(Dialect::Swarm);
    std::fs::create_dir(folder.place.path("src")).expect("a folder");
    let made = folder.place.command("git").args(["init", "-q"]).status().expect("git");
    assert!(made.success());
    assert_eq!(folder.run(&["-C", "src", "acquire", "-n", "main.py", "--as", "one"]).code, 0);
    assert!(folder.lock().exists(), "the lock file of src/main.py");
    assert_eq!(folder.run(&["acquire", "-n", "src/main.py", "--as", "two"]).code, 6);
}
