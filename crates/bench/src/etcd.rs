//! Measures an etcd store next to bare calls of the same client, and next to `etcdctl lock`.
//!
//! It works below prefixes of its own and removes them.

use crate::pair::{Tally, tally, total};
use crate::processes::Processes;
use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{median, quantile};
use crate::tasks::{TaskSupply, WARM_UP};
use crate::worker::{self, Work};
use crate::{BenchError, BenchSetup, handoff};
use etcd_client::{Client, Compare, CompareOp, DeleteOptions, PutOptions, Txn, TxnOp};
use std::process::{Command, Stdio};
use tenure::blocking;

const PROCESSES: usize = 8;
const BATCH: usize = 100;

/// How many seconds a bare lease lasts: as long as one of the store.
const LEASE_SECONDS: i64 = 30;

/// A prefix whose keys are deleted on drop.
struct Prefix<'a> {
    hosts: &'a str,
    name: String,
}

impl Prefix<'_> {
    fn new<'a>(hosts: &'a str, name: &str) -> Prefix<'a> {
        Prefix { hosts, name: format!("tenure-bench-{}-{name}", std::process::id()) }
    }

    fn url(&self) -> String {
        format!("etcd://{}/{}", self.hosts, self.name)
    }
}

impl Drop for Prefix<'_> {
    fn drop(&mut self) {
        // What cannot be deleted stays: the measurement has failed then, and said why.
        let _ = Bare::connect(self.hosts).and_then(|mut bare| {
            let all = DeleteOptions::new().with_prefix();
            let deleting = bare.client.delete(format!("{}/", self.name), Some(all));
            Ok(bare.runtime.block_on(deleting)?)
        });
    }
}

/// All measurements, at these servers (`HOST:PORT,HOST:PORT`).
pub(crate) fn measure(
    hosts: &str,
    setup: &BenchSetup,
    report: &mut Report,
) -> Result<(), BenchError> {
    pairs(hosts, setup, report)?;
    commands(hosts, setup, report)?;
    handoffs(hosts, setup, report)?;
    tasks(hosts, setup, report)?;
    depth(hosts, setup, report)
}

fn figure(case: &str, statistic: &'static str, value: f64, unit: Unit) -> Figure {
    let (case, beside, wanted) = (case.to_owned(), None, None);
    Figure { measurement: "etcd", case, statistic, value, unit, beside, wanted }
}

/// Acquire and release: alone next to bare calls, and in eight processes.
fn pairs(hosts: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let prefix = Prefix::new(hosts, "pair");
    let url = prefix.url();
    drop(blocking::Client::open(&url)?.acquire("warm")?);
    let mut rounds: Vec<(Tally, Tally)> = Vec::new();
    // Each process asks a server at random: the leader answers sooner than the others.
    for _ in 0..setup.scale(2, 8) {
        let work = Work::EtcdDuel {
            url: url.clone(),
            hosts: hosts.to_owned(),
            rounds: setup.scale(2, 4),
            span_ms: setup.scale(150, 400),
        };
        rounds.append(&mut Processes::run(vec![work])?.remove(0));
    }
    let rates = |which: fn(&(Tally, Tally)) -> Tally| -> Vec<f64> {
        rounds.iter().map(|round| which(round).rate()).collect()
    };
    let (ours, bare) = (rates(|round| round.0), rates(|round| round.1));
    let ratios: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
    let alone = median(&ours);
    let mut one = figure("1 process", "acquire+release", alone, Unit::PerSecond);
    let what = "lease grant, transaction, revoke";
    one.beside = Some(Beside { what, value: median(&bare), ratio: median(&ratios) });
    one.wanted = Some(Wanted::RatioAtLeast(1.0 / 1.5));
    report.add(one);
    let span_ms = setup.scale(500, 3000);
    let work = |process| Work::Pairs { url: url.clone(), lock: format!("lock-{process}"), span_ms };
    let together = total(&Processes::run((0..PROCESSES).map(work))?).rate();
    let mut eight = figure("8 processes, own locks", "acquire+release", together, Unit::PerSecond);
    eight.beside = Some(Beside::new("1 process", together, alone));
    report.add(eight);
    Ok(())
}

/// Whole commands under a lock, with the start of their processes.
fn commands(hosts: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let prefix = Prefix::new(hosts, "command");
    let url = prefix.url();
    let lock = format!("{}-lock", prefix.name);
    let ours = || {
        let mut command = setup.program().command();
        command.args(["run", "--store", &url, "x", "--", "true"]);
        succeeds(&mut command)
    };
    let theirs = || {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", hosts, "lock", &lock, "true"]);
        succeeds(&mut command)
    };
    let has_etcdctl = Command::new("etcdctl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !has_etcdctl {
        report.note("etcdctl is not installed: `etcdctl lock` was skipped");
    }
    let span_ms = setup.scale(500, 2000);
    ours()?;
    let (mut our_rates, mut their_rates) = (vec![], vec![]);
    for _ in 0..setup.scale(1, 3) {
        our_rates.push(tally(span_ms, ours)?.rate());
        if has_etcdctl {
            their_rates.push(tally(span_ms, theirs)?.rate());
        }
    }
    let value = median(&our_rates);
    let mut figure =
        figure("run x -- true, process start included", "runs", value, Unit::PerSecond);
    figure.beside =
        has_etcdctl.then(|| Beside::new("etcdctl lock x true", value, median(&their_rates)));
    report.add(figure);
    Ok(())
}

fn succeeds(command: &mut Command) -> Result<u64, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| BenchError::Process { program: program.clone(), source };
    let ended = command.stdin(Stdio::null()).output().map_err(failed)?;
    match ended.status.success() {
        true => Ok(1),
        false => {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            Err(failed(std::io::Error::other(said)))
        }
    }
}

/// How soon the next waiter obtains a released lock.
fn handoffs(hosts: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let prefix = Prefix::new(hosts, "handoff");
    for waiters in [2, 16] {
        let latencies = handoff::latencies_at(&prefix.url(), waiters, 0, setup.scale(700, 4000))?;
        let case = format!("{waiters} waiters");
        for (statistic, share) in [("hand-off p50", 0.5), ("hand-off p99", 0.99)] {
            report.add(figure(&case, statistic, quantile(&latencies, share), Unit::Seconds));
        }
    }
    Ok(())
}

/// Claim and complete, one by one and in batches.
fn tasks(hosts: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let prefix = Prefix::new(hosts, "tasks");
    let url = prefix.url();
    let supply = TaskSupply::of(&url)?;
    let span_ms = setup.scale(500, 3000);
    supply.fill_up(setup.scale(4_000, 20_000))?;
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
    supply.must_have_completed(done)?;
    report.add(figure("1 process, one by one", "claim+complete", one, Unit::PerSecond));
    let cases = [("8 processes, one by one", eight), ("1 process, by 100", by_batch)];
    for (case, value) in cases {
        let mut figure = figure(case, "claim+complete", value, Unit::PerSecond);
        figure.beside = Some(Beside::new("1 process, one by one", value, one));
        report.add(figure);
    }
    Ok(())
}

/// A claim beside many completed tasks, compared with one beside few.
fn depth(hosts: &str, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let sizes: [u64; 2] = setup.scale([200, 4_000], [1_000, 50_000]);
    let claims = setup.scale(40, 300);
    let prefixes = sizes.map(|size| Prefix::new(hosts, &format!("depth-{size}")));
    for (prefix, size) in prefixes.iter().zip(sizes) {
        let supply = TaskSupply::of(&prefix.url())?;
        supply.fill_up_beside(size as usize, claims + WARM_UP)?;
    }
    let urls = prefixes.iter().map(Prefix::url).collect();
    let work = Work::ClaimLatency { urls, claims };
    let found: Vec<Vec<f64>> = Processes::run([work])?.remove(0);
    let [few, many] = [0, 1].map(|index: usize| quantile(&found[index], 0.5));
    let case = |size: u64| format!("claim beside {size} done");
    report.add(figure(&case(sizes[0]), "p50", few, Unit::Seconds));
    let mut figure = figure(&case(sizes[1]), "p50", many, Unit::Seconds);
    figure.beside = Some(Beside::new("beside the fewest", many, few));
    figure.wanted = Some(Wanted::RatioAtMost(1.3));
    report.add(figure);
    Ok(())
}

/// The baseline: bare calls of the client that the store uses too.
struct Bare {
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Bare {
    fn connect(hosts: &str) -> Result<Bare, BenchError> {
        let failed = |source| BenchError::Process { program: "a runtime".to_owned(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let with_port = |host: &str| match host.ends_with(']') || !host.contains(':') {
            true => format!("{host}:2379"),
            false => host.to_owned(),
        };
        let endpoints: Vec<String> = hosts.split(',').map(with_port).collect();
        let client = runtime.block_on(Client::connect(endpoints, None))?;
        Ok(Bare { client, runtime })
    }

    /// Takes a lock as simply as it can be done: a lease, a key that must not exist, and the end of
    /// the lease, which deletes the key.
    fn pair(&mut self, key: &str) -> Result<u64, BenchError> {
        let Bare { client, runtime } = self;
        let made = runtime.block_on(async {
            let lease = client.lease_grant(LEASE_SECONDS, None).await?.id();
            let is_free = Compare::create_revision(key, CompareOp::Equal, 0);
            let options = PutOptions::new().with_lease(lease);
            let put = TxnOp::put(key, "", Some(options));
            let made = client.txn(Txn::new().when([is_free]).and_then([put])).await?.succeeded();
            client.lease_revoke(lease).await?;
            Ok::<bool, etcd_client::Error>(made)
        })?;
        match made {
            true => Ok(1),
            false => Err(BenchError::Worker { said: "held".to_owned(), expected: "free" }),
        }
    }
}

/// In a worker: store and bare calls in turns, each first in every other round.
pub(crate) fn duel(
    url: &str,
    hosts: &str,
    rounds: u32,
    span_ms: u64,
) -> Result<Vec<(Tally, Tally)>, BenchError> {
    let client = blocking::Client::open(url)?;
    let mut bare = Bare::connect(hosts)?;
    let key = format!("tenure-bench-{}-bare", std::process::id());
    worker::ready()?;
    let store =
        || tally(span_ms, || client.acquire("lock").map(drop).map(|()| 1).map_err(Into::into));
    let mut bare = || tally(span_ms, || bare.pair(&key));
    // The first round connects and is not counted.
    let (_, _) = (store()?, bare()?);
    (0..rounds)
        .map(|number| match number % 2 {
            0 => Ok((store()?, bare()?)),
            _ => {
                let bare = bare()?;
                Ok((store()?, bare))
            }
        })
        .collect()
}
