//! Programs that hold locks and paths.

use super::Context;
use crate::checks::{Held, Registered, Trusted, Use};
use crate::mutant::Mutant;
use crate::plan::Pace;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Evidence;
use tenure::{Attempt, Broken, Error, Guard, ReleaseOutcome, Request, Wait};

/// What a program asks for once.
struct Wish {
    held: Vec<Held>,
    wait: Wait,
    ttl: Duration,
    work: Duration,
}

const PATHS: [&str; 6] = [
    "path:src/**",
    "path:src/*.rs",
    "path:src/a.rs",
    "path:src/deep/**",
    "path:docs/**",
    "path:docs/x.md",
];

fn wish(context: &Context, only_queue: bool) -> Wish {
    context.roll(|dice| {
        let alone =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Use::Alone)).collect();
        let held: Vec<Held> = match dice.below(9) {
            _ if only_queue => alone(&["q"]),
            0 => alone(&["a"]),
            1 => alone(&["b"]),
            2 => alone(&["b", "a"]),
            3 => vec![("s".to_owned(), Use::Shared)],
            4 => vec![("s".to_owned(), if dice.percent(50) { Use::Alone } else { Use::Shared })],
            5 | 6 => vec![("n".to_owned(), Use::OneOf(2))],
            _ => alone(&[*dice.pick::<&str>(&PATHS)]),
        };
        let wait = match dice.below(10) {
            0 => Wait::No,
            1 | 2 => Wait::UpTo(dice.time(10, 8000)),
            _ => Wait::Forever,
        };
        let ttl = dice.time(3000, 9000);
        let work = match context.pace {
            Pace::Steady if dice.percent(20) => dice.time(3000, 16_000),
            Pace::Steady => dice.time(5, 1500),
            Pace::Busy if dice.permille(2) => dice.time(3000, 12_000),
            Pace::Busy if dice.permille(5) => dice.time(100, 3000),
            Pace::Busy => dice.time(0, 10),
        };
        Wish { held, wait, ttl, work }
    })
}

/// Takes one thing after another.
pub(super) async fn run(context: &Context, only_queue: bool) {
    while context.goes_on() {
        let wish = wish(context, only_queue);
        if let Err(error) = one(context, wish).await {
            context.wait_out(&error).await;
        }
        let pause = context.roll(|dice| match context.pace {
            Pace::Busy if dice.permille(990) => dice.time(0, 10),
            _ => dice.time(0, 1500),
        });
        context.sleep(pause).await;
    }
}

fn request(context: &Context, wish: &Wish) -> Request {
    let mut request = context.client.request(wish.held[0].0.as_str());
    for (name, _) in &wish.held[1..] {
        request = request.also(name.as_str());
    }
    request = match wish.held[0].1 {
        Use::Alone => request,
        Use::Shared => request.shared(),
        Use::OneOf(most) => request.slots(most as u32),
    };
    match context.world.machines.mutant() {
        Some(Mutant::NoMargin) => request.margin(Duration::ZERO),
        _ => request,
    }
}

async fn one(context: &Context, wish: Wish) -> Result<(), Error> {
    let (observer, who, pid) = (&context.observer, &context.who, context.world.pid);
    let names: Vec<&str> = wish.held.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(" ");
    context.say(format_args!(
        "asks for {names} {:?} wait={:?} ttl={:?}",
        wish.held[0].1, wish.wait, wish.ttl
    ));
    let patience = match wish.wait {
        Wait::Forever => None,
        Wait::UpTo(patience) => Some(patience),
        Wait::No => Some(Duration::ZERO),
    };
    let waiter = observer.asks(pid, who, &wish.held, patience);
    let request = request(context, &wish).wait(wish.wait).ttl(wish.ttl).on_wait({
        let observer = observer.clone();
        move |_| observer.waits(waiter)
    });
    let guard = match request.hold().await {
        Ok(Attempt::Held(guard)) => guard,
        Ok(Attempt::Busy(_)) => {
            context.say(format_args!("does not get {names}"));
            observer.gives_up(waiter);
            return Ok(());
        }
        Err(error) => {
            observer.gives_up(waiter);
            return Err(error);
        }
    };
    let guard = Arc::new(guard);
    let trusted = Trusted::Guard(guard.clone());
    let registered = observer.holds(pid, who, wish.held.clone(), trusted);
    observer.served(waiter);
    // It is held up before it starts anything: by a slow reader of what it prints, or by a stop.
    let is_held_up = context.roll(|dice| match context.pace {
        Pace::Steady => dice.percent(25),
        Pace::Busy => dice.permille(5),
    });
    if is_held_up {
        let pause = context.roll(|dice| dice.time(0, 3000));
        context.sleep(pause).await;
    }
    if guard.is_held() || context.world.machines.mutant() == Some(Mutant::ActsWithoutLooking) {
        observer.starts(who, &names, &Trusted::Guard(guard.clone()));
        work(context, &wish, &guard).await;
    } else {
        context.say(format_args!("lost {names} before it started"));
    }
    end(context, &names, guard, registered).await
}

/// Writes while it holds, and sometimes after it has lost what it held.
async fn work(context: &Context, wish: &Wish, guard: &Arc<Guard>) {
    let trusted = Trusted::Guard(guard.clone());
    let (name, usage) = &wish.held[0];
    let token = guard.token();
    let write = |is_careful: bool| {
        if *usage == Use::Alone && (guard.is_held() || !is_careful) {
            context.observer.write(&context.who, name, token.0, &trusted);
        }
    };
    write(true);
    // Some programs wait for the loss of what they hold, others only ask now and then.
    let waits_for_loss = context.roll(|dice| dice.percent(60));
    let lost = tokio::select! {
        biased;
        () = guard.lost(), if waits_for_loss => true,
        () = context.sleep(wish.work) => false,
    };
    if lost {
        context.say(format_args!("lost {name} token={}", token.0));
    }
    let (confirms, verifies) = match context.pace {
        Pace::Steady => (40, 15),
        Pace::Busy => (4, 2),
    };
    if *usage == Use::Alone && context.roll(|dice| dice.percent(confirms)) {
        let before = context.observer.users_alone(name);
        if let Ok(true) = guard.confirm().await {
            context.observer.confirmed(&context.who, name, token.0, &before);
        }
    }
    // A careless program does not look before its last write.
    let is_careful = context.roll(|dice| dice.percent(50));
    write(is_careful);
    if lost || context.roll(|dice| dice.percent(verifies)) {
        let before = context.observer.users_alone(name);
        if let Ok(answer) = context.client.verify(name.as_str(), token).await {
            context.observer.verified(name, token.0, &before, &answer);
        }
    }
}

async fn end(
    context: &Context,
    names: &str,
    guard: Arc<Guard>,
    registered: Registered,
) -> Result<(), Error> {
    drop(registered);
    let Some(guard) = Arc::into_inner(guard) else { return Ok(()) };
    let token = guard.token().0;
    if context.roll(|dice| dice.percent(10)) {
        context.say(format_args!("drops {names} token={token}"));
        drop(guard);
        return Ok(());
    }
    context.say(format_args!("releases {names} token={token}"));
    let outcome = guard.release().await?;
    context.say(format_args!("released {names} token={token}: {outcome:?}"));
    if outcome == ReleaseOutcome::Released {
        context.observer.released(names);
    }
    Ok(())
}

/// Breaks what another program holds, now and then.
pub(super) async fn operator(context: &Context) {
    while context.goes_on() {
        let pause = context.roll(|dice| dice.time(1000, 6000));
        context.sleep(pause).await;
        let name = context.roll(|dice| *dice.pick(&["a", "b", "s", "x", "section:narrow"]));
        let Ok(resource) = name.parse() else { continue };
        let Ok(seen) = context.client.look(&[resource]).await else { continue };
        let Some(hold) = seen.holds.first() else { continue };
        let token = hold.hold.token;
        context.say(format_args!("breaks {name} token={}", token.0));
        match (name.starts_with("section:"), &hold.hold.holder.evidence) {
            // The claims that go with a section have tokens of their own.
            (true, Some(Evidence { process: Some(process), .. })) => {
                context.observer.breaks_part(name, process.pid);
            }
            (true, _) => continue,
            (false, _) => context.observer.breaks(name, token.0),
        }
        match context.client.break_hold(name, token, "to see what happens").await {
            Ok(Broken::Ended(_)) if name.starts_with("section:") => {
                context.observer.broke_part(name, token.0);
            }
            Ok(Broken::Ended(_)) => context.observer.broke(name, token.0),
            Ok(_) => {}
            Err(error) => context.wait_out(&error).await,
        }
    }
}
