//! Holds, waiters and workers.

use super::{alive_word, mode, process_of, seconds, slots_taken, stale_reason, time};
use serde::{Deserialize, Serialize};
use tenure::core::{self, HoldSnapshot, HoldState, Kind, WaiterSnapshot, Witness};
use utoipa::ToSchema;

/// One resource held by somebody. Sections and tasks have `section_id` or `task_id` too.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Hold {
    /// What is held.
    pub resource: String,
    /// `lock`, `section`, `task` or `path`.
    pub kind: String,
    /// Its name without the kind.
    pub name: String,
    /// Who holds it.
    pub holder: String,
    /// The same.
    pub runner_id: String,
    /// Where the holder runs, where that is known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// The holder's process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `exclusive`, `shared` or `slot of N`.
    pub mode: String,
    /// Which of the slots, from 0; none where it is not held by slots.
    #[schema(required)]
    pub slot: Option<u32>,
    /// The fencing token.
    pub token: u64,
    /// What for.
    #[schema(required)]
    pub operation: Option<String>,
    /// Since when.
    pub acquired_at: String,
    /// When it was last renewed.
    pub heartbeat_at: String,
    /// When it lapses unless renewed.
    pub expires_at: String,
    /// The same, from now.
    pub seconds_left: f64,
    /// `held`, `lapsed` or `dead`: only what is held excludes others.
    pub state: String,
    /// Whether it does not count any more.
    pub is_stale: bool,
    /// Why.
    #[schema(required)]
    pub stale_reason: Option<String>,
    /// How many wait for it.
    pub waiting: u64,
    /// Which task it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub task_id: Option<String>,
    /// Which section it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub section_id: Option<String>,
}

impl Hold {
    /// What a look showed of a hold for which this many wait.
    pub fn new(seen: &HoldSnapshot, witness: &dyn Witness, waiting: usize) -> Hold {
        let hold = &seen.hold;
        let resource = &hold.want.resource;
        let stale_reason = stale_reason(seen, witness);
        let id_of = |kind| (resource.kind() == kind).then(|| resource.name().to_owned());
        Hold {
            resource: resource.to_string(),
            kind: resource.kind().word().to_owned(),
            name: resource.name().to_owned(),
            holder: hold.holder.label.clone(),
            runner_id: hold.holder.label.clone(),
            hostname: hold.holder.evidence.as_ref().map(|evidence| evidence.host.clone()),
            pid: process_of(&hold.holder).map(|(_, pid)| pid),
            mode: mode(hold.want.mode),
            slot: hold.slot,
            token: hold.token.0,
            operation: hold.operation.clone(),
            acquired_at: time(seen.acquired_at),
            heartbeat_at: time(seen.renewed_at),
            expires_at: time(seen.expires_at),
            seconds_left: seconds(seen.left),
            state: HoldState::of(seen, witness).word().to_owned(),
            is_stale: stale_reason.is_some(),
            stale_reason,
            waiting: waiting as u64,
            task_id: id_of(Kind::Task),
            section_id: id_of(Kind::Section),
        }
    }
}

/// A hold, with how many of its slots are taken among all that is held.
#[derive(Clone, Debug, Serialize)]
pub struct HoldAmong {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// How many slots there are; none where it is not held by slots.
    pub slots: Option<u32>,
    /// How many of them are taken.
    pub slots_taken: Option<usize>,
}

impl HoldAmong {
    /// What a look showed of a hold among others.
    pub fn new(
        hold: &HoldSnapshot,
        holds: &[HoldSnapshot],
        witness: &dyn Witness,
        waiting: usize,
    ) -> HoldAmong {
        let slots = slots_taken(hold, holds, witness);
        HoldAmong {
            hold: Hold::new(hold, witness, waiting),
            slots: slots.map(|(_, of)| of),
            slots_taken: slots.map(|(taken, _)| taken),
        }
    }
}

/// Somebody who waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Waiter {
    /// Its place in the queue, from 1.
    pub place: u64,
    /// Who waits.
    pub holder: String,
    /// The waiter's process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// What for.
    #[schema(required)]
    pub operation: Option<String>,
    /// All that it waits for.
    pub resources: Vec<String>,
    /// Since when.
    pub waiting_since: String,
    /// The same, until now.
    pub waited_seconds: f64,
}

impl Waiter {
    /// A waiter at this place of its queue, from 1.
    pub fn new(seen: &WaiterSnapshot, place: usize) -> Waiter {
        let waiter = &seen.waiter;
        Waiter {
            place: place as u64,
            holder: waiter.holder.label.clone(),
            pid: process_of(&waiter.holder).map(|(_, pid)| pid),
            operation: waiter.operation.clone(),
            resources: waiter.wants.iter().map(|want| want.resource.to_string()).collect(),
            waiting_since: time(seen.waiting_since),
            waited_seconds: seconds(seen.waited_for),
        }
    }

    /// All waiters of a queue, in the order in which they wait.
    pub fn all<'a>(queue: impl IntoIterator<Item = &'a WaiterSnapshot>) -> Vec<Waiter> {
        queue.into_iter().zip(1..).map(|(seen, place)| Waiter::new(seen, place)).collect()
    }
}

/// A hold with those who wait for it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// Who waits, in order.
    pub waiters: Vec<Waiter>,
}

/// How many there are; the same numbers wherever they are shown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Holds that count.
    pub held: u64,
    /// Holds whose time ran out.
    pub lapsed: u64,
    /// Holds whose holder was proved dead.
    pub dead: u64,
    /// Requests that wait, without those whose waiter died or fell silent.
    pub waiting: u64,
    /// Workers that hold something.
    pub workers: u64,
}

impl From<core::Counts> for Counts {
    fn from(counts: core::Counts) -> Counts {
        let core::Counts { held, lapsed, dead, waiting, workers } = counts;
        Counts {
            held: held as u64,
            lapsed: lapsed as u64,
            dead: dead as u64,
            waiting: waiting as u64,
            workers: workers as u64,
        }
    }
}

/// Somebody who holds something.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its label.
    pub holder: String,
    /// Where it runs, where that is known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// Its process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `alive`, `dead` or `unknown`.
    pub alive: String,
    /// Whether nothing that it holds counts any more.
    pub is_stale: bool,
    /// Since when it holds something.
    #[schema(required)]
    pub since: Option<String>,
    /// What it holds, tasks aside.
    pub locks: Vec<String>,
    /// The tasks that it has.
    pub tasks: Vec<WorkerTask>,
    /// When the first of its leases lapses unless renewed.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// The same, from now.
    #[schema(required)]
    pub seconds_left: Option<f64>,
}

/// A task that somebody has.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
}

impl Worker {
    /// A worker with all that it holds.
    pub fn new(worker: &core::Worker<'_>) -> Worker {
        let seen = || worker.holds.iter().map(|hold| hold.seen);
        let next_to_lapse = worker.next_to_lapse();
        let of = |kind: bool| {
            seen().filter(move |seen| (seen.hold.want.resource.kind() == Kind::Task) == kind)
        };
        // A claim says in its operation which title the task had.
        let task = |seen: &HoldSnapshot| {
            let id = seen.hold.want.resource.name();
            let title = seen.hold.operation.as_deref().unwrap_or(id);
            WorkerTask { id: id.to_owned(), title: title.to_owned() }
        };
        Worker {
            holder: worker.label.to_owned(),
            hostname: seen()
                .find_map(|seen| Some(seen.hold.holder.evidence.as_ref()?.host.clone())),
            pid: seen().find_map(|seen| process_of(&seen.hold.holder)).map(|(_, pid)| pid),
            alive: alive_word(worker.liveness).to_owned(),
            is_stale: !worker.counts(),
            since: seen().map(|seen| seen.acquired_at).min().map(time),
            locks: of(false).map(|seen| seen.hold.want.resource.to_string()).collect(),
            tasks: of(true).map(task).collect(),
            expires_at: next_to_lapse.map(|seen| time(seen.expires_at)),
            seconds_left: next_to_lapse.map(|seen| seconds(seen.left)),
        }
    }
}
