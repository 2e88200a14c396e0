//! The labels in whose name an act is asked: a server compares them with what a token may use.

use crate::support::tasks::{claim_ask, finish_ask, holder, id, plain};
use crate::support::{ask, exclusive, grant_id};
use std::time::Duration;
use tenure_core::act::{
    Acquire, Act, CallOff, CallOffClaim, ChangeSections, ClaimTasks, DeleteTasks, DropWorker,
    FinishTask, FinishTasks, Leave, LeaveIdleSections, PutOutput, PutSection, PutWorker, Reap,
    Recover, Release, StartTask,
};
use tenure_core::rules::tasks::{
    AddAsk, AddNote, ClaimAsk, DescribeTry, EditAsk, Finish, FinishAsk, HeartbeatAsk, ImportAsk,
    ManualChange, RetireAsk,
};
use tenure_core::{Ask, BreakAsk, Owner, Proof, ReleaseAsk, Role, Section, Token, WorkerReport};

fn boss() -> String {
    "boss".to_owned()
}

fn owner(label: Option<&str>, parent: Option<&str>) -> Owner {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Owner { label: text(label), parent: text(parent), grants: vec![grant_id(1)], around: vec![] }
}

#[test]
fn a_request_is_made_in_the_name_of_its_holder_its_owner_and_the_owners_parent() {
    for (owner, others) in [
        (Owner::default(), [].as_slice()),
        (owner(Some("claude/a"), None), &["claude/a"]),
        (owner(None, Some("claude")), &["claude"]),
        (owner(Some("claude/a"), Some("claude")), &["claude/a", "claude"]),
    ] {
        let expected = [&["alice"], others].concat();
        let alice = holder("alice", None);
        let one = Ask { holder: alice.clone(), owner: owner.clone(), ..ask(1, &[exclusive("x")]) };
        let acquire = Acquire { ask: one, ticket: None, whole_queues: false };
        assert_eq!(acquire.labels(), expected, "{owner:?}");
        let claim = ClaimAsk { holder: alice, owner, ..claim_ask("alice") };
        assert_eq!(ClaimTasks { ask: claim, wider: 0 }.labels(), expected);
    }
}

#[test]
fn only_a_proof_by_label_is_in_the_name_of_a_label() {
    for (proof, expected) in
        [(Proof::Label("alice".into()), ["alice"].as_slice()), (Proof::Grant(grant_id(1)), &[])]
    {
        let ask = ReleaseAsk { proof: proof.clone(), resources: None, lost: false };
        assert_eq!(Release { at: None, ask }.labels(), expected);
        let ask = FinishAsk { proof: proof.clone(), ..finish_ask("w", "a", Finish::Release) };
        assert_eq!(FinishTask { ask: ask.clone(), output: None }.labels(), expected);
        assert_eq!(StartTask { ask }.labels(), expected);
        let heartbeat = HeartbeatAsk { task: id("a"), proof, token: None, ttl: None };
        assert_eq!(heartbeat.labels(), expected);
    }
    let asks = ["alice", "bob"].map(|worker| finish_ask(worker, "a", Finish::Release)).to_vec();
    assert_eq!(FinishTasks { asks }.labels(), ["alice", "bob"]);
}

#[test]
fn a_change_by_hand_is_made_in_the_name_of_its_author() {
    let (task, by) = (id("a"), boss());
    let add = AddAsk { tasks: vec![plain("a")], by: boss() };
    let broken =
        BreakAsk { resource: task.resource(), token: Token(1), by: boss(), reason: "stuck".into() };
    let describe = DescribeTry {
        task: task.clone(),
        token: Token(1),
        grant: None,
        worktree: None,
        branch: None,
        rescue: None,
        note: None,
        by: boss(),
    };
    let note = AddNote { task: task.clone(), by: boss(), text: "text".into() };
    let edit = EditAsk { task: task.clone(), verb: ManualChange::Cancel, by: boss() };
    let report = WorkerReport { label: boss(), ..WorkerReport::default() };
    let put_worker = PutWorker { id: "1".into(), worker: report, ttl: Duration::ZERO };
    for (verb, labels) in [
        (AddAsk::VERB, add.labels()),
        (ImportAsk::VERB, ImportAsk { add: add.clone(), sections: vec![] }.labels()),
        (BreakAsk::VERB, broken.labels()),
        (Recover::VERB, Recover { recoveries_max: 1, broken: Some(broken.clone()) }.labels()),
        (DescribeTry::VERB, describe.labels()),
        (AddNote::VERB, note.labels()),
        (EditAsk::VERB, edit.labels()),
        (DeleteTasks::VERB, DeleteTasks { task, by: by.clone() }.labels()),
        (RetireAsk::VERB, RetireAsk { tasks: vec![], by: by.clone() }.labels()),
        (PutSection::VERB, PutSection { section: Section::named("S"), by: by.clone() }.labels()),
        (ChangeSections::VERB, ChangeSections { changes: vec![], by: by.clone() }.labels()),
        (PutWorker::VERB, put_worker.labels()),
    ] {
        assert_eq!(labels, ["boss"], "{verb}");
    }
}

/// What proves its right by a grant, or needs none.
#[test]
fn other_acts_are_made_in_no_name() {
    let grant = grant_id(1);
    let output = PutOutput { task: id("a"), attempt: 1, grant, text: "x".into() };
    for (verb, labels) in [
        (Leave::VERB, Leave { grant, resources: vec![], ticket: 1 }.labels()),
        (CallOff::VERB, CallOff { grant, resources: vec![], is_new: true }.labels()),
        (CallOffClaim::VERB, CallOffClaim { grants: vec![grant], runner: None }.labels()),
        (Reap::VERB, Reap { kind: None }.labels()),
        (Recover::VERB, Recover { recoveries_max: 1, broken: None }.labels()),
        (LeaveIdleSections::VERB, LeaveIdleSections { runner: grant }.labels()),
        (PutOutput::VERB, output.labels()),
        (DropWorker::VERB, DropWorker { id: "1".into() }.labels()),
    ] {
        assert_eq!(labels, [""; 0], "{verb}");
    }
}

/// What stops or changes the work of others is for admins, whatever way it is asked.
#[test]
fn an_act_says_which_role_it_needs() {
    let (task, by) = (id("a"), boss());
    let edit = |verb| EditAsk { task: task.clone(), verb, by: boss() }.role();
    assert_eq!(edit(ManualChange::Approve), Role::Work);
    assert_eq!(edit(ManualChange::Reject { feedback: "x".into() }), Role::Work);
    for verb in [ManualChange::Cancel, ManualChange::Retry, ManualChange::Skip] {
        assert_eq!(edit(verb), Role::Admin);
    }
    assert_eq!(edit(ManualChange::Update(Box::default())), Role::Admin);
    let add = AddAsk { tasks: vec![plain("a")], by: boss() };
    let import = |paused| {
        let sections = vec![Section { paused, ..Section::named("S") }];
        ImportAsk { add: add.clone(), sections }.role()
    };
    assert_eq!((import(false), import(true)), (Role::Work, Role::Admin));
    let broken =
        BreakAsk { resource: task.resource(), token: Token(1), by: boss(), reason: "stuck".into() };
    assert_eq!(broken.role(), Role::Admin);
    let recover = |broken| Recover { recoveries_max: 1, broken }.role();
    assert_eq!((recover(None), recover(Some(broken))), (Role::Work, Role::Admin));
    assert_eq!(DeleteTasks { task, by: by.clone() }.role(), Role::Admin);
    assert_eq!(RetireAsk { tasks: vec![], by: by.clone() }.role(), Role::Admin);
    assert_eq!(Reap { kind: None }.role(), Role::Admin);
    assert_eq!(PutSection { section: Section::named("S"), by: by.clone() }.role(), Role::Admin);
    assert_eq!(ChangeSections { changes: vec![], by }.role(), Role::Admin);
}
