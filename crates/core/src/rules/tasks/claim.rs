//! Handing a task to one worker: the task, its section and its files in one act.

use crate::decision::{Change, Decision, Write};
use crate::event::EventKind;
use crate::handover::{TryOutcome, Workspace};
use crate::hold::{Hold, Mode, Want, compatible, may_exclude};
use crate::millis;
use crate::rules::acquire::{Reason, earlier, waits_scope};
use crate::rules::cycle::Cycle;
use crate::rules::draft::Draft;
use crate::rules::reap::{TakeoverReason, gone_reason};
use crate::rules::tasks::EVERYTHING;
use crate::rules::tasks::claim_place::{TaskWait, enter_queue, queue_up};
use crate::rules::tasks::finish::later;
use crate::rules::tasks::heartbeat::renewed;
use crate::rules::tasks::parts::{ClaimState, claim_state, keeps, kept_section, parts_of};
use crate::snapshot::{HoldSnapshot, Pick, Scope, Snapshot, TaskScope, WaiterSnapshot};
use crate::task::{Claim, PRIORITY_DEFAULT, Part, Section, Status, Task, TaskId, Verb, after};
use crate::{Evidence, GrantId, Holder, Kind, Owner, Resource, Token, WallTime, Witness};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many tasks of each section are looked at: at first, and then when all of those were taken.
/// The first is usually free, but all tasks at the front may touch files that are held.
const DEPTHS: [usize; 3] = [1, 64, 4096];

/// A worker asks for work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimAsk {
    /// One id for each task that is wanted at most; each becomes a grant.
    pub grants: Vec<GrantId>,
    /// Under which grant the worker keeps its section from task to task. Without one the section
    /// is held with the task and ends with it.
    pub runner: Option<GrantId>,
    /// Who asks.
    pub holder: Holder,
    /// Lease of a task.
    #[serde(rename = "ttl_ms", with = "millis")]
    pub ttl: Duration,
    /// Lease of a section.
    #[serde(rename = "section_ttl_ms", with = "millis")]
    pub section_ttl: Duration,
    /// Only this one.
    pub task: Option<TaskId>,
    /// Only of this section.
    pub section: Option<String>,
    /// Only with all of these labels.
    pub labels: Vec<String>,
    /// On whose behalf: what this owner holds is not in its own way.
    #[serde(default, skip_serializing_if = "Owner::is_nobody")]
    pub owner: Owner,
    /// Where the worker works, as far as it says so.
    #[serde(default, skip_serializing_if = "Workspace::is_unknown")]
    pub workspace: Workspace,
    /// Whether to queue for the named task if others hold what it needs, and how long the place lasts
    /// without a sign of life. The place is that of the first grant.
    #[serde(rename = "queue_ms", with = "millis::optional", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Duration>,
    /// The process that waits, where it is another than the one that the claim is to be tied to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<Evidence>,
    /// What to take a place in the queue for, as [`NoClaim::Queue`] said: then nothing is claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place_for: Option<TaskWait>,
}

impl ClaimAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        self.look_wide(0)
    }

    /// The same, further back in each section the more often all that was seen was taken.
    pub fn look_wide(&self, wider: usize) -> Scope {
        if let Some(ask) = self.as_ask() {
            return waits_scope(&ask);
        }
        let depth = DEPTHS[wider.min(DEPTHS.len() - 1)];
        let scope = match &self.task {
            Some(id) => {
                TaskScope { ids: vec![id.clone()], dependencies: true, ..TaskScope::default() }
            }
            None => {
                let pick = Pick {
                    section: self.section.clone(),
                    labels: self.labels.clone(),
                    depth: depth.max(self.grants.len()),
                    may_skip: true,
                    runner: self.runner,
                };
                TaskScope { pick: Some(pick), ..TaskScope::default() }
            }
        };
        Scope::Tasks(scope)
    }
}

/// A task that was handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claimed {
    /// The task as it is now.
    pub task: Task,
    /// The grant of its hold.
    pub grant: GrantId,
    /// Its token.
    pub token: Token,
    /// All that is held under the grant.
    pub resources: Vec<Resource>,
    /// When its lease ends unless it is renewed, by the store's time of day.
    #[serde(default)]
    pub expires_at: WallTime,
    /// How the claim came about. If the asker had claimed the task before, grant and token are those of
    /// that claim.
    #[serde(default)]
    pub reason: Reason,
}

/// Why no task was handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoClaim {
    /// The named task does not exist.
    NotFound,
    /// Nothing is ready to be taken.
    NothingReady,
    /// Something is ready, but held by others, or paused.
    AllTaken {
        /// What is in the way of the first.
        why: Vec<String>,
        /// The hold in the way, if there is one.
        by: Option<Box<HoldSnapshot>>,
        /// Whether looking further back could help.
        look_wider: bool,
    },
    /// The named task cannot be taken as it is.
    NotReady {
        /// What it waits for.
        why: Vec<String>,
    },
    /// The asker owns something, and so has to ask for its place in the queue by
    /// [`ClaimAsk::place_for`]: a wait that would never end is refused there.
    Queue(TaskWait),
    /// Waiting would never end.
    Deadlock(Cycle),
}

/// Hands out up to as many tasks as there are grants, first in order first.
pub fn claim(
    seen: &Snapshot,
    ask: &ClaimAsk,
    witness: &dyn Witness,
) -> (Decision, Result<Vec<Claimed>, NoClaim>) {
    if let Some(wait) = ask.as_ask() {
        return enter_queue(seen, &wait, witness);
    }
    if let Some(id) = &ask.task {
        match seen.task(id) {
            None => return (Decision::Nothing, Err(NoClaim::NotFound)),
            Some(task) if !task.is_ready(seen.wall) => {
                if let Some(answer) = claimed_before(seen, ask, task, witness) {
                    return answer;
                }
                let why = why_not(seen, task, witness);
                let mut draft = Draft::new(seen, witness);
                let is_held = task.status == Status::InProgress;
                let wants = is_held.then(|| vec![Want::exclusive(task.id.resource())]);
                if let Some(wait) = queue_up(&mut draft, seen, ask, task, wants) {
                    return (Decision::Nothing, Err(NoClaim::Queue(wait)));
                }
                return (draft.decide(ask.place()), Err(NoClaim::NotReady { why }));
            }
            Some(_) => {}
        }
    }
    // More may be shown than what was asked for: what a named task waits for is.
    let is_meant = |task: &&Task| match &ask.task {
        Some(id) => task.id == *id,
        None => {
            (ask.section.is_none() || ask.section == task.section)
                && ask.labels.iter().all(|label| task.labels.contains(label))
        }
    };
    let mut ready: Vec<&Task> =
        seen.tasks.iter().filter(is_meant).filter(|task| task.is_ready(seen.wall)).collect();
    if ready.is_empty() {
        return (look_again(seen, ask).unwrap_or(Decision::Nothing), Err(NoClaim::NothingReady));
    }
    let kept = kept_sections(seen, ask);
    ready.sort_by_key(|task| order(seen, task, &kept));

    let draft = Draft::new(seen, witness);
    let mut round =
        Round { seen, ask, draft, claimed: vec![], sections: vec![], taken_over: vec![] };
    let mut in_the_way = None;
    for task in ready {
        if round.claimed.len() == ask.grants.len() {
            break;
        }
        if let Err(obstacle) = round.try_one(task) {
            in_the_way.get_or_insert(obstacle);
        }
    }
    if round.claimed.is_empty() {
        let Obstacle { why, by, is_section_held } = in_the_way.unwrap_or_default();
        let look_wider = seen.more_to_pick;
        if let Some(task) = ask.task.as_ref().and_then(|id| seen.task(id)) {
            let wants = by.as_ref().and_then(|by| match by.hold.want.resource.kind() {
                Kind::Task => Some(vec![Want::exclusive(task.id.resource())]),
                Kind::Path if !is_section_held => Some(task_wants(task)),
                _ => None,
            });
            if let Some(wait) = queue_up(&mut round.draft, seen, ask, task, wants) {
                return (Decision::Nothing, Err(NoClaim::Queue(wait)));
            }
        }
        let decision = look_again(seen, ask).unwrap_or_else(|| round.draft.decide(ask.place()));
        return (decision, Err(NoClaim::AllTaken { why, by, look_wider }));
    }
    round.draft.require_durable();
    (round.draft.decide(None), Ok(round.claimed))
}

impl ClaimAsk {
    /// The grant under which the asker waits, if it does.
    pub(super) fn place(&self) -> Option<GrantId> {
        self.queue.and_then(|_| self.grants.first().copied())
    }
}

/// The task and its files.
fn task_wants(task: &Task) -> Vec<Want> {
    let mut wants = vec![Want::exclusive(task.id.resource())];
    let files = task.files.iter().filter_map(|glob| Resource::new(Kind::Path, glob).ok());
    for want in files.map(Want::exclusive) {
        // A task may name a file twice, and in different ways.
        if !wants.contains(&want) {
            wants.push(want);
        }
    }
    wants
}

/// Answers with the claim that the asker has already, and starts its leases anew: the same grant and
/// token, so that both claims are one.
fn claimed_before(
    seen: &Snapshot,
    ask: &ClaimAsk,
    task: &Task,
    witness: &dyn Witness,
) -> Option<(Decision, Result<Vec<Claimed>, NoClaim>)> {
    let claim = task.claim.as_ref().filter(|_| task.status == Status::InProgress)?;
    let resource = task.id.resource();
    let hold = seen.holds_of(claim.grant).find(|seen| seen.hold.want.resource == resource)?;
    let is_own = ask.owner.owns(&hold.hold) && ask.owner.covers(&hold.hold, &ask.holder);
    if !is_own || claim_state(seen, task, witness) != Some(ClaimState::Held) {
        return None;
    }
    let parts = claim.parts.iter().filter(|part| part.grant == claim.grant);
    let claimed = Claimed {
        task: task.clone(),
        grant: claim.grant,
        token: claim.token,
        resources: std::iter::once(resource)
            .chain(parts.map(|part| part.resource.clone()))
            .collect(),
        expires_at: later(seen.wall, ask.ttl),
        reason: Reason::AlreadyOwned,
    };
    let writes = renewed(seen, task, claim, ask.ttl);
    Some((Change { writes, ..Change::default() }.decide(), Ok(vec![claimed])))
}

/// Where tasks were left out because another transaction is taking them: the request to see them too,
/// as soon as that one has ended. It may have been undone, so that they are still there.
fn look_again(seen: &Snapshot, ask: &ClaimAsk) -> Option<Decision> {
    let Scope::Tasks(mut scope) = ask.scope() else { return None };
    scope.pick.as_mut().filter(|_| seen.skipped)?.may_skip = false;
    Some(Decision::Need(Scope::Tasks(scope)))
}

/// The sections that the runner keeps: they come first, so that they can be given up soon.
fn kept_sections<'a>(seen: &'a Snapshot, ask: &ClaimAsk) -> Vec<&'a str> {
    let holds = ask.runner.into_iter().flat_map(|runner| seen.holds_of(runner));
    let resources = holds.map(|seen| &seen.hold.want.resource);
    resources.filter(|held| held.kind() == Kind::Section).map(|held| held.name()).collect()
}

/// The order of claims: the sections that the runner keeps first, then the task's priority, the
/// priority and position of its section, its own position, and its age.
fn order(seen: &Snapshot, task: &Task, kept: &[&str]) -> (bool, u8, u8, i64, i64, u64) {
    let kept = task.section.as_deref().is_some_and(|section| kept.contains(&section));
    // A task without a section stands where one of a section does that was not described.
    let section = task.section.as_deref().map(|name| seen.section(name));
    let (section_priority, section_position) =
        section.map_or((PRIORITY_DEFAULT, 0), |section| (section.priority, section.position));
    (!kept, task.priority, section_priority, section_position, task.position, task.age)
}

#[derive(Default)]
struct Obstacle {
    why: Vec<String>,
    by: Option<Box<HoldSnapshot>>,
    /// Whether another runner has the task's section.
    is_section_held: bool,
}

impl Obstacle {
    fn because(why: String) -> Obstacle {
        Obstacle { why: vec![why], ..Obstacle::default() }
    }
}

struct Round<'a> {
    seen: &'a Snapshot,
    ask: &'a ClaimAsk,

    draft: Draft<'a>,
    claimed: Vec<Claimed>,
    /// The sections that the runner keeps and that tasks of this round lie in, with their tokens.
    sections: Vec<(Resource, Token)>,
    /// Why the holds ended that were in the way of the task that is looked at.
    taken_over: Vec<TakeoverReason>,
}

/// What a task needs.
struct Needs {
    /// The task, its files, and its section where that ends with the task.
    wants: Vec<Want>,
    /// Its section, where the runner keeps that from task to task.
    section: Option<Want>,
}

impl Round<'_> {
    fn try_one(&mut self, task: &Task) -> Result<(), Obstacle> {
        if let Some(section) = task.section.as_deref() {
            admit(self.seen, &self.seen.section(section))?;
        } else if paused(self.seen, EVERYTHING) {
            return Err(Obstacle::because("everything is paused".to_owned()));
        }
        let needs = self.needs(task);
        let section = needs.section.clone().filter(|want| self.kept(want).is_none());
        let all: Vec<Want> = needs.wants.iter().cloned().chain(section).collect();
        self.free(&all)?;
        self.take(task, needs);
        Ok(())
    }

    fn needs(&self, task: &Task) -> Needs {
        let mut wants = task_wants(task);
        let section =
            task.section.as_deref().and_then(|name| section_want(&self.seen.section(name)));
        match self.ask.runner {
            Some(_) => Needs { wants, section },
            None => {
                wants.extend(section);
                Needs { wants, section: None }
            }
        }
    }

    /// The token under which the runner has this section already.
    fn kept(&self, section: &Want) -> Option<Token> {
        let runner = self.ask.runner?;
        let of_this_round = self.sections.iter().find(|(name, _)| *name == section.resource);
        let before = || {
            let held = self.seen.holds_of(runner).find(|seen| {
                seen.hold.want.resource == section.resource && !seen.gone(self.draft.witness())
            });
            held.map(|seen| seen.hold.token)
        };
        of_this_round.map(|(_, token)| *token).or_else(before)
    }

    /// The place in the queue in which the asker waits for the named task.
    fn place(&self) -> Option<&WaiterSnapshot> {
        let grant = self.ask.grants.first()?;
        self.seen.waiters.iter().find(|seen| seen.waiter.grant == *grant)
    }

    /// Clears what no longer counts, and says what is in the way.
    fn free(&mut self, wants: &[Want]) -> Result<(), Obstacle> {
        let touching: Vec<&HoldSnapshot> = self
            .draft
            .holds()
            .filter(|seen| {
                wants.iter().any(|want| want.resource.overlaps(&seen.hold.want.resource))
            })
            .collect();
        self.taken_over =
            touching.into_iter().filter_map(|seen| self.draft.drop_if_gone(seen)).collect();
        let waiting: Vec<&WaiterSnapshot> =
            self.draft.waiters().filter(|seen| may_exclude(wants, &seen.waiter.wants)).collect();
        for seen in waiting {
            self.draft.drop_wait_if_gone(seen);
        }
        let others =
            || self.draft.holds().filter(|seen| !self.ask.owner.owns_or_inherits(&seen.hold));
        let held = others().map(|seen| &seen.hold.want);
        let place = self.place();
        let waited = earlier(&self.draft, place).into_iter().flat_map(|seen| &seen.waiter.wants);
        if compatible(wants, held.chain(waited).chain(self.draft.added())) {
            return Ok(());
        }
        let in_the_way = || {
            let touches = |held: &Resource| wants.iter().any(|want| want.resource.overlaps(held));
            others().filter(move |seen| touches(&seen.hold.want.resource))
        };
        let is_section_held =
            in_the_way().any(|seen| seen.hold.want.resource.kind() == Kind::Section);
        let by = in_the_way().next();
        Err(match by {
            Some(seen) => Obstacle {
                why: vec![format!(
                    "{} is held by {}",
                    seen.hold.want.resource, seen.hold.holder.label
                )],
                by: Some(Box::new(seen.redacted())),
                is_section_held,
            },
            None => Obstacle::because("other requests are ahead in the queue".to_owned()),
        })
    }

    fn take(&mut self, task: &Task, needs: Needs) {
        if let Some(place) = self.place() {
            let waiter = place.waiter.clone();
            self.draft.end_wait(&waiter);
        }
        let grant = self.ask.grants[self.claimed.len()];
        let token = Token(self.seen.next + self.claimed.len() as u64);
        let resources = needs.wants.iter().map(|want| want.resource.clone()).collect();
        let mut parts = parts_of(&needs.wants[1..], grant, token);
        for want in needs.wants {
            self.hold(want, grant, token, self.ask.ttl, &task.title);
        }
        if let (Some(section), Some(runner)) = (needs.section, self.ask.runner) {
            let resource = section.resource.clone();
            let token = self.keep_section(section, runner, token, &task.title);
            parts.push(Part { resource, grant: runner, token });
        }
        let reason = self.reason(task);
        let mut task = task.clone();
        task.status = after(task.status, Verb::Claim).unwrap_or(Status::InProgress);
        task.attempts += 1;
        task.not_before = None;
        let claim = Claim { by: self.ask.holder.label.clone(), grant, token, parts };
        task.begin_try(&claim, self.seen.wall, self.ask.workspace.of(&self.ask.holder));
        task.claim = Some(claim);
        task.claimed_at = Some(self.seen.wall);
        task.started_at = None;
        task.finished_at = None;
        task.finished_by = None;
        task.finished_claim = None;
        self.draft.write(Write::Task(Box::new(task.clone())));
        let expires_at = later(self.seen.wall, self.ask.ttl);
        self.claimed.push(Claimed { task, grant, token, resources, expires_at, reason });
    }

    /// How the claim of this task came about. The hold of a former worker has usually been removed when
    /// the task was taken back; then the last try says how it ended.
    fn reason(&self, task: &Task) -> Reason {
        let last_try = task.tries.last().and_then(|last| last.outcome);
        let of_worker = match last_try {
            Some(TryOutcome::Died) => Some(TakeoverReason::Died),
            Some(TryOutcome::Lapsed) => Some(TakeoverReason::Lapsed),
            _ => None,
        };
        Reason::of_takeovers(self.taken_over.iter().copied().chain(of_worker))
    }

    fn hold(&mut self, want: Want, grant: GrantId, token: Token, ttl: Duration, title: &str) {
        self.draft.add_hold(Hold {
            want,
            grant,
            token,
            holder: self.ask.holder.clone(),
            operation: Some(title.to_owned()),
            ttl,
            slot: None,
        });
    }

    /// Takes the section for the runner, or starts the lease anew by which it has it already: the
    /// section must last at least as long as the task in it. Says under which token.
    fn keep_section(&mut self, want: Want, runner: GrantId, token: Token, title: &str) -> Token {
        let ttl = self.ask.section_ttl.max(self.ask.ttl);
        let resource = want.resource.clone();
        let Some(kept) = self.kept(&want) else {
            self.hold(want, runner, token, ttl, title);
            self.sections.push((resource, token));
            return token;
        };
        let of_this_round = self.sections.iter().any(|(name, _)| *name == resource);
        if !of_this_round {
            let ttl = self.seen.holds_of(runner).fold(ttl, |ttl, seen| {
                if seen.hold.want.resource == resource { ttl.max(seen.left) } else { ttl }
            });
            self.draft.write(Write::Extend {
                resource: resource.clone(),
                grant: runner,
                ttl,
                operation: None,
            });
            self.sections.push((resource, kept));
        }
        kept
    }
}

/// How a section is held by one who works in it; not at all where any number may.
pub(super) fn section_want(section: &Section) -> Option<Want> {
    let mode = match section.max_runners? {
        1 => Mode::Exclusive,
        of => Mode::Slot { of },
    };
    Some(Want { resource: section.resource().ok()?, mode })
}

fn paused(seen: &Snapshot, name: &str) -> bool {
    seen.sections.iter().any(|seen| seen.section.name == name && seen.section.paused)
}

/// Whether tasks of this section are handed out now.
fn admit(seen: &Snapshot, section: &Section) -> Result<(), Obstacle> {
    if section.paused || paused(seen, EVERYTHING) {
        return Err(Obstacle::because(format!("section {} is paused", section.name)));
    }
    let unfinished = section
        .depends_on
        .iter()
        .find(|name| seen.sections.iter().any(|seen| seen.section.name == **name && seen.open > 0));
    match unfinished {
        Some(name) => Err(Obstacle::because(format!(
            "section {} waits for section {name} to be done",
            section.name
        ))),
        None => Ok(()),
    }
}

/// What a task waits for, one sentence each; nothing if it could be taken now.
pub fn why_not(seen: &Snapshot, task: &Task, witness: &dyn Witness) -> Vec<String> {
    let mut why = Vec::new();
    match task.status {
        Status::Pending => {}
        Status::InProgress => {
            let by = task.claim.as_ref().map_or("an unknown worker", |claim| &claim.by);
            why.push(match claim_state(seen, task, witness) {
                Some(ClaimState::Lost { part }) => {
                    format!("its worker {by} lost {part}, and it has not been taken back yet")
                }
                Some(ClaimState::Lapsed { part }) => {
                    format!("its worker {by} died or let the lease of {part} lapse")
                }
                Some(ClaimState::Held) | None => format!("it is being worked on by {by}"),
            });
        }
        status => why.push(match task.error.as_deref().filter(|_| status == Status::Blocked) {
            Some(reason) => format!("it is {status}: {reason}"),
            None => format!("it is {status}"),
        }),
    }
    for dependency in &task.depends_on {
        match seen.task(dependency) {
            Some(other) if other.status.satisfies() => {}
            Some(other) => {
                why.push(format!(
                    "it waits for {dependency} ({:?}), which is {}",
                    other.title, other.status
                ));
            }
            None => why.push(format!("it waits for {dependency}, which is not there")),
        }
    }
    if task.not_before.is_some_and(|time| time > seen.wall) {
        why.push("its time has not come".to_owned());
    }
    if let Some(section) = task.section.as_deref() {
        let section = seen.section(section);
        why.extend(admit(seen, &section).err().into_iter().flat_map(|obstacle| obstacle.why));
        if let Some(want) = section_want(&section) {
            why.extend(held(seen, &want, witness));
        }
    } else if paused(seen, EVERYTHING) {
        why.push("everything is paused".to_owned());
    }
    if task.status == Status::Pending {
        let files = task.files.iter().filter_map(|glob| Resource::new(Kind::Path, glob).ok());
        for resource in files.chain([task.id.resource()]) {
            why.extend(held(seen, &Want::exclusive(resource), witness));
        }
    }
    why
}

fn held(seen: &Snapshot, want: &Want, witness: &dyn Witness) -> Option<String> {
    let live = || seen.holds.iter().filter(|seen| !seen.gone(witness));
    if compatible(
        std::slice::from_ref(want),
        live().map(|seen| &seen.hold.want).collect::<Vec<_>>().into_iter(),
    ) {
        return None;
    }
    let holder = live().find(|seen| seen.hold.want.resource.overlaps(&want.resource))?;
    Some(format!("{} is held by {}", holder.hold.want.resource, holder.hold.holder.label))
}

/// Used by the rules that end a claim: ends the holds of the task and its files with this event.
/// Says whether the hold of the task was among them; an operator may have broken it before.
pub(super) fn end_holds(
    draft: &mut Draft<'_>,
    grant: GrantId,
    task: &TaskId,
    kind: &EventKind,
) -> bool {
    let holds: Vec<&HoldSnapshot> = draft.holds().filter(|seen| seen.hold.grant == grant).collect();
    let mut ended_task = false;
    for seen in holds {
        let is_task = seen.hold.want.resource == task.resource();
        ended_task |= is_task;
        draft.drop_hold(seen, if is_task { kind.clone() } else { EventKind::Released });
    }
    ended_task
}

/// Ends the hold of a section that a worker keeps, unless another of its claims needs it. Says
/// whether it did. `ended` names the tasks whose claims are over.
pub(super) fn end_kept_section(
    seen: &Snapshot,
    draft: &mut Draft<'_>,
    claim: &Claim,
    ended: &dyn Fn(&TaskId) -> bool,
) -> bool {
    let Some((section, runner)) = kept_section(claim) else { return false };
    let is_needed = seen.tasks.iter().any(|other| {
        let needs = |claim: &Claim| keeps(claim, section, runner);
        !ended(&other.id) && other.claim.as_ref().is_some_and(needs)
    });
    if is_needed {
        return false;
    }
    let of_it =
        |seen: &&HoldSnapshot| seen.hold.grant == runner && seen.hold.want.resource == *section;
    let holds: Vec<&HoldSnapshot> = draft.holds().filter(of_it).collect();
    for hold in &holds {
        let reason = gone_reason(hold, draft.witness());
        draft.drop_hold(hold, reason.map_or(EventKind::Released, TakeoverReason::event));
    }
    !holds.is_empty()
}
