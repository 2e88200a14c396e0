//! What is held and worked on in the source, and what becomes of it.

use super::Options;
use super::side::{Side, failed};
use crate::exit::Exit;
use crate::failure::Failure;
use clap::ValueEnum;
use serde_json::json;
use std::time::Duration;
use tenure::Wait;
use tenure::core::rules::tasks::recover;
use tenure::core::{
    Decision, Hold, HoldSnapshot, Holder, Mode, NoWitness, Revision, Scope, Snapshot, Status, Task,
    WallTime, Want, Write,
};
use tenure::store::StoreExt;

/// What becomes of holds and of tasks in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeldPolicy {
    /// Nothing is moved while anything is held, waited for or in progress
    Refuse,
    /// Wait until nothing is
    Wait,
    /// Holds stay behind, and tasks in progress are taken back as if their workers had died
    Drop,
}

impl HeldPolicy {
    /// Whether tasks in progress are recovered on their way.
    pub(super) fn recovers(self) -> bool {
        self == HeldPolicy::Drop
    }
}

/// How often it is looked whether something is still held: a lease that lapses sends no message.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What keeps a store from being moved.
struct Busy {
    lines: Vec<String>,
    revision: Revision,
}

async fn look(source: &Side) -> Result<Busy, Failure> {
    let seen = source.store.read(&Scope::Everything).await.map_err(failed)?;
    let witness = source.client.witness();
    let holds = seen.holds.iter().filter(|held| !held.gone(witness)).map(|held| {
        let Hold { want, holder, .. } = &held.hold;
        format!("{} is held by {}", want.resource, holder.label)
    });
    let waiters = seen.waiters.iter().filter(|place| !place.gone(witness)).map(|place| {
        let wants: Vec<String> =
            place.waiter.wants.iter().map(|want| want.resource.to_string()).collect();
        format!("{} waits for {}", place.waiter.holder.label, wants.join(", "))
    });
    let mut lines: Vec<String> = holds.chain(waiters).collect();
    let working = source.client.tasks().in_progress().await?;
    let working = working.tasks.iter().filter(|task| task.status == Status::InProgress);
    lines.extend(working.map(|task| {
        let by = task.claim.as_ref().map_or("another program", |claim| claim.by.as_str());
        format!("task:{} is in progress by {by}", task.id)
    }));
    Ok(Busy { lines, revision: seen.revision })
}

/// How many lines of what is held are shown.
const LINES_SHOWN: usize = 10;

impl Busy {
    fn refuse(self, source: &Side, options: Options) -> Failure {
        let count = self.lines.len();
        let message = match count {
            1 => format!("{} is in use: {}", source.url, self.lines[0]),
            _ => format!("{} is in use by {count} holds, waiters and tasks", source.url),
        };
        let hint = match options.held {
            HeldPolicy::Wait => "Stop its workers, or wait longer with -w.",
            _ => {
                "Stop its workers first, wait for them with --held wait, or leave them behind with --held drop."
            }
        };
        let mut failure = Failure::new(Exit::Locked, "HELD", message)
            .details(json!({ "held": self.lines }))
            .hint(hint);
        if count > 1 {
            failure.more =
                self.lines.iter().take(LINES_SHOWN).map(|line| format!("  {line}")).collect();
            if count > LINES_SHOWN {
                failure.more.push(format!("  … and {} more", count - LINES_SHOWN));
            }
        }
        // The exit code alone does not say what is in the way.
        failure.is_answer = false;
        failure
    }
}

/// What is held now, one line each.
pub(super) async fn lines(source: &Side) -> Result<Vec<String>, Failure> {
    Ok(look(source).await?.lines)
}

/// Refuses at once, before anything is written, where nothing is waited for.
pub(super) async fn check_before(source: &Side, options: Options) -> Result<(), Failure> {
    if options.held != HeldPolicy::Refuse {
        return Ok(());
    }
    let busy = look(source).await?;
    if busy.lines.is_empty() { Ok(()) } else { Err(busy.refuse(source, options)) }
}

/// Waits or refuses, as told; the source is paused, so that no new task is taken meanwhile. Returns the
/// revision at which nothing was held: what is taken later has a higher one.
pub(super) async fn settle(source: &Side, options: Options) -> Result<Revision, Failure> {
    let begin = std::time::Instant::now();
    loop {
        if options.held == HeldPolicy::Wait {
            // Tasks of dead workers come back by this, not by themselves.
            source.client.tasks().recover().await?;
        }
        let busy = look(source).await?;
        if busy.lines.is_empty() || options.held == HeldPolicy::Drop {
            return Ok(busy.revision);
        }
        let left = match (options.held, options.wait) {
            (HeldPolicy::Wait, Wait::Forever) => LOOK_EVERY,
            (HeldPolicy::Wait, Wait::UpTo(limit)) => limit.saturating_sub(begin.elapsed()),
            _ => Duration::ZERO,
        };
        if left.is_zero() {
            return Err(busy.refuse(source, options));
        }
        source.client.changed(busy.revision, left.min(LOOK_EVERY)).await?;
    }
}

/// This task as it is moved: one in progress as if its worker had fallen silent.
pub(super) fn recovered(task: Task, recoveries_max: u32, wall: WallTime) -> Task {
    if task.status != Status::InProgress {
        return task;
    }
    let holds = task.claim.iter().flat_map(|claim| {
        let own = (task.id.resource(), claim.grant, claim.token);
        let parts = claim.parts.iter();
        let parts = parts.map(|part| (part.resource.clone(), part.grant, part.token));
        std::iter::once(own).chain(parts).map(|(resource, grant, token)| HoldSnapshot {
            hold: Hold {
                want: Want { resource, mode: Mode::Exclusive },
                grant,
                token,
                holder: Holder::anonymous(claim.by.clone()),
                operation: None,
                ttl: Duration::ZERO,
                slot: None,
            },
            left: Duration::ZERO,
            held_for: Duration::ZERO,
            acquired_at: wall,
            renewed_at: wall,
            expires_at: wall,
            stale: None,
        })
    });
    let seen =
        Snapshot { holds: holds.collect(), tasks: vec![task.clone()], wall, ..Snapshot::empty() };
    let (decision, _) = recover(&seen, recoveries_max, None, &NoWitness);
    let Decision::Write(change) = decision else { return task };
    let written = change.writes.into_iter().find_map(|write| match write {
        Write::Task(recovered) if recovered.id == task.id => Some(*recovered),
        _ => None,
    });
    written.unwrap_or(task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::{Claim, GrantId, Part, Token, TryOutcome};

    #[test]
    fn a_task_in_progress_comes_back_as_if_its_worker_had_fallen_silent() {
        let mut task = Task::new("t".parse().unwrap(), "T", WallTime(1));
        let unchanged = recovered(task.clone(), 3, WallTime(9));
        assert_eq!(unchanged, task);
        task.status = Status::InProgress;
        task.attempts = 1;
        let mut claim = Claim::new("w1", GrantId::from_bits(7), Token(5));
        let file = "path:src/**".parse().unwrap();
        claim.parts.push(Part::new(file, GrantId::from_bits(7), Token(5)));
        task.claim = Some(claim);
        let back = recovered(task.clone(), 3, WallTime(9));
        assert_eq!(
            (back.status, back.recoveries, back.claim.is_none()),
            (Status::Pending, 1, true)
        );
        let last = back.tries.last().unwrap();
        assert_eq!((last.outcome, last.ended_at), (Some(TryOutcome::Lapsed), Some(WallTime(9))));
        assert_eq!(recovered(task, 1, WallTime(9)).status, Status::Blocked);
    }
}
