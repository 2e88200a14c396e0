//! Who gets a place, and when it is free again.

use crate::gate::room::{Room, Seat};
use futures_util::FutureExt;
use std::net::IpAddr;

fn seat(room: &Room, address: Option<&str>) -> Option<Seat> {
    let address: Option<IpAddr> = address.map(|address| address.parse().unwrap());
    room.seat(room.place().now_or_never()?, address)
}

#[test]
fn one_machine_gets_half_of_it() {
    let room = Room::for_most(4);
    let [one, other] = ["192.0.2.1", "192.0.2.2"].map(Some);
    let seats = [seat(&room, one), seat(&room, one)];
    assert!(seats.iter().all(Option::is_some));
    assert!(seat(&room, one).is_none());
    let more = [seat(&room, other), seat(&room, None)];
    assert!(more.iter().all(Option::is_some));
    assert!(seat(&room, None).is_none());
    drop(seats);
    let again = [seat(&room, one), seat(&room, one)];
    assert!(again.iter().all(Option::is_some));
}

#[test]
fn this_machine_may_fill_it() {
    let room = Room::for_most(4);
    let seats: Vec<_> = (0..4).map(|_| seat(&room, None)).collect();
    assert!(seats.iter().all(Option::is_some));
    assert!(seat(&room, None).is_none());
    drop(seats);
    assert!(seat(&room, None).is_some());
}
