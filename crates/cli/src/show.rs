//! How holds, waiters, times and events are shown: as words for people and as JSON for scripts.

use crate::output::{BAD, DIM, NAME, WARN, styled};
use serde_json::{Value, json};
use tenure::core::{
    Event, EventKind, Evidence, Holder, Kind, Mode, Resource, SeenHold, SeenWaiter, TakeoverReason,
    WallTime, WhyLeft, Witness, rules,
};
use tenure::duration::format_duration;

/// RFC 3339 in UTC, to the second.
pub(crate) fn time(at: WallTime) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{}ms", at.0),
    }
}

/// `a`, or `a, b and c`.
pub(crate) fn names(resources: &[Resource]) -> String {
    let names: Vec<String> = resources.iter().map(Resource::to_string).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What somebody wrote, for a line that people read: whole lines and terminals stay in order.
pub(crate) fn one_line(text: &str) -> String {
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

/// Why a hold no longer counts, in the words that people know from lock files.
pub(crate) fn stale_reason(seen: &SeenHold, witness: &dyn Witness) -> Option<String> {
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

fn process_of(holder: &Holder) -> Option<(&Evidence, u32)> {
    let evidence = holder.evidence.as_ref()?;
    Some((evidence, evidence.process?.pid))
}

/// A hold as JSON. The grant is not in it: it proves ownership.
pub(crate) fn hold_json(seen: &SeenHold, witness: &dyn Witness, waiting: usize) -> Value {
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
        "token": hold.token,
        "operation": hold.operation,
        "acquired_at": time(seen.acquired_at),
        "heartbeat_at": time(seen.renewed_at),
        "expires_at": time(seen.expires_at),
        "seconds_left": seconds(seen.left),
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

/// To the millisecond.
pub(crate) fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// A waiter as JSON.
pub(crate) fn waiter_json(seen: &SeenWaiter, place: usize) -> Value {
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

/// A hold in one or two lines for people: who, doing what, since when, until when.
pub(crate) fn hold_words(seen: &SeenHold, witness: &dyn Witness) -> String {
    let hold = &seen.hold;
    let resource = styled(NAME, &hold.want.resource);
    let holder = styled(NAME, &hold.holder.label);
    let how = match hold.want.mode {
        Mode::Exclusive => String::new(),
        Mode::Shared => " (shared)".to_owned(),
        Mode::Slot { of } => format!(" (one of {of} slots)"),
    };
    let mut text = format!("{resource} is held{how} by {holder}");
    if let Some((evidence, pid)) = process_of(&hold.holder) {
        text += &format!(" (process {pid} on {})", evidence.host);
    }
    if let Some(operation) = &hold.operation {
        text += &format!(" for {:?}", one_line(operation));
    }
    text += &format!(" since {} ago\n", format_duration(seen.held_for));
    let left = match stale_reason(seen, witness) {
        Some(reason) => styled(WARN, format!("no longer counts: {reason}")),
        None => format!("lease ends in {} unless renewed", format_duration(seen.left)),
    };
    text + &format!("  {left}; token {}", hold.token)
}

/// A waiter in one line for people.
pub(crate) fn waiter_words(seen: &SeenWaiter, place: usize) -> String {
    let operation = seen.waiter.operation.as_ref().map(|text| format!(" for {:?}", one_line(text)));
    format!(
        "  {place}. {}{} since {} ago",
        styled(NAME, &seen.waiter.holder.label),
        operation.unwrap_or_default(),
        format_duration(seen.waited_for)
    )
}

/// Holds as a table.
pub(crate) fn hold_table(holds: &[&SeenHold], witness: &dyn Witness) -> String {
    let header = ["RESOURCE", "HOLDER", "AGE", "LEFT", "TOKEN", "FOR"].map(str::to_owned);
    let rows = holds.iter().map(|seen| {
        let left = match stale_reason(seen, witness) {
            Some(reason) => reason,
            None => format_duration(seen.left),
        };
        [
            seen.hold.want.resource.to_string(),
            seen.hold.holder.label.clone(),
            format_duration(seen.held_for),
            left,
            seen.hold.token.to_string(),
            seen.hold.operation.as_deref().map(one_line).unwrap_or_default(),
        ]
    });
    table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

/// Columns as wide as they must be; the first row is the header.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = rows.iter().map(line);
    let header = lines.next().map(|line| styled(DIM, line));
    header.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// An event as JSON.
pub(crate) fn event_json(event: &Event) -> Value {
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

fn why_left(why: WhyLeft) -> &'static str {
    match why {
        WhyLeft::GaveUp => "gave up",
        WhyLeft::Silent => "gave no sign of life",
        WhyLeft::Died => "died",
    }
}

/// An event in one line for people.
pub(crate) fn event_words(event: &Event) -> String {
    let what = &event.event;
    let holder = styled(NAME, &what.label);
    let resource =
        what.resource.as_ref().map(|resource| styled(NAME, resource)).unwrap_or_default();
    let token = what.token.map(|token| format!(" (token {token})")).unwrap_or_default();
    let sentence = match &what.kind {
        EventKind::Acquired { operation: Some(operation) } => {
            format!("{holder} acquired {resource}{token} for {:?}", one_line(operation))
        }
        EventKind::Acquired { operation: None } => format!("{holder} acquired {resource}{token}"),
        EventKind::Released => format!("{holder} released {resource}{token}"),
        EventKind::Lapsed => format!("{resource}{token} lapsed; {holder} had held it"),
        EventKind::Died => format!("{resource}{token} was freed: {holder} is dead"),
        EventKind::Broken { by, reason } => {
            let broken = styled(BAD, "broken");
            format!("{resource}{token} of {holder} was {broken} by {by}: {reason:?}")
        }
        EventKind::Waiting => format!("{holder} waits for {resource}"),
        EventKind::Left { why } => {
            format!("{holder} no longer waits for {resource}: {}", why_left(*why))
        }
        EventKind::Deadlock => {
            format!("{holder} was refused to wait for {resource}: it would never have ended")
        }
        EventKind::Added => format!("{holder} added {resource}"),
        EventKind::Updated => format!("{holder} changed {resource}"),
        EventKind::Deleted => format!("{holder} deleted {resource}"),
        EventKind::Completed => format!("{holder} completed {resource}{token}"),
        EventKind::Failed { reason, retry } => {
            let next = if *retry { "; to be tried again" } else { "" };
            format!("{holder} failed {resource}{token}: {reason:?}{next}")
        }
        EventKind::SentToReview => format!("{holder} sent {resource}{token} to review"),
        EventKind::Approved => format!("{holder} approved {resource}"),
        EventKind::Rejected { feedback } => format!("{holder} rejected {resource}: {feedback:?}"),
        EventKind::Snoozed => format!("{holder} put off {resource}"),
        EventKind::HandedBack => format!("{holder} handed back {resource}{token}"),
        EventKind::Cancelled => format!("{resource} was cancelled; {holder}"),
        EventKind::Skipped => format!("{holder} skipped {resource}"),
        EventKind::Retried => format!("{holder} set {resource} to be done again"),
        EventKind::Recovered => {
            format!("{resource} is to be done again: {holder} died or fell silent")
        }
        EventKind::SetAside => {
            let blocked = styled(BAD, "blocked");
            format!("{resource} is {blocked}: its workers died or fell silent too often")
        }
        EventKind::Paused => format!("{holder} paused {resource}"),
        EventKind::Resumed => format!("{holder} resumed {resource}"),
        EventKind::Rebooted => "the machine was rebooted; tokens moved ahead".to_owned(),
    };
    format!("{} {sentence}", styled(DIM, time(event.at)))
}
