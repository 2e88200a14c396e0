//! Servers that take over: what the one before granted last may be missing there.

use super::pooler::Pooler;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::store::StoreError;
use tenure::{ClaimRequest, Client, Error, Wait};
use tenure_testkit::{Postgres, Proxy};

/// Longer than anything that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a statement answers so.
async fn until(server: &Postgres, sql: &str, expected: &str) {
    let waited = async {
        while server.sql(sql) != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let said = || format!("{sql} is {:?} and not {expected:?}", server.sql(sql));
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("{}", said()));
}

/// Lets leases be no longer than this without a new step, so that a test can wait out the longest one.
fn allow_only(server: &Postgres, lease: Duration) {
    let ms = lease.as_millis();
    server.sql(&format!("UPDATE s.meta SET longest_ms = {ms}, withhold_ms = {ms}"));
}

/// A standby that has the tables of the schema `s`.
fn follower(primary: &Postgres) -> Postgres {
    let standby = primary.standby();
    while standby.sql("SELECT to_regclass('s.meta')").is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    standby
}

/// From now on nothing arrives at this standby.
fn cut_feed(standby: &Postgres) {
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
    standby.sql("SELECT pg_reload_conf()");
    while standby.sql("SELECT count(*) FROM pg_stat_wal_receiver") != "0" {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The URL of the one of both that accepts writes.
fn either(one: &Postgres, other: &Postgres) -> String {
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", one.port, other.port);
    format!("postgres://postgres@{hosts}/postgres?schema=s")
}

/// Why a lock is refused, once the server answers.
pub async fn refusal(client: &Client, lock: &str) -> String {
    loop {
        match client.request(lock).wait(Wait::No).hold().await {
            Ok(attempt) => panic!("{lock} was granted: {:?}", attempt.into_result().is_ok()),
            Err(Error::Store(error @ StoreError::Withheld { .. })) => return error.to_string(),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Nothing is granted before this time, in milliseconds.
pub fn withholds_until(server: &Postgres, deadline_ms: &str) {
    let covers = format!("SELECT withhold_until_ms >= {deadline_ms} FROM s.meta");
    assert_eq!(server.sql(&covers), "t");
}

/// A standby that becomes the primary may lack what was reported last: numbers jump, and nothing is
/// granted for the longest lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_numbers_jump_and_grants_wait() {
    let server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    let client = Client::open(&url).await.unwrap();
    client.look_everywhere().await.unwrap();
    let lease = Duration::from_secs(4);
    allow_only(&server, lease);
    let before = client.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    let token = before.token();
    before.release().await.unwrap();
    drop(client);
    // A new timeline, as after a promotion.
    server.sql("UPDATE s.meta SET timeline = '00000000'");
    let client = Client::open(&url).await.unwrap();
    let refused = client.request("x").ttl(lease).wait(Wait::No).hold().await;
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("took over"), "{refused}");
    // What was held stays held, and can be looked at and released.
    client.look_everywhere().await.unwrap();
    // Requests and claims that wait are granted as soon as it is over.
    client.tasks().add(vec![NewTask::new("t".parse().unwrap(), "T")]).await.unwrap();
    let patience = Wait::UpTo(PATIENCE);
    let claim = client.tasks().request(ClaimRequest::default()).wait(patience);
    let (claimed, after) =
        tokio::join!(claim.take_work(), client.request("x").ttl(lease).wait(patience).hold());
    assert_eq!(claimed.unwrap().unwrap().len(), 1);
    let after = after.unwrap().into_result().unwrap();
    assert!(after.token().0 > token.0 + 1_000_000, "{} after {token}", after.token());
    let events = server.sql("SELECT count(*) FROM s.events WHERE kind = 'rebooted'");
    assert_eq!(events, "1");
}

/// A standby that lacks the last grant becomes the primary while clients go on: no other holder until
/// the lost lease has ended for its holder too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_standby_that_lacks_the_last_grant_takes_over() {
    let mut primary = Postgres::start(&[]);
    let lease = Duration::from_secs(6);
    let first = Client::open(&format!("{}?schema=s", primary.url())).await.unwrap();
    first.look_everywhere().await.unwrap();
    allow_only(&primary, lease);
    let before = first.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    before.release().await.unwrap();
    let standby = follower(&primary);
    cut_feed(&standby);
    let url = either(&primary, &standby);
    let (one, other) = (Client::open(&url).await.unwrap(), Client::open(&url).await.unwrap());
    let lost = one.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    let token = lost.token();
    primary.kill();
    standby.sql("SELECT pg_promote()");
    let granted = loop {
        match other.request("x").ttl(lease).wait(Wait::No).hold().await {
            Ok(attempt) => break attempt.into_result().unwrap(),
            Err(error) => {
                let said = error.to_string();
                let is_expected = ["took over", "connect", "closed"];
                assert!(is_expected.iter().any(|part| said.contains(part)), "{said}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    assert!(!lost.is_held(), "both trust their leases");
    assert!(granted.token().0 > token.0 + 1_000_000, "{} after {token}", granted.token());
    assert_eq!(standby.sql("SELECT count(*) FROM s.events WHERE kind = 'rebooted'"), "1");
}

/// The length of a lease is in the lost tail too. What the standby knows from the beginning covers it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_saw_only_short_leases_waits_for_the_end_of_a_longer_one() {
    let mut primary = Postgres::start(&[]);
    let one = Client::open(&format!("{}?schema=s", primary.url())).await.unwrap();
    let request = |client: &Client, seconds| client.request("x").ttl(Duration::from_secs(seconds));
    let short = request(&one, 2).hold().await.unwrap().into_result().unwrap();
    short.release().await.unwrap();
    let standby = follower(&primary);
    cut_feed(&standby);
    let _lost = request(&one, 30).hold().await.unwrap().into_result().unwrap();
    let deadline = primary.sql("SELECT deadline_ms FROM s.holds");
    primary.kill();
    standby.sql("SELECT pg_promote()");
    let other = Client::open(&either(&primary, &standby)).await.unwrap();
    refusal(&other, "x").await;
    withholds_until(&standby, &deadline);
}

/// A lease that is longer than all before waits until the standby knows how long it may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_knows_the_length_of_a_lease_before_it_is_granted() {
    let mut primary = Postgres::start(&[]);
    let client = Client::open(&format!("{}?schema=s", primary.url())).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let standby = follower(&primary);
    let proxy = Proxy::to(primary.port);
    let feed = format!("host=127.0.0.1 port={} user=postgres application_name=behind", proxy.port);
    cut_feed(&standby);
    standby.sql(&format!("ALTER SYSTEM SET primary_conninfo = '{feed}'"));
    standby.sql("SELECT pg_reload_conf()");
    until(&primary, "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'behind' AND state = 'streaming'", "1")
        .await;
    proxy.freeze();
    let asked = tokio::spawn({
        let client = client.clone();
        async move { client.request("x").ttl(Duration::from_secs(90)).hold().await }
    });
    until(&primary, "SELECT withhold_ms FROM s.meta", "600000").await;
    assert_eq!(
        primary.sql("SELECT longest_ms, (SELECT count(*) FROM s.holds) FROM s.meta"),
        "60000|0"
    );
    proxy.open();
    let held = asked.await.unwrap().unwrap().into_result().unwrap();
    primary.kill();
    standby.sql("SELECT pg_promote()");
    until(&standby, "SELECT pg_is_in_recovery()", "f").await;
    assert_eq!(standby.sql("SELECT withhold_ms FROM s.meta"), "600000");
    drop(held);
}

/// A standby that is connected and falls behind is waited for only for a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_standby_does_not_stop_long_leases() {
    let primary = Postgres::start(&[]);
    let client = Client::open(&format!("{}?schema=s", primary.url())).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let standby = follower(&primary);
    until(&primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
        .await;
    let pid = standby.sql("SELECT pid FROM pg_stat_wal_receiver");
    let signal = |name: &str| {
        let done = std::process::Command::new("kill").args([name, &pid]).status();
        assert!(done.unwrap().success());
    };
    signal("-STOP");
    let held = client.request("x").ttl(Duration::from_secs(90)).hold().await;
    signal("-CONT");
    held.unwrap().into_result().unwrap().release().await.unwrap();
}

/// Whatever the database's defaults are, a change is acknowledged only when the synchronous standby has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_acknowledged_when_the_synchronous_standby_has_it() {
    let server = Postgres::start(&["synchronous_commit=local"]);
    let client = Client::open(&format!("{}?schema=s", server.url())).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    // There is no such standby.
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    server.sql("SELECT pg_reload_conf()");
    let asking = tokio::spawn(async move {
        while let Ok(held) = client.acquire("x").await {
            let _ = held.release().await;
        }
    });
    until(&server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "1").await;
    server.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    server.sql("SELECT pg_reload_conf()");
    asking.abort();
}

/// Behind a pooler, a process stays connected while another server takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_behind_a_pooler_is_noticed_by_a_process_that_stays_connected() {
    let mut primary = Postgres::start(&[]);
    let direct = Client::open(&format!("{}?schema=s", primary.url())).await.unwrap();
    direct.acquire("x").await.unwrap().release().await.unwrap();
    let standby = follower(&primary);
    let pooler = Pooler::start("postgres", primary.port, "");
    let client = Client::open(&format!("{}?schema=s", pooler.url())).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    cut_feed(&standby);
    let lost = direct.request("x").ttl(Duration::from_secs(40)).hold().await.unwrap();
    let lost = lost.into_result().unwrap();
    let deadline = primary.sql("SELECT deadline_ms FROM s.holds");
    pooler.admin("PAUSE");
    primary.kill();
    standby.sql("SELECT pg_promote()");
    until(&standby, "SELECT pg_is_in_recovery()", "f").await;
    pooler.point_to(standby.port);
    pooler.admin("RESUME");
    refusal(&client, "x").await;
    withholds_until(&standby, &deadline);
    let next: u64 = standby.sql("SELECT last_value FROM s.numbers").parse().unwrap();
    assert!(next > lost.token().0, "{next}");
}
