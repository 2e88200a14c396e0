//! Programs that do tasks.

use super::{Context, task_name};
use crate::checks::{Held, Registered, Trusted, Use};
use crate::plan::{BOUND, CALM, Pace, TURBULENT};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Proof;
use tenure::core::rules::tasks::ManualChange;
use tenure::store::TaskFilter;
use tenure::{
    ClaimRequest, Error, Finish, Finished, Next, Runner, Status, Swarm, Wait, Work, WorkEvent,
};

fn request(context: &Context) -> ClaimRequest {
    let ttl = context.roll(|dice| dice.time(3000, 8000));
    ClaimRequest { ttl, section_ttl: ttl, ..ClaimRequest::default() }
}

/// What a claim holds: the task, its files, and its section if that admits only so many.
fn held(work: &Work) -> Vec<Held> {
    let mut held: Vec<Held> =
        work.resources().iter().map(|resource| (resource.to_string(), Use::Alone)).collect();
    match work.task().section.as_deref() {
        Some("narrow") => held.push(("section:narrow".to_owned(), Use::Alone)),
        Some("wide") => held.push(("section:wide".to_owned(), Use::OneOf(2))),
        _ => {}
    }
    // The section may be among the parts of the claim already.
    held.sort_by(|one, other| one.0.cmp(&other.0));
    held.dedup_by(|one, other| one.0 == other.0);
    held
}

fn register(context: &Context, work: &Arc<Work>) -> Registered {
    let id = task_name(work.task());
    context.observer.claimed(&context.who, &id, work.lease().token.0);
    context.observer.holds(context.world.pid, &context.who, held(work), Trusted::Work(work.clone()))
}

/// How a task ends.
fn ending(context: &Context) -> Finish {
    match context.roll(|dice| dice.below(12)) {
        10 => Finish::Snooze { pause: context.roll(|dice| dice.time(100, 3000)) },
        11 => Finish::Review { result: None },
        0 => Finish::failed_for_now("not yet"),
        1 => Finish::failed("never"),
        2 => Finish::Release,
        _ => Finish::completed(),
    }
}

fn work_time(context: &Context) -> Duration {
    // When no faults happen any more, tasks are short: whether all of them end in time must not depend on
    // how many there are for each worker.
    let is_late = context.observer.now() > TURBULENT + CALM;
    context.roll(|dice| match dice.percent(15) {
        _ if is_late => dice.time(5, 50),
        true if context.pace == Pace::Steady => dice.time(3000, 12_000),
        false if context.pace == Pace::Steady => dice.time(5, 2000),
        _ if dice.permille(5) => dice.time(3000, 12_000),
        _ => dice.time(1, 20),
    })
}

/// Workers end when nothing is left to do, and in any case in time to say so.
fn is_over(context: &Context) -> bool {
    context.observer.now() > TURBULENT + CALM + BOUND * 2 / 3
}

/// Whether no task can be done any more: each that is pending waits for one that failed.
async fn is_done(context: &Context) -> bool {
    if context.observer.now() < TURBULENT + CALM {
        return false;
    }
    let list = context.client.tasks();
    review(context).await;
    let with = |status| TaskFilter { status: Some(status), ..TaskFilter::default() };
    let pending = list.list(&with(Status::Pending)).await;
    let in_progress = list.list(&with(Status::InProgress)).await;
    let in_review = list.list(&with(Status::Review)).await;
    pending.is_ok_and(|tasks| tasks.iter().all(|task| task.unmet > 0))
        && in_progress.is_ok_and(|tasks| tasks.is_empty())
        && in_review.is_ok_and(|tasks| tasks.is_empty())
}

/// Looks at what was sent to review: most is fine, the rest is to be done again.
async fn review(context: &Context) {
    let filter = TaskFilter { status: Some(Status::Review), ..TaskFilter::default() };
    for task in context.client.tasks().list(&filter).await.unwrap_or_default() {
        let verb = match context.roll(|dice| dice.percent(80)) {
            true => {
                context.observer.may_complete(task.id.as_str());
                ManualChange::Approve
            }
            false => ManualChange::Reject { feedback: "once more".to_owned() },
        };
        context.say(format_args!("reviews {}: {verb:?}", task.id));
        // Another worker may have reviewed it before.
        let _ = context.client.tasks().edit(&task.id, verb).await;
    }
}

/// Takes one task after another.
pub(super) async fn worker(context: &Context) {
    let runner = Runner::new(&context.client, request(context));
    while !is_over(context) {
        let next = runner.next(Wait::UpTo(Duration::from_secs(3))).await;
        let done = match next {
            Ok(Next::Work(work)) => one(context, &runner, work).await,
            Ok(Next::None(_)) if is_done(context).await => break,
            Ok(Next::None(_)) => runner.leave().await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            context.wait_out(&error).await;
        }
    }
    let _ = runner.leave().await;
}

async fn one(context: &Context, runner: &Runner, work: Work) -> Result<(), Error> {
    let work = Arc::new(work);
    let registered = register(context, &work);
    let lost = tokio::select! {
        biased;
        () = work.lost() => true,
        () = context.sleep(work_time(context)) => false,
    };
    drop(registered);
    let (id, token, parts) = (task_name(work.task()), work.lease().token, held(&work));
    let grant = work.lease().grant;
    let section =
        work.task().claimed_section().map(|part| (part.resource.to_string(), part.token.0));
    // A careless worker reports its end although it was told that its claim is lost.
    if lost && context.roll(|dice| dice.percent(50)) {
        context.say(format_args!("lost {id} token={}", token.0));
        work.abandon().await;
        return Ok(());
    }
    let finish = ending(context);
    let completes = matches!(finish, Finish::Complete { .. });
    context.observer.finishes(&context.who, &id, token.0, completes);
    let broken = section.filter(|(name, token)| context.observer.is_broken_part(name, *token));
    let mut others = context.observer.rivals(&parts);
    let Some(work) = Arc::into_inner(work) else { return Ok(()) };
    let task = work.task().id.clone();
    let mut finished = runner.finish(work, finish.clone()).await;
    // What was done must not be done again because the answer was lost.
    for _ in 0..3 {
        if !matches!(&finished, Err(Error::Store(error)) if error.is_passing()) || !completes {
            break;
        }
        others = context.observer.rivals(&parts);
        let proof = Proof::Grant(grant);
        finished =
            context.client.tasks().finish(&task, proof, Some(token), None, finish.clone()).await;
    }
    if let Finished::Done { repeated, .. } = finished? {
        context.observer.finished_after(&context.who, &id, repeated, broken);
        context.observer.finished_beside(&context.who, &id, &parts, repeated, &others);
        context.observer.finish_accepted(&context.who, &id, token.0, completes, repeated);
    } else {
        context.say(format_args!("the end of {id} token={} is refused", token.0));
    }
    Ok(())
}

/// Two workers of the library's own.
pub(super) async fn swarm(context: &Context) {
    let ends: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let work = {
        let (context, ends) = (context.clone(), ends.clone());
        move |work: Arc<Work>| {
            let (context, ends) = (context.clone(), ends.clone());
            async move {
                let registered = register(&context, &work);
                context.sleep(work_time(&context)).await;
                drop(registered);
                let finish = ending(&context);
                let id = task_name(work.task());
                let token = work.lease().token.0;
                let completes = matches!(finish, Finish::Complete { .. });
                context.observer.finishes(&context.who, &id, token, completes);
                ends.lock().insert(id, token);
                finish
            }
        }
    };
    let watcher = {
        let (context, ends) = (context.clone(), ends.clone());
        move |event| match event {
            WorkEvent::Finished { task, finish, .. } => {
                let id = task_name(&task);
                let completes = matches!(finish, Finish::Complete { .. });
                let Some(token) = ends.lock().get(&id).copied() else { return };
                // Whether the store had accepted it before is not told here.
                context.observer.finish_accepted(&context.who, &id, token, completes, true);
            }
            WorkEvent::Lost { task, .. } => context.say(format_args!("lost {}", task.id)),
            WorkEvent::Trouble { message, .. } => context.say(format_args!("trouble: {message}")),
            _ => {}
        }
    };
    let swarm = Swarm::new(&context.client, request(context)).workers(2).forever();
    let stopper = swarm.stopper();
    let run = swarm.run(work, watcher);
    let end = async {
        while !is_over(context) && !is_done(context).await {
            context.sleep(Duration::from_secs(1)).await;
        }
        stopper.stop(tenure::Stop::Drain);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        report = run => {
            if let Err(error) = report {
                context.say(format_args!("the swarm ends: {error}"));
            }
        }
        () = end => {}
    }
}
