//! What a person is told when something is wrong.

use crate::acts::*;
use crate::kit::{Certificates, client_of, engine_url, open, open_used, raw, start_tls};
use etcd_client::Permission;
use std::time::Duration;
use tenure::core::{GrantId, Revision};
use tenure::store::{Maintenance, Renewal, Renewed, Store, StoreError, StoreExt};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::fresh_url;

/// The error of the first use.
async fn first_use(store: &dyn Store) -> StoreError {
    store.changed(Revision(0), Duration::ZERO).await.expect_err("it should not work")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_is_said_in_one_sentence() {
    let store = open("etcd://127.0.0.1:1/nothing");
    let error = first_use(&*store).await;
    let text = error.to_string();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    let expected =
        "the store at etcd://127.0.0.1:1/nothing is not available: 127.0.0.1:1 does not answer";
    assert!(text.starts_with(expected), "{text}");
    println!("{text}");
    assert!(!text.contains('\n') && text.len() < 250, "{text}");
    assert!(error.hint().is_some_and(|hint| hint.contains("Check that etcd runs")));
}

/// Makes `root`, and `worker` with access to the keys below `team/` and to nothing else.
async fn enable_users(cluster: &Etcd) {
    let mut etcd = client_of(cluster).await;
    etcd.user_add("root", "right-secret", None).await.unwrap();
    etcd.role_add("root").await.unwrap();
    etcd.user_grant_role("root", "root").await.unwrap();
    etcd.user_add("worker", "work-secret", None).await.unwrap();
    etcd.role_add("tenure").await.unwrap();
    let team = Permission::read_write("team/").with_prefix();
    etcd.role_grant_permission("tenure", team).await.unwrap();
    etcd.user_grant_role("worker", "tenure").await.unwrap();
    etcd.auth_enable().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_said_and_never_shown() {
    let cluster = Etcd::start(1);
    enable_users(&cluster).await;
    let host = &cluster.endpoints()[0];

    let url = format!("etcd://root:wrong-secret@{host}/x");
    let error = first_use(&*open(&url)).await;
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().ends_with("the user name or the password is wrong"), "{error}");
    assert!(!format!("{error} {error:?} {:?}", engine_url(&url)).contains("wrong-secret"));

    let error = first_use(&*open(&format!("etcd://{host}/x"))).await;
    assert!(error.to_string().ends_with("etcd asks for a user and a password"), "{error}");

    let store = open_used(&format!("etcd://root:right-secret@{host}/x")).await;
    assert!(!store.info().url.contains("secret"), "{}", store.info().url);
    take(&*store, "lock", GrantId::random()).await;
    for finding in store.check().await.unwrap() {
        assert!(finding.ok, "{finding:?}");
    }

    let store = open_used(&format!("etcd://worker:work-secret@{host}/team")).await;
    let (holder, waiter) = (GrantId::random(), GrantId::random());
    let token = take(&*store, "lock", holder).await;
    queue(&*store, "lock", waiter).await;
    let renewal =
        Renewal { grant: holder, token, resources: vec![resource("lock")], ttl: LONG, bind: None };
    assert_eq!(store.renew(&[renewal]).await.unwrap(), [Renewed::Renewed]);
    release(&*store, "lock", holder).await;
    store.turn(waiter, Duration::from_secs(20)).await.unwrap();
    take(&*store, "lock", waiter).await;
    store.tidy().await.unwrap();
    for finding in store.check().await.unwrap() {
        assert!(finding.ok, "{finding:?}");
    }
    let error = first_use(&*open(&format!("etcd://worker:work-secret@{host}/other"))).await;
    assert!(error.to_string().ends_with("the user may not use these keys"), "{error}");
}

/// Those who may use no other keys than the store's can compare clusters too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_two_clusters_are_refused_to_a_user_with_few_rights() {
    let (one, other) = (Etcd::start(1), Etcd::start(1));
    enable_users(&one).await;
    enable_users(&other).await;
    let hosts = [&one.endpoints()[0], &other.endpoints()[0]].map(String::as_str).join(",");
    for _ in 0..2 {
        let store = open(&format!("etcd://worker:work-secret@{hosts}/team"));
        let error = request(&*store, ask("lock", GrantId::random())).await.unwrap_err();
        assert!(error.to_string().contains("different clusters"), "{error}");
        // What was found stays, whichever server answers.
        let error = request(&*store, ask("lock", GrantId::random())).await.unwrap_err();
        assert!(error.to_string().contains("different clusters"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_store_is_refused() {
    let url = fresh_url();
    drop(open_used(&url).await);
    let (mut etcd, prefix) = raw(&url).await;
    let newer = r#"{"format":9,"id":"of the future","more":[]}"#;
    etcd.put(format!("{prefix}store/meta"), newer, None).await.unwrap();
    let error = first_use(&*open(&url)).await;
    assert!(error.to_string().contains("a newer version of tenure (format 9"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("Use a newer version of tenure."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_something_else_are_left_alone() {
    let url = fresh_url();
    let (mut etcd, prefix) = raw(&url).await;
    etcd.put(format!("{prefix}config"), "mine", None).await.unwrap();
    let error = first_use(&*open(&url)).await;
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    let kept = etcd.get(prefix, Some(etcd_client::GetOptions::new().with_prefix())).await.unwrap();
    assert_eq!(kept.kvs().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_hold_is_reported_and_not_free() {
    let url = fresh_url();
    let store = open_used(&url).await;
    let grant = GrantId::random();
    take(&*store, "lock", grant).await;
    let (mut etcd, prefix) = raw(&url).await;
    etcd.put(format!("{prefix}h/n/lock:lock\0{grant}"), "{\"torn", None).await.unwrap();
    let error = request(&*store, ask("lock", GrantId::random())).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(!error.to_string().contains(&grant.to_string()), "{error}");
    take(&*store, "other", GrantId::random()).await;
}

/// After a backup was restored, an operator raises the epoch: all numbers are higher then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_epoch_raises_all_tokens() {
    let url = fresh_url();
    let store = open_used(&url).await;
    let grant = GrantId::random();
    let token = take(&*store, "lock", grant).await;
    release(&*store, "lock", grant).await;
    let (mut etcd, prefix) = raw(&url).await;
    etcd.put(format!("{prefix}store/epoch"), "1\n", None).await.unwrap();
    let grant = GrantId::random();
    let raised = take(&*store, "lock", grant).await;
    assert!(raised.0 > token.0 + (1 << 39) && raised.0 < 1 << 53, "{raised}");
    release(&*store, "lock", grant).await;
    assert!(take(&*store, "lock", GrantId::random()).await > raised);
    // `tenure store moved` does the same.
    store.maintain(Maintenance::Moved).await.unwrap();
    let moved = take(&*store, "other", GrantId::random()).await;
    assert!(moved.0 > raised.0 + (1 << 39) && moved.0 < 1 << 53, "{moved}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_used_and_needed() {
    let certificates = Certificates::new();
    let cluster = start_tls(&certificates);
    let host = &cluster.endpoints()[0];
    let file = |name: &str| certificates.file(name).display().to_string();
    let authority = format!("etcds://{host}/secure?cacert={}", file("ca.pem"));
    let url = format!("{authority}&cert={}&key={}", file("client.pem"), file("client.key"));
    let store = open(&url);
    let begun = std::time::Instant::now();
    while store.changed(Revision(0), Duration::ZERO).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
    }
    take(&*store, "lock", GrantId::random()).await;
    queue(&*store, "lock", GrantId::random()).await;
    for finding in store.check().await.unwrap() {
        assert!(finding.ok, "{finding:?}");
    }
    // Without a client certificate, and without TLS, there is no answer.
    for url in [authority, format!("etcd://{host}/secure")] {
        let error = first_use(&*open(&url)).await;
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    let error = first_use(&*open(&format!("etcds://{host}/secure?cacert=nowhere.pem"))).await;
    assert!(error.to_string().contains("the file nowhere.pem cannot be read"), "{error}");
}
