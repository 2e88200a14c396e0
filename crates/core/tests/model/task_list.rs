//! What should come of each step with tasks: a plain list, judged by brute force.
//!
//! It knows where each task stands and why. Who holds what is read from the records of the store,
//! by names and numbers only; whether holds exclude each other is told by places, one bit each.

use tenure_core::Status;

pub const SECTIONS: [&str; 3] = ["A", "B", "C"];

/// The files of these tests, each with the places that it covers, one bit per place.
pub const FILES: [(&str, u8); 5] =
    [("src/**", 0b0011), ("src/x", 0b0001), ("src/y", 0b0010), ("*/x", 0b0101), ("docs/x", 0b0100)];

pub fn places(path: &str) -> u8 {
    FILES.iter().find(|(name, _)| *name == path).expect("a file of these tests").1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    FailRetry,
    FailFinally,
    Review,
    Snooze { ms: u64 },
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskVerb {
    Approve,
    Reject,
    Cancel,
    Retry,
    Skip,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTask {
    pub section: Option<usize>,
    pub files: Vec<usize>,
    pub priority: u8,
    pub after: Vec<usize>,
    pub max_attempts: u32,
    pub status: Status,
    pub attempts: u32,
    pub recoveries: u32,
    pub not_before_ms: Option<u64>,
    /// Which claim has it, by its number.
    pub claim: Option<usize>,
    /// Which claim finished it.
    pub finished: Option<usize>,
    /// How each of its claims ended, in a word; none for the one that is under way.
    pub tries: Vec<Option<&'static str>>,
}

/// What the model says of a try that ended without its worker's word.
pub const INTERRUPTED: &str = "interrupted";

impl ListedTask {
    fn end_try(&mut self, word: &'static str) {
        *self.tries.last_mut().expect("a claim begins a try") = Some(word);
    }
}

#[derive(Clone, Debug, Default)]
pub struct ListedSection {
    pub paused: bool,
    pub max_runners: Option<u32>,
    pub after: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct TaskList {
    pub now_ms: u64,
    pub tasks: Vec<ListedTask>,
    pub sections: [ListedSection; SECTIONS.len()],
    pub all_paused: bool,
}

impl TaskList {
    pub fn new(now_ms: u64) -> TaskList {
        let section = ListedSection { max_runners: Some(1), ..ListedSection::default() };
        let sections = [section.clone(), section.clone(), section];
        TaskList { now_ms, tasks: vec![], sections, all_paused: false }
    }

    /// How many of those that the task waits for are not done.
    pub fn unmet(&self, task: &ListedTask) -> usize {
        let is_done = |other: &&usize| {
            matches!(self.tasks[**other].status, Status::Completed | Status::Skipped)
        };
        task.after.len() - task.after.iter().filter(is_done).count()
    }

    /// Whether the task waits for nothing of its own.
    pub fn is_ready(&self, task: &ListedTask) -> bool {
        task.status == Status::Pending
            && self.unmet(task) == 0
            && task.not_before_ms.is_none_or(|time| time <= self.now_ms)
    }

    /// Whether tasks of this section are handed out.
    pub fn admits(&self, section: Option<usize>) -> bool {
        let Some(section) = section else { return !self.all_paused };
        let is_open = |other: usize| {
            let of_it = |task: &&ListedTask| task.section == Some(other);
            let is_over = |task: &ListedTask| {
                use Status::*;
                matches!(task.status, Completed | Failed | Cancelled | Skipped)
            };
            self.tasks.iter().filter(of_it).any(|task| !is_over(task))
        };
        let section = &self.sections[section];
        !self.all_paused && !section.paused && !section.after.is_some_and(is_open)
    }

    pub fn claim(&mut self, task: usize, claim: usize) {
        let task = &mut self.tasks[task];
        task.status = Status::InProgress;
        task.attempts += 1;
        task.not_before_ms = None;
        task.claim = Some(claim);
        task.finished = None;
        task.tries.push(None);
    }

    pub fn call_off(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        task.status = Status::Pending;
        task.attempts -= 1;
        task.claim = None;
        task.tries.pop();
    }

    /// Whether this claim ended its task in this way already.
    pub fn is_repeated(&self, task: usize, claim: usize, end: End) -> bool {
        let task = &self.tasks[task];
        let is_same = match end {
            End::Complete => task.status == Status::Completed,
            End::Review => matches!(task.status, Status::Review | Status::Completed),
            End::FailRetry | End::FailFinally => task.status == Status::Failed,
            End::Snooze { .. } | End::Release => false,
        };
        is_same && task.finished == Some(claim)
    }

    pub fn finish(&mut self, task: usize, end: End) {
        let now_ms = self.now_ms;
        let task = &mut self.tasks[task];
        let claim = task.claim.take();
        task.end_try(match end {
            End::Complete => "completed",
            End::Review => "review",
            End::FailRetry | End::FailFinally => "failed",
            End::Snooze { .. } => "snoozed",
            End::Release => "released",
        });
        task.recoveries = 0;
        match end {
            End::Complete => task.status = Status::Completed,
            End::Review => task.status = Status::Review,
            End::FailRetry if task.attempts < task.max_attempts => {
                task.status = Status::Pending;
                // Attempts are few here, so that the pause only doubles.
                task.not_before_ms = Some(now_ms + 5_000 * (1 << (task.attempts - 1)));
            }
            End::FailRetry | End::FailFinally => task.status = Status::Failed,
            End::Snooze { ms } => {
                task.status = Status::Pending;
                task.attempts -= 1;
                task.not_before_ms = Some(now_ms + ms);
            }
            End::Release => {
                task.status = Status::Pending;
                task.attempts -= 1;
            }
        }
        task.finished = claim.filter(|_| task.status != Status::Pending);
    }

    pub fn take_back(&mut self, task: usize, recoveries_max: u32) {
        let task = &mut self.tasks[task];
        task.recoveries += 1;
        task.claim = None;
        task.end_try(INTERRUPTED);
        let is_last = task.recoveries >= recoveries_max || task.attempts >= task.max_attempts;
        task.status = if is_last { Status::Blocked } else { Status::Pending };
    }

    /// Changes a task by hand; says whether that can be.
    pub fn edit(&mut self, task: usize, verb: TaskVerb) -> bool {
        use Status::*;
        let task = &mut self.tasks[task];
        let to = match (verb, task.status) {
            (TaskVerb::Approve, Review) => Completed,
            (TaskVerb::Reject, Review) => Pending,
            (TaskVerb::Cancel, Pending | InProgress | Review | Blocked) => Cancelled,
            (TaskVerb::Retry, Blocked | Failed | Cancelled | Skipped) => Pending,
            (TaskVerb::Skip, Pending | Blocked | Failed) => Skipped,
            _ => return false,
        };
        if verb == TaskVerb::Retry {
            (task.attempts, task.recoveries, task.not_before_ms) = (0, 0, None);
        }
        if to != Completed {
            task.finished = None;
        }
        if task.claim.take().is_some() {
            task.end_try("cancelled");
        }
        task.status = to;
        true
    }
}
