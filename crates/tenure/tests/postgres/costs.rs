//! What a change costs does not grow with what others have in the tables.

use std::collections::BTreeMap;
use std::time::Duration;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Finish, FinishAsk, Finished, NewTask};
use tenure::{ClaimRequest, Claims, Client, Wait};
use tenure_testkit::postgres::{Postgres, fresh_url, psql, shared_url};

/// So many rows of others each table has.
const OTHERS: u64 = 3000;

/// Fewer rows than these are read of a table by everything that is done once.
const READ_MAX: u64 = OTHERS / 4;

/// One of each usual change.
async fn work(client: &Client, other: &Client, round: usize) {
    let held = client.acquire("a").await.unwrap();
    assert!(held.confirm().await.unwrap(), "the renewal of {round}");
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.acquire("a").await.unwrap().release().await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(60)).await;
    held.release().await.unwrap();
    waiting.await.unwrap();
    let both = client.request("b").also("path:src/api/**").hold().await.unwrap();
    both.into_result().unwrap().release().await.unwrap();

    let tasks = client.tasks();
    let task = |number: usize| {
        let id = format!("r{round}n{number}").parse().unwrap();
        NewTask { files: vec![format!("docs/{number}.md")], ..NewTask::new(id, "a task") }
    };
    tasks.add((0..4).map(task).collect()).await.unwrap();
    for count in [1, 3] {
        let request = ClaimRequest { count, ..ClaimRequest::default() };
        let Claims::Claimed { tasks: claimed, .. } = tasks.claim(&request).await.unwrap() else {
            panic!("nothing was claimed in round {round}");
        };
        assert_eq!(claimed.len(), count, "what was claimed in round {round}");
        let first = &claimed[0];
        let proof = Proof::Grant(first.grant);
        tasks.heartbeat(&first.task.id, proof, None, None).await.unwrap();
        let ask = |claimed: &tenure::core::rules::tasks::Claimed| FinishAsk {
            task: claimed.task.id.clone(),
            proof: Proof::Grant(claimed.grant),
            token: Some(claimed.token),
            runner: None,
            finish: Finish::Complete { result: None },
        };
        let asks: Vec<FinishAsk> = claimed.iter().map(ask).collect();
        let done = tasks.finish_all(&asks).await.unwrap();
        assert!(done.iter().all(|done| matches!(done, Finished::Done { .. })), "{done:?}");
    }
}

/// Plans are made while the tables are empty and stay when they have grown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_reads_no_more_however_much_others_have() {
    let url = fresh_url();
    let schema = url.split("schema=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let sql = |text: &str| psql(&shared_url(), &text.replace('@', &format!("{schema}."))).unwrap();
    let client = Client::builder().label("one").open(&url).await.unwrap();
    let other = Client::builder().label("other").open(&url).await.unwrap();
    client.acquire("a").await.unwrap().release().await.unwrap();
    // Otherwise plans are made anew when the server has looked at the tables.
    for table in ["holds", "waits", "tasks", "dependencies"] {
        sql(&format!("ALTER TABLE @{table} SET (autovacuum_enabled = false)"));
    }
    for round in 0..6 {
        work(&client, &other, round).await;
    }

    let kept = client.request("kept").also("path:kept/x").hold().await.unwrap();
    let kept = kept.into_result().unwrap();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move {
            let wait = Wait::UpTo(Duration::from_secs(20));
            let request = other.request("kept").also("path:kept/x").wait(wait);
            request.hold().await.unwrap().into_result().is_ok()
        }
    });
    while sql("SELECT count(*) FROM @waits") != "2" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for table in ["holds", "waits"] {
        sql(&format!(
            "INSERT INTO @{table} SELECT (json_populate_record(r, json_build_object(
                'resource', r.resource || n, 'grant_id', md5('{table}' || n), 'prefix', r.prefix || n))).*
             FROM @{table} AS r, generate_series(1, {}) AS n",
            OTHERS / 2
        ));
    }
    for status in ["completed", "blocked"] {
        sql(&format!(
            "INSERT INTO @tasks SELECT (json_populate_record(t, json_build_object('id', '{status}' || n,
                'status', '{status}', 'age', 1000000 + n))).*
             FROM @tasks AS t, generate_series(1, {OTHERS}) AS n
             WHERE t.id = (SELECT min(id) FROM @tasks WHERE id LIKE 'r0%')"
        ));
    }
    let counters = || -> BTreeMap<String, u64> {
        let rows = sql(&format!(
            "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
             FROM pg_stat_user_tables WHERE schemaname = '{schema}'"
        ));
        let row = |row: &str| {
            let (table, count) = row.split_once('|').unwrap();
            (table.to_owned(), count.parse().unwrap())
        };
        rows.lines().map(row).collect()
    };
    let before = counters();
    work(&client, &other, 6).await;
    kept.release().await.unwrap();
    assert!(waiting.await.unwrap(), "the waiter was not served");
    // A connection tells what it read at most once a second, when it has done something.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    work(&client, &other, 7).await;
    let after = counters();
    for table in ["holds", "waits", "tasks"] {
        let read = after[table] - before[table];
        println!("{table}: {read} rows read");
        assert!(read > 0, "nothing was read of {table}: nothing is counted");
        assert!(read < READ_MAX, "{read} rows of {table} were read");
    }
}

/// Rows of a lock that is taken again and again pile up until the next vacuum. A server of its own: an open
/// transaction of another test would keep all of them alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_held_before_is_not_read_again() {
    const BEFORE: usize = 400;
    const MORE: usize = 20;
    let server = Postgres::start(&[]);
    let client = Client::open(&server.url()).await.unwrap();
    let pairs = |count: usize| {
        let client = client.clone();
        async move {
            for _ in 0..count {
                client.acquire("busy").await.unwrap().release().await.unwrap();
            }
            // A connection tells what it read at most once a second, when it has done something.
            tokio::time::sleep(Duration::from_millis(1100)).await;
            client.acquire("busy").await.unwrap().release().await.unwrap();
        }
    };
    let read = || -> u64 {
        let sql = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'holds'";
        server.sql(sql).parse().unwrap()
    };
    pairs(1).await;
    server.sql("ALTER TABLE tenure.holds SET (autovacuum_enabled = false)");
    pairs(BEFORE).await;
    let before = read();
    pairs(MORE).await;
    let more = read() - before;
    println!("{more} entries read for {MORE} pairs after {BEFORE}");
    assert!(more > 0, "nothing is counted");
    assert!(more < (BEFORE * MORE / 4) as u64, "{more} entries were read");
}
