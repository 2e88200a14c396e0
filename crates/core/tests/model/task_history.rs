//! Takes each step with tasks in the world and in the list, and compares them.

use super::task_list::{End, FILES, INTERRUPTED, ListedTask, SECTIONS, TaskList, TaskVerb, places};
use super::task_steps::{TaskStep, WORKERS};
use crate::support::tasks::{holder, id, other_ask, resource, runner};
use crate::support::{StoredHold, View, World, evidence_of, grant_id};
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::act::{Acquire, CallOffClaim, LeaveIdleSections, Release};
use tenure_core::handover::TRIES_MAX;
use tenure_core::rules::tasks::{
    AddAsk, ClaimAsk, EVERYTHING, Finish, FinishAsk, Finished, Heartbeat, HeartbeatAsk,
    ManualChange, NewTask, NoClaim, SectionChange,
};
use tenure_core::{
    Ask, BreakAsk, GrantId, Kind, Mode, Outcome, Owner, Proof, ReleaseAsk, Resource, Status, Task,
    TaskId, Token, Try,
};

const TTL: Duration = Duration::from_millis(30);
const SECTION_TTL: Duration = Duration::from_millis(60);

/// How often a task may be taken back.
const RECOVERIES_MAX: u32 = 2;

/// The process of the one who takes files without a task, until it dies.
const OTHER: u32 = 10_000;

/// A claim that was made, whatever became of it.
#[derive(Clone, Debug)]
struct MadeClaim {
    task: usize,
    grant: GrantId,
    token: Token,
    runner: Option<GrantId>,
    label: String,
    /// What it took: each with its grant and token.
    parts: Vec<(Resource, GrantId, Token)>,
}

pub struct TaskHistory {
    pub world: World,
    pub list: TaskList,
    claims: Vec<MadeClaim>,
    /// The process that now plays each part.
    processes: [u32; WORKERS],
    other: u32,
    others_grants: Vec<GrantId>,
    next_grant: u32,
}

fn name(task: usize) -> String {
    format!("t{task}")
}

fn number(id: &TaskId) -> usize {
    id.as_str()[1..].parse().unwrap()
}

fn pick_from<T>(pick: &Index, from: &[T]) -> Option<usize> {
    (!from.is_empty()).then(|| pick.index(from.len()))
}

impl TaskHistory {
    pub fn new(view: View) -> TaskHistory {
        let mut world = World::new(view);
        world.recoveries_max = RECOVERIES_MAX;
        TaskHistory {
            list: TaskList::new(world.now_ms),
            world,
            claims: vec![],
            processes: std::array::from_fn(|worker| worker as u32 + 1),
            other: OTHER,
            others_grants: vec![],
            next_grant: 1,
        }
    }

    pub fn take(&mut self, step: &TaskStep) {
        match step {
            TaskStep::Add { .. } => self.add(step),
            TaskStep::Claim { worker, count, keeps, section } => {
                let section = section.map(|section| SECTIONS[section].to_owned());
                let ask = ClaimAsk { section, ..self.claim_ask(*worker, *count, *keeps) };
                self.claim(ask);
            }
            TaskStep::ClaimNamed { worker, task, keeps } => {
                if let Some(task) = pick_from(task, &self.list.tasks) {
                    let ask = self.claim_ask(*worker, 1, *keeps);
                    self.claim(ClaimAsk { task: Some(id(&name(task))), ..ask });
                }
            }
            TaskStep::Finish { claim, end, by_label } => {
                if let Some(claim) = pick_from(claim, &self.claims) {
                    self.finish(claim, *end, *by_label);
                }
            }
            TaskStep::Heartbeat(pick) => {
                if let Some(claim) = pick_from(pick, &self.claims) {
                    self.heartbeat(claim);
                }
            }
            TaskStep::CallOff(pick) => {
                if let Some(claim) = pick_from(pick, &self.claims) {
                    self.call_off(claim);
                }
            }
            TaskStep::Edit(pick, verb) => {
                if let Some(task) = pick_from(pick, &self.list.tasks) {
                    self.edit(task, *verb);
                }
            }
            TaskStep::Pause { section, paused } => {
                self.world.pause(SECTIONS[*section], *paused);
                self.list.sections[*section].paused = *paused;
            }
            TaskStep::PauseAll(paused) => {
                self.world.pause(EVERYTHING, *paused);
                self.list.all_paused = *paused;
            }
            TaskStep::Limit { section, max_runners } => {
                let change =
                    SectionChange { max_runners: Some(*max_runners), ..SectionChange::default() };
                self.world.change_section(SECTIONS[*section], change);
                self.list.sections[*section].max_runners = *max_runners;
            }
            TaskStep::Depend(depends) => self.depend(*depends),
            TaskStep::Break(pick) => self.break_one(pick),
            TaskStep::Take { file, queues } => self.take_file(*file, *queues),
            TaskStep::GiveBack => self.give_back(),
            TaskStep::Kill { worker } => {
                self.world.kill(self.processes[*worker]);
                self.processes[*worker] += WORKERS as u32;
            }
            TaskStep::KillOther => {
                self.world.kill(self.other);
                self.other += 1;
                self.others_grants.clear();
            }
            TaskStep::Pass { ms } => self.pass(*ms),
            TaskStep::Recover => self.recover(),
            TaskStep::LeaveIdle { worker } => self.leave_idle(*worker),
        }
        self.check();
    }

    fn pass(&mut self, ms: u64) {
        self.world.pass_ms(ms);
        self.list.now_ms = self.world.now_ms;
    }

    fn runner(&self, worker: usize) -> GrantId {
        runner(&"w".repeat(self.processes[worker] as usize))
    }

    fn add(&mut self, step: &TaskStep) {
        let TaskStep::Add { section, files, priority, after, max_attempts } = step else { return };
        let number = self.list.tasks.len();
        let mut after: Vec<usize> =
            after.iter().filter_map(|pick| pick_from(pick, &self.list.tasks)).collect();
        after.sort_unstable();
        after.dedup();
        let task = NewTask {
            section: section.map(|section| SECTIONS[section].to_owned()),
            files: files.iter().map(|file| FILES[*file].0.to_owned()).collect(),
            priority: *priority,
            depends_on: after.iter().map(|task| id(&name(*task))).collect(),
            max_attempts: *max_attempts,
            ..NewTask::new(id(&name(number)), "t")
        };
        self.world.act(&AddAsk { tasks: vec![task], by: "me".into() }).unwrap();
        self.list.tasks.push(ListedTask {
            section: *section,
            files: files.clone(),
            priority: *priority,
            after,
            max_attempts: *max_attempts,
            status: Status::Pending,
            attempts: 0,
            recoveries: 0,
            not_before_ms: None,
            claim: None,
            finished: None,
            tries: vec![],
        });
    }

    fn claim_ask(&mut self, worker: usize, count: usize, keeps: bool) -> ClaimAsk {
        let first = self.next_grant;
        self.next_grant += count as u32;
        ClaimAsk {
            owner: Owner::default(),
            grants: (first..self.next_grant).map(grant_id).collect(),
            runner: keeps.then(|| self.runner(worker)),
            holder: holder(&format!("w{worker}"), Some(self.processes[worker])),
            ttl: TTL,
            section_ttl: SECTION_TTL,
            task: None,
            section: None,
            labels: vec![],
            workspace: Default::default(),
            queue: None,
            presence: None,
            place_for: None,
        }
    }

    fn live(&self) -> impl Iterator<Item = &StoredHold> {
        self.world.holds.iter().filter(|stored| self.world.hold_counts(stored))
    }

    /// Whether the files, the section and the task itself are free for this runner.
    fn is_free(&self, task: usize, runner: Option<GrantId>) -> bool {
        let listed = &self.list.tasks[task];
        let wanted = listed.files.iter().fold(0, |all, file| all | FILES[*file].1);
        let queue = self.world.waiters.iter().filter(|stored| self.world.waiter_counts(stored));
        let waited = queue.flat_map(|stored| &stored.waiter.wants);
        let held = self.live().map(|stored| &stored.hold.want);
        let paths = held.chain(waited).map(|want| &want.resource);
        let mut paths = paths.filter(|resource| resource.kind() == Kind::Path);
        let own = resource(&format!("task:{}", name(task)));
        !paths.any(|path| places(path.name()) & wanted != 0)
            && !self.live().any(|stored| stored.hold.want.resource == own)
            && listed.section.is_none_or(|section| self.has_room(section, runner))
    }

    fn has_room(&self, section: usize, runner: Option<GrantId>) -> bool {
        let Some(max) = self.list.sections[section].max_runners else { return true };
        let resource = resource(&format!("section:{}", SECTIONS[section]));
        let holders: Vec<&StoredHold> =
            self.live().filter(|stored| stored.hold.want.resource == resource).collect();
        let is_kept = holders.iter().any(|stored| Some(stored.hold.grant) == runner);
        let modes = holders.iter().map(|stored| stored.hold.want.mode);
        let least = modes.map(|mode| match mode {
            Mode::Slot { of } => of as usize,
            _ => 1,
        });
        is_kept || holders.len() < least.chain([max as usize]).min().unwrap()
    }

    fn is_takeable(&self, task: usize, ask: &ClaimAsk) -> bool {
        let listed = &self.list.tasks[task];
        let section = listed.section.map(|section| SECTIONS[section]);
        let is_wanted = ask.section.as_deref().is_none_or(|wanted| section == Some(wanted))
            && ask.task.as_ref().is_none_or(|wanted| number(wanted) == task);
        is_wanted
            && self.list.is_ready(listed)
            && self.list.admits(listed.section)
            && self.is_free(task, ask.runner)
    }

    fn claim(&mut self, ask: ClaimAsk) {
        let takeable: Vec<usize> =
            (0..self.list.tasks.len()).filter(|task| self.is_takeable(*task, &ask)).collect();
        let mine: Vec<usize> = ask.runner.map_or(vec![], |runner| self.sections_of(runner));
        let claimed = match self.world.try_claim(ask.clone()) {
            Ok(claimed) => claimed,
            Err(why) => {
                assert_eq!(takeable, [0; 0], "overlooked, for {why:?}");
                self.check_refusal(&ask, &why);
                return;
            }
        };
        assert!(!claimed.is_empty() && claimed.len() <= ask.grants.len());
        for (claimed, grant) in claimed.iter().zip(&ask.grants) {
            let task = number(&claimed.task.id);
            assert!(takeable.contains(&task), "{task} was not to be had");
            assert_eq!(claimed.grant, *grant);
            self.check_order(task, &takeable, &mine);
            let claim = claimed.task.claim.as_ref().unwrap();
            let own = (claimed.task.id.resource(), claimed.grant, claimed.token);
            let parts = claim.parts.iter().map(|p| (p.resource.clone(), p.grant, p.token));
            self.claims.push(MadeClaim {
                task,
                grant: claimed.grant,
                token: claimed.token,
                runner: ask.runner,
                label: ask.holder.label.clone(),
                parts: std::iter::once(own).chain(parts).collect(),
            });
            let number = self.claims.len() - 1;
            self.list.claim(task, number);
            self.check_parts(number);
        }
    }

    /// A task that could have been taken is not passed for a later one of its section; where all is
    /// shown, not for any.
    fn check_order(&self, task: usize, takeable: &[usize], mine: &[usize]) {
        let place = |task: usize| {
            let listed = &self.list.tasks[task];
            let is_mine = listed.section.is_some_and(|section| mine.contains(&section));
            (!is_mine, listed.priority, task)
        };
        let is_pending = |task: usize| self.list.tasks[task].status == Status::Pending;
        for other in takeable.iter().filter(|other| is_pending(**other)) {
            let same = self.list.tasks[*other].section == self.list.tasks[task].section;
            let is_shown = same || self.world.view == View::Whole;
            // What this claim has taken meanwhile may be in the way.
            let is_free = self.is_free(*other, None);
            assert!(!is_shown || !is_free || place(task) <= place(*other), "{other} before {task}");
        }
    }

    /// The sections that a runner keeps.
    fn sections_of(&self, runner: GrantId) -> Vec<usize> {
        let held = self.world.holds.iter().filter(|stored| stored.hold.grant == runner);
        let sections = held.map(|stored| &stored.hold.want.resource);
        let sections = sections.filter(|resource| resource.kind() == Kind::Section);
        let number = |name: &str| SECTIONS.iter().position(|section| *section == name);
        sections.filter_map(|resource| number(resource.name())).collect()
    }

    /// The claim took the task, its files and its section, and nothing else.
    fn check_parts(&self, claim: usize) {
        let made = &self.claims[claim];
        let task = &self.list.tasks[made.task];
        let files = task.files.iter().map(|file| format!("path:{}", FILES[*file].0));
        let limit =
            task.section.filter(|section| self.list.sections[*section].max_runners.is_some());
        let section = limit.map(|section| format!("section:{}", SECTIONS[section]));
        let expected: BTreeSet<String> =
            files.chain(section).chain([format!("task:{}", name(made.task))]).collect();
        let parts: BTreeSet<String> = made.parts.iter().map(|part| part.0.to_string()).collect();
        assert_eq!(parts, expected, "the parts of {made:?}");
        assert!(self.is_whole(claim) && self.is_live(claim), "{made:?}");
    }

    fn check_refusal(&self, ask: &ClaimAsk, why: &NoClaim) {
        let is_ready = |task: &ListedTask| self.list.is_ready(task);
        let wanted = |task: &&ListedTask| {
            let section = task.section.map(|section| SECTIONS[section]);
            ask.section.as_deref().is_none_or(|wanted| section == Some(wanted))
        };
        let named = ask.task.as_ref().map(|task| &self.list.tasks[number(task)]);
        match (why, named) {
            (NoClaim::NotReady { why }, Some(task)) => assert!(!is_ready(task) && !why.is_empty()),
            (NoClaim::AllTaken { why, .. }, Some(task)) => {
                assert!(is_ready(task) && !why.is_empty());
            }
            (NoClaim::NothingReady, None) => {
                assert!(!self.list.tasks.iter().filter(wanted).any(is_ready));
            }
            (NoClaim::AllTaken { why, look_wider, .. }, None) => {
                assert!(self.list.tasks.iter().filter(wanted).any(is_ready) && !why.is_empty());
                assert!(!look_wider, "it looked as far back as it could");
            }
            other => panic!("{other:?}"),
        }
    }

    fn hold_of(&self, part: &(Resource, GrantId, Token)) -> Option<&StoredHold> {
        let is_it = |stored: &&StoredHold| {
            let hold = &stored.hold;
            (&hold.want.resource, hold.grant, hold.token) == (&part.0, part.1, part.2)
        };
        self.world.holds.iter().find(is_it)
    }

    /// Whether all parts of this claim are there, lapsed or not.
    fn is_whole(&self, claim: usize) -> bool {
        self.claims[claim].parts.iter().all(|part| self.hold_of(part).is_some())
    }

    fn is_live(&self, claim: usize) -> bool {
        let counts = |stored: &StoredHold| self.world.hold_counts(stored);
        self.claims[claim].parts.iter().all(|part| self.hold_of(part).is_some_and(counts))
    }

    fn is_current(&self, claim: usize) -> bool {
        self.list.tasks[self.claims[claim].task].claim == Some(claim)
    }

    fn proof(&self, claim: usize, by_label: bool) -> (Proof, Option<Token>) {
        let made = &self.claims[claim];
        match by_label {
            true => (Proof::Label(made.label.clone()), Some(made.token)),
            false => (Proof::Grant(made.grant), None),
        }
    }

    fn finish(&mut self, claim: usize, end: End, by_label: bool) {
        let made = self.claims[claim].clone();
        let (proof, token) = self.proof(claim, by_label);
        let finish = match end {
            End::Complete => Finish::Complete { result: None },
            End::FailRetry => Finish::Fail { reason: "x".into(), retry: true },
            End::FailFinally => Finish::Fail { reason: "x".into(), retry: false },
            End::Review => Finish::Review { result: None },
            End::Snooze { ms } => Finish::Snooze { pause: Duration::from_millis(ms) },
            End::Release => Finish::Release,
        };
        let task = id(&name(made.task));
        let (runner, held) = (made.runner, self.world.held());
        let counts = self.is_current(claim) && self.is_whole(claim);
        let repeats = self.list.is_repeated(made.task, claim, end);
        let answer = self.world.finish_by(FinishAsk { task, proof, token, runner, finish });
        match &answer {
            Finished::Done { repeated: true, .. } => assert!(repeats, "{answer:?}"),
            Finished::Done { .. } => {
                assert!(counts && !repeats, "a finish that does not count: {answer:?}");
                self.list.finish(made.task, end);
                let left = |part: &&(Resource, GrantId, Token)| {
                    part.1 == made.grant && self.hold_of(part).is_some()
                };
                assert_eq!(made.parts.iter().find(left), None, "still held");
            }
            Finished::ClaimLost { .. } => assert!(self.is_current(claim) && !counts),
            Finished::NotYours(_) => assert!(!counts && !repeats, "{answer:?}"),
            Finished::NotFound => panic!("{answer:?}"),
        }
        if !matches!(answer, Finished::Done { repeated: false, .. }) {
            assert_eq!(self.world.held(), held, "nothing changes");
        }
    }

    fn heartbeat(&mut self, claim: usize) {
        let (proof, token) = self.proof(claim, true);
        let task = id(&name(self.claims[claim].task));
        let is_heard = self.is_current(claim) && self.is_live(claim);
        let answer = self.world.act(&HeartbeatAsk { task, proof, token, ttl: None });
        assert_eq!(matches!(answer, Heartbeat::Renewed { .. }), is_heard, "{answer:?}");
        if is_heard {
            let until = self.world.now_ms + TTL.as_millis() as u64;
            let parts = self.claims[claim].parts.iter().map(|part| self.hold_of(part).unwrap());
            assert!(parts.into_iter().all(|stored| stored.deadline_ms >= until));
        }
    }

    fn call_off(&mut self, claim: usize) {
        let made = self.claims[claim].clone();
        let is_current = self.is_current(claim);
        let act = CallOffClaim { grants: vec![made.grant], runner: made.runner };
        let handed_back = self.world.act(&act);
        assert_eq!(handed_back.len(), usize::from(is_current));
        if is_current {
            self.list.call_off(made.task);
        }
    }

    fn edit(&mut self, task: usize, verb: TaskVerb) {
        let change = match verb {
            TaskVerb::Approve => ManualChange::Approve,
            TaskVerb::Reject => ManualChange::Reject { feedback: "no".into() },
            TaskVerb::Cancel => ManualChange::Cancel,
            TaskVerb::Retry => ManualChange::Retry,
            TaskVerb::Skip => ManualChange::Skip,
        };
        let answer = self.world.edit(&name(task), change);
        assert_eq!(answer.is_ok(), self.list.edit(task, verb), "{answer:?}");
    }

    fn depend(&mut self, depends: bool) {
        // A section that is waited for must be there.
        self.world.pause(SECTIONS[0], self.list.sections[0].paused);
        let first = depends.then(|| SECTIONS[0].to_owned());
        let depends_on = Some(first.into_iter().collect());
        let change = SectionChange { depends_on, ..SectionChange::default() };
        self.world.change_section(SECTIONS[2], change);
        self.list.sections[2].after = depends.then_some(0);
    }

    fn break_one(&mut self, pick: &Index) {
        let Some(index) = pick_from(pick, &self.world.holds) else { return };
        let hold = &self.world.holds[index].hold;
        let (resource, token) = (hold.want.resource.clone(), hold.token);
        self.world.act(&BreakAsk { resource, token, by: "operator".into(), reason: "x".into() });
    }

    fn take_file(&mut self, file: usize, queues: bool) {
        let grant = grant_id(self.next_grant);
        self.next_grant += 1;
        let ask = Ask {
            grant,
            ttl: TTL,
            queue: queues.then_some(TTL),
            holder: holder("other", None).with_evidence(evidence_of(self.other)),
            ..other_ask(&format!("path:{}", FILES[file].0))
        };
        let outcome = self.world.act(&Acquire { ask, ticket: None, whole_queues: false });
        if matches!(outcome, Outcome::Granted(_)) {
            self.others_grants.push(grant);
        }
    }

    fn give_back(&mut self) {
        for grant in std::mem::take(&mut self.others_grants) {
            let ask = ReleaseAsk { proof: Proof::Grant(grant), resources: None, lost: false };
            self.world.act(&Release { at: None, ask });
        }
    }

    fn recover(&mut self) {
        let lost: Vec<usize> = (0..self.list.tasks.len())
            .filter(|task| self.list.tasks[*task].claim.is_some_and(|claim| !self.is_live(claim)))
            .collect();
        let recovered = self.world.recover();
        let recovered: Vec<usize> = recovered.iter().map(|task| number(&task.id)).collect();
        assert_eq!(recovered, lost, "which were taken back");
        for task in lost {
            self.list.take_back(task, RECOVERIES_MAX);
        }
        self.check_nothing_is_held_for_nothing();
    }

    /// After a recovery every task or file that is held under a claim belongs to one that stands.
    fn check_nothing_is_held_for_nothing(&self) {
        let current = self.claims.iter().enumerate().filter(|(claim, _)| self.is_current(*claim));
        let grants: BTreeSet<GrantId> = current.map(|(_, made)| made.grant).collect();
        let of_claims: BTreeSet<GrantId> = self.claims.iter().map(|made| made.grant).collect();
        for stored in &self.world.holds {
            let grant = stored.hold.grant;
            assert!(!of_claims.contains(&grant) || grants.contains(&grant), "{:?}", stored.hold);
        }
    }

    fn leave_idle(&mut self, worker: usize) {
        let runner = self.runner(worker);
        let kept = |history: &TaskHistory| -> Vec<usize> {
            let of_runner = |stored: &&StoredHold| stored.hold.grant == runner;
            let held = history.world.holds.iter().filter(of_runner);
            let names = held.map(|stored| stored.hold.want.resource.name().to_owned());
            names.filter_map(|name| SECTIONS.iter().position(|one| *one == name)).collect()
        };
        let is_busy = |section: &usize| {
            let of_it = |task: &&ListedTask| task.section == Some(*section);
            let needs = |claim: usize| {
                let parts = &self.claims[claim].parts;
                let name = SECTIONS[*section];
                parts.iter().any(|part| part.1 == runner && part.0.name() == name)
            };
            let is_mine = |task: &ListedTask| task.claim.is_some_and(needs);
            let mut tasks = self.list.tasks.iter().filter(of_it);
            tasks.any(|task| self.list.is_ready(task) || is_mine(task))
        };
        let expected: Vec<usize> = kept(self).into_iter().filter(is_busy).collect();
        self.world.act(&LeaveIdleSections { runner });
        assert_eq!(kept(self), expected, "the sections that are kept");
    }

    /// The list and the records say the same of every task, and no two have the same place.
    fn check(&self) {
        for (number, listed) in self.list.tasks.iter().enumerate() {
            let task: &Task = self.world.task(&name(number));
            let not_before = listed.not_before_ms.map(|ms| tenure_core::WallTime(ms as i64));
            let found = (task.status, task.attempts, task.recoveries, task.not_before);
            let expected = (listed.status, listed.attempts, listed.recoveries, not_before);
            assert_eq!(found, expected, "{number}");
            assert_eq!(task.unmet as usize, self.list.unmet(listed), "{number}");
            let claim = listed.claim.map(|claim| self.claims[claim].grant);
            assert_eq!(task.claim.as_ref().map(|claim| claim.grant), claim, "{number}");
            let finished = listed.finished.map(|claim| self.claims[claim].grant);
            assert_eq!(task.finished_claim.as_ref().map(|claim| claim.grant), finished, "{number}");
            let tries = listed.tries.iter().skip(listed.tries.len().saturating_sub(TRIES_MAX));
            let outcomes: Vec<Option<&str>> = task.tries.iter().map(outcome).collect();
            assert_eq!(outcomes, tries.copied().collect::<Vec<_>>(), "{number}");
        }
        let mut taken: Vec<(GrantId, u8)> = Vec::new();
        let paths = self.live().filter(|stored| stored.hold.want.resource.kind() == Kind::Path);
        for stored in paths {
            let (grant, places) = (stored.hold.grant, places(stored.hold.want.resource.name()));
            let is_clear =
                taken.iter().all(|(other, theirs)| *other == grant || places & theirs == 0);
            assert!(is_clear, "{:?} is held by two", stored.hold.want);
            taken.push((grant, places));
        }
    }

    /// Whatever happened, when the others are gone and nothing is paused, everything is done that
    /// can be done: no task is overlooked for good.
    pub fn finish_everything(mut self) {
        self.take(&TaskStep::KillOther);
        self.take(&TaskStep::PauseAll(false));
        self.take(&TaskStep::Depend(false));
        for section in 0..SECTIONS.len() {
            self.take(&TaskStep::Pause { section, paused: false });
        }
        for worker in 0..WORKERS {
            self.take(&TaskStep::Kill { worker });
        }
        self.take(&TaskStep::Recover);
        // As many rounds as there are tasks are enough: each but the last finishes one.
        for _ in 0..=self.list.tasks.len() {
            // Longer than any task is put off.
            self.pass(60_000);
            let before = self.claims.len();
            self.take(&TaskStep::Claim { worker: 0, count: 3, keeps: true, section: None });
            for claim in before..self.claims.len() {
                self.finish(claim, End::Complete, false);
                self.check();
            }
        }
        for (number, task) in self.list.tasks.iter().enumerate() {
            let is_possible = self.list.unmet(task) == 0;
            assert!(task.status != Status::Pending || !is_possible, "{number} was overlooked");
        }
    }
}

/// How a try ended, in the model's words.
fn outcome(one: &Try) -> Option<&'static str> {
    let outcome = one.outcome?;
    Some(if outcome.is_interrupted() { INTERRUPTED } else { outcome.word() })
}
