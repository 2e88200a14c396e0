//! The file of tokens: made for its owner, replaced whole, and of many changes none is lost.

use crate::caller::Role;
use crate::http::tokens::{SECRET_PREFIX, TokenError, TokenFile};
use std::collections::BTreeSet;
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::WallTime;

const NOW: WallTime = WallTime(1_800_000_000_000);

fn file() -> (TempDir, TokenFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::at(folder.path().join("tokens"));
    (folder, file)
}

#[test]
fn what_was_made_is_there_and_its_secret_is_not() {
    let (_folder, file) = file();
    assert_eq!(file.read().unwrap(), None);
    let lifetime = Some(Duration::from_secs(60));
    let made = file.create("ci", Role::Work, NOW, lifetime).unwrap();
    assert!(made.secret.starts_with(SECRET_PREFIX));
    assert_eq!(made.secret.len(), SECRET_PREFIX.len() + 64);
    let read = file.read().unwrap().unwrap();
    assert_eq!(read, [made.token]);
    assert_eq!(read[0].expires_at, Some(WallTime(NOW.0 + 60_000)));
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(!text.contains(&made.secret[SECRET_PREFIX.len()..]), "{text}");
    let other = file.create("other", Role::Read, NOW, None).unwrap();
    assert_ne!(other.secret, made.secret);
}

#[test]
fn a_token_counts_until_its_time_is_over() {
    let (_folder, file) = file();
    let token = file.create("ci", Role::Work, NOW, Some(Duration::from_secs(1))).unwrap().token;
    assert!(!token.is_expired(WallTime(NOW.0 + 999)));
    assert!(token.is_expired(WallTime(NOW.0 + 1000)));
    let token = file.create("for-ever", Role::Work, NOW, Some(Duration::MAX)).unwrap().token;
    assert!(!token.is_expired(WallTime(i64::MAX - 1)));
}

#[test]
fn names_are_taken_once_and_given_back() {
    let (_folder, file) = file();
    file.create("ci", Role::Work, NOW, None).unwrap();
    let again = file.create("ci", Role::Admin, NOW, None);
    assert!(matches!(again, Err(TokenError::Exists { .. })));
    assert_eq!(file.revoke("ci").unwrap().role, Role::Work);
    assert_eq!(file.read().unwrap().unwrap(), []);
    assert!(matches!(file.revoke("ci"), Err(TokenError::NotFound { .. })));
    file.create("ci", Role::Admin, NOW, None).unwrap();
}

#[test]
fn nothing_is_made_by_revoking() {
    let (_folder, file) = file();
    assert!(matches!(file.revoke("ci"), Err(TokenError::NotFound { .. })));
    assert!(!file.path().exists());
}

#[test]
fn odd_names_are_refused() {
    let (_folder, file) = file();
    for name in ["", "a b", "a\nb", "ü", "a/b", &"x".repeat(65)] {
        let made = file.create(name, Role::Read, NOW, None);
        assert!(matches!(made, Err(TokenError::Name { .. })), "{name:?}");
    }
}

#[test]
fn many_at_once_lose_nothing() {
    let (_folder, file) = file();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..8 {
                    file.create(&format!("t{writer}-{number}"), Role::Read, NOW, None).unwrap();
                }
                file.revoke(&format!("t{writer}-0")).unwrap();
            });
        }
    });
    let tokens = file.read().unwrap().unwrap();
    let names: BTreeSet<_> = tokens.iter().map(|token| &token.name).collect();
    assert_eq!((tokens.len(), names.len()), (56, 56));
}

#[test]
fn a_line_that_is_none_is_named() {
    let (_folder, file) = file();
    file.create("ci", Role::Work, NOW, None).unwrap();
    let good = std::fs::read_to_string(file.path()).unwrap();
    for bad in [
        "{",
        "nonsense",
        r#"{"name":"x","role":"owner","sha256":"00","created_at_ms":1}"#,
        r#"{"name":"x","role":"work","sha256":"00","created_at_ms":1}"#,
    ] {
        std::fs::write(file.path(), format!("{good}{bad}\n")).unwrap();
        let error = file.read().unwrap_err();
        assert!(matches!(error, TokenError::Corrupt { line: 2, .. }), "{bad}: {error}");
        assert!(file.create("new", Role::Work, NOW, None).is_err());
    }
    // What later versions may add does not matter.
    let more = good.replace("\"name\"", "\"note\":\"x\",\"name\"");
    std::fs::write(file.path(), more).unwrap();
    assert_eq!(file.read().unwrap().unwrap().len(), 1);
}

#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file) = file();
    let mode = || std::fs::metadata(file.path()).unwrap().permissions().mode() & 0o777;
    file.create("ci", Role::Work, NOW, None).unwrap();
    assert_eq!(mode(), 0o600);
    file.create("ci2", Role::Work, NOW, None).unwrap();
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o662)).unwrap();
    assert!(matches!(file.read(), Err(TokenError::Exposed { .. })));
}
