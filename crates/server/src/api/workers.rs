//! Who works: holders by label, each with what it holds.

use serde_json::{Value, json};
use tenure::core::{Kind, Liveness, Seen, SeenHold, Witness};
use tenure::{Client, Error, view};

/// Everybody who holds something now, as JSON, in the order in which they began.
pub async fn workers(client: &Client) -> Result<Vec<Value>, Error> {
    Ok(workers_in(&client.look_everywhere().await?, client.witness()))
}

/// Everybody who holds something in what was seen.
pub fn workers_in(seen: &Seen, witness: &dyn Witness) -> Vec<Value> {
    let mut by_label: Vec<(&str, Vec<&SeenHold>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for hold in &seen.holds {
        let label = hold.hold.holder.label.as_str();
        let place = *places.entry(label).or_insert_with(|| {
            by_label.push((label, Vec::new()));
            by_label.len() - 1
        });
        by_label[place].1.push(hold);
    }
    by_label.into_iter().map(|(label, holds)| worker_json(label, &holds, witness)).collect()
}

fn worker_json(label: &str, holds: &[&SeenHold], witness: &dyn Witness) -> Value {
    let process = holds.iter().find_map(|seen| view::process_of(&seen.hold.holder));
    let host = holds.iter().find_map(|seen| seen.hold.holder.evidence.as_ref());
    let since = holds.iter().map(|seen| seen.acquired_at).min();
    let next_to_lapse = holds.iter().min_by_key(|seen| seen.left);
    let (tasks, locks): (Vec<&&SeenHold>, Vec<&&SeenHold>) =
        holds.iter().partition(|seen| seen.hold.want.resource.kind() == Kind::Task);
    let locks = locks.iter().map(|seen| seen.hold.want.resource.to_string());
    json!({
        "holder": label,
        "hostname": host.map(|evidence| &evidence.host),
        "pid": process.map(|(_, pid)| pid),
        "alive": alive(holds, witness),
        "since": since.map(view::time),
        "locks": locks.collect::<Vec<_>>(),
        "tasks": tasks.iter().map(|seen| task_json(seen)).collect::<Vec<_>>(),
        "expires_at": next_to_lapse.map(|seen| view::time(seen.expires_at)),
        "seconds_left": next_to_lapse.map(|seen| view::seconds(seen.left)),
    })
}

/// A claim says in its operation which title the task had.
fn task_json(seen: &SeenHold) -> Value {
    let id = seen.hold.want.resource.name();
    json!({ "id": id, "title": seen.hold.operation.as_deref().unwrap_or(id) })
}

/// One sign of life is enough; death needs proof.
fn alive(holds: &[&SeenHold], witness: &dyn Witness) -> &'static str {
    let judged: Vec<Liveness> =
        holds.iter().map(|seen| seen.hold.holder.liveness(witness)).collect();
    if judged.contains(&Liveness::Alive) {
        "alive"
    } else if judged.contains(&Liveness::Dead) {
        "dead"
    } else {
        "unknown"
    }
}
