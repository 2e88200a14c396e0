//! Tasks in few words: how they are made, claimed and finished by the tests.

use super::{View, World, evidence_of};
use std::time::Duration;
use tenure_core::act::{Acquire, ClaimTasks, FinishTask, Recover, Release, StartTask};
use tenure_core::rules::tasks::{
    AddAsk, ClaimAsk, ClaimState, Claimed, EditAsk, EditError, Finish, FinishAsk, Finished,
    Heartbeat, HeartbeatAsk, ManualChange, NewTask, NoClaim, SectionChange, TaskChange,
    claim_state,
};
use tenure_core::{
    Ask, BreakAsk, GrantId, Holder, Outcome, Owner, Proof, ReleaseAsk, Resource, Scope, Section,
    Snapshot, Status, Task, TaskId, WallTime, Want,
};

pub const TTL: Duration = Duration::from_secs(60);
pub const SECTION_TTL: Duration = Duration::from_secs(600);

/// Claims look further back so often.
const WIDER_MAX: usize = 2;

pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

pub fn resource(name: &str) -> Resource {
    name.parse().unwrap()
}

/// The grant under which a worker keeps its section.
pub fn runner(worker: &str) -> GrantId {
    GrantId::from_bits(worker.bytes().map(u128::from).sum::<u128>() << 64)
}

/// A worker, tied to the process of this number or to none.
pub fn holder(worker: &str, process: Option<u32>) -> Holder {
    let holder = Holder::chosen(worker).unwrap();
    match process {
        None => holder,
        Some(pid) => holder.with_evidence(evidence_of(pid)),
    }
}

pub fn plain(name: &str) -> NewTask {
    NewTask::new(id(name), name)
}

/// A task in the section `S` that touches files of its own.
pub fn in_section(name: &str) -> NewTask {
    NewTask { section: Some("S".into()), files: vec![format!("{name}/**")], ..plain(name) }
}

pub fn after(name: &str, others: &[&str]) -> NewTask {
    NewTask { depends_on: others.iter().map(|other| id(other)).collect(), ..plain(name) }
}

/// The next task, keeping its section.
pub fn claim_ask(worker: &str) -> ClaimAsk {
    ClaimAsk {
        owner: Owner::default(),
        grants: vec![GrantId::random()],
        runner: Some(runner(worker)),
        holder: holder(worker, None),
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

pub fn finish_ask(worker: &str, task: &str, finish: Finish) -> FinishAsk {
    let proof = Proof::Label(worker.into());
    FinishAsk { task: id(task), proof, token: None, runner: None, finish }
}

pub fn complete() -> Finish {
    Finish::Complete { result: None }
}

pub fn fail(retry: bool) -> Finish {
    Finish::Fail { reason: "x".into(), retry }
}

pub fn review() -> Finish {
    Finish::Review { result: None }
}

/// A request of another for this, alone.
pub fn other_ask(name: &str) -> Ask {
    Ask {
        owner: Owner::default(),
        grant: GrantId::random(),
        wants: vec![Want::exclusive(resource(name))],
        holder: Holder::chosen("other").unwrap(),
        presence: None,
        operation: None,
        ttl: TTL,
        keeps: vec![],
        queue: None,
    }
}

impl World {
    /// A store with these tasks, which shows exactly what is asked for.
    pub fn with(tasks: Vec<NewTask>) -> World {
        let mut world = World::new(View::Asked);
        world.act(&AddAsk { tasks, by: "me".into() }).unwrap();
        world
    }

    /// The same, with these sections described.
    pub fn with_sections(tasks: Vec<NewTask>, sections: Vec<Section>) -> World {
        World { sections, ..World::with(tasks) }
    }

    /// Everything, tasks included.
    pub fn seen(&self) -> Snapshot {
        let whole = World { view: View::Whole, ..self.clone() };
        whole.show(&Scope::Tasks(Default::default()))
    }

    pub fn pass(&mut self, time: Duration) {
        self.pass_ms(time.as_millis() as u64);
    }

    pub fn task(&self, name: &str) -> &Task {
        self.tasks.iter().find(|task| task.id == id(name)).unwrap()
    }

    pub fn status(&self, task: &str) -> Status {
        self.task(task).status
    }

    /// Claims as a client does: where all that was seen is taken, it looks further back.
    pub fn try_claim(&mut self, ask: ClaimAsk) -> Result<Vec<Claimed>, NoClaim> {
        let mut wider = 0;
        loop {
            match self.act(&ClaimTasks { ask: ask.clone(), wider }) {
                Err(NoClaim::AllTaken { look_wider: true, .. }) if wider < WIDER_MAX => wider += 1,
                Err(NoClaim::Queue(wait)) => {
                    let place = ClaimAsk { place_for: Some(wait), ..ask.clone() };
                    let queued = self.act(&ClaimTasks { ask: place, wider });
                    if matches!(queued, Err(NoClaim::Deadlock(_))) {
                        return queued;
                    }
                }
                answer => return answer,
            }
        }
    }

    /// Claims the task, keeping its section.
    pub fn claim(&mut self, worker: &str, task: &str) -> Claimed {
        let ask = ClaimAsk { task: Some(id(task)), ..claim_ask(worker) };
        self.try_claim(ask).unwrap().remove(0)
    }

    /// Claims the task, and with it its section only as long as the task lasts.
    pub fn claim_alone(&mut self, worker: &str, task: &str) -> Claimed {
        let ask = ClaimAsk { task: Some(id(task)), runner: None, ..claim_ask(worker) };
        self.try_claim(ask).unwrap().remove(0)
    }

    pub fn finish(&mut self, worker: &str, task: &str, finish: Finish) -> Finished {
        self.finish_by(FinishAsk {
            runner: Some(runner(worker)),
            ..finish_ask(worker, task, finish)
        })
    }

    pub fn finish_by(&mut self, ask: FinishAsk) -> Finished {
        self.act(&FinishTask { ask, output: None })
    }

    /// Finishes, and says what the task is then.
    pub fn finish_well(&mut self, worker: &str, task: &str, finish: Finish) -> Task {
        match self.finish(worker, task, finish) {
            Finished::Done { task, repeated: false, .. } => task,
            other => panic!("not finished: {other:?}"),
        }
    }

    pub fn start(&mut self, worker: &str, task: &str) -> Finished {
        self.act(&StartTask { ask: finish_ask(worker, task, Finish::Release) })
    }

    pub fn heartbeat(&mut self, worker: &str, task: &str) -> Heartbeat {
        let proof = Proof::Label(worker.into());
        self.act(&HeartbeatAsk { task: id(task), proof, token: None, ttl: None })
    }

    pub fn recover(&mut self) -> Vec<Task> {
        let recoveries_max = self.recoveries_max;
        self.act(&Recover { recoveries_max, broken: None })
    }

    pub fn edit(&mut self, task: &str, verb: ManualChange) -> Result<Task, EditError> {
        self.act(&EditAsk { task: id(task), verb, by: "boss".into() })
    }

    pub fn change_section(&mut self, name: &str, change: SectionChange) {
        let changes = vec![(name.to_owned(), change)];
        self.act(&tenure_core::act::ChangeSections { changes, by: "boss".into() }).unwrap();
    }

    pub fn pause(&mut self, section: &str, paused: bool) {
        self.change_section(section, SectionChange { paused: Some(paused), ..Default::default() });
    }

    pub fn state(&self, task: &str) -> Option<ClaimState> {
        claim_state(&self.seen(), self.task(task), &self.dead)
    }

    /// Another takes this, if it is free. Says under which grant.
    pub fn take(&mut self, name: &str) -> Option<GrantId> {
        let ask = other_ask(name);
        let grant = ask.grant;
        let outcome = self.act(&Acquire { ask, ticket: None, whole_queues: false });
        matches!(outcome, Outcome::Granted(_)).then_some(grant)
    }

    /// Another queues for this. Says under which grant.
    pub fn queue_for(&mut self, name: &str) -> GrantId {
        let ask = Ask { queue: Some(SECTION_TTL), ..other_ask(name) };
        let grant = ask.grant;
        let outcome = self.act(&Acquire { ask, ticket: None, whole_queues: false });
        assert!(matches!(outcome, Outcome::Waiting { .. }), "{outcome:?}");
        grant
    }

    pub fn give_back(&mut self, grant: GrantId) {
        let ask = ReleaseAsk { proof: Proof::Grant(grant), resources: None, lost: false };
        self.act(&Release { at: None, ask });
    }

    /// Another takes this for a moment, if it is free. Says whether it was.
    pub fn take_and_release(&mut self, name: &str) -> bool {
        let grant = self.take(name);
        grant.map(|grant| self.give_back(grant)).is_some()
    }

    /// An operator ends the first hold of this.
    pub fn break_first(&mut self, name: &str) {
        let resource = resource(name);
        let held = self.holds.iter().find(|stored| stored.hold.want.resource == resource);
        let token = held.expect("it is held").hold.token;
        self.act(&BreakAsk { resource, token, by: "operator".into(), reason: "test".into() });
    }

    /// The names of what is held, sorted.
    pub fn held(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.holds.iter().map(|stored| stored.hold.want.resource.to_string()).collect();
        names.sort();
        names
    }
}

/// A change that puts a task off for [`TTL`].
pub fn put_off(world: &World) -> ManualChange {
    let not_before = Some(WallTime(world.wall().0 + TTL.as_millis() as i64));
    ManualChange::Update(Box::new(TaskChange { not_before, ..TaskChange::default() }))
}
