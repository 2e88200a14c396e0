//! A store that an earlier version wrote is read: the keys and values in `samples/` are what it had.

use crate::acts::*;
use crate::kit::{open_used, raw};
use etcd_client::PutOptions;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{EventKind, GrantId, Revision, Scope, Status};
use tenure::store::{StoreExt, TaskFilter};
use tenure::{ClaimRequest, Claims, Client};
use tenure_testkit::etcd::fresh_url;

const SAMPLE: &str = include_str!("samples/v1.json");

/// Values of keys by their names, without the prefix. Keys that are attached to a lease begin with these.
const LEASED: [&str; 2] = ["l/", "k/"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_version_is_read() {
    let url = fresh_url();
    let (mut etcd, prefix) = raw(&url).await;
    let sample: BTreeMap<String, String> = serde_json::from_str(SAMPLE).unwrap();
    let lease = etcd.lease_grant(600, None).await.unwrap().id();
    for (key, value) in &sample {
        let is_leased = LEASED.iter().any(|word| key.starts_with(word));
        let options = is_leased.then(|| PutOptions::new().with_lease(lease));
        etcd.put(format!("{prefix}{key}"), value.as_str(), options).await.unwrap();
    }

    let store = open_used(&url).await;
    let seen = store.read(&Scope::Everything).await.unwrap();
    let held: Vec<String> =
        seen.holds.iter().map(|held| held.hold.want.resource.to_string()).collect();
    let mut sorted = held.clone();
    sorted.sort();
    assert_eq!(sorted, ["lock", "path:src/**", "section:S", "task:a"], "{held:?}");
    assert!(seen.holds.iter().all(|held| !held.lapsed()));
    assert_eq!(seen.waiters.len(), 1);
    assert_eq!(seen.waiters[0].waiter.operation.as_deref(), Some("deploy"));
    let tasks = store.read(&TaskFilter::default()).await.unwrap();
    let statuses: Vec<(&str, Status)> =
        tasks.iter().map(|task| (task.id.as_str(), task.status)).collect();
    assert_eq!(statuses, [("a", Status::InProgress), ("b", Status::Pending)]);
    assert_eq!(
        tasks[1].depends_on,
        tasks[..1].iter().map(|task| task.id.clone()).collect::<Vec<_>>()
    );
    let events = store.events(Revision(0), u32::MAX).await.unwrap();
    assert!(
        events.iter().any(|event| matches!(event.event.kind, EventKind::Waiting)),
        "{events:?}"
    );

    // And it can be used on.
    let highest = seen.holds.iter().map(|held| held.hold.token).max().unwrap();
    let grant = seen.holds.iter().find(|held| held.hold.want.resource == resource("lock")).unwrap();
    release(&*store, "lock", grant.hold.grant).await;
    let next = seen.waiters[0].waiter.grant;
    let outcome = request(&*store, ask("lock", next)).await.unwrap();
    let tenure::core::Outcome::Granted(granted) = outcome else { panic!("{outcome:?}") };
    assert!(granted.token > tenure::core::Token(0) && highest > tenure::core::Token(0));
}

/// Writes the sample of the present format to standard output, for a new file in `samples/`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it prints a new sample"]
async fn print_a_sample() {
    let url = fresh_url();
    let store = open_used(&url).await;
    let client = Client::builder().label("w").with_store(store.clone()).unwrap();
    let mut first = NewTask::new("a".parse().unwrap(), "the first");
    first.section = Some("S".to_owned());
    first.files = vec!["src/**".to_owned()];
    first.key = Some("first".to_owned());
    let mut second = NewTask::new("b".parse().unwrap(), "the second");
    second.depends_on = vec!["a".parse().unwrap()];
    client.tasks().add(vec![first, second]).await.unwrap();
    let claim = ClaimRequest { ttl: Duration::from_secs(600), ..ClaimRequest::default() };
    let claimed = client.tasks().claim(&claim).await.unwrap();
    assert!(matches!(claimed, Claims::Claimed { .. }));
    take(&*store, "lock", GrantId::random()).await;
    let waiting = tenure::core::Ask {
        queue: Some(LONG),
        operation: Some("deploy".to_owned()),
        ..ask("lock", GrantId::random())
    };
    request(&*store, waiting).await.unwrap();
    let (mut etcd, prefix) = raw(&url).await;
    let all = Some(etcd_client::GetOptions::new().with_prefix());
    let found = etcd.get(prefix.clone(), all).await.unwrap();
    let sample: BTreeMap<&str, &str> = found
        .kvs()
        .iter()
        .map(|entry| (&entry.key_str().unwrap()[prefix.len()..], entry.value_str().unwrap()))
        .collect();
    println!("{}", serde_json::to_string_pretty(&sample).unwrap());
}
