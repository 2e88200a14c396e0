//! Many processes wait for one lock, and are served in the order in which they came.

use crate::support::{Running, StoreLocation, until};
use std::time::{Duration, Instant};
use tenure::blocking::Client;
use tenure::core::Resource;

/// Who waits, in order, by the operations they gave.
fn queue(client: &Client) -> Vec<String> {
    let resource: Resource = "queue".parse().expect("a resource");
    let seen = client.run(client.asynchronous().look(&[resource])).expect("a look");
    seen.waiters.into_iter().filter_map(|seen| seen.waiter.operation).collect()
}

/// Says that its turn has come.
const NOTE: &str = "echo $0 >>$D/order";

/// Starts processes that queue one after another, each once the one before it has its place. They
/// wait a minute, and run `script` with their number when their turn comes.
fn line_up(place: &StoreLocation, client: &Client, count: usize, script: &str) -> Vec<Running> {
    let line_up_one = |number: usize| {
        let name = number.to_string();
        let words = ["run", "-w", "60", "--ttl", "10m", "--operation", &name, "queue", "--"];
        let running = place.start(&[&words[..], &["sh", "-c", script, &name]].concat());
        until("its place", || (queue(client).last() == Some(&name)).then_some(()));
        running
    };
    (0..count).map(line_up_one).collect()
}

/// Whose turn has come, in order.
fn order(place: &StoreLocation) -> Vec<usize> {
    place.read("order").lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn two_hundred_waiters_are_served_in_order_and_none_hears_of_a_locked_database() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["queue"]);
    let client = Client::open(&place.url()).expect("the store");
    let waiting = line_up(&place, &client, 200, NOTE);
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    // Those who come later and do not want to wait overtake nobody.
    let pushing = ["run", "-n", "queue", "--", "true"];
    until("the end of the queue", || (place.run(&pushing).code == 0).then_some(()));
    assert_eq!(order(&place).len(), 200);
    for running in waiting {
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.text().contains("database is locked"), "{ended:?}");
    }
    assert_eq!(order(&place), Vec::from_iter(0..200));
}

#[test]
fn waiters_that_are_killed_leave_the_queue_and_the_others_keep_their_order() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["queue", "--ttl", "10m"]);
    let client = Client::open(&place.url()).expect("the store");
    let mut waiting: Vec<Option<Running>> =
        line_up(&place, &client, 30, NOTE).into_iter().map(Some).collect();
    // The head, neighbours, a run longer than what is shown of a queue at once, and the last.
    let killed = [&[0, 1, 5, 7][..], &Vec::from_iter(9..20), &[25, 29]].concat();
    for index in &killed {
        waiting[*index].take().expect("each is killed once").kill();
    }
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    for running in waiting.into_iter().flatten() {
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let expected: Vec<usize> = (0..30).filter(|index| !killed.contains(index)).collect();
    assert_eq!(order(&place), expected);
    assert_eq!(queue(&client), [""; 0]);
}

#[test]
fn holders_killed_one_after_another_are_replaced_by_those_who_wait() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["queue"]);
    let client = Client::open(&place.url()).expect("the store");
    let waiting = line_up(&place, &client, 40, &format!("{NOTE}; exec sleep 300"));
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    // Nobody new asks meanwhile, so those who wait have to notice each death by themselves. If
    // that took them seconds, the last ones would run out of patience.
    let mut takeovers = Vec::new();
    let mut killed_at = Instant::now();
    for (number, holder) in waiting.into_iter().enumerate() {
        until("the next holder", || (order(&place).len() > number).then_some(()));
        takeovers.push(killed_at.elapsed());
        killed_at = Instant::now();
        holder.kill();
    }
    assert_eq!(order(&place), Vec::from_iter(0..40));
    let longest = takeovers.iter().max().copied().unwrap_or(Duration::ZERO);
    println!("longest takeover {longest:.1?}");
}

#[test]
fn a_killed_acquire_leaves_the_queue_whatever_its_lease_would_have_been_tied_to() {
    let place = StoreLocation::new();
    let me = std::process::id().to_string();
    for tie in [&[][..], &["--pid", &me]] {
        let (_, grant) = place.acquire(&["queue"]);
        let waiter = place.start(&[&["acquire", "-w", "300", "queue"], tie].concat());
        until("its place", || (place.why("queue")["waiters"].as_array()?.len() == 1).then_some(()));
        waiter.kill();
        assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
        let ended = place.run(&["run", "-n", "queue", "--", "true"]);
        assert_eq!(ended.code, 0, "{tie:?}: {ended:?}");
    }
}

#[test]
fn whoever_queues_behind_the_dead_is_at_the_head() {
    let place = StoreLocation::new();
    let client = Client::open(&place.url()).expect("the store");
    let (_, grant) = place.acquire(&["queue", "--ttl", "10m"]);
    // The last first: each but the first notices the end of the one before it.
    line_up(&place, &client, 12, NOTE).into_iter().rev().for_each(|waiter| drop(waiter.kill()));
    assert_eq!(queue(&client).len(), 12);
    let waiter = place.start(&["run", "-w", "60", "--operation", "alive", "queue", "--", "true"]);
    until("it alone in the queue", || (queue(&client) == ["alive"]).then_some(()));
    assert_eq!(place.run(&["release", "--grant", &grant]).code, 0);
    let ended = waiter.end();
    assert_eq!(ended.code, 0, "{ended:?}");
}
