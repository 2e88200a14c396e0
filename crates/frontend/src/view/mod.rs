//! How holds, waiters, tasks, sections and events look, wherever tenure shows them: on the command
//! line, over HTTP and to agents. The types are written as JSON and describe it in the OpenAPI
//! document. None of them has a grant in it: it proves ownership.

mod events;
mod holds;
mod tasks;

pub use events::Event;
pub use holds::{Counts, Hold, HoldAmong, Lock, Waiter, Worker, WorkerTask};
pub use tasks::{CountedSection, OpenSection, Section, SectionRunner, Tally, Task};
pub use tenure::core::rules::tasks::hold_of;

use serde::Serialize;
use serde_json::Value;
use tenure::core::{
    self, Blocker, Evidence, HoldSnapshot, Holder, Kind, Liveness, Mode, Overview, Resource,
    TakeoverReason, WaiterSnapshot, WhyLeft, Witness, rules,
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

/// A value of this module, to be changed before it is shown.
pub fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("all keys are texts")
}

/// To the millisecond.
pub fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// How many there are, in words: `2 held, 1 waiting`, and how many no longer count if any.
pub fn counts_words(counts: core::Counts) -> String {
    let core::Counts { held, lapsed, dead, waiting, workers: _ } = counts;
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

/// The holds of this section that still count.
pub fn runners_of<'a>(
    section: &core::Section,
    holds: &'a [HoldSnapshot],
    witness: &dyn Witness,
) -> Vec<&'a HoldSnapshot> {
    let of_it = |seen: &&HoldSnapshot| {
        let resource = &seen.hold.want.resource;
        resource.kind() == Kind::Section && resource.name() == section.name
    };
    holds.iter().filter(of_it).filter(|seen| !seen.gone(witness)).collect()
}

/// Why a place in the queue was given up, in words.
pub fn why_left(why: WhyLeft) -> &'static str {
    match why {
        WhyLeft::GaveUp => "gave up",
        WhyLeft::Silent => "gave no sign of life",
        WhyLeft::Died => "died",
    }
}
