//! The JSON of holds, waiters, tasks, sections and events, for the command line, HTTP and agents.
//! The types serialise to JSON and describe it in the OpenAPI document. None of them contains a
//! grant, because a grant proves ownership.

mod claims;
mod events;
mod handover;
mod holds;
mod outputs;
pub mod spelling;
mod tasks;

pub use claims::Claims;
pub use events::Event;
pub use handover::{Note, Try};
pub use holds::{Counts, Hold, HoldAmong, Lock, Waiter, Worker, WorkerTask};
pub use outputs::TaskLog;
pub use tasks::{CountedSection, OpenSection, Section, SectionRunner, Tally, Task};
pub use tenure::core::rules::tasks::hold_of;

use serde::Serialize;
use serde_json::Value;
use tenure::core::{
    self, Blocker, Evidence, HoldSnapshot, Holder, Kind, Liveness, Mode, Overview, Resource,
    TakeoverReason, WaiterSnapshot, WhyLeft, Witness, rules,
};
pub use tenure_text::time::to_seconds_text as time;

/// `a`, or `a, b and c`, for people.
pub fn names(resources: &[Resource]) -> String {
    let names: Vec<String> = resources.iter().map(spelling::name).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A text from a user on one line, without control characters, cut to a length that leaves room for
/// the rest.
pub fn one_line(text: &str) -> String {
    let mut shown: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ONE_LINE).collect();
    if text.chars().nth(ONE_LINE).is_some() {
        shown.push('…');
    }
    shown
}

/// The longest text on one line.
const ONE_LINE: usize = 80;

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".to_owned(),
        Mode::Shared => "shared".to_owned(),
        Mode::Slot { of } => format!("slot of {of}"),
    }
}

/// The requested number of slots and the effective one, if holders named a lower one.
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

/// The message about a mismatch of slots.
pub fn mismatch_words(asked: u32, counts: u32) -> String {
    format!(
        "you asked for one of {asked} slots, its holders for one of {counts}: the lower number applies"
    )
}

/// The number of taken slots of a hold's resource, and the number of slots. If holders disagree on
/// the number, the lowest applies. `None` if it is not held by slots.
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

/// The time left of a hold, for a table: `59m 12s`, or `no limit`.
pub fn left(seen: &HoldSnapshot) -> String {
    if seen.has_no_limit() {
        return "no limit".to_owned();
    }
    crate::duration::format_duration(seen.left)
}

/// Why a hold is no longer valid, in the usual words of lock files.
pub fn stale_reason(seen: &HoldSnapshot, witness: &dyn Witness) -> Option<String> {
    if seen.stale.is_some() {
        return seen.stale.clone();
    }
    Some(gone_words(seen, rules::gone_reason(seen, witness)?))
}

fn gone_words(seen: &HoldSnapshot, reason: TakeoverReason) -> String {
    match (reason, process_of(&seen.hold.holder)) {
        (TakeoverReason::Lapsed, _) => "lease lapsed".to_owned(),
        (TakeoverReason::Died, Some((_, pid))) => format!("process {pid} is dead"),
        (TakeoverReason::Died, None) => "the machine was rebooted".to_owned(),
    }
}

/// The process and host of a holder, if known.
pub fn process_of(holder: &Holder) -> Option<(&Evidence, u32)> {
    let evidence = holder.evidence.as_ref()?;
    Some((evidence, evidence.process?.pid))
}

/// A value of this module as JSON, to be changed before it is shown.
pub fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("all keys are texts")
}

/// Seconds, to the millisecond.
pub fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// Counts as text: `2 held, 1 waiting`, and lapsed or dead ones if there are any.
pub fn counts_words(counts: core::Counts) -> String {
    let core::Counts { held, lapsed, dead, waiting, workers: _ } = counts;
    let mut words = vec![format!("{held} held"), format!("{waiting} waiting")];
    words.extend((lapsed > 0).then(|| format!("{lapsed} lapsed")));
    words.extend((dead > 0).then(|| format!("{dead} of dead holders")));
    words.join(", ")
}

/// For a free resource with waiters: the next waiter, and when it loses its place. `None` if there
/// is no such waiter.
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

/// Whether a holder is alive, as one word.
pub fn alive_word(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Alive => "alive",
        Liveness::Dead => "dead",
        Liveness::Unknown => "unknown",
    }
}

/// The valid holds of this section.
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

/// Why a waiter left its queue, as text.
pub fn why_left(why: WhyLeft) -> &'static str {
    match why {
        WhyLeft::GaveUp => "gave up",
        WhyLeft::Silent => "stopped renewing",
        WhyLeft::Died => "died",
    }
}
