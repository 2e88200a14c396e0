//! Who gets a slot, and who loses one for it.

use crate::http::connection_limit::{ConnectionLimit, ConnectionSlot, Source};
use futures_util::FutureExt;
use std::net::Ipv4Addr;
use std::sync::Arc;

fn machine(number: u8) -> Source {
    Source::V4(Ipv4Addr::new(192, 0, 2, number))
}

fn slot(limit: &ConnectionLimit, source: Source) -> Arc<ConnectionSlot> {
    Arc::new(limit.try_slot(source).expect("a place"))
}

fn is_closed(slot: &ConnectionSlot) -> bool {
    slot.closed().now_or_never().is_some()
}

fn closed(places: &[Arc<ConnectionSlot>]) -> Vec<usize> {
    (0..places.len()).filter(|index| is_closed(&places[*index])).collect()
}

/// A caller that is known, and idle.
fn known(limit: &ConnectionLimit) -> Arc<ConnectionSlot> {
    let slot = slot(limit, Source::Loopback);
    drop(slot.answer());
    assert!(slot.mark_authenticated());
    slot
}

#[test]
fn strangers_of_one_source_lose_their_oldest() {
    for source in [Source::Loopback, Source::Socket, machine(1)] {
        let limit = ConnectionLimit::new(8);
        let other = slot(&limit, machine(9));
        let places: Vec<_> = (0..6).map(|_| slot(&limit, source)).collect();
        assert_eq!(closed(&places), [0, 1], "{source:?}");
        assert!(!is_closed(&other));
    }
}

#[test]
fn of_all_strangers_the_source_with_the_most_loses() {
    let limit = ConnectionLimit::new(8);
    let one: Vec<_> = (0..4).map(|_| slot(&limit, machine(1))).collect();
    let other: Vec<_> = (0..2).map(|_| slot(&limit, machine(2))).collect();
    let new = slot(&limit, machine(3));
    assert_eq!(closed(&one), [0]);
    assert!(closed(&other).is_empty() && !is_closed(&new));
}

#[test]
fn idle_ones_go_before_those_that_are_being_answered() {
    let limit = ConnectionLimit::new(4);
    let places: Vec<_> = (0..2).map(|_| slot(&limit, Source::Loopback)).collect();
    let answering = places[0].answer();
    let new = slot(&limit, Source::Loopback);
    assert_eq!(closed(&places), [1]);
    let busy = new.answer();
    // Strangers that are all being answered do not keep the door shut either.
    let last = slot(&limit, Source::Loopback);
    assert!(is_closed(&places[0]) && !is_closed(&new) && !is_closed(&last));
    drop((answering, busy));
}

#[test]
fn strangers_never_push_out_callers_that_are_being_answered() {
    let limit = ConnectionLimit::new(16);
    let known: Vec<_> = (0..14).map(|_| known(&limit)).collect();
    let answering: Vec<_> = known.iter().map(ConnectionSlot::answer).collect();
    let strangers: Vec<_> = (0..100).map(|_| slot(&limit, Source::Loopback)).collect();
    assert!(closed(&known).is_empty());
    assert_eq!(closed(&strangers).len(), 98);
    drop(answering);
}

#[test]
fn there_is_always_a_place_for_those_who_come() {
    let limit = ConnectionLimit::new(8);
    let known: Vec<_> = (0..7).map(|_| known(&limit)).collect();
    let answering: Vec<_> = known.iter().map(ConnectionSlot::answer).collect();
    // One more that is known is told to come again; a health check is not kept out.
    let one_more = slot(&limit, Source::Loopback);
    assert!(!one_more.mark_authenticated());
    let health = slot(&limit, machine(1));
    assert!(is_closed(&one_more) && !is_closed(&health));
    drop(answering);
    // Idle ones make room for another caller that is known.
    let last = slot(&limit, Source::Loopback);
    assert!(last.mark_authenticated());
    assert_eq!(closed(&known).len(), 1);
}

#[test]
fn a_place_is_free_again_when_it_is_dropped() {
    let limit = ConnectionLimit::new(1);
    let only = slot(&limit, Source::Loopback);
    assert!(only.mark_authenticated());
    let answering = only.answer();
    assert!(limit.try_slot(Source::Loopback).is_none());
    let waiting = limit.slot(Source::Loopback);
    drop((answering, only));
    assert!(waiting.now_or_never().is_some());
}
