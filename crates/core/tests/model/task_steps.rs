//! Random steps of workers. Each is small and makes sense in any situation, or is skipped.

use super::task_list::{End, FILES, SECTIONS, TaskVerb};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fmt;

/// How many workers there are at a time.
pub const WORKERS: usize = 3;

#[derive(Clone)]
pub enum TaskStep {
    /// A task is added: in which section, with which files, after which tasks.
    Add {
        section: Option<usize>,
        files: Vec<usize>,
        priority: u8,
        after: Vec<Index>,
        max_attempts: u32,
    },
    /// A worker asks for the next tasks, of a section or of any.
    Claim {
        worker: usize,
        count: usize,
        keeps: bool,
        section: Option<usize>,
    },
    /// A worker asks for a task by its name.
    ClaimNamed {
        worker: usize,
        task: Index,
        keeps: bool,
    },
    /// A claim ends, even if it was lost long ago. By its grant, or by a label and the token.
    Finish {
        claim: Index,
        end: End,
        by_label: bool,
    },
    Heartbeat(Index),
    CallOff(Index),
    Edit(Index, TaskVerb),
    Pause {
        section: usize,
        paused: bool,
    },
    PauseAll(bool),
    Limit {
        section: usize,
        max_runners: Option<u32>,
    },
    /// The last section waits for the first, or for none.
    Depend(bool),
    /// An operator breaks one hold.
    Break(Index),
    /// Another takes a file or queues for it.
    Take {
        file: usize,
        queues: bool,
    },
    /// Another gives all of its files back.
    GiveBack,
    /// A worker dies, and another takes its part.
    Kill {
        worker: usize,
    },
    KillOther,
    Pass {
        ms: u64,
    },
    Recover,
    LeaveIdle {
        worker: usize,
    },
}

/// One line per step, so that a failure can be read.
impl fmt::Debug for TaskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |pick: &Index| pick.index(usize::MAX);
        match self {
            TaskStep::Add { section, files, priority, after, max_attempts } => {
                let files: Vec<&str> = files.iter().map(|file| FILES[*file].0).collect();
                let after: Vec<usize> = after.iter().map(number).collect();
                write!(f, "Add(section {section:?}, {files:?}, priority {priority}, ")?;
                write!(f, "after {after:?}, {max_attempts} attempts)")
            }
            TaskStep::Claim { worker, count, keeps, section } => {
                write!(f, "Claim(worker {worker}, {count}, keeps {keeps}, section {section:?})")
            }
            TaskStep::ClaimNamed { worker, task, keeps } => {
                write!(f, "ClaimNamed(worker {worker}, {}, keeps {keeps})", number(task))
            }
            TaskStep::Finish { claim, end, by_label } => {
                write!(f, "Finish({}, {end:?}, by label {by_label})", number(claim))
            }
            TaskStep::Heartbeat(pick) => write!(f, "Heartbeat({})", number(pick)),
            TaskStep::CallOff(pick) => write!(f, "CallOff({})", number(pick)),
            TaskStep::Edit(pick, verb) => write!(f, "Edit({}, {verb:?})", number(pick)),
            TaskStep::Pause { section, paused } => write!(f, "Pause({section}, {paused})"),
            TaskStep::PauseAll(paused) => write!(f, "PauseAll({paused})"),
            TaskStep::Limit { section, max_runners } => {
                write!(f, "Limit({section}, {max_runners:?})")
            }
            TaskStep::Depend(depends) => write!(f, "Depend({depends})"),
            TaskStep::Break(pick) => write!(f, "Break({})", number(pick)),
            TaskStep::Take { file, queues } => {
                write!(f, "Take({}, queues {queues})", FILES[*file].0)
            }
            TaskStep::GiveBack => write!(f, "GiveBack"),
            TaskStep::Kill { worker } => write!(f, "Kill(worker {worker})"),
            TaskStep::KillOther => write!(f, "KillOther"),
            TaskStep::Pass { ms } => write!(f, "Pass({ms} ms)"),
            TaskStep::Recover => write!(f, "Recover"),
            TaskStep::LeaveIdle { worker } => write!(f, "LeaveIdle(worker {worker})"),
        }
    }
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Complete),
        2 => Just(End::FailRetry),
        1 => Just(End::FailFinally),
        1 => Just(End::Review),
        1 => (1..40_u64).prop_map(|ms| End::Snooze { ms }),
        1 => Just(End::Release),
    ]
}

fn any_verb() -> impl Strategy<Value = TaskVerb> {
    prop_oneof![
        1 => Just(TaskVerb::Approve),
        1 => Just(TaskVerb::Reject),
        1 => Just(TaskVerb::Cancel),
        3 => Just(TaskVerb::Retry),
        1 => Just(TaskVerb::Skip),
    ]
}

pub fn any_task_step() -> impl Strategy<Value = TaskStep> {
    let section = || prop::option::weighted(0.7, 0..SECTIONS.len());
    let add = (
        section(),
        prop::collection::vec(0..FILES.len(), 0..=2),
        prop_oneof![Just(50_u8), 0..=100_u8],
        prop::collection::vec(any::<Index>(), 0..=2),
        1..=3_u32,
    );
    let add = add.prop_map(|(section, files, priority, after, max_attempts)| TaskStep::Add {
        section,
        files,
        priority,
        after,
        max_attempts,
    });
    let claim =
        (0..WORKERS, 1..=3_usize, any::<bool>(), prop::option::weighted(0.2, 0..SECTIONS.len()));
    let claim = claim.prop_map(|(worker, count, keeps, section)| TaskStep::Claim {
        worker,
        count,
        keeps,
        section,
    });
    let named = (0..WORKERS, any::<Index>(), any::<bool>());
    let named =
        named.prop_map(|(worker, task, keeps)| TaskStep::ClaimNamed { worker, task, keeps });
    let finish = (any::<Index>(), any_end(), any::<bool>());
    let finish =
        finish.prop_map(|(claim, end, by_label)| TaskStep::Finish { claim, end, by_label });
    let pause = (0..SECTIONS.len(), any::<bool>());
    let limit = (0..SECTIONS.len(), prop::option::of(1..=2_u32));
    prop_oneof![
        6 => add,
        8 => claim,
        4 => named,
        8 => finish,
        3 => any::<Index>().prop_map(TaskStep::Heartbeat),
        1 => any::<Index>().prop_map(TaskStep::CallOff),
        3 => (any::<Index>(), any_verb()).prop_map(|(task, verb)| TaskStep::Edit(task, verb)),
        1 => pause.prop_map(|(section, paused)| TaskStep::Pause { section, paused }),
        1 => prop::bool::weighted(0.3).prop_map(TaskStep::PauseAll),
        1 => limit.prop_map(|(section, max_runners)| TaskStep::Limit { section, max_runners }),
        1 => any::<bool>().prop_map(TaskStep::Depend),
        1 => any::<Index>().prop_map(TaskStep::Break),
        2 => (0..FILES.len(), any::<bool>()).prop_map(|(file, queues)| TaskStep::Take { file, queues }),
        1 => Just(TaskStep::GiveBack),
        1 => (0..WORKERS).prop_map(|worker| TaskStep::Kill { worker }),
        1 => Just(TaskStep::KillOther),
        3 => (1..40_u64).prop_map(|ms| TaskStep::Pass { ms }),
        2 => Just(TaskStep::Recover),
        1 => (0..WORKERS).prop_map(|worker| TaskStep::LeaveIdle { worker }),
    ]
}
