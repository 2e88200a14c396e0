//! Random programs: sequences of steps that one seed decides.

use std::time::Duration;
use tenure::core::act::{DeleteTasks, PutSection};
use tenure::core::rules::tasks::{
    AddAsk, AddNote, ClaimAsk, EditAsk, Finish, ManualChange, NewTask, TaskChange,
};
use tenure::core::{
    Ask, GrantId, Holder, Mode, Owner, Resource, Scope, Section, Status, TaskId, Want,
};
use tenure::store::{Query, TaskFilter};

/// One thing that a program does. A grant names an earlier request or claim, whose token each store
/// remembers for itself.
#[derive(Clone, Debug)]
pub enum Step {
    Acquire(Ask),
    AskAgain(GrantId),
    Leave(GrantId),
    CallOff(GrantId),
    Release(GrantId),
    ReleaseByLabel(String),
    Renew(GrantId),
    Break(GrantId),
    Verify(GrantId),
    Add(AddAsk),
    Claim {
        ask: ClaimAsk,
        wider: usize,
    },
    CallOffClaim(GrantId),
    Start(GrantId),
    Heartbeat(GrantId),
    Describe(GrantId),
    Finish(GrantId, Finish),
    FinishAll(Vec<(GrantId, Finish)>),
    Edit(EditAsk),
    Note(AddNote),
    Delete(DeleteTasks),
    PutSection(PutSection),
    Recover,
    Reap,
    LeaveIdleSections(GrantId),
    Query(Query),
    /// Time passes, for stores whose clock a test can move.
    Pass(Duration),
}

/// Random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of these names.
    fn name(&mut self, from: &[&'static str]) -> &'static str {
        self.pick::<&'static str>(from)
    }

    /// One of the newest of these.
    fn recent<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let back = self.below(from.len().min(8));
        from.len().checked_sub(1 + back).map(|index| from[index])
    }
}

const WORKERS: [&str; 4] = ["ann", "bob", "cid", "dot"];
const LOCKS: [&str; 3] = ["a", "b", "deploy/prod"];
const PATHS: [&str; 5] =
    ["path:src/**", "path:src/*.rs", "path:src/a.rs", "path:docs/x.md", "path:**/x.md"];
const SECTIONS: [&str; 3] = ["narrow", "wide", "open"];
const FILES: [&str; 4] = ["src/a.rs", "src/**", "docs/x.md", "lib/{a,b}.rs"];

/// Makes steps, and remembers what it made.
pub struct Program {
    dice: Dice,
    asks: Vec<GrantId>,
    claims: Vec<GrantId>,
    runners: Vec<GrantId>,
    tasks: Vec<TaskId>,
    time_passes: bool,
}

fn resource(name: &str) -> Resource {
    name.parse().expect("names of resources are valid")
}

impl Program {
    /// The program of this seed. Where time cannot be moved, none passes.
    pub fn new(seed: u64, time_passes: bool) -> Program {
        let dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (asks, claims, runners, tasks) = (vec![], vec![], vec![], vec![]);
        Program { dice, asks, claims, runners, tasks, time_passes }
    }

    /// The next step, and whether it is sent twice, as one request.
    pub fn next(&mut self) -> (Step, bool) {
        let step = loop {
            if let Some(step) = self.try_step() {
                break step;
            }
        };
        // These look first, and a look is not a request that could be repeated.
        let looks_first = matches!(step, Step::Recover | Step::LeaveIdleSections(_));
        let twice = self.dice.percent(15) && !looks_first;
        (step, twice)
    }

    fn try_step(&mut self) -> Option<Step> {
        Some(match self.dice.below(100) {
            0..=17 => Step::Acquire(self.ask()),
            18..=22 => Step::AskAgain(self.dice.recent(&self.asks)?),
            23..=30 => Step::Release(self.dice.recent(&self.asks)?),
            31 => Step::ReleaseByLabel(self.dice.name(&WORKERS).to_owned()),
            32..=33 => Step::Leave(self.dice.recent(&self.asks)?),
            34 => Step::CallOff(self.dice.recent(&self.asks)?),
            35..=37 => Step::Renew(self.dice.recent(&self.asks)?),
            38..=39 => Step::Break(self.dice.recent(&self.asks)?),
            40..=41 => Step::Verify(self.dice.recent(&self.asks)?),
            42..=49 => Step::Add(self.add()),
            50..=61 => self.claim(),
            62 => Step::CallOffClaim(self.dice.recent(&self.claims)?),
            63..=64 => Step::Start(self.dice.recent(&self.claims)?),
            65..=66 => Step::Heartbeat(self.dice.recent(&self.claims)?),
            67 => Step::Describe(self.dice.recent(&self.claims)?),
            68..=76 => Step::Finish(self.dice.recent(&self.claims)?, self.finish()),
            77 => {
                let some = (0..2).filter_map(|_| self.dice.recent(&self.claims));
                let some: Vec<GrantId> = some.collect();
                Step::FinishAll(some.into_iter().map(|grant| (grant, self.finish())).collect())
            }
            78..=82 => Step::Edit(self.edit()?),
            83..=84 => {
                let task = self.task()?;
                let by = self.worker();
                Step::Note(AddNote { task, by, text: format!("note {}", self.dice.below(1000)) })
            }
            85 => Step::Delete(DeleteTasks { task: self.task()?, by: self.worker() }),
            86 => Step::PutSection(self.section()),
            87 => Step::Recover,
            88 => Step::Reap,
            89 => Step::LeaveIdleSections(self.dice.recent(&self.runners)?),
            90..=95 => Step::Query(self.query()),
            _ if self.time_passes => {
                let ms = *self.dice.pick(&[1, 50, 900, 4000, 11_000, 70_000]);
                Step::Pass(Duration::from_millis(ms))
            }
            _ => return None,
        })
    }

    fn grant(&mut self) -> GrantId {
        let bits = (u128::from(self.dice.bits()) << 64) | u128::from(self.dice.bits());
        // Not the version of a public form.
        GrantId::from_bits((bits & !(0xf << 76)) | (4 << 76))
    }

    fn worker(&mut self) -> String {
        self.dice.name(&WORKERS).to_owned()
    }

    fn holder(&mut self) -> Holder {
        let chosen = self.dice.percent(70);
        Holder { label: self.worker(), chosen, agent: false, evidence: None }
    }

    fn ttl(&mut self) -> Duration {
        let seconds = *self.dice.pick(&[10, 30, 60]);
        self.lasting(seconds)
    }

    /// So many seconds. Where time cannot be moved, so many minutes: longer than the program takes on a
    /// busy machine.
    fn lasting(&self, seconds: u64) -> Duration {
        Duration::from_secs(if self.time_passes { seconds } else { seconds * 60 })
    }

    fn ask(&mut self) -> Ask {
        let alone = |name: &str| Want::exclusive(resource(name));
        let wants = match self.dice.below(8) {
            0..=2 => vec![alone(self.dice.name(&LOCKS))],
            3 => vec![alone("b"), alone("a")],
            4 => {
                let mode = *self.dice.pick(&[Mode::Shared, Mode::Shared, Mode::Exclusive]);
                vec![Want { resource: resource("shared"), mode }]
            }
            5 => vec![Want { resource: resource("slots"), mode: Mode::Slot { of: 2 } }],
            6 => vec![alone(self.dice.name(&PATHS)), alone(self.dice.name(&LOCKS))],
            _ => vec![alone(self.dice.name(&PATHS))],
        };
        let grant = self.grant();
        self.asks.push(grant);
        let holder = self.holder();
        let is_owner = holder.chosen && self.dice.percent(30);
        let queue = self.lasting(15);
        let owner = if is_owner { Owner::of_label(&holder.label) } else { Owner::default() };
        Ask {
            grant,
            wants,
            holder,
            presence: None,
            operation: self.dice.percent(30).then(|| "to see what happens".to_owned()),
            ttl: self.ttl(),
            keeps: self
                .dice
                .recent(&self.asks)
                .filter(|_| self.dice.percent(20))
                .into_iter()
                .collect(),
            owner,
            queue: self.dice.percent(60).then_some(queue),
        }
    }

    fn task(&mut self) -> Option<TaskId> {
        let back = self.dice.below(self.tasks.len().min(8));
        self.tasks.len().checked_sub(1 + back).map(|index| self.tasks[index].clone())
    }

    fn add(&mut self) -> AddAsk {
        let tasks = (0..1 + self.dice.below(3)).map(|_| self.new_task()).collect();
        AddAsk { tasks, by: self.worker() }
    }

    fn new_task(&mut self) -> NewTask {
        // Now and then one whose name is taken.
        let taken = self.task().filter(|_| self.dice.percent(5));
        let id = taken.unwrap_or_else(|| {
            format!("t{}", self.tasks.len()).parse().expect("names of tasks are valid")
        });
        let mut task = NewTask::new(id.clone(), format!("the task {id}"));
        task.section = self.dice.percent(60).then(|| self.dice.name(&SECTIONS).to_owned());
        task.priority = *self.dice.pick(&[50, 50, 10, 90]);
        task.position = self.dice.below(3) as i64;
        task.max_attempts = 1 + self.dice.below(3) as u32;
        task.depends_on = self.task().filter(|_| self.dice.percent(30)).into_iter().collect();
        if self.dice.percent(25) {
            task.files = vec![self.dice.name(&FILES).to_owned()];
        }
        if self.dice.percent(20) {
            task.labels = vec![self.dice.name(&["red", "blue"]).to_owned()];
        }
        if self.dice.percent(20) {
            task.key = Some(format!("key {}", self.dice.below(6)));
        }
        self.tasks.push(id);
        task
    }

    fn claim(&mut self) -> Step {
        let grants: Vec<GrantId> = (0..1 + self.dice.below(2)).map(|_| self.grant()).collect();
        self.claims.extend(&grants);
        let runner = self.dice.percent(40).then(|| match self.dice.percent(60) {
            true => self.dice.recent(&self.runners),
            false => None,
        });
        let runner = runner.map(|known| known.unwrap_or_else(|| self.grant()));
        self.runners.extend(runner);
        let holder = self.holder();
        let ask = ClaimAsk {
            grants,
            runner,
            ttl: self.ttl(),
            section_ttl: self.lasting(60),
            task: self.task().filter(|_| self.dice.percent(35)),
            section: self.dice.percent(20).then(|| self.dice.name(&SECTIONS).to_owned()),
            labels: if self.dice.percent(10) { vec!["red".to_owned()] } else { vec![] },
            owner: Owner::default(),
            workspace: Default::default(),
            queue: None,
            presence: None,
            place_for: None,
            holder,
        };
        // As a client looks that was told to look further back.
        Step::Claim { ask, wider: self.dice.below(3) }
    }

    /// How long a task is set aside: for ever where time passes by itself.
    fn pause(&self) -> Duration {
        Duration::from_secs(if self.time_passes { 5 } else { 3600 })
    }

    fn finish(&mut self) -> Finish {
        match self.dice.below(8) {
            0 => Finish::failed("never"),
            // The pause before the next attempt is over at another step in each store if time
            // passes by itself.
            1 if self.time_passes => Finish::failed_for_now("not yet"),
            1 | 2 => Finish::Release,
            3 => Finish::Snooze { pause: self.pause() },
            4 => Finish::Review { result: None },
            5 => Finish::Complete { result: Some("{\"made\":1}".to_owned()) },
            _ => Finish::completed(),
        }
    }

    fn edit(&mut self) -> Option<EditAsk> {
        let verb = match self.dice.below(6) {
            0 => ManualChange::Approve,
            1 => ManualChange::Reject { feedback: "once more".to_owned() },
            2 => ManualChange::Cancel,
            3 => ManualChange::Retry,
            4 => ManualChange::Skip,
            _ => ManualChange::Update(Box::new(TaskChange {
                title: Some("another title".to_owned()),
                section: self.dice.percent(40).then(|| self.dice.name(&SECTIONS).to_owned()),
                priority: self.dice.percent(40).then_some(20),
                ..TaskChange::default()
            })),
        };
        Some(EditAsk { task: self.task()?, verb, by: self.worker() })
    }

    fn section(&mut self) -> PutSection {
        let section = Section {
            max_runners: *self.dice.pick(&[None, Some(1), Some(2)]),
            paused: self.dice.percent(15),
            ..Section::named(self.dice.name(&SECTIONS))
        };
        PutSection { section, by: self.worker() }
    }

    fn query(&mut self) -> Query {
        let names: Vec<Resource> = (0..1 + self.dice.below(2))
            .map(|_| match self.dice.percent(50) {
                true => resource(self.dice.name(&LOCKS)),
                false => resource(self.dice.name(&PATHS)),
            })
            .collect();
        // What a store shows beside the tasks of a scope is left to it, so tasks are asked for by
        // filters.
        match self.dice.below(6) {
            0 => Query::Snapshot(Scope::Everything),
            1 => Query::Snapshot(Scope::At { resources: names, ticket: None }),
            2 => Query::Snapshot(Scope::Queues(names)),
            3 => Query::Tasks(TaskFilter {
                status: Some(*self.dice.pick(&[
                    Status::Pending,
                    Status::InProgress,
                    Status::Completed,
                ])),
                ..TaskFilter::default()
            }),
            4 => Query::Tasks(TaskFilter {
                section: self.dice.percent(50).then(|| self.dice.name(&SECTIONS).to_owned()),
                limit: 1 + self.dice.below(4) as u32,
                without_history: self.dice.percent(50),
                ..TaskFilter::default()
            }),
            _ => Query::TaskCounts,
        }
    }
}
