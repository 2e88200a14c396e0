//! `tenure workers`: shows the workers that run, idle ones too.

use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::{Overview, WallTime, Worker};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view;

/// Show the workers: what each takes and does, idle ones too
///
/// Workers of `work`, `swarm` and the libraries register themselves, and leave when they end; one that
/// is silent for 30 seconds is not listed any more. Other labels that hold something are listed too,
/// as `holding`; `gone` is a worker that is dead, or whose holds are no longer valid.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure workers
  tenure workers --json | jq -r '.data.workers[] | select(.state == \"idle\") | .holder'")]
pub(crate) struct WorkersArgs {}

pub(crate) async fn run(context: &Context, _: WorkersArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let seen = client.look_at_workers().await?;
    let overview = Overview::of(&seen, client.witness());
    let workers = overview.workers();
    let data: Vec<view::Worker> = workers.iter().map(view::Worker::new).collect();
    let count = overview.counts().workers;
    context.output.done(json!({ "workers": data, "count": count }), || {
        if workers.is_empty() {
            return "No workers".to_owned();
        }
        let header =
            ["WORKER", "STATE", "TASK", "TAKES", "DONE", "FAILED", "SINCE", "SEEN", "WHERE"];
        let shown = workers.iter().zip(&data).map(|(worker, data)| row(worker, data, seen.wall));
        show::table(&std::iter::once(header.map(str::to_owned)).chain(shown).collect::<Vec<_>>())
    });
    Ok(0)
}

fn row(worker: &Worker<'_>, data: &view::Worker, now: WallTime) -> [String; 9] {
    let said = worker.registered.map(|registered| &registered.said);
    let takes = said.map(|said| {
        let section = said.section.clone().unwrap_or_else(|| "all".to_owned());
        let labels = said.labels.iter().map(|label| format!(" +{label}"));
        labels.fold(section, |takes, label| takes + &label)
    });
    let ago = |at: WallTime| {
        format_duration(Duration::from_secs(u64::try_from(now.0 - at.0).unwrap_or(0) / 1000))
    };
    let since = worker.holds.iter().map(|hold| hold.seen.acquired_at).min();
    let place = match (&data.hostname, data.pid) {
        (Some(host), Some(pid)) => format!("{host} (pid {pid})"),
        (Some(host), None) => host.clone(),
        _ => String::new(),
    };
    let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
    let doing = data.tasks.iter().map(|task| task.title.clone()).chain(data.locks.iter().cloned());
    [
        show::one_line(&data.holder),
        data.state.clone(),
        doing.map(|text| show::one_line(&text)).collect::<Vec<_>>().join(", "),
        takes.map(|takes| show::one_line(&takes)).unwrap_or_default(),
        number(data.done),
        number(data.failed),
        said.map(|said| said.started_at).or(since).map(ago).unwrap_or_default(),
        worker.registered.map(|registered| ago(registered.last_seen_at)).unwrap_or_default(),
        place,
    ]
}
