//! Reaching a server, making the tables, and what is refused in one sentence.

use super::{open, parsed, schema_of};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::store::{PostgresOptions, PostgresStore, Query, Store, StoreError};
use tenure::{Client, Error};
use tenure_testkit::Postgres;
use tenure_testkit::postgres::{fresh_url, psql, shared_url};

async fn error_of(url: &str) -> StoreError {
    let store = PostgresStore::open_with(&parsed(url), PostgresOptions::default());
    match store {
        Ok(store) => store.query(Query::TaskCounts).await.unwrap_err(),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_that_open_a_new_store_at_once_make_it_once() {
    let url = fresh_url();
    let opened = (0..12).map(|_| {
        let store = open(&url);
        tokio::spawn(async move { store.query(Query::TaskCounts).await.map(drop) })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
    let versions = psql(&shared_url(), &format!("SELECT count(*) FROM {}.meta", schema_of(&url)));
    assert_eq!(versions.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_a_newer_version_is_refused() {
    let url = fresh_url();
    let store = open(&url);
    store.query(Query::TaskCounts).await.unwrap();
    let schema = schema_of(&url);
    psql(&shared_url(), &format!("UPDATE {schema}.meta SET version = 99")).unwrap();
    let error = error_of(&url).await;
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("newer tenure"), "{error}");
    // A process that had it open notices with its next change.
    let renewed = store.renew(&[]).await.unwrap_err();
    assert!(matches!(renewed, StoreError::Unsupported { .. }), "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_prefix_is_a_store_of_its_own() {
    let url = fresh_url();
    let mut held = Vec::new();
    for prefix in ["a_", "b_", "A_", "1a"] {
        let client = Client::open(&format!("{url}&prefix={prefix}")).await.unwrap();
        held.push(client.acquire("x").await.unwrap());
        assert_eq!(client.look_everywhere().await.unwrap().holds.len(), 1, "{prefix}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_is_told_what_it_needs() {
    let server = shared_url();
    let user = format!("poor_{}", std::process::id());
    psql(&server, &format!("CREATE ROLE {user} LOGIN")).unwrap();
    let url = server.replace("postgres@", &format!("{user}@"));
    let error = error_of(&format!("{url}?schema=none_{user}")).await;
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("schema"), "{error:?}");
    // With a schema of its own it needs nothing else.
    psql(&server, &format!("CREATE SCHEMA own_{user} AUTHORIZATION {user}")).unwrap();
    let store = open(&format!("{url}?schema=own_{user}"));
    store.query(Query::TaskCounts).await.unwrap();
    psql(&server, &format!("DROP OWNED BY {user}; DROP ROLE {user}")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_is_said_in_one_sentence() {
    let port = tenure_testkit::process::free_port();
    let error = error_of(&format!("postgres://u:secret@127.0.0.1:{port}/d")).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("onnection refused"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    let missing = shared_url().replace("/postgres", "/none_such");
    let error = error_of(&missing).await;
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    let error = error_of("postgres://h/d?sslmode=verify-full").await;
    assert!(error.to_string().contains("certificate authority"), "{error}");
}

/// Passwords, TLS with a certificate authority of our own, and a certificate of the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_and_certificates_are_checked() {
    let mut server = Postgres::start(&[]);
    let folder = server.folder().to_owned();
    let script = r#"set -e; cd "$1"; umask 022
openssl req -new -x509 -days 2 -nodes -subj /CN=authority -keyout ca.key -out ca.crt 2>/dev/null
for name in localhost wrongname alice; do
  openssl req -new -nodes -subj /CN=$name -addext "subjectAltName=DNS:$name" -keyout $name.key -out $name.csr 2>/dev/null
  openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out $name.crt 2>/dev/null
done
chmod 644 alice.key
cp localhost.crt data/server.crt; cp localhost.key data/server.key; cp ca.crt data/root.crt
chown --reference=data data/server.key; chmod 600 data/server.key
cat > data/pg_hba.conf <<END
host all postgres 127.0.0.1/32 trust
hostssl all alice all cert
hostssl all bob all scram-sha-256
END
"#;
    let made = Command::new("bash").args(["-c", script, "bash"]).arg(&folder).status().unwrap();
    assert!(made.success());
    server.sql("CREATE ROLE alice LOGIN SUPERUSER; CREATE ROLE bob LOGIN PASSWORD 'pw' SUPERUSER");
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("ALTER SYSTEM SET ssl_ca_file = 'root.crt'");
    server.stop();
    server.run();
    let file = |name: &str| folder.join(name).display().to_string();
    let at = |user: &str, mode: &str, more: &str| {
        format!("postgres://{user}@localhost:{}/postgres?sslmode={mode}{more}", server.port)
    };
    let root = format!("&sslrootcert={}", file("ca.crt"));
    let other_root = format!("&sslrootcert={}", file("wrongname.crt"));
    let own = format!("&sslcert={}&sslkey={}", file("alice.crt"), file("alice.key"));
    for url in [
        at("bob:pw", "require", ""),
        at("bob:pw", "verify-ca", &root),
        at("bob:pw", "verify-full", &root),
        at("bob:pw", "prefer", ""),
        at("alice", "verify-full", &format!("{root}{own}")),
    ] {
        open(&url).query(Query::TaskCounts).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }
    for (url, hint) in [
        (at("bob:wrong", "require", ""), "Check user and password"),
        (at("bob", "require", ""), "Give the password"),
        (at("bob:pw", "disable", ""), "pg_hba.conf"),
        (at("bob:pw", "verify-full", &other_root), "Check sslrootcert"),
        (at("alice", "verify-full", &root), ""),
        (at("bob:pw", "verify-full", &root).replace("localhost", "127.0.0.1"), "Check sslrootcert"),
    ] {
        let error = error_of(&url).await;
        assert!(!format!("{error:?}").contains("wrong:"), "{error:?}");
        let said = error.hint().unwrap_or_default();
        assert!(said.contains(hint), "{url}: {error}: {said}");
    }
}

/// Databases and users that cannot be used say why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_database_lacks_is_said_with_what_to_do() {
    let server = Postgres::start(&[]);
    server.sql("CREATE ROLE reader LOGIN SUPERUSER");
    server.sql("ALTER ROLE reader SET default_transaction_read_only = on");
    let latin =
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    server.sql(latin);
    let url = format!("postgres://postgres@127.0.0.1:{}/latin", server.port);
    let client = Client::open(&url).await.unwrap();
    let task = NewTask::new("t".parse().unwrap(), "\u{4e2d}");
    let Err(Error::Store(error)) = client.tasks().add(vec![task]).await else {
        panic!("a database in LATIN1 stored a Chinese character")
    };
    let url = server.url();
    for (error, hint) in [
        (error, "ENCODING 'UTF8'"),
        (error_of(&format!("{url}?sslmode=require")).await, "ssl = on"),
        (error_of(&url.replace("postgres@", "reader@")).await, "default_transaction_read_only"),
    ] {
        let said = error.hint().unwrap_or_default();
        assert!(said.contains(hint), "{error}: {said}");
    }
}

/// Clocks of clients do not matter: no time of theirs reaches the tables.
#[tokio::test(flavor = "multi_thread")]
async fn the_servers_clock_judges() {
    let url = fresh_url();
    let store: Arc<dyn Store> = open(&url);
    let client = Client::builder().with_store(store.clone()).unwrap();
    let held = client.request("x").ttl(Duration::from_secs(60)).hold().await.unwrap();
    let held = held.into_result().unwrap();
    let left = psql(
        &shared_url(),
        &format!(
            "SELECT deadline_ms - extract(epoch FROM clock_timestamp()) * 1000 BETWEEN 50000 AND 60001
             FROM {}.holds",
            schema_of(&url)
        ),
    );
    assert_eq!(left.unwrap(), "t");
    held.release().await.unwrap();
}
