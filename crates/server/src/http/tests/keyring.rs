//! What a running server knows of the tokens, as the file changes.

use crate::caller::{Caller, Role};
use crate::http::keyring::{Keyring, WithoutTokenFile};
use crate::http::tokens::TokenFile;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::world::{Clock, ManualClock};

struct Scene {
    _folder: TempDir,
    file: TokenFile,
    clock: Arc<ManualClock>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens"));
        Scene { _folder: folder, file, clock: Arc::new(ManualClock::new()) }
    }

    fn make(&self, name: &str, role: Role, seconds: Option<u64>) -> String {
        let lifetime = seconds.map(Duration::from_secs);
        self.file.create(name, role, self.clock.wall(), lifetime).unwrap().secret
    }

    fn keyring(&self) -> Keyring {
        let keyring = Keyring::open(self.file.clone(), self.clock.clone()).unwrap();
        keyring.without_token_file(WithoutTokenFile::LetIn)
    }
}

fn role(caller: Option<Caller>) -> Option<Role> {
    caller.map(|caller| caller.role)
}

#[test]
fn each_secret_is_known_and_no_other() {
    let scene = Scene::new();
    let secrets = Role::ALL.map(|role| scene.make(role.word(), role, None));
    let keyring = scene.keyring();
    for (secret, role) in secrets.iter().zip(Role::ALL) {
        let caller = keyring.caller(secret).unwrap();
        assert_eq!((caller.name.as_deref(), caller.role), (Some(role.word()), role));
    }
    let first = &secrets[0];
    let [short, long, other] =
        [first[1..].to_owned(), format!("{first}0"), first.to_ascii_uppercase()];
    for wrong in ["", "tnr_", &short, &long, &other, "read", &"x".repeat(10_000)] {
        assert_eq!(keyring.caller(wrong), None, "{wrong}");
    }
}

#[test]
fn changes_are_followed() {
    let scene = Scene::new();
    let one = scene.make("one", Role::Read, None);
    let keyring = scene.keyring();
    let two = scene.make("two", Role::Admin, None);
    assert_eq!(keyring.caller(&two), None);
    keyring.refresh().unwrap();
    assert_eq!(role(keyring.caller(&two)), Some(Role::Admin));
    let caller = keyring.caller(&one).unwrap();
    scene.file.revoke("one").unwrap();
    keyring.refresh().unwrap();
    assert_eq!(keyring.caller(&one), None);
    assert!(!keyring.still_admits(&caller));
    // Another token of the same name is not the same, unless it allows the same.
    scene.make("one", Role::Work, None);
    keyring.refresh().unwrap();
    assert!(!keyring.still_admits(&caller));
}

#[test]
fn a_token_ends_with_its_time() {
    let scene = Scene::new();
    let secret = scene.make("ci", Role::Work, Some(60));
    let keyring = scene.keyring();
    let caller = keyring.caller(&secret).unwrap();
    assert!(keyring.has_valid_token() && keyring.still_admits(&caller));
    scene.clock.advance(Duration::from_secs(60));
    assert_eq!(keyring.caller(&secret), None);
    assert!(keyring.has_token_file() && !keyring.has_valid_token());
    assert!(!keyring.still_admits(&caller));
}

#[test]
fn once_in_force_tokens_stay_in_force() {
    let scene = Scene::new();
    let keyring = scene.keyring();
    assert!(!keyring.has_token_file() && keyring.still_admits(&Caller::local()));
    let secret = scene.make("ci", Role::Work, None);
    keyring.refresh().unwrap();
    assert!(keyring.has_token_file() && !keyring.still_admits(&Caller::local()));
    // An unreadable file leaves the known tokens valid; without the file no caller is admitted.
    let good = std::fs::read(scene.file.path()).unwrap();
    std::fs::write(scene.file.path(), "nonsense").unwrap();
    assert!(keyring.refresh().is_err());
    assert_eq!(role(keyring.caller(&secret)), Some(Role::Work));
    std::fs::remove_file(scene.file.path()).unwrap();
    keyring.refresh().unwrap();
    assert!(keyring.has_token_file());
    assert_eq!(keyring.caller(&secret), None);
    std::fs::write(scene.file.path(), good).unwrap();
    keyring.refresh().unwrap();
    assert_eq!(role(keyring.caller(&secret)), Some(Role::Work));
}
