//! Deliberate faults, each of which some checker must notice.
//!
//! They are made here, around the store and the world that the client is given, never in the code that
//! is tested. Those of the store are in `engine.rs`, those of time and processes in `machines.rs` and
//! `world.rs`, those of the way to the store in `network.rs`.

use std::collections::BTreeMap;
use std::time::Duration;
use tenure::core::{Change, Decision, GrantId, Resource, Snapshot, Token, Write};
use tenure::store::Decide;

macro_rules! mutants {
    ($($name:ident, $word:literal, $what:literal;)+) => {
        /// A deliberate fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $(#[doc = $what] $name,)+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Mutant] = &[$(Mutant::$name),+];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Mutant::$name => $word,)+ }
            }

            /// What it does wrong.
            pub fn what(self) -> &'static str {
                match self { $(Mutant::$name => $what,)+ }
            }
        }
    };
}

mutants! {
    RenewAlways, "renew-always", "a renewal succeeds without a look at grant, token and time, and looks fail";
    RenewForgets, "renew-forgets", "a heartbeat is accepted and does not extend the lease (seed 002)";
    RenewFirstPart, "renew-first-part", "a renewal of several resources extends only the first";
    TrustFromAnswer, "trust-from-answer", "trust is counted from the answer instead of the request";
    NoMargin, "no-margin", "trust ends when the lease ends, without a margin for clocks that drift";
    SuspendIsNotCounted, "suspend-not-counted", "trust is counted by a clock that stands still during suspend";
    StoreClockIsSet, "store-clock-is-set", "the store judges leases by a clock that can be set";
    LostWake, "lost-wake", "no waiter is woken when something is given back";
    ActsWithoutLooking, "acts-without-looking", "a program starts its work without a look at its lease";
    Barging, "barging", "a new request does not look at those that wait";
    BargingReaders, "barging-readers", "a shared request does not look at those that wait";
    BargingSlots, "barging-slots", "a request for a slot does not look at those that wait";
    BargingPaths, "barging-paths", "a request for a path does not look at those that wait";
    TaskKeepsToken, "task-keeps-token", "a recovered task is claimed with its old token";
    TokensRestart, "tokens-restart", "the numbers of the store go back when it is restarted";
    UnknownIsDead, "unknown-is-dead", "a holder of which nothing is known counts as dead";
    StoppedIsDead, "stopped-is-dead", "a holder that is stopped counts as dead";
    KeeperOutlivesProcess, "keeper-outlives-process", "renewals go on after the process is killed";
    RepeatRuns, "repeat-runs", "a repeated request is carried out again";
    UnknownIsUnavailable, "unknown-is-unavailable", "an unknown outcome is reported as nothing written";
    CheckThenWrite, "check-then-write", "the store looks, decides, and writes later (seeds 000, 003, 004)";
    TaskListLastWriter, "task-list-last-writer", "tasks are read, changed and written back without a lock (seed 001)";
    YoungIsFree, "young-is-free", "a lock that is not yet written whole counts as free (seeds 000, 004)";
    OldLockIsFree, "old-lock-is-free", "a lock counts as free once it is old, though it is renewed";
    OldClaimIsFree, "old-claim-is-free", "a task is rescued by its age while its worker lives";
    ReleaseByName, "release-by-name", "a release does not look whose hold it ends (seed 000)";
    FinishByLabel, "finish-by-label", "a finish is accepted from an earlier holder of the task";
    ReadersIgnoreWriter, "readers-ignore-writer", "a shared request does not look at who has it alone";
    OneSlotMore, "one-slot-more", "one more than the slots is admitted";
    PathsAsText, "paths-as-text", "paths exclude each other only if they are written alike";
    DependenciesIgnored, "dependencies-ignored", "a task is ready before what it depends on";
    SectionIgnored, "section-ignored", "a claim does not look at who has the section";
    FilesIgnored, "files-ignored", "a claim does not look at who has its files";
    LockNotWritten, "lock-not-written", "some grants are answered and not written";
    TaskNotWritten, "task-not-written", "some changes of tasks are answered and not written";
    EventsMissing, "events-missing", "some changes record no events";
    EventsTwice, "events-twice", "some changes record their events twice";
    EventsReversed, "events-reversed", "the events of a change are recorded in the wrong order";
    ShorterLease, "shorter-lease", "the store ends a lease earlier than it was asked for";
    RenewHalf, "renew-half", "a renewal extends a lease by half of its length";
    RenewSkipsSections, "renew-skips-sections", "a renewal of a section is accepted and not written";
    RenewSkipsFiles, "renew-skips-files", "a renewal of a claim leaves out its files";
    CompletionLost, "completion-lost", "some completed tasks are pending again";
    RestartForgetsHolds, "restart-forgets-holds", "the store forgets what is held when it is restarted";
    SplitBrain, "split-brain", "processes that start after a restart use another store";
    HalfOfMany, "half-of-many", "of several resources asked for together only the first is taken";
    FinishIgnoresParts, "finish-ignores-parts", "a finish looks at the task alone, not at the section and files of its claim";
    FinishAfterLoss, "finish-after-loss", "a finish is accepted after its claim was ended, if no other has the task";
    CloneIsReboot, "clone-is-reboot", "another boot under the same machine id counts as a reboot";
    CyclesIgnored, "cycles-ignored", "a wait that closes a cycle with another program is not refused";
    SelfDeadlock, "self-deadlock", "a wait for what the same program keeps is not refused";
    ReplyApart, "reply-apart", "a reply is stored apart from its change, and sometimes lost";
    ReplyOfAnotherSlot, "reply-of-another-slot", "a request is answered by the reply to another caller's";
    TrustByWallClock, "trust-by-wall-clock", "trust is counted by a clock that can be set";
    GrantsRepeat, "grants-repeat", "processes of one machine make up the same grants";
    WaitsOnlyForWake, "waits-only-for-wake", "a waiter never looks again by itself";
    CoversAnotherOwner, "covers-another-owner", "a lease covers what an agent of another label asks for";
    LateRequests, "late-requests", "a request is carried out after its sender gave it up";
    ReleaseNotWritten, "release-not-written", "some releases are answered and not written, while renewals go on";
}

/// Makes leases shorter where they are written.
pub fn shorten(change: &mut Change, by: Duration) {
    for write in &mut change.writes {
        match write {
            Write::Hold(hold) => hold.ttl = hold.ttl.saturating_sub(by),
            Write::Extend { ttl, .. } => *ttl = ttl.saturating_sub(by),
            _ => {}
        }
    }
}

/// What a process held before, by which a forgetful store takes it for the holder of now.
#[derive(Default)]
pub struct ForgetfulProof {
    before: BTreeMap<String, (GrantId, Token)>,
}

impl ForgetfulProof {
    /// Decides on a snapshot in which what others hold looks like what this process held.
    pub fn decide(
        &mut self,
        mutant: Option<Mutant>,
        seen: &Snapshot,
        decide: &mut Decide,
    ) -> Decision {
        let mut shown = seen.clone();
        let mut real: Vec<(Resource, GrantId, GrantId)> = Vec::new();
        for seen in &mut shown.holds {
            let is_task = seen.hold.want.resource.to_string().starts_with("task:");
            let meant = (mutant == Some(Mutant::FinishByLabel)) == is_task;
            let name = seen.hold.want.resource.to_string();
            if let Some((grant, token)) = self.before.get(&name).filter(|_| meant) {
                real.push((seen.hold.want.resource.clone(), *grant, seen.hold.grant));
                (seen.hold.grant, seen.hold.token) = (*grant, *token);
            }
        }
        for task in shown.tasks.iter_mut().filter(|_| mutant == Some(Mutant::FinishByLabel)) {
            let name = format!("task:{}", task.id);
            if let (Some(claim), Some((grant, token))) = (&mut task.claim, self.before.get(&name)) {
                (claim.grant, claim.token) = (*grant, *token);
            }
        }
        let mut decision = decide(&shown);
        if let Decision::Write(change) = &mut decision {
            for write in &mut change.writes {
                match write {
                    Write::Hold(hold) => {
                        let name = hold.want.resource.to_string();
                        self.before.insert(name, (hold.grant, hold.token));
                    }
                    Write::DropHold { resource, grant } => {
                        let found =
                            real.iter().find(|(one, own, _)| one == resource && own == grant);
                        if let Some((_, _, theirs)) = found {
                            *grant = *theirs;
                        }
                    }
                    _ => {}
                }
            }
        }
        decision
    }
}
