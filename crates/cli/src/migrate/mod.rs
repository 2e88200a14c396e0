//! Moving everything from one store to another: what `tenure migrate` does.
//!
//! A migration makes the target equal to the source, in changes of bounded size: it compares a page of
//! tasks on both sides and writes what differs. So it can be killed at any time and goes on when it is
//! started again. What cannot be compared, because events have no names, is counted by the *marker*:
//! a task in the target that says where the history was copied up to. It is written in the same change as
//! the events, and removed at the end.
//!
//! - `side` — the two stores, and reading them page by page.
//! - `held` — what is held in the source, and what becomes of it.
//! - `marker` — the marker, and the pause of both stores.
//! - `copy` — tasks, sections, history and numbers.
//! - `digest` — counts and checksums of a side.

mod copy;
mod digest;
mod held;
mod marker;
mod progress;
mod side;

pub(crate) use digest::Contents;
pub(crate) use held::HeldPolicy;
pub(crate) use progress::Progress;
pub(crate) use side::{Side, copyable, is_same, parse};

use crate::exit::Exit;
use crate::failure::Failure;
use copy::Copier;
use marker::Marker;
use serde_json::json;
use tenure::Wait;
use tenure::core::{Scope, WallTime};
use tenure::store::StoreExt;

/// The label of all that a migration itself records. Events under it are not copied.
pub(crate) const LABEL: &str = "tenure migrate";

/// How to migrate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) held: HeldPolicy,
    /// How long to wait for what is held.
    pub(crate) wait: Wait,
    /// How often a task may come back before it is set aside.
    pub(crate) recoveries_max: u32,
    /// Whether the source stays paused afterwards.
    pub(crate) leave_paused: bool,
    /// How far the numbers of the target are raised above those of the source.
    pub(crate) jump: u64,
}

/// What came of a migration.
#[derive(Debug)]
pub(crate) struct Migrated {
    /// What both sides have.
    pub(crate) contents: Contents,
    /// All numbers of the target are higher.
    pub(crate) numbers_above: u64,
    /// Whether an earlier run had begun it.
    pub(crate) resumed: bool,
    /// How many older events the target did not keep.
    pub(crate) events_dropped: usize,
}

/// Moves all that the source has to the target.
pub(crate) async fn migrate(
    source: &Side,
    target: &Side,
    options: Options,
    progress: &Progress,
) -> Result<Migrated, Failure> {
    if marker::find(&*source.store).await?.is_some() {
        let message = format!("{} has an unfinished migration in it", source.url);
        return Err(Failure::new(Exit::Refused, "SOURCE_UNFINISHED", message)
            .hint("Finish that migration first: run it again."));
    }
    let found = marker::find(&*target.store).await?;
    let resumed = found.is_some();
    let marker = match found {
        Some(marker) => marker.of_source(source, target)?,
        None => {
            if let Err(in_use) = target.refuse_unless_empty().await {
                return finished_before(source, target, options).await?.ok_or(in_use);
            }
            held::check_before(source, options).await?;
            Marker::new(source, target).await?
        }
    };
    let marker = marker.begin(&*target.store).await?;
    marker::pause(&*source.store).await?;
    let worked = work(source, target, options, progress, marker).await;
    match worked {
        Ok((migrated, marker)) => {
            if !options.leave_paused {
                marker.resume(&*source.store).await?;
            }
            marker.finish(&*target.store).await?;
            Ok(Migrated { resumed, ..migrated })
        }
        Err((failure, marker)) => {
            // Workers of the source must not wait for a migration that failed.
            let resumed = marker.resume(&*source.store).await;
            let mut failure = failure;
            if let Err(error) = resumed {
                failure.more.push(format!(
                    "{} is still paused ({}): run `tenure sections resume` there.",
                    source.url, error.message
                ));
            }
            Err(failure)
        }
    }
}

/// What an earlier run came to that had moved everything and was ended before it could say so: then the
/// stores are equal, and nothing is left to do. None where they differ.
async fn finished_before(
    source: &Side,
    target: &Side,
    options: Options,
) -> Result<Option<Migrated>, Failure> {
    let contents = copy::contents(source).await?;
    if contents != copy::contents(target).await? {
        return Ok(None);
    }
    let seen = source.store.read(&Scope::Everything).await.map_err(side::failed)?;
    let numbers_above = copy::highest_number(source, &seen).await? + options.jump;
    // Numbers that were never raised so far are those of a store that was only copied.
    if options.jump > 0 && !copy::is_above(target, numbers_above).await? {
        return Ok(None);
    }
    copy::raise_numbers(source, target, numbers_above).await?;
    Ok(Some(Migrated { contents, numbers_above, resumed: true, events_dropped: 0 }))
}

/// How often a source in use is gone through before it is paused: the first time copies all, the second
/// what changed meanwhile.
const LIVE_ROUNDS: usize = 2;

/// How often a source is gone through while it is paused, until what was in progress no longer changes it.
const PAUSED_ROUNDS: usize = 100;

/// Copies a source that is in use to an empty target, as it was at one moment. Tasks in progress are
/// copied as if their workers had died. The source hands out no tasks in the last rounds; what is being
/// worked on goes on, and may end.
pub(crate) async fn copy_live(
    source: &Side,
    target: &Side,
    recoveries_max: u32,
    progress: &Progress,
) -> Result<Contents, Failure> {
    target.refuse_unless_empty().await?;
    let marker = Marker::new(source, target).await?.begin(&*target.store).await?;
    let mut copier = Copier { source, target, marker, progress, recover: None };
    let copied = rounds(&mut copier, recoveries_max).await;
    copier.marker.resume(&*source.store).await?;
    let contents = copied?;
    copier.marker.finish(&*target.store).await?;
    Ok(contents)
}

async fn rounds(copier: &mut Copier<'_>, recoveries_max: u32) -> Result<Contents, Failure> {
    let source = copier.source;
    for round in 0..LIVE_ROUNDS + PAUSED_ROUNDS {
        if round == LIVE_ROUNDS {
            marker::pause(&*source.store).await?;
        }
        let seen = source.store.read(&Scope::Everything).await.map_err(side::failed)?;
        copier.recover = Some((recoveries_max, seen.wall));
        let highest = copy::highest_number(source, &seen).await?;
        copy::raise_numbers(source, copier.target, highest).await?;
        copier.sections().await?;
        copier.tasks().await?;
        copier.outputs().await?;
        copier.history().await?;
        if copier.is_changed_since(seen.revision).await? {
            continue;
        }
        let verified = copier.verify().await;
        if !copier.is_changed_since(seen.revision).await? {
            return Ok(verified?.contents);
        }
    }
    let message = format!("{} changes too fast to be copied", source.url);
    Err(Failure::new(Exit::Error, "SOURCE_CHANGED", message)
        .hint("Stop what adds or changes tasks without claiming them, and try again."))
}

/// What would be moved, and what is held now.
pub(crate) async fn survey(source: &Side) -> Result<(Contents, Vec<String>), Failure> {
    Ok((copy::contents(source).await?, held::lines(source).await?))
}

/// Gives the source back after a migration was stopped by a signal.
pub(crate) async fn give_back(source: &Side, target: &Side) -> Result<(), Failure> {
    match marker::find(&*target.store).await? {
        Some(marker) => marker.resume(&*source.store).await,
        None => Ok(()),
    }
}

/// All that happens while the source is paused.
async fn work(
    source: &Side,
    target: &Side,
    options: Options,
    progress: &Progress,
    marker: Marker,
) -> Result<(Migrated, Marker), (Failure, Marker)> {
    let mut copier = Copier { source, target, marker, progress, recover: None };
    match steps(&mut copier, options).await {
        Ok(migrated) => Ok((migrated, copier.marker)),
        Err(failure) => Err((failure, copier.marker)),
    }
}

async fn steps(copier: &mut Copier<'_>, options: Options) -> Result<Migrated, Failure> {
    let source = copier.source;
    let begin = held::settle(source, options).await?;
    let seen = source.store.read(&Scope::Everything).await.map_err(side::failed)?;
    copier.recover = options.held.recovers().then_some((options.recoveries_max, seen.wall));
    let numbers_above = copy::highest_number(source, &seen).await? + options.jump;
    copy::raise_numbers(source, copier.target, numbers_above).await?;
    copier.sections().await?;
    copier.tasks().await?;
    copier.outputs().await?;
    copier.history().await?;
    let verified = copier.verify().await?;
    let later = source.store.events(begin, 1).await.map_err(side::failed)?;
    if let Some(event) = later.first() {
        let resource = event.event.resource.as_ref().map(ToString::to_string);
        let message = format!(
            "{} changed meanwhile: {} {} by {}",
            source.url,
            resource.as_deref().unwrap_or("the store"),
            event.event.kind.word(),
            event.event.label
        );
        return Err(Failure::new(Exit::Error, "SOURCE_CHANGED", message)
            .details(json!({ "revision": begin, "resource": resource }))
            .hint("Stop all that uses it and run the same command again: it goes on."));
    }
    Ok(Migrated {
        contents: verified.contents,
        numbers_above,
        resumed: false,
        events_dropped: verified.events_dropped,
    })
}

/// What tasks in progress become on their way: recovered, with at most so many recoveries, at this time.
type Recover = Option<(u32, WallTime)>;
