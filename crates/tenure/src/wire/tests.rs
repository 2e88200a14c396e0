//! A sample of everything that is sent is read, and written back without a difference: a name of the
//! protocol does not change unnoticed. Kept answers are answers of acts, so this holds for them too.
//!
//! A change on purpose needs another [`PROTOCOL_VERSION`] and a new sample.

use super::*;
use crate::client::Collected;
use crate::store::{Answer, Maintained, Maintenance, Query, StoreError, Waited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure_core::act::{
    Acquire, Act, CallOff, CallOffClaim, ChangeSections, ClaimTasks, DeleteTasks, DropWorker,
    FinishTask, FinishTasks, Leave, LeaveIdleSections, PutOutput, PutSection, PutWorker, Reap,
    Recover, Release, StartTask,
};
use tenure_core::rules::BreakAsk;
use tenure_core::rules::tasks::{AddAsk, AddNote, DescribeTry, EditAsk, HeartbeatAsk, ImportAsk};

fn samples(part: &str) -> Map<String, Value> {
    let text = include_str!("samples/protocol-1.json");
    let all: Value = serde_json::from_str(text).unwrap();
    all[part].as_object().unwrap().clone()
}

#[track_caller]
fn is_kept<T: Serialize + DeserializeOwned>(sample: &Value) {
    let read: T =
        serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{error}: {sample}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), *sample);
}

/// Takes the samples of one kind of request, and checks them.
#[track_caller]
fn check<Ask, Reply>(samples: &mut Map<String, Value>, name: &str)
where
    Ask: Serialize + DeserializeOwned,
    Reply: Serialize + DeserializeOwned,
{
    let sample = samples.remove(name).expect(name);
    sample["asks"].as_array().unwrap().iter().for_each(is_kept::<Ask>);
    sample["answers"].as_array().unwrap().iter().for_each(is_kept::<Reply>);
}

#[track_caller]
fn check_act<A: Act>(samples: &mut Map<String, Value>) {
    check::<A, A::Answer>(samples, A::VERB);
}

#[test]
fn the_samples_are_of_this_version() {
    assert_eq!(PROTOCOL_VERSION, "1");
}

#[test]
fn every_act_and_its_answers_are_as_they_were() {
    let samples = &mut samples("acts");
    check_act::<Acquire>(samples);
    check_act::<Leave>(samples);
    check_act::<CallOff>(samples);
    check_act::<CallOffClaim>(samples);
    check_act::<Release>(samples);
    check_act::<BreakAsk>(samples);
    check_act::<Reap>(samples);
    check_act::<AddAsk>(samples);
    check_act::<ImportAsk>(samples);
    check_act::<ClaimTasks>(samples);
    check_act::<Recover>(samples);
    check_act::<LeaveIdleSections>(samples);
    check_act::<FinishTask>(samples);
    check_act::<FinishTasks>(samples);
    check_act::<HeartbeatAsk>(samples);
    check_act::<StartTask>(samples);
    check_act::<EditAsk>(samples);
    check_act::<AddNote>(samples);
    check_act::<DescribeTry>(samples);
    check_act::<DeleteTasks>(samples);
    check_act::<PutSection>(samples);
    check_act::<ChangeSections>(samples);
    check_act::<PutOutput>(samples);
    check_act::<PutWorker>(samples);
    check_act::<DropWorker>(samples);
    assert!(samples.is_empty(), "{samples:?}");
}

#[test]
fn every_other_request_and_its_answers_are_as_they_were() {
    let samples = &mut samples("calls");
    check::<Renew, Vec<Renewed>>(samples, "renew");
    check::<RenewCovered, RenewedCovered>(samples, "renew-covered");
    check::<Query, Answer>(samples, "query");
    check::<Wait, Waited>(samples, "wait");
    check::<Maintenance, Maintained>(samples, "maintain");
    check::<Collect, Collected>(samples, "collect");
    assert!(samples.is_empty(), "{samples:?}");
}

#[test]
fn every_error_of_a_store_is_as_it_was() {
    let text = include_str!("samples/protocol-1.json");
    let all: Value = serde_json::from_str(text).unwrap();
    all["errors"].as_array().unwrap().iter().for_each(is_kept::<StoreError>);
}
