//! Agents: leases that belong to a label and to no process, renewed and released by hand.

use super::Context;
use crate::checks::{HandHeld, Trusted, Use};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Proof;
use tenure::store::{Renewed, StoreError};
use tenure::world::World;
use tenure::{Error, Lease, LeaseAttempt, Wait};

/// Takes one lease after another.
pub(super) async fn run(context: &Context) {
    while context.goes_on() {
        if let Err(error) = one(context).await {
            context.wait_out(&error).await;
        }
        let pause = context.roll(|dice| dice.time(0, 2500));
        context.sleep(pause).await;
    }
}

async fn one(context: &Context) -> Result<(), Error> {
    let name = context.roll(|dice| *dice.pick(&["a", "b", "path:src/**", "path:docs/x.md"]));
    while hold_once(context, name).await? == Next::AskAgain {
        context
            .say(format_args!("does not know whether {name} is released, and asks for it again"));
    }
    Ok(())
}

/// What an agent does after it has held something.
#[derive(PartialEq, Eq)]
enum Next {
    AskAgain,
    Another,
}

async fn hold_once(context: &Context, name: &str) -> Result<Next, Error> {
    let ttl = context.roll(|dice| dice.time(3000, 9000));
    let Some(lease) = take(context, name, ttl).await? else { return Ok(Next::Another) };
    let held = Arc::new(HandHeld {
        trusted_until: Mutex::new(lease.trusted_until),
        clock: context.world.clock(),
        lease,
    });
    let names = vec![(name.to_owned(), Use::Alone)];
    let trusted = Trusted::Lease(held.clone());
    let registered = context.observer.holds(context.world.pid, &context.who, names, trusted);
    for _ in 0..context.roll(|dice| dice.below(4)) {
        let pause = context.roll(|dice| dice.time(5, 2500));
        context.sleep(pause).await;
        if context.roll(|dice| dice.percent(40)) {
            ask_again(context, name, ttl, &held).await?;
        } else {
            renew(context, name, &held).await?;
        }
    }
    drop(registered);
    // Some forget: the lease ends by itself, or is theirs when they ask again.
    if context.roll(|dice| dice.percent(80)) {
        let proof = match context.roll(|dice| dice.percent(50)) {
            true => Proof::Grant(held.lease.grant),
            false => Proof::Label(held.lease.holder.label.clone()),
        };
        context.say(format_args!("releases {name} token={}", held.lease.token));
        match context.client.release(proof, Some(&held.lease.resources)).await {
            Err(Error::Store(StoreError::Unknown { .. })) => return Ok(Next::AskAgain),
            released => drop(released?),
        }
    }
    Ok(Next::Another)
}

async fn take(context: &Context, name: &str, ttl: Duration) -> Result<Option<Lease>, Error> {
    let wait = Wait::UpTo(context.roll(|dice| dice.time(10, 8000)));
    context.say(format_args!("asks for a lease of {name} wait={wait:?} ttl={ttl:?}"));
    let request = context.client.request(name).wait(wait).ttl(ttl).detached();
    Ok(match request.lease().await? {
        LeaseAttempt::Held(lease) => Some(lease),
        LeaseAttempt::Busy(_) => None,
    })
}

/// What an agent holds already is its own when it asks again, and lasts longer.
async fn ask_again(
    context: &Context,
    name: &str,
    ttl: Duration,
    held: &HandHeld,
) -> Result<(), Error> {
    let is_own = |lease: &Lease| lease.grant == held.lease.grant && lease.token == held.lease.token;
    match take(context, name, ttl).await? {
        Some(lease) if is_own(&lease) => *held.trusted_until.lock() = lease.trusted_until,
        // It had lapsed or was broken: what it has now is another hold, which it gives back.
        Some(lease) => {
            *held.trusted_until.lock() = Duration::ZERO;
            let proof = Proof::Grant(lease.grant);
            context.client.release(proof, Some(&lease.resources)).await?;
        }
        None => *held.trusted_until.lock() = Duration::ZERO,
    }
    Ok(())
}

async fn renew(context: &Context, name: &str, held: &HandHeld) -> Result<(), Error> {
    let lease = &held.lease;
    let asked_at = held.clock.now_with_suspend();
    let margin = lease.ttl / 10;
    let proof = Proof::Grant(lease.grant);
    let renewed = context.client.renew(&proof, Some(&lease.resources), Some(lease.ttl)).await?;
    let is_held = !renewed.is_empty()
        && renewed
            .iter()
            .all(|(seen, renewed)| seen.hold.token == lease.token && *renewed == Renewed::Renewed);
    context.say(format_args!("renews {name} token={}: {is_held}", lease.token));
    let mut until = held.trusted_until.lock();
    // Once trust has ended it does not come back.
    let is_trusted = *until > held.clock.now_with_suspend();
    *until = match is_held && is_trusted {
        true => (asked_at + lease.ttl).saturating_sub(margin),
        false => Duration::ZERO,
    };
    Ok(())
}
