//! Tokens that are checked in the same transaction as an application's own rows, and views for reading.

use super::schema_of;
use std::process::{Command, Stdio};
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::{Client, Wait};
use tenure_testkit::postgres::{fresh_url, psql, shared_url};

/// A store with a table of an application beside it, and its schema.
async fn application() -> (Client, String, String) {
    let url = fresh_url();
    let client = Client::open(&url).await.unwrap();
    client.look_everywhere().await.unwrap();
    let schema = schema_of(&url);
    psql(&shared_url(), &format!("CREATE TABLE {schema}.written (what text)")).unwrap();
    (client, url, schema)
}

fn written(schema: &str) -> String {
    psql(&shared_url(), &format!("SELECT string_agg(what, ',') FROM {schema}.written")).unwrap()
}

/// Writes a row of the application if the token still counts, waits, and commits.
fn write(schema: &str, token: u64, what: &str, wait: &str) -> String {
    format!(
        "BEGIN; SELECT {schema}.check_token('lock:a', {token});
         INSERT INTO {schema}.written VALUES ('{what}'); SELECT pg_sleep({wait}); COMMIT"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_token_writes_nothing() {
    let (client, _, schema) = application().await;
    let old = client.acquire("a").await.unwrap();
    psql(&shared_url(), &write(&schema, old.token().0, "first", "0")).unwrap();
    let stale = old.token().0;
    old.release().await.unwrap();
    let new = client.acquire("a").await.unwrap();
    let refused = psql(&shared_url(), &write(&schema, stale, "late", "0")).unwrap_err();
    assert!(refused.contains("lock:a is not held with token"), "{refused}");
    let code = format!(
        "DO $$ BEGIN PERFORM {schema}.check_token('lock:a', {stale});
         EXCEPTION WHEN SQLSTATE 'TN001' THEN INSERT INTO {schema}.written VALUES ('refused'); END $$"
    );
    psql(&shared_url(), &code).unwrap();
    psql(&shared_url(), &write(&schema, new.token().0, "second", "0")).unwrap();
    assert_eq!(written(&schema), "first,refused,second");
}

/// Whoever comes next gets the lock only when the transaction that checked the token has ended. A renewal does
/// not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_the_transaction_that_checked() {
    let (client, url, schema) = application().await;
    let held = client.acquire("a").await.unwrap();
    let mut writing = Command::new("psql")
        .args(["-X", "-q", "-c", &write(&schema, held.token().0, "first", "2"), &shared_url()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let checked = format!(
        "SELECT count(*) FROM pg_locks WHERE relation = '{schema}.written'::regclass AND granted"
    );
    while psql(&shared_url(), &checked).unwrap() == "0" {
        assert!(writing.try_wait().unwrap().is_none(), "it did not write");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(held.confirm().await.unwrap());
    held.release().await.unwrap();
    let other = Client::open(&url).await.unwrap();
    let next = other.request("a").wait(Wait::Forever).hold().await.unwrap().into_result().unwrap();
    assert_eq!(written(&schema), "first");
    writing.wait().unwrap();
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_show_tasks_and_holds_without_grants() {
    let (client, _, schema) = application().await;
    let held = client.acquire("a").await.unwrap();
    client.tasks().add(vec![NewTask::new("t".parse().unwrap(), "A task")]).await.unwrap();
    let sql = |text: &str| psql(&shared_url(), &text.replace('@', &format!("{schema}."))).unwrap();
    assert_eq!(
        sql("SELECT id, title, status, created_at <= now() FROM @task_list"),
        "t|A task|pending|t"
    );
    let expected = format!("lock:a|{}|t", held.token());
    assert_eq!(sql("SELECT resource, token, expires_at > now() FROM @hold_list"), expected);
    let columns = sql(&format!(
        "SELECT count(*) FROM information_schema.columns WHERE table_schema = '{schema}'
            AND table_name IN ('task_list', 'hold_list') AND column_name LIKE '%grant%'"
    ));
    assert_eq!(columns, "0");
}
