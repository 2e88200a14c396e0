//! What a change costs does not grow with what others have in the tables.

use super::schema_of;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, FinishAsk, Finished, NewTask};
use tenure::core::{Keep, Proof, Retention};
use tenure::{ClaimRequest, Claims, Client, Status, Wait};
use tenure_testkit::postgres::{Postgres, fresh_url, psql, shared_url};

/// So many rows of others each table has.
const OTHERS: u64 = 3000;

/// Fewer rows than these are read of a table by everything that is done once.
const READ_MAX: u64 = OTHERS / 4;

/// Runs a statement; `@` stands for the schema.
fn sql_in(schema: &str, text: &str) -> String {
    psql(&shared_url(), &text.replace('@', &format!("{schema}."))).unwrap()
}

/// How many rows of each table were read.
fn rows_read(schema: &str) -> BTreeMap<String, u64> {
    let rows = sql_in(
        schema,
        &format!(
            "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
             FROM pg_stat_user_tables WHERE schemaname = '{schema}'"
        ),
    );
    let row = |row: &str| {
        let (table, count) = row.split_once('|').unwrap();
        (table.to_owned(), count.parse().unwrap())
    };
    rows.lines().map(row).collect()
}

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
    let schema = schema_of(&url);
    let sql = |text: &str| sql_in(&schema, text);
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
    let before = rows_read(&schema);
    work(&client, &other, 6).await;
    kept.release().await.unwrap();
    assert!(waiting.await.unwrap(), "the waiter was not served");
    // A connection tells what it read at most once a second, when it has done something.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    work(&client, &other, 7).await;
    let after = rows_read(&schema);
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

/// Clients look now and then for what is beyond the limits. Within them, they do not read what is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_for_what_may_go_does_not_read_what_is_kept() {
    let url = fresh_url();
    let schema = schema_of(&url);
    let sql = |text: &str| sql_in(&schema, text);
    let client = Client::open(&url).await.unwrap();
    let task =
        NewTask { status: Status::Completed, ..NewTask::new("one".parse().unwrap(), "a task") };
    client.tasks().add(vec![task]).await.unwrap();
    sql(&format!(
        "INSERT INTO @tasks SELECT (json_populate_record(t, json_build_object('id', 'more' || n,
            'age', 1000000 + n))).* FROM @tasks AS t, generate_series(1, {OTHERS}) AS n"
    ));
    sql(&format!("INSERT INTO @tally VALUES ('', 'completed', {OTHERS})"));
    sql(&format!(
        "INSERT INTO @events SELECT (json_populate_record(e, json_build_object('id', number,
            'until', number))).*
         FROM @events AS e, LATERAL (SELECT nextval('@numbers') AS number FROM
            generate_series(1, {OTHERS})) AS more"
    ));
    sql("SELECT pg_stat_force_next_flush()");
    let before = rows_read(&schema);
    let collected = client.collect(true).await.unwrap();
    assert_eq!((collected.tasks, collected.events), (0, 0));
    let collected = client.collect(false).await.unwrap();
    assert_eq!((collected.tasks, collected.events), (0, 0));
    // A connection tells what it read at most once a second, when it has done something.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    client.acquire("a").await.unwrap().release().await.unwrap();
    let after = rows_read(&schema);
    assert!(after["tally"] > before["tally"], "the counts were not read: nothing is counted");
    for table in ["tasks", "events"] {
        let read = after[table] - before[table];
        assert!(read < 20, "{read} rows of {table} were read");
    }
    // The same looks find what is beyond the limits.
    let keep = Keep::newest(OTHERS - 10);
    let retention = Retention { events: keep, tasks: keep, failed: Keep::ALL };
    let strict = Client::builder().retention(retention).open(&url).await.unwrap();
    let collected = strict.collect(false).await.unwrap();
    assert_eq!(collected.tasks, 11);
    assert!(collected.events >= 11, "{collected:?}");
    assert_eq!(sql("SELECT count(*) FROM @events"), (OTHERS - 10).to_string());
}

/// Each change adds to the counts of tasks, and a turn folds them. Commands that make one change each and
/// end must take such turns too, or counting would cost more with every command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_commands_fold_the_counts() {
    let url = fresh_url();
    let schema = schema_of(&url);
    let add = |from: usize, to: usize| {
        let url = url.clone();
        async move {
            let command = Client::builder().one_shot().open(&url).await.unwrap();
            let task = |number| NewTask::new(format!("t{number}").parse().unwrap(), "a task");
            command.tasks().add((from..to).map(task).collect()).await.unwrap();
        }
    };
    for number in 0..20 {
        add(number, number + 1).await;
    }
    // A change of so many events is always followed by a turn.
    add(20, 620).await;
    let rows: u64 = sql_in(&schema, "SELECT count(*) FROM @tally").parse().unwrap();
    assert!(rows < 5, "{rows} rows of counts");
    assert_eq!(sql_in(&schema, "SELECT sum(delta) FROM @tally WHERE status = 'pending'"), "620");
}
