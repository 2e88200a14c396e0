//! Measures many connections to one server, next to many processes that open its store themselves.
//!
//! Both claim tasks and complete them, one by one and durably, in turns on the same store. Claims
//! are counted, and the duration of each claim is measured.

use crate::pair::{Tally, total};
use crate::processes::Processes;
use crate::program::Program;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{median, now, quantile};
use crate::tasks::{self, TaskSupply};
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;
use tenure::blocking;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Finish, Finished};
use tenure::url::StoreUrl;
use tenure::{ClaimRequest, Claims, Client};

const PROCESSES: usize = 8;
const CONNECTIONS: usize = 64;

/// The target: how many times more claims go through a server.
const WANTED_RATIO: f64 = 5.0;

/// The target for the 99th percentile of a claim.
const WANTED_P99_SECONDS: f64 = 0.05;

/// How many tasks are ready for each millisecond, more than are claimed.
const STOCK_PER_MS: u64 = 40;

/// The results of all connections.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Served {
    tally: Tally,
    /// The duration of each claim, in seconds.
    claims: Vec<f64>,
}

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let url = setup.given_store().map_or_else(|| setup.store("serve"), str::to_owned);
    let is_server = matches!(url.parse(), Ok(StoreUrl::Remote(_)));
    let server = if is_server { None } else { Some(Server::start(setup.program(), &url)?) };
    let through = server.as_ref().map_or(url.as_str(), |server| &server.url);
    let stock = TaskSupply::of(through)?;
    let span_ms = setup.scale(200, 1500);
    let (mut alone, mut together, mut claims) = (Vec::new(), Vec::new(), Vec::new());
    let mut done = 0;
    for round in 0..=setup.scale(1, 5) {
        stock.fill_up(2 * span_ms * STOCK_PER_MS)?;
        let work =
            Work::ServedClaims { url: through.to_owned(), connections: CONNECTIONS, span_ms };
        let served: Served = Processes::run([work])?.remove(0);
        done += served.tally.count;
        let own: Vec<Tally> = match server {
            Some(_) => {
                let work = |_| Work::TaskPairs { url: url.clone(), batch: 1, span_ms };
                Processes::run((0..PROCESSES).map(work))?
            }
            None => vec![],
        };
        done += own.iter().map(|tally| tally.count).sum::<u64>();
        // The first round is not counted: it reads pages and opens connections.
        if round > 0 {
            together.push(served.tally.rate());
            claims.extend(served.claims);
            alone.push(total(&own).rate());
        }
    }
    stock.must_have_completed(done)?;
    add(report, server.is_some(), &together, &alone, &claims);
    Ok(())
}

fn add(report: &mut Report, is_ours: bool, together: &[f64], alone: &[f64], claims: &[f64]) {
    let ratios: Vec<f64> = together.iter().zip(alone).map(|(one, other)| one / other).collect();
    let beside = Beside {
        what: "8 processes on the store itself",
        value: median(alone),
        ratio: median(&ratios),
    };
    let case = format!("{CONNECTIONS} connections to one server");
    report.add(Figure {
        measurement: "serve",
        case: case.clone(),
        statistic: "claim+complete",
        value: median(together),
        unit: Unit::PerSecond,
        beside: is_ours.then_some(beside),
        wanted: is_ours.then_some(Wanted::RatioAtLeast(WANTED_RATIO)),
    });
    let latency = |statistic, share: f64, wanted| Figure {
        measurement: "serve",
        case: case.clone(),
        statistic,
        value: quantile(claims, share),
        unit: Unit::Seconds,
        beside: None,
        wanted,
    };
    report.add(latency("p50 of a claim", 0.5, None));
    report.add(latency("p99 of a claim", 0.99, Some(Wanted::AtMost(WANTED_P99_SECONDS))));
}

/// A server process, stopped on drop.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(program: &Program, store: &str) -> Result<Server, BenchError> {
        let failed = |source| BenchError::Process { program: "tenure serve".to_owned(), source };
        let mut command = program.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--store", store]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let stdout = process.stdout.take().expect("it was piped just above");
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        let mut server = Server { process, url: String::new() };
        read.map_err(failed)?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let said = said.get("data").unwrap_or(&said);
        match said["listening"][0].as_str() {
            Some(url) => server.url = url.to_owned(),
            None => return Err(BenchError::Worker { said: line, expected: "an address" }),
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a worker: this many connections at once, each with one request after the other.
pub(crate) fn claims(url: &str, connections: usize, span_ms: u64) -> Result<Served, BenchError> {
    let client = blocking::Client::open(url)?;
    tasks::counts(&client)?;
    worker::ready()?;
    let span = Duration::from_millis(span_ms);
    let begun = now();
    let all = client.run(async {
        let one = |number: usize| {
            let client = client.asynchronous().clone();
            async move {
                let mut claims = Vec::new();
                while now() - begun < span {
                    match pair(&client, number).await? {
                        Some(took) => claims.push(took),
                        None => break,
                    }
                }
                Ok::<Vec<f64>, BenchError>(claims)
            }
        };
        let mut running = tokio::task::JoinSet::new();
        for number in 0..connections {
            running.spawn(one(number));
        }
        let mut all = Vec::new();
        while let Some(ended) = running.join_next().await {
            all.extend(
                ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?,
            );
        }
        Ok::<Vec<f64>, BenchError>(all)
    })?;
    let seconds = (now() - begun).as_secs_f64();
    Ok(Served { tally: Tally { count: all.len() as u64, seconds }, claims: all })
}

/// One task; returns the duration of the claim in seconds, or `None` if there was no task.
async fn pair(client: &Client, number: usize) -> Result<Option<f64>, BenchError> {
    let asked = now();
    let worker = Some(number.to_string());
    let request = ClaimRequest { worker, ..ClaimRequest::default() };
    let Claims::Claimed { tasks, .. } = client.tasks().claim(&request).await? else {
        return Ok(None);
    };
    let took = (now() - asked).as_secs_f64();
    for claimed in tasks {
        let (proof, token) = (Proof::Grant(claimed.grant), Some(claimed.token));
        let finish = Finish::Complete { result: None };
        let tasks = client.tasks();
        match tasks.finish(&claimed.task.id, proof, token, None, finish).await? {
            Finished::Done { .. } => {}
            other => {
                let said = format!("{other:?}");
                return Err(BenchError::Worker { said, expected: "a completed task" });
            }
        }
    }
    Ok(Some(took))
}
