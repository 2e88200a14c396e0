//! The records of which larger ones are made. SQLite has some of them as JSON in its columns, the
//! file store has all of them in its journal.

use super::record::{Form, record, tagged_record, word_record};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure_core::{
    Claim, EventKind, Evidence, FinishedClaim, GrantId, Group, Hold, Holder, Mode, NewEvent, Note,
    Part, Process, Resource, Section, Status, StoredReply, Task, TaskId, Token, Try, TryOutcome,
    Waiter, WallTime, Want, WhyLeft, Workspace,
};

/// A duration, in milliseconds rounded up: a lease that was stored must not end earlier.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Milliseconds(u64);

impl Form<Duration> for Milliseconds {
    fn of(core: &Duration) -> Milliseconds {
        let up = core.as_nanos().div_ceil(1_000_000);
        Milliseconds(u64::try_from(up).unwrap_or(u64::MAX))
    }

    fn into_core(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

record! {
    /// One resource, and how it is wanted.
    WantRecord = Want {
        resource: Resource = resource,
        mode: Mode = mode,
    }
}

record! {
    /// Who holds or waits.
    HolderRecord = Holder {
        label: String = label,
        chosen: bool = chosen,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        agent: bool = agent,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<EvidenceRecord> = evidence,
    }
}

record! {
    /// What ties a holder to a process.
    EvidenceRecord = Evidence {
        host: String = host,
        machine: String = machine,
        boot: String = boot,
        pid_namespace: u64 = pid_namespace,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessRecord> = process,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<GroupRecord> = group,
    }
}

record! {
    /// A process.
    ProcessRecord = Process {
        pid: u32 = pid,
        start: u64 = start,
    }
}

record! {
    /// A process group.
    GroupRecord = Group {
        leader: u32 = leader,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<u64> = start,
    }
}

record! {
    /// One resource held under one grant.
    HoldRecord = Hold {
        want: WantRecord = want,
        grant: GrantId = grant,
        token: Token = token,
        holder: HolderRecord = holder,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String> = operation,
        ttl_ms: Milliseconds = ttl,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot: Option<u32> = slot,
    }
}

record! {
    /// A place in the queue of each wanted resource.
    WaiterRecord = Waiter {
        grant: GrantId = grant,
        ticket: u64 = ticket,
        wants: Vec<WantRecord> = wants,
        holder: HolderRecord = holder,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String> = operation,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keeps: Vec<GrantId> = keeps,
        ttl_ms: Milliseconds = ttl,
    }
}

record! {
    /// Something to be done by one worker.
    TaskRecord = Task::new(id, title, created_at) {
        id: TaskId = id,
        title: String = title,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String> = description,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String> = section,
        status: StatusRecord = status,
        priority: u8 = priority,
        position: i64 = position,
        age: u64 = age,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        depends_on: Vec<TaskId> = depends_on,
        unmet: u32 = unmet,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<String> = labels,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String> = files,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<String> = payload,
        max_attempts: u32 = max_attempts,
        attempts: u32 = attempts,
        recoveries: u32 = recoveries,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<Milliseconds> = timeout,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<WallTime> = not_before,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String> = key,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<ClaimRecord> = claim,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String> = result,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String> = error,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String> = feedback,
        created_at: WallTime = created_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claimed_at: Option<WallTime> = claimed_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<WallTime> = started_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<WallTime> = finished_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_by: Option<String> = finished_by,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_claim: Option<FinishedClaimRecord> = finished_claim,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<NoteRecord> = notes,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tries: Vec<TryRecord> = tries,
    }
}

record! {
    /// What was written about a task for its next worker.
    NoteRecord = Note {
        by: String = by,
        at: WallTime = at,
        text: String = text,
    }
}

record! {
    /// One claim of a task, and how it ended.
    TryRecord = Try {
        number: u32 = number,
        token: Token = token,
        by: String = by,
        claimed_at: WallTime = claimed_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<WallTime> = ended_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<TryOutcomeRecord> = outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String> = error,
        #[serde(flatten)]
        workspace: WorkspaceRecord = workspace,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rescue: Option<String> = rescue,
    }
}

record! {
    /// Where a worker worked.
    WorkspaceRecord = Workspace {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String> = host,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<String> = machine,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<String> = worktree,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String> = branch,
    }
}

word_record! {
    /// How a try ended.
    TryOutcomeRecord = TryOutcome {
        "completed" Completed,
        "failed" Failed,
        "review" Review,
        "released" Released,
        "snoozed" Snoozed,
        "died" Died,
        "lapsed" Lapsed,
        "broken" Broken,
        "lost" Lost,
        "cancelled" Cancelled,
    }
}

word_record! {
    /// Where a task stands.
    StatusRecord = Status {
        "pending" Pending,
        "in_progress" InProgress,
        "review" Review,
        "completed" Completed,
        "failed" Failed,
        "cancelled" Cancelled,
        "blocked" Blocked,
        "skipped" Skipped,
    }
}

record! {
    /// Who has a task.
    ClaimRecord = Claim::new(by, grant, token) {
        by: String = by,
        grant: GrantId = grant,
        token: Token = token,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PartRecord> = parts,
    }
}

record! {
    /// A hold that belongs to a claim.
    PartRecord = Part::new(resource, grant, token) {
        resource: Resource = resource,
        grant: GrantId = grant,
        token: Token = token,
    }
}

record! {
    /// A claim that its worker ended by finishing the task.
    FinishedClaimRecord = FinishedClaim::new(grant, token) {
        grant: GrantId = grant,
        token: Token = token,
    }
}

record! {
    /// A part of the task list.
    SectionRecord = Section {
        name: String = name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_runners: Option<u32> = max_runners,
        priority: u8 = priority,
        position: i64 = position,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        depends_on: Vec<String> = depends_on,
        paused: bool = paused,
    }
}

record! {
    /// What was answered to a request that may be repeated. The text is an answer of the protocol:
    /// see [`wire`](crate::wire).
    ReplyRecord = StoredReply {
        slot: String = slot,
        number: u64 = number,
        text: String = text,
    }
}

record! {
    /// Something that happened.
    EventRecord = NewEvent::new(resource, label, token, kind) {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<Resource> = resource,
        label: String = label,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Token> = token,
        #[serde(flatten)]
        kind: EventKindRecord = kind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String> = actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<WallTime> = at,
    }
}

tagged_record! {
    /// What happened.
    #[serde(tag = "kind")]
    EventKindRecord = EventKind {
        "acquired" Acquired {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            operation: Option<String>,
        }
        "released" Released {}
        "lapsed" Lapsed {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            ended_at: Option<WallTime>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        }
        "died" Died {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        }
        "broken" Broken { by: String, reason: String }
        "waiting" Waiting {}
        "left" Left { why: WhyLeftRecord }
        "deadlock" Deadlock {}
        "added" Added {}
        "updated" Updated {}
        "deleted" Deleted {}
        "noted" Noted { text: String }
        "completed" Completed {}
        "failed" Failed { reason: String, retry: bool }
        "sent_to_review" SentToReview {}
        "approved" Approved {}
        "rejected" Rejected { feedback: String }
        "snoozed" Snoozed {}
        "handed_back" HandedBack {}
        "cancelled" Cancelled {}
        "skipped" Skipped {}
        "retried" Retried {}
        "recovered" Recovered {}
        "set_aside" SetAside {}
        "paused" Paused {}
        "resumed" Resumed {}
        "rebooted" Rebooted {}
    }
}

word_record! {
    /// Why a place in the queue was given up.
    WhyLeftRecord = WhyLeft {
        "gave_up" GaveUp,
        "silent" Silent,
        "died" Died,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_with_a_token_or_a_time_of_its_own_is_written_with_one() {
        let event = NewEvent::new(None, "alice", None, EventKind::Released);
        let line = |event: &NewEvent| serde_json::to_string(&EventRecord::of(event)).unwrap();
        assert_eq!(line(&event), r#"{"label":"alice","kind":"released"}"#);
        let through = event.clone().through(Some("ci".to_owned()));
        assert_eq!(line(&through), r#"{"label":"alice","kind":"released","actor":"ci"}"#);
        let read: EventRecord = serde_json::from_str(&line(&through)).unwrap();
        assert_eq!(read.into_core(), through);
        let older = event.happened_at(WallTime(7));
        assert_eq!(line(&older), r#"{"label":"alice","kind":"released","at":7}"#);
        let read: EventRecord = serde_json::from_str(&line(&older)).unwrap();
        assert_eq!(read.into_core(), older);
    }
}
