//! Holds, waiters and workers as JSON.

use super::{alive_word, mode, process_of, seconds, slots_taken, stale_reason, time};
use serde::{Deserialize, Serialize};
use tenure::core::{self, HoldSnapshot, HoldState, Kind, WaiterSnapshot, Witness};
use utoipa::ToSchema;

/// A hold of one resource. Sections and tasks also have `section_id` or `task_id`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Hold {
    /// The held resource.
    pub resource: String,
    /// `lock`, `section`, `task` or `path`.
    pub kind: String,
    /// Its name without the kind.
    pub name: String,
    /// The label of the holder.
    pub holder: String,
    /// Same as `holder`.
    pub runner_id: String,
    /// The host of the holder, if known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// The process of the holder, if known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `exclusive`, `shared` or `slot of N`.
    pub mode: String,
    /// The number of the slot, from 0; null if it is not held by slots.
    #[schema(required)]
    pub slot: Option<u32>,
    /// The fencing token.
    pub token: u64,
    /// The operation.
    #[schema(required)]
    pub operation: Option<String>,
    /// When it was acquired.
    pub acquired_at: String,
    /// When it was last renewed.
    pub heartbeat_at: String,
    /// When it lapses if it is not renewed; null for another program's claim without a limit.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Seconds until it lapses; null without a limit.
    #[schema(required)]
    pub seconds_left: Option<f64>,
    /// `held`, `lapsed` or `dead`: only a held one excludes others.
    pub state: String,
    /// Whether it is no longer valid.
    pub is_stale: bool,
    /// Why it is no longer valid.
    #[schema(required)]
    pub stale_reason: Option<String>,
    /// The number of waiters.
    pub waiting: u64,
    /// The id of the task, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub task_id: Option<String>,
    /// The name of the section, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub section_id: Option<String>,
}

impl Hold {
    /// A hold as it was read, with this many waiters.
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
            expires_at: seen.limit().map(time),
            seconds_left: seen.limit().map(|_| seconds(seen.left)),
            state: HoldState::of(seen, witness).word().to_owned(),
            is_stale: stale_reason.is_some(),
            stale_reason,
            waiting: waiting as u64,
            task_id: id_of(Kind::Task),
            section_id: id_of(Kind::Section),
        }
    }
}

/// A hold, with the number of taken slots.
#[derive(Clone, Debug, Serialize)]
pub struct HoldAmong {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// The number of slots; null if it is not held by slots.
    pub slots: Option<u32>,
    /// The number of taken slots.
    pub slots_taken: Option<usize>,
}

impl HoldAmong {
    /// A hold as it was read among others.
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

/// A waiter.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Waiter {
    /// Its place in the queue, from 1.
    pub place: u64,
    /// The label of the waiter.
    pub holder: String,
    /// The process of the waiter, if known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// The operation.
    #[schema(required)]
    pub operation: Option<String>,
    /// The resources that it waits for.
    pub resources: Vec<String>,
    /// When it started to wait.
    pub waiting_since: String,
    /// Seconds since then.
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

    /// All waiters of a queue, in order.
    pub fn all<'a>(queue: impl IntoIterator<Item = &'a WaiterSnapshot>) -> Vec<Waiter> {
        queue.into_iter().zip(1..).map(|(seen, place)| Waiter::new(seen, place)).collect()
    }
}

/// A hold with its waiters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// The waiters, in order.
    pub waiters: Vec<Waiter>,
}

/// Counts; all views show the same numbers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Valid holds.
    pub held: u64,
    /// Holds whose lease lapsed.
    pub lapsed: u64,
    /// Holds whose holder is proved dead.
    pub dead: u64,
    /// Waiting requests, without waiters that died or stopped renewing.
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

/// A worker that is registered, idle or not, or another label that holds something.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its label.
    pub holder: String,
    /// Its host, if known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// Its process, if known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `alive`, `dead` or `unknown`.
    pub alive: String,
    /// Whether none of its holds is valid any more.
    pub is_stale: bool,
    /// When its oldest hold was acquired.
    #[schema(required)]
    pub since: Option<String>,
    /// What it holds, except tasks.
    pub locks: Vec<String>,
    /// Its claimed tasks.
    pub tasks: Vec<WorkerTask>,
    /// When the first of its leases lapses if it is not renewed.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// Seconds until then.
    #[schema(required)]
    pub seconds_left: Option<f64>,
    /// Tells registered workers with the same label apart.
    #[schema(required)]
    pub id: Option<String>,
    /// `working` on a task, `idle`, `holding` something without being registered, or `gone`: dead, or
    /// with holds that are no longer valid.
    pub state: String,
    /// When it began to work.
    #[schema(required)]
    pub started_at: Option<String>,
    /// When it was last heard of.
    #[schema(required)]
    pub last_seen_at: Option<String>,
    /// The section whose tasks it takes; `null` for all sections.
    #[schema(required)]
    pub section: Option<String>,
    /// It takes only tasks with all these labels.
    pub labels: Vec<String>,
    /// How many tasks it did.
    #[schema(required)]
    pub done: Option<u64>,
    /// How many tasks it could not do.
    #[schema(required)]
    pub failed: Option<u64>,
}

/// A task of a worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
}

impl Worker {
    /// A worker with everything that it holds.
    pub fn new(worker: &core::Worker<'_>) -> Worker {
        let seen = || worker.holds.iter().map(|hold| hold.seen);
        let next_to_lapse = worker.next_to_lapse();
        let of = |kind: bool| {
            seen().filter(move |seen| (seen.hold.want.resource.kind() == Kind::Task) == kind)
        };
        // The operation of a claim has the title of its task.
        let task = |seen: &HoldSnapshot| {
            let id = seen.hold.want.resource.name();
            let title = seen.hold.operation.as_deref().unwrap_or(id);
            WorkerTask { id: id.to_owned(), title: title.to_owned() }
        };
        let said = worker.registered.map(|registered| &registered.said);
        let evidence = said.and_then(|said| said.evidence.as_ref());
        let host = seen().find_map(|seen| Some(seen.hold.holder.evidence.as_ref()?.host.clone()));
        let pid = seen().find_map(|seen| process_of(&seen.hold.holder)).map(|(_, pid)| pid);
        Worker {
            id: worker.registered.map(|registered| registered.id.clone()),
            state: worker.state().to_owned(),
            started_at: said.map(|said| time(said.started_at)),
            last_seen_at: worker.registered.map(|registered| time(registered.last_seen_at)),
            section: said.and_then(|said| said.section.clone()),
            labels: said.map(|said| said.labels.clone()).unwrap_or_default(),
            done: said.map(|said| said.done),
            failed: said.map(|said| said.failed),
            holder: worker.label.to_owned(),
            hostname: host.or_else(|| Some(evidence?.host.clone())),
            pid: pid.or_else(|| Some(evidence?.process?.pid)),
            alive: alive_word(worker.liveness).to_owned(),
            is_stale: !worker.counts(),
            since: seen().map(|seen| seen.acquired_at).min().map(time),
            locks: of(false).map(|seen| seen.hold.want.resource.to_string()).collect(),
            tasks: of(true).map(task).collect(),
            expires_at: next_to_lapse.and_then(|seen| seen.limit()).map(time),
            seconds_left: next_to_lapse
                .filter(|seen| !seen.has_no_limit())
                .map(|seen| seconds(seen.left)),
        }
    }
}
