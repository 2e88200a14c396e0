//! How holds, waiters, tasks, sections and events look as JSON, wherever tenure shows them: on the command
//! line, over HTTP and to agents. None of these has a grant in it: it proves ownership.

use serde_json::{Value, json};
use tenure::core::{
    Blocker, Counts, Event, EventKind, Evidence, HoldSnapshot, HoldState, Holder, Kind, Liveness,
    Mode, Overview, Resource, Section, SectionSnapshot, TakeoverReason, Task, TaskId,
    WaiterSnapshot, WallTime, WhyLeft, Witness, Worker, rules,
};
pub use tenure_text::time::to_seconds_text as time;

/// `a`, or `a, b and c`.
pub fn names(resources: &[Resource]) -> String {
    let names: Vec<String> = resources.iter().map(Resource::to_string).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What somebody wrote, for a line that people read: whole lines and terminals stay in order.
pub fn one_line(text: &str) -> String {
    let mut shown: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ONE_LINE).collect();
    if text.chars().nth(ONE_LINE).is_some() {
        shown.push('…');
    }
    shown
}

/// As much as leaves room for the rest of a line.
const ONE_LINE: usize = 80;

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".to_owned(),
        Mode::Shared => "shared".to_owned(),
        Mode::Slot { of } => format!("slot of {of}"),
    }
}

/// The number of slots that was asked for and the one that counts, where holders named a lower one.
pub fn slots_mismatch(mode: Mode, blockers: &[Blocker]) -> Option<(u32, u32)> {
    let Mode::Slot { of: asked } = mode else { return None };
    let others = blockers.iter().filter_map(|blocker| match blocker {
        Blocker::Hold(seen) => Some(seen.hold.want.mode),
        Blocker::Waiter(_) => None,
    });
    let numbers = others.filter_map(|mode| match mode {
        Mode::Slot { of } => Some(of),
        Mode::Exclusive | Mode::Shared => None,
    });
    Some((asked, numbers.min()?)).filter(|(asked, lowest)| asked > lowest)
}

/// The same in words.
pub fn mismatch_words(asked: u32, counts: u32) -> String {
    format!(
        "you asked for one of {asked} slots, its holders for one of {counts}: the lower number applies"
    )
}

/// How many of its slots are taken, of a hold among others, and how many there are. Where holders
/// disagree on the number, the lowest counts. None where it is not held by slots.
pub fn slots_taken(
    hold: &HoldSnapshot,
    holds: &[HoldSnapshot],
    witness: &dyn Witness,
) -> Option<(usize, u32)> {
    let Mode::Slot { of } = hold.hold.want.mode else { return None };
    let resource = &hold.hold.want.resource;
    let beside = holds.iter().filter(|seen| seen.hold.want.resource == *resource);
    let numbers =
        beside.filter(|seen| !seen.gone(witness)).filter_map(|seen| match seen.hold.want.mode {
            Mode::Slot { of } => Some(of),
            Mode::Exclusive | Mode::Shared => None,
        });
    let (taken, lowest) = numbers.fold((0, of), |(taken, lowest), of| (taken + 1, lowest.min(of)));
    Some((taken, lowest))
}

/// Why a hold no longer counts, in the words that people know from lock files.
pub fn stale_reason(seen: &HoldSnapshot, witness: &dyn Witness) -> Option<String> {
    if seen.stale.is_some() {
        return seen.stale.clone();
    }
    let process = seen.hold.holder.evidence.as_ref().and_then(|evidence| evidence.process);
    Some(match (rules::gone_reason(seen, witness)?, process) {
        (TakeoverReason::Lapsed, _) => "lease lapsed".to_owned(),
        (TakeoverReason::Died, Some(process)) => format!("process {} is dead", process.pid),
        (TakeoverReason::Died, None) => "the machine was rebooted".to_owned(),
    })
}

/// The process that holds, where it is known, and where it runs.
pub fn process_of(holder: &Holder) -> Option<(&Evidence, u32)> {
    let evidence = holder.evidence.as_ref()?;
    Some((evidence, evidence.process?.pid))
}

/// A hold as JSON. The grant is not in it: it proves ownership.
pub fn hold_json(seen: &HoldSnapshot, witness: &dyn Witness, waiting: usize) -> Value {
    let hold = &seen.hold;
    let resource = &hold.want.resource;
    let stale = stale_reason(seen, witness);
    let mut value = json!({
        "resource": resource.to_string(),
        "kind": resource.kind().word(),
        "name": resource.name(),
        "holder": hold.holder.label,
        "runner_id": hold.holder.label,
        "hostname": hold.holder.evidence.as_ref().map(|evidence| &evidence.host),
        "pid": process_of(&hold.holder).map(|(_, pid)| pid),
        "mode": mode(hold.want.mode),
        "slot": hold.slot,
        "token": hold.token,
        "operation": hold.operation,
        "acquired_at": time(seen.acquired_at),
        "heartbeat_at": time(seen.renewed_at),
        "expires_at": time(seen.expires_at),
        "seconds_left": seconds(seen.left),
        "state": HoldState::of(seen, witness).word(),
        "is_stale": stale.is_some(),
        "stale_reason": stale,
        "waiting": waiting,
    });
    match resource.kind() {
        Kind::Task => value["task_id"] = json!(resource.name()),
        Kind::Section => value["section_id"] = json!(resource.name()),
        Kind::Lock | Kind::Path => {}
    }
    value
}

/// A hold as JSON, with how many of its slots are taken among all that is held.
pub fn hold_json_among(
    hold: &HoldSnapshot,
    holds: &[HoldSnapshot],
    witness: &dyn Witness,
    waiting: usize,
) -> Value {
    let mut value = hold_json(hold, witness, waiting);
    let slots = slots_taken(hold, holds, witness);
    value["slots"] = json!(slots.map(|(_, of)| of));
    value["slots_taken"] = json!(slots.map(|(taken, _)| taken));
    value
}

/// To the millisecond.
pub fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// A waiter as JSON.
pub fn waiter_json(seen: &WaiterSnapshot, place: usize) -> Value {
    let wants: Vec<String> =
        seen.waiter.wants.iter().map(|want| want.resource.to_string()).collect();
    json!({
        "place": place,
        "holder": seen.waiter.holder.label,
        "pid": process_of(&seen.waiter.holder).map(|(_, pid)| pid),
        "operation": seen.waiter.operation,
        "resources": wants,
        "waiting_since": time(seen.waiting_since),
        "waited_seconds": seconds(seen.waited_for),
    })
}

/// Waiters as JSON, in the order in which they wait.
pub fn waiters_json(waiters: &[&WaiterSnapshot]) -> Value {
    waiters.iter().zip(1..).map(|(seen, place)| waiter_json(seen, place)).collect()
}

/// How many are held, no longer count, wait and work, as JSON: the same numbers wherever shown.
pub fn counts_json(counts: Counts) -> Value {
    json!({
        "held": counts.held,
        "lapsed": counts.lapsed,
        "dead": counts.dead,
        "waiting": counts.waiting,
        "workers": counts.workers,
    })
}

/// How many there are, in words: `2 held, 1 waiting`, and how many no longer count if any.
pub fn counts_words(counts: Counts) -> String {
    let Counts { held, lapsed, dead, waiting, workers: _ } = counts;
    let mut words = vec![format!("{held} held"), format!("{waiting} waiting")];
    words.extend((lapsed > 0).then(|| format!("{lapsed} lapsed")));
    words.extend((dead > 0).then(|| format!("{dead} of dead holders")));
    words.join(", ")
}

/// Where a resource is free although requests wait for it: who takes it next, and what happens if
/// that one does not. Nothing where there is no such waiter.
pub fn next_in_line_words(overview: &Overview<'_>, resource: &Resource) -> Option<String> {
    let waits = |seen: &&WaiterSnapshot| {
        seen.waiter.wants.iter().any(|want| want.resource.overlaps(resource))
    };
    let next = overview.next_in_line().into_iter().find(waits)?;
    let label = &next.waiter.holder.label;
    let left = crate::duration::format_duration(next.left);
    Some(format!(
        "{label} is next and was woken; it loses its place in {left} if it does not respond"
    ))
}

/// What is known of a holder's life, in a word.
pub fn alive_word(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Alive => "alive",
        Liveness::Dead => "dead",
        Liveness::Unknown => "unknown",
    }
}

/// A worker as JSON, with all that it holds.
pub fn worker_json(worker: &Worker<'_>) -> Value {
    let seen = || worker.holds.iter().map(|hold| hold.seen);
    let since = seen().map(|seen| seen.acquired_at).min();
    let next_to_lapse = worker.next_to_lapse();
    let of = |kind: bool| {
        seen().filter(move |seen| (seen.hold.want.resource.kind() == Kind::Task) == kind)
    };
    let locks = of(false).map(|seen| seen.hold.want.resource.to_string());
    // A claim says in its operation which title the task had.
    let tasks = of(true).map(|seen| {
        let id = seen.hold.want.resource.name();
        json!({ "id": id, "title": seen.hold.operation.as_deref().unwrap_or(id) })
    });
    json!({
        "holder": worker.label,
        "hostname": seen().find_map(|seen| Some(&seen.hold.holder.evidence.as_ref()?.host)),
        "pid": seen().find_map(|seen| process_of(&seen.hold.holder)).map(|(_, pid)| pid),
        "alive": alive_word(worker.liveness),
        "is_stale": !worker.counts(),
        "since": since.map(time),
        "locks": locks.collect::<Vec<_>>(),
        "tasks": tasks.collect::<Vec<_>>(),
        "expires_at": next_to_lapse.map(|seen| time(seen.expires_at)),
        "seconds_left": next_to_lapse.map(|seen| seconds(seen.left)),
    })
}

/// A task as JSON. The grant is not in it: it proves ownership.
pub fn task_json(task: &Task, hold: Option<&HoldSnapshot>) -> Value {
    let at = |time_of: Option<WallTime>| time_of.map(time);
    let names = |ids: &[TaskId]| ids.iter().map(TaskId::to_string).collect::<Vec<_>>();
    json!({
        "id": task.id.as_str(),
        "title": task.title,
        "description": task.description,
        "section": task.section,
        "status": task.status.word(),
        "priority": task.priority,
        "position": task.position,
        "depends_on": names(&task.depends_on),
        "unmet": task.unmet,
        "labels": task.labels,
        "files": task.files,
        "payload": value(task.payload.as_deref()),
        "max_attempts": task.max_attempts,
        "attempts": task.attempts,
        "recoveries": task.recoveries,
        "timeout_seconds": task.timeout.map(|timeout| timeout.as_secs_f64()),
        "not_before": at(task.not_before),
        "key": task.key,
        "claimed_by": task.claim.as_ref().map(|claim| &claim.by),
        "token": task.claim.as_ref().map(|claim| claim.token),
        "expires_at": hold.map(|seen| time(seen.expires_at)),
        "result": value(task.result.as_deref()),
        "error": task.error,
        "feedback": task.feedback,
        "created_at": time(task.created_at),
        "claimed_at": at(task.claimed_at),
        "started_at": at(task.started_at),
        "finished_at": at(task.finished_at),
        "finished_by": task.finished_by,
    })
}

/// Stored JSON as a value; text that is none, from an older hand, as text.
fn value(stored: Option<&str>) -> Value {
    stored.map_or(Value::Null, |text| {
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    })
}

/// The hold by which somebody has this task.
pub fn hold_of<'a>(task: &Task, holds: &'a [HoldSnapshot]) -> Option<&'a HoldSnapshot> {
    let claim = task.claim.as_ref()?;
    let resource = task.id.resource();
    holds.iter().find(|seen| seen.hold.token == claim.token && seen.hold.want.resource == resource)
}

/// A section as JSON.
pub fn section_json(section: &Section) -> Value {
    json!({
        "name": section.name,
        "max_runners": section.max_runners,
        "priority": section.priority,
        "position": section.position,
        "depends_on": section.depends_on,
        "paused": section.paused,
    })
}

/// The same, with how many of its tasks are not done.
pub fn open_section_json(seen: &SectionSnapshot) -> Value {
    let mut value = section_json(&seen.section);
    value["open"] = json!(seen.open);
    value
}

/// The same, with who works in it.
pub fn section_with_runners_json(
    seen: &SectionSnapshot,
    holds: &[HoldSnapshot],
    witness: &dyn Witness,
) -> Value {
    let mut value = open_section_json(seen);
    let runners = runners_of(&seen.section, holds, witness).into_iter().map(|seen| {
        json!({
            "runner_id": seen.hold.holder.label,
            "acquired_at": time(seen.acquired_at),
            "expires_at": time(seen.expires_at),
        })
    });
    value["runners"] = runners.collect();
    value
}

/// The holds of this section that still count.
pub fn runners_of<'a>(
    section: &Section,
    holds: &'a [HoldSnapshot],
    witness: &dyn Witness,
) -> Vec<&'a HoldSnapshot> {
    let of_it = |seen: &&HoldSnapshot| {
        let resource = &seen.hold.want.resource;
        resource.kind() == Kind::Section && resource.name() == section.name
    };
    holds.iter().filter(of_it).filter(|seen| !seen.gone(witness)).collect()
}

/// An event as JSON.
pub fn event_json(event: &Event) -> Value {
    let mut value = json!({
        "revision": event.revision,
        "at": time(event.at),
        "event": event.event.kind.word(),
        "resource": event.event.resource.as_ref().map(Resource::to_string),
        "holder": event.event.label,
        "token": event.event.token,
    });
    match &event.event.kind {
        EventKind::Acquired { operation: Some(operation) } => value["operation"] = json!(operation),
        EventKind::Lapsed { ended_at: Some(ended_at) } => {
            value["ended_at"] = json!(time(*ended_at))
        }
        EventKind::Broken { by, reason } => {
            value["by"] = json!(by);
            value["reason"] = json!(reason);
        }
        EventKind::Left { why } => value["why"] = json!(why_left(*why)),
        EventKind::Failed { reason, retry } => {
            value["reason"] = json!(reason);
            value["retry"] = json!(retry);
        }
        EventKind::Rejected { feedback } => value["feedback"] = json!(feedback),
        _ => {}
    }
    value
}

/// Why a place in the queue was given up, in words.
pub fn why_left(why: WhyLeft) -> &'static str {
    match why {
        WhyLeft::GaveUp => "gave up",
        WhyLeft::Silent => "gave no sign of life",
        WhyLeft::Died => "died",
    }
}
