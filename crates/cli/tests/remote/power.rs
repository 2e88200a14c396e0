//! A power cut of the server's machine. What was granted to a holder on another machine, which works
//! on, is on the disk; what was granted to processes of this machine need not be, for they are dead.

use crate::foreign::on_a_clone;
use crate::server::{free_address, through};
use crate::support::{Engine, Running, StoreLocation, until};
use std::collections::HashMap;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that keeps what was synced.
fn library(place: &StoreLocation) -> PathBuf {
    let library = place.path("synced.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/remote/synced.c");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]);
    let made = command.output().expect("a C compiler, which Rust needs as well");
    assert!(made.status.success(), "{made:?}");
    library
}

/// All files below a folder that keep records.
fn records(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().expect("a plain name");
        let is_record = ["tenure.db", "tenure.db-wal"].contains(&name.as_str())
            || [".jsonl", ".tasks"].iter().any(|end| name.ends_with(end));
        if path.is_dir() && ["store", "journal", "done"].contains(&name.as_str()) {
            found.extend(records(&path));
        } else if is_record {
            found.push(path);
        }
    }
    found
}

/// Leaves of each file what was synced.
fn cut_power(place: &StoreLocation) {
    let synced: HashMap<u64, PathBuf> = std::fs::read_dir(place.path("synced"))
        .expect("a folder")
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    for path in records(&place.path(".")) {
        match synced.get(&std::fs::metadata(&path).expect("a file").ino()) {
            Some(kept) => {
                std::fs::copy(kept, &path).expect("what was synced");
            }
            None => std::fs::remove_file(&path).expect("what was not"),
        }
    }
    let _ = std::fs::remove_file(place.path("tenure.db-shm"));
}

const CLIENT: &str = "11111111-2222-3333-4444-555555555555";
const NEXT_BOOT: &str = "99999999-8888-7777-6666-555555555555";

#[test]
fn what_was_granted_to_a_client_elsewhere_is_still_held_after_a_power_cut() {
    for engine in [Engine::Sqlite, Engine::Files] {
        let place = StoreLocation::with(engine);
        assert_eq!(place.run(&["init"]).code, 0);
        std::fs::create_dir(place.path("synced")).expect("a folder");
        // All that there is now has been on the disk for long.
        for path in records(&place.path(".")) {
            let number = std::fs::metadata(&path).expect("a file").ino();
            std::fs::copy(&path, place.path(&format!("synced/{number}"))).expect("a copy");
        }
        let address = free_address();
        let mut serve = place.tenure(&["serve", "--no-auth", "--listen", &address.to_string()]);
        serve.env("LD_PRELOAD", library(&place)).env("SYNCED", place.path("synced"));
        let mut server = Running::start(serve);
        until("a server that listens", || {
            assert!(!server.has_ended(), "the server ended");
            TcpStream::connect(address).ok().map(drop)
        });
        let url = format!("http://{address}");
        let elsewhere =
            |words: &[&str]| Running::start(on_a_clone(&place, CLIENT, &url, words)).end();
        let ended = elsewhere(&["--json", "acquire", "x", "--ttl", "1h"]);
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        let token = ended.json()["data"]["token"].as_u64().expect("a token");
        // The last change is one that dies with this machine: the disk need not have it.
        let here = ["acquire", "of-this-machine", "--ttl", "1h"];
        let ended = Running::start(through(&place, &url, &here)).end();
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        server.kill();
        cut_power(&place);

        let store = place.url();
        let after =
            |words: &[&str]| Running::start(on_a_clone(&place, NEXT_BOOT, &store, words)).end();
        let ended = after(&["run", "-n", "x", "--", "true"]);
        assert_eq!(ended.code, 6, "{engine:?}: two hold it: {ended:?}");
        let ended = after(&["verify", "x", "--token", &token.to_string()]);
        assert_eq!(ended.code, 0, "{engine:?}: {ended:?}");
        let ended = after(&["--json", "locks"]);
        assert!(
            !ended.stdout.contains("of-this-machine"),
            "{engine:?}: the disk kept what was not synced, so this shows nothing: {ended:?}"
        );
    }
}
