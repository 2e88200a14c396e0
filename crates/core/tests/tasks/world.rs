//! A tiny store with tasks: time and death come by hand.

use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::act::{Acquire, Act, ClaimTasks, FinishTask, Recover, Release, StartTask};
use tenure_core::rules::tasks::{
    AddAsk, ClaimAsk, ClaimState, Claimed, Finish, FinishAsk, Finished, Heartbeat, HeartbeatAsk,
    NewTask, NoClaim, claim_state,
};
use tenure_core::{
    Ask, BreakAsk, Decision, Evidence, GrantId, Hold, HoldSnapshot, Holder, Liveness, Outcome,
    Process, Proof, ReleaseAsk, Resource, Section, SectionSnapshot, Snapshot, Status, Task, TaskId,
    Token, WallTime, Want, Witness, Write,
};

pub const TTL: Duration = Duration::from_secs(60);
pub const SECTION_TTL: Duration = Duration::from_secs(600);

pub struct World {
    pub now_ms: u64,
    next: u64,
    pub holds: Vec<(Hold, u64)>,
    pub tasks: Vec<Task>,
    pub sections: Vec<Section>,
    pub dead: Dead,
    pub recoveries_max: u32,
}

/// The processes that are dead; all others live.
#[derive(Clone, Default)]
pub struct Dead(pub BTreeSet<u32>);

impl Witness for Dead {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        match &evidence.process {
            None => Liveness::Unknown,
            Some(process) if self.0.contains(&process.pid) => Liveness::Dead,
            Some(_) => Liveness::Alive,
        }
    }
}

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

/// A worker in a process of this number.
pub fn holder(worker: &str, process: Option<u32>) -> Holder {
    let holder = Holder::chosen(worker).unwrap();
    match process {
        None => holder,
        Some(pid) => holder.with_evidence(Evidence {
            host: "h".into(),
            machine: "m".into(),
            boot: "b".into(),
            pid_namespace: 1,
            process: Some(Process { pid, start: 1 }),
            group: None,
        }),
    }
}

impl World {
    /// A store with these tasks.
    pub fn with(tasks: Vec<NewTask>) -> World {
        let mut world = World {
            now_ms: 1_000,
            next: 1,
            holds: vec![],
            tasks: vec![],
            sections: vec![],
            dead: Dead::default(),
            recoveries_max: 3,
        };
        world.act(&AddAsk { tasks, by: "me".into() }).unwrap();
        world
    }

    /// Everything, as a store would show it.
    pub fn seen(&self) -> Snapshot {
        let hold = |(hold, deadline): &(Hold, u64)| HoldSnapshot {
            hold: hold.clone(),
            left: Duration::from_millis(deadline.saturating_sub(self.now_ms)),
            held_for: Duration::ZERO,
            acquired_at: WallTime(0),
            renewed_at: WallTime(0),
            expires_at: WallTime(0),
            stale: None,
        };
        let open = |section: &Section| {
            let of_it = |task: &&Task| task.section.as_ref() == Some(&section.name);
            let tasks = self.tasks.iter().filter(of_it);
            tasks.filter(|task| !task.status.is_final()).count() as u64
        };
        let section =
            |section: &Section| SectionSnapshot { section: section.clone(), open: open(section) };
        Snapshot {
            holds: self.holds.iter().map(hold).collect(),
            next: self.next,
            wall: WallTime(self.now_ms as i64),
            tasks: self.tasks.clone(),
            sections: self.sections.iter().map(section).collect(),
            ..Snapshot::empty()
        }
    }

    /// Decides an act and writes what the rule chose.
    pub fn act<A: Act>(&mut self, act: &A) -> A::Answer {
        let (decision, answer) = act.decide(&self.seen(), &self.dead.clone());
        self.apply(decision);
        answer
    }

    fn apply(&mut self, decision: Decision) {
        let Decision::Write(change) = decision else { return };
        for write in change.writes {
            match write {
                Write::Hold(hold) => {
                    let deadline = self.now_ms + hold.ttl.as_millis() as u64;
                    self.holds.push((hold, deadline));
                }
                Write::Extend { resource, grant, ttl, .. } => {
                    let deadline = self.now_ms + ttl.as_millis() as u64;
                    let is_it = |(hold, _): &&mut (Hold, u64)| {
                        hold.want.resource == resource && hold.grant == grant
                    };
                    let hold = self.holds.iter_mut().find(is_it).expect("it is held");
                    (hold.0.ttl, hold.1) = (ttl, deadline);
                }
                Write::DropHold { resource, grant } => self
                    .holds
                    .retain(|(hold, _)| hold.want.resource != resource || hold.grant != grant),
                Write::Task(task) => {
                    self.tasks.retain(|other| other.id != task.id);
                    self.tasks.push(*task);
                    self.tasks.sort_by_key(|task| task.age);
                }
                other => panic!("not written here: {other:?}"),
            }
        }
        self.next += change.events.len() as u64;
    }

    pub fn pass(&mut self, time: Duration) {
        self.now_ms += time.as_millis() as u64;
    }

    pub fn task(&self, name: &str) -> &Task {
        self.tasks.iter().find(|task| task.id == id(name)).unwrap()
    }

    pub fn try_claim(&mut self, ask: ClaimAsk) -> Result<Vec<Claimed>, NoClaim> {
        self.act(&ClaimTasks { ask, wider: 0 })
    }

    /// Claims the task, keeping its section.
    pub fn claim(&mut self, worker: &str, task: &str) -> Claimed {
        let ask = ClaimAsk { task: Some(id(task)), ..claim_ask(worker) };
        self.try_claim(ask).unwrap().remove(0)
    }

    pub fn finish(&mut self, worker: &str, task: &str, finish: Finish) -> Finished {
        let ask = FinishAsk { runner: Some(runner(worker)), ..finish_ask(worker, task, finish) };
        let section = self.task(task).section.clone();
        self.act(&FinishTask { ask, section })
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
        self.act(&Recover { recoveries_max })
    }

    pub fn state(&self, task: &str) -> Option<ClaimState> {
        claim_state(&self.seen(), self.task(task), &self.dead)
    }

    /// Somebody takes this for a moment, if it is to be had.
    pub fn take_and_release(&mut self, name: &str) -> bool {
        let grant = GrantId::random();
        let ask = Ask {
            owner: Default::default(),
            grant,
            wants: vec![Want::exclusive(resource(name))],
            holder: Holder::chosen("other").unwrap(),
            presence: None,
            operation: None,
            ttl: TTL,
            keeps: vec![],
            queue: None,
        };
        let outcome = self.act(&Acquire { ask, ticket: None, whole_queues: false });
        let ask = ReleaseAsk { proof: Proof::Grant(grant), resources: None, lost: false };
        self.act(&Release { at: None, ask });
        matches!(outcome, Outcome::Granted(_))
    }

    /// An operator ends whoever holds this.
    pub fn break_hold(&mut self, name: &str) {
        let held = self.holds.iter().find(|(hold, _)| hold.want.resource == resource(name));
        let token: Token = held.expect("it is held").0.token;
        let (resource, by) = (resource(name), "operator".to_owned());
        self.act(&BreakAsk { resource, token, by, reason: "test".into() });
    }

    /// The names of what is held.
    pub fn held(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.holds.iter().map(|(hold, _)| hold.want.resource.to_string()).collect();
        names.sort();
        names
    }

    pub fn status(&self, task: &str) -> Status {
        self.task(task).status
    }
}

/// The next task, keeping its section.
pub fn claim_ask(worker: &str) -> ClaimAsk {
    ClaimAsk {
        owner: Default::default(),
        grants: vec![GrantId::random()],
        runner: Some(runner(worker)),
        holder: holder(worker, None),
        ttl: TTL,
        section_ttl: SECTION_TTL,
        task: None,
        section: None,
        labels: vec![],
    }
}

pub fn finish_ask(worker: &str, task: &str, finish: Finish) -> FinishAsk {
    let proof = Proof::Label(worker.into());
    FinishAsk { task: id(task), proof, token: None, runner: None, finish }
}

pub fn complete() -> Finish {
    Finish::Complete { result: None }
}

/// A task in the section `S` that touches `src/**`.
pub fn in_section(name: &str) -> NewTask {
    NewTask { section: Some("S".into()), files: vec![format!("{name}/**")], ..plain(name) }
}

pub fn plain(name: &str) -> NewTask {
    NewTask::new(id(name), name)
}
