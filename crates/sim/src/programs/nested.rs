//! Programs that ask for one lock while they keep another: a wait that can never end is refused.

use super::Context;
use crate::checks::{Registered, Trusted, Use};
use std::sync::Arc;
use std::time::Duration;
use tenure::{Attempt, Error, Guard, Request, Wait};

/// Takes two locks, one after the other, in any order.
pub(super) async fn run(context: &Context) {
    while context.goes_on() {
        if let Err(error) = both(context).await {
            context.wait_out(&error).await;
        }
        let pause = context.roll(|dice| dice.time(0, 1500));
        context.sleep(pause).await;
    }
}

async fn both(context: &Context) -> Result<(), Error> {
    let (first, second) = context.roll(|dice| match dice.below(10) {
        0 => ("x", "x"),
        1..=5 => ("x", "y"),
        _ => ("y", "x"),
    });
    let Some((outer, registered)) = take(context, first, context.client.request(first)).await?
    else {
        return Ok(());
    };
    pause(context, 0, 400).await;
    let request = context.client.request(second).while_holding(outer.grant());
    match take(context, second, request).await {
        Ok(Some((inner, inner_registered))) => {
            pause(context, 5, 1500).await;
            give_back(context, second, inner, inner_registered).await?;
        }
        Ok(None) => {}
        Err(Error::Deadlock(cycle)) => context.say(format_args!("deadlock: {cycle}")),
        Err(error) => {
            give_back(context, first, outer, registered).await?;
            return Err(error);
        }
    }
    give_back(context, first, outer, registered).await
}

async fn pause(context: &Context, from_ms: u64, to_ms: u64) {
    let time = context.roll(|dice| dice.time(from_ms, to_ms));
    context.sleep(time).await;
}

async fn take(
    context: &Context,
    name: &str,
    request: Request,
) -> Result<Option<(Arc<Guard>, Registered)>, Error> {
    let ttl = context.roll(|dice| dice.time(3000, 9000));
    context.say(format_args!("asks for {name} ttl={ttl:?}"));
    Ok(match request.wait(Wait::Forever).ttl(ttl).hold().await? {
        Attempt::Held(guard) => {
            let guard = Arc::new(guard);
            let held = vec![(name.to_owned(), Use::Alone)];
            let (pid, trusted) = (context.world.pid, Trusted::Guard(guard.clone()));
            let registered = context.observer.holds(pid, &context.who, held, trusted);
            Some((guard, registered))
        }
        Attempt::Busy(_) => None,
    })
}

async fn give_back(
    context: &Context,
    name: &str,
    guard: Arc<Guard>,
    registered: Registered,
) -> Result<(), Error> {
    drop(registered);
    if let Some(guard) = Arc::into_inner(guard) {
        let outcome = tokio::time::timeout(Duration::from_secs(60), guard.release()).await;
        context.say(format_args!("releases {name}: {:?}", outcome.map(|one| one.is_ok())));
    }
    Ok(())
}
