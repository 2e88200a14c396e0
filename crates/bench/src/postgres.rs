//! Measures a PostgreSQL store next to bare statements on the same server, by `pgbench`.
//!
//! It works in schemas of its own and removes them.

use crate::pair::{Tally, total};
use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{median, quantile};
use crate::tasks::{TaskSupply, counts};
use crate::worker::Work;
use crate::{BenchError, BenchSetup, handoff, notify_baseline};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tenure::blocking::Client;

const PROCESSES: usize = 8;
const BATCH: usize = 100;

/// How long the lock of a hand-off is held: longer than it takes others to queue for it.
const HOLD_MS: u64 = 10;

/// A schema that is removed on drop.
struct Schema<'a> {
    server: &'a str,
    name: String,
}

impl Schema<'_> {
    fn new<'a>(server: &'a str, name: &str) -> Schema<'a> {
        Schema { server, name: format!("tenure_bench_{}_{name}", std::process::id()) }
    }

    fn url(&self) -> String {
        let join = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{join}schema={}", self.server, self.name)
    }
}

impl Drop for Schema<'_> {
    fn drop(&mut self) {
        let _ = psql(self.server, &format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name));
    }
}

/// All measurements. `server` is the URL without a schema.
pub(crate) fn measure(
    server: &str,
    setup: &BenchSetup,
    report: &mut Report,
) -> Result<(), BenchError> {
    pairs(server, setup, report)?;
    handoffs(server, setup, report)?;
    tasks(server, setup, report)?;
    depth(server, setup, report)
}

fn figure(case: &str, statistic: &'static str, value: f64, unit: Unit) -> Figure {
    let (case, beside, wanted) = (case.to_owned(), None, None);
    Figure { measurement: "postgres", case, statistic, value, unit, beside, wanted }
}

/// Acquire and release: alone next to the same statements without tenure, and in eight processes.
fn pairs(server: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let schema = Schema::new(server, "pair");
    let url = schema.url();
    drop(Client::open(&url)?.acquire("warm")?);
    let script = setup.file("pair.sql");
    write(&script, &bare_pair(&schema.name))?;
    let span_ms = setup.scale(500, 3000);
    let (mut alone, mut bare, mut ratios, mut together) = (vec![], vec![], vec![], vec![]);
    let mut bare_together = vec![];
    for round in 0..setup.scale(1, 3) {
        let lock = format!("lock-{round}");
        let work = Work::Pairs { url: url.clone(), lock, span_ms };
        let ours = Processes::run::<Tally>([work])?.remove(0).rate();
        let theirs = pgbench(server, &script, 1, span_ms)?.per_second;
        let work =
            |process| Work::Pairs { url: url.clone(), lock: format!("lock-{process}"), span_ms };
        together.push(total(&Processes::run((0..PROCESSES).map(work))?).rate());
        bare_together.push(pgbench(server, &script, PROCESSES, span_ms)?.per_second);
        alone.push(ours);
        bare.push(theirs);
        ratios.push(ours / theirs);
    }
    let mut one = figure("1 process", "acquire+release", median(&alone), Unit::PerSecond);
    let ratio = median(&ratios);
    one.beside = Some(Beside { what: "bare statements", value: median(&bare), ratio });
    one.wanted = Some(Wanted::RatioAtLeast(0.4));
    report.add(one);
    let together = median(&together);
    let mut eight = figure("8 processes, own locks", "acquire+release", together, Unit::PerSecond);
    eight.beside = Some(Beside::new("1 process", together, median(&alone)));
    eight.wanted = Some(Wanted::RatioAtLeast(3.0));
    report.add(eight);
    // How far the machine lets the same statements scale.
    let bare_together = median(&bare_together);
    let case = "bare statements, 8 clients";
    let mut eight = figure(case, "acquire+release", bare_together, Unit::PerSecond);
    eight.beside = Some(Beside::new("1 client", bare_together, median(&bare)));
    report.add(eight);
    Ok(())
}

/// The statements of an acquire and of a release, in as many round trips. Each client has a lock of its
/// own.
fn bare_pair(schema: &str) -> String {
    let begin = format!(
        "\\startpipeline
BEGIN;
SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '15s', true);
SELECT pg_advisory_xact_lock_shared(77, 0);
SELECT pg_advisory_xact_lock(hashtextextended('bench-' || :client_id, 7));
SELECT pg_advisory_xact_lock_shared(78, (last_value & 2147483647)::int) FROM {schema}.numbers;
SELECT nextval('{schema}.numbers'), clock_timestamp(), store_id, version FROM {schema}.meta;
SELECT * FROM {schema}.holds WHERE resource = 'bench-' || :client_id;
SELECT * FROM {schema}.waits WHERE resource = 'bench-' || :client_id ORDER BY ticket LIMIT 9;
\\endpipeline
"
    );
    let event = format!(
        "INSERT INTO {schema}.events (id, until, at_ms, kind, resource, label)
    SELECT n, n, 0, 'released', 'bench', 'bench' FROM nextval('{schema}.numbers') AS n;
COMMIT;
SELECT pg_try_advisory_xact_lock(79, 2);
\\endpipeline
"
    )
    .replace("\n    ", " ");
    format!(
        "{begin}\\startpipeline
INSERT INTO {schema}.holds VALUES ('bench-' || :client_id, 'g', 1, 'exclusive', 'bench', false, false, NULL, NULL, 30000, 0, 0, 0, 0, NULL, NULL, '{{}}');
{event}{begin}\\startpipeline
DELETE FROM {schema}.holds WHERE resource = 'bench-' || :client_id;
{event}"
    )
}

/// How soon the next waiter obtains a released lock, next to a synced commit with a message that another
/// connection hears.
fn handoffs(server: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let schema = Schema::new(server, "handoff");
    let url = schema.url();
    drop(Client::open(&url)?.acquire("warm")?);
    let table = format!("{}.bare", schema.name);
    psql(server, &format!("CREATE TABLE {table} AS SELECT 0 AS n"))?;
    // A hand-off is a release, a message and an acquire.
    let changes = setup.file("changes.sql");
    write(&changes, &format!("{}NOTIFY tenure_bench;\n", bare_pair(&schema.name)))?;
    let changes = pgbench(server, &changes, 1, setup.scale(500, 2000))?.latency;
    let span_ms = setup.scale(700, 4000);
    // Held for a while, as by a program that does something: then the next waiter has only its own
    // hand-off to wait for, and the machine has been idle, before the bare commits too. Given back and
    // asked for again at once: then it also waits for the changes by which others queue.
    for hold_ms in [HOLD_MS, 0] {
        let span = Duration::from_millis(span_ms);
        let pause = Duration::from_millis(hold_ms);
        let bare = match notify_baseline::latencies(server, &table, pause, span) {
            Ok(latencies) => Some(quantile(&latencies, 0.5)),
            // It connects without TLS and without the settings of libpq, which pgbench knows.
            Err(BenchError::PostgresBaseline(error)) => {
                if hold_ms == 0 {
                    report.note(&format!("hand-offs have no bare commit beside them: {error}"));
                }
                None
            }
            Err(error) => return Err(error),
        };
        for waiters in [2, 16] {
            let latencies = handoff::latencies_at(&url, waiters, hold_ms, span_ms)?;
            let case = match hold_ms {
                0 => format!("{waiters} waiters, asking again at once"),
                _ => format!("{waiters} waiters, held for {hold_ms} ms"),
            };
            let p50 = quantile(&latencies, 0.5);
            let mut hand_off = figure(&case, "hand-off p50", p50, Unit::Seconds);
            hand_off.beside = bare.map(|bare| Beside::new("commit and NOTIFY", p50, bare));
            let is_judged = waiters == 2 && bare.is_some();
            hand_off.wanted = is_judged.then_some(Wanted::RatioAtMost(2.5));
            report.add(hand_off);
            if hold_ms == 0 {
                let mut hand_off = figure(&case, "hand-off p50", p50, Unit::Seconds);
                hand_off.beside = Some(Beside::new("its bare statements", p50, changes));
                report.add(hand_off);
            }
            report.add(figure(&case, "hand-off p99", quantile(&latencies, 0.99), Unit::Seconds));
        }
    }
    Ok(())
}

/// Claim and complete, one by one and in batches, next to a queue of plain SQL with the same
/// commits: a claim that takes a row, and a completion.
fn tasks(server: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let schema = Schema::new(server, "tasks");
    let url = schema.url();
    let supply = TaskSupply::of(&url)?;
    let span_ms = setup.scale(500, 3000);
    supply.fill_up(setup.scale(4_000, 60_000))?;
    let mut done = 0;
    let mut run = |processes: usize, batch: usize| {
        let work = |_| Work::TaskPairs { url: url.clone(), batch, span_ms };
        let tallies: Vec<Tally> = Processes::run((0..processes).map(work))?;
        done += tallies.iter().map(|tally| tally.count).sum::<u64>();
        Ok::<f64, BenchError>(total(&tallies).rate())
    };
    let one = run(1, 1)?;
    let eight = run(PROCESSES, 1)?;
    let by_batch = run(1, BATCH)?;
    let eight_by_batch = run(PROCESSES, BATCH)?;
    supply.must_have_completed(done)?;
    let table = format!("{}.queue", schema.name);
    psql(
        server,
        &format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, state int NOT NULL DEFAULT 0, until timestamptz, payload text);
             INSERT INTO {table} (id, payload) SELECT n, 'task ' || n FROM generate_series(1, 200000) AS n;
             CREATE INDEX ON {table} (id) WHERE state = 0; ANALYZE {table}"
        ),
    )?;
    let script = setup.file("queue.sql");
    write(
        &script,
        &format!(
            "UPDATE {table} SET state = 1, until = clock_timestamp() + interval '1 hour' WHERE id = (SELECT id FROM {table} WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id \\gset\nUPDATE {table} SET state = 2 WHERE id = :id;\n"
        ),
    )?;
    let queue_one = pgbench(server, &script, 1, span_ms)?.per_second;
    let queue_eight = pgbench(server, &script, PROCESSES, span_ms)?.per_second;
    let script = setup.file("same-records.sql");
    write(&script, &same_records(&schema.name))?;
    supply.fill_up(setup.scale(8_000, 60_000))?;
    let same_one = pgbench(server, &script, 1, span_ms)?.per_second;
    let same_eight = pgbench(server, &script, PROCESSES, span_ms)?.per_second;
    let mut add = |case: &str, value: f64, what: &'static str, other: f64, wanted| {
        let mut figure = figure(case, "claim+complete", value, Unit::PerSecond);
        figure.beside = Some(Beside::new(what, value, other));
        figure.wanted = wanted;
        report.add(figure);
    };
    let within = Some(Wanted::RatioAtLeast(1.0 / 1.2));
    add("1 process, one by one", one, "same records in SQL", same_one, within);
    add("8 processes, one by one", eight, "same records in SQL", same_eight, within);
    add("1 process, one by one", one, "SKIP LOCKED alone", queue_one, None);
    add("8 processes, one by one", eight, "SKIP LOCKED alone", queue_eight, None);
    let eightfold = Some(Wanted::RatioAtLeast(8.0));
    add("1 process, by 100", by_batch, "one by one", one, eightfold);
    add("8 processes, by 100", eight_by_batch, "one by one", eight, None);
    Ok(())
}

/// A claim and a completion in plain SQL that leave the same behind: the task with its claim, a lease
/// with a token, an event and the counts, in one transaction each. It checks no files, sections or
/// dependencies, and wakes no waiters.
fn same_records(schema: &str) -> String {
    let event = |kind: &str| {
        format!(
            "INSERT INTO {schema}.events (id, until, at_ms, kind, resource, label) SELECT n, n, 0, '{kind}', 'bench', 'bench' FROM nextval('{schema}.numbers') AS n;"
        )
    };
    format!(
        "BEGIN;
UPDATE {schema}.tasks SET status = 'in_progress', claim_by = 'bench', claim_grant = id, claim_token = nextval('{schema}.numbers'), claimed_at_ms = floor(extract(epoch FROM clock_timestamp()) * 1000) WHERE id = (SELECT id FROM {schema}.tasks WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL AND section = '' ORDER BY section, priority, position, age LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id AS task \\gset
INSERT INTO {schema}.holds VALUES ('bench-' || :task, :task, currval('{schema}.numbers'), 'exclusive', 'bench', false, false, NULL, NULL, 30000, 0, 0, 0, 0, NULL, NULL, '{{}}');
{claimed}
INSERT INTO {schema}.tally VALUES ('', 'pending', -1), ('', 'in_progress', 1);
COMMIT;
BEGIN;
UPDATE {schema}.tasks SET status = 'completed', claim_by = NULL, claim_grant = NULL, claim_token = NULL, finished_at_ms = floor(extract(epoch FROM clock_timestamp()) * 1000), finished_by = 'bench' WHERE id = :task AND status = 'in_progress' AND EXISTS (SELECT 1 FROM {schema}.holds WHERE resource = 'bench-' || :task);
DELETE FROM {schema}.holds WHERE resource = 'bench-' || :task;
{completed}
INSERT INTO {schema}.tally VALUES ('', 'in_progress', -1), ('', 'completed', 1);
COMMIT;
",
        claimed = event("task_claimed"),
        completed = event("task_completed"),
    )
}

/// A claim beside a million completed tasks, compared with one beside a thousand.
fn depth(server: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let sizes = setup.scale([500, 20_000], [1_000, 1_000_000]);
    let claims = setup.scale(60, 360);
    let schemas = sizes.map(|size| Schema::new(server, &format!("depth_{size}")));
    for (schema, size) in schemas.iter().zip(sizes) {
        let supply = TaskSupply::of(&schema.url())?;
        let name = &schema.name;
        supply.fill_up(claims as u64 + 40)?;
        // As if they had been added and completed one by one.
        psql(
            server,
            &format!(
                "INSERT INTO {name}.tasks SELECT (json_populate_record(t, json_build_object('id', 'old-' || n, 'status', 'completed', 'age', n + 10000000))).* FROM {name}.tasks AS t, generate_series(1, {size}) AS n WHERE t.id = (SELECT min(id) FROM {name}.tasks);
                 INSERT INTO {name}.tally VALUES ('', 'completed', {size}); ANALYZE {name}.tasks"
            ),
        )?;
    }
    let urls: Vec<String> = schemas.iter().map(Schema::url).collect();
    let work = Work::ClaimLatency { urls: urls.clone(), claims };
    let found: Vec<Vec<f64>> = Processes::run([work])?.remove(0);
    let completed = counts(&Client::open(&urls[1])?)?.completed;
    if completed < sizes[1] {
        return Err(BenchError::Miscounted {
            what: "completed",
            store: completed,
            workers: sizes[1],
        });
    }
    let [few, many] = [0, 1].map(|index: usize| quantile(&found[index], 0.5));
    report.add(figure(&format!("claim beside {} done", sizes[0]), "p50", few, Unit::Seconds));
    let case = format!("claim beside {} done", sizes[1]);
    let mut figure = figure(&case, "p50", many, Unit::Seconds);
    figure.beside = Some(Beside::new("beside the fewest", many, few));
    figure.wanted = Some(Wanted::RatioAtMost(1.3));
    report.add(figure);
    Ok(())
}

/// What `pgbench` measured.
struct Bare {
    per_second: f64,
    latency: f64,
}

fn pgbench(server: &str, script: &Path, clients: usize, span_ms: u64) -> Result<Bare, BenchError> {
    let seconds = (span_ms / 1000).max(1);
    let clients = clients.to_string();
    let output = run(Command::new(program("pgbench"))
        .args(["-n", "-M", "prepared", "-c", &clients, "-j", "2", "-T", &seconds.to_string()])
        .arg("-f")
        .arg(script)
        .arg(server))?;
    let number = |before: &str| {
        let rest = output.split_once(before)?.1;
        rest.split_whitespace().find_map(|word| word.parse::<f64>().ok())
    };
    match (number("tps ="), number("latency average =")) {
        (Some(per_second), Some(ms)) => Ok(Bare { per_second, latency: ms / 1000.0 }),
        _ => Err(BenchError::Worker { said: output, expected: "tps" }),
    }
}

fn psql(server: &str, sql: &str) -> Result<(), BenchError> {
    let arguments = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, server];
    run(Command::new(program("psql")).args(arguments)).map(drop)
}

/// A program of PostgreSQL, some of which Debian keeps off the search path.
fn program(name: &str) -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<PathBuf> = folders
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)))
        .filter(|file| file.is_file())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}

fn run(command: &mut Command) -> Result<String, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output =
        output.map_err(|source| BenchError::Process { program: program.clone(), source })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(BenchError::Process { program, source: std::io::Error::other(said) })
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text)
        .map_err(|source| BenchError::Folder { folder: file.to_owned(), source })
}
