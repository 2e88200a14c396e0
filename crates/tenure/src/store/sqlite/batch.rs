//! Durable changes of several callers that share one sync.
//!
//! A sync takes a hundred times as long as the rest of a change. So durable changes are
//! queued, and one thread makes all that are queued, one after the other, in one transaction. One
//! commit makes them durable, while the next ones queue up. No caller is answered before that commit;
//! also one that changed nothing waits, since what it saw may be part of it. A caller that blocks its thread
//! anyway makes its change there if no other process writes: to wake another thread and be woken by it
//! takes a tenth of the time of a change.
//!
//! A change that cannot be shown what it looks at fails alone. One that fails while it is written,
//! which is for want of space or a broken disk, takes all of its batch with it: savepoints would
//! tell them apart, and cost every change a tenth of its time.

use super::error::{self, Stage};
use super::session::Session;
use super::{Inner, SqlTransaction, Synchronous, WriteTurn, Written};
use crate::platform::fork;
use crate::store::{Committed, StoreError, Transaction};
use crate::world::own_thread;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// So many share a commit at most: others who want to write should get their turn.
const TOGETHER_MAX: usize = 128;

/// A change whose caller waits for its commit.
struct Job {
    transaction: Transaction,
    answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// Changes to be made together.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Job>,
    /// Whether a thread makes them.
    is_served: bool,
}

impl Queue {
    /// Adds a job; says whether a thread must be found that serves the queue.
    fn add(&self, job: Job) -> bool {
        let mut state = self.state();
        state.waiting.push(job);
        !std::mem::replace(&mut state.is_served, true)
    }

    /// The next jobs; nothing if there are none, and then the queue is not served any more.
    fn take(&self) -> Option<Vec<Job>> {
        let mut state = self.state();
        state.is_served = !state.waiting.is_empty();
        let count = state.waiting.len().min(TOGETHER_MAX);
        state.is_served.then(|| state.waiting.drain(..count).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Serves the queue until it is empty.
struct Server {
    inner: Arc<Inner>,
    is_done: bool,
}

impl Server {
    fn next_jobs(&self) -> Option<Vec<Job>> {
        let _inside = fork::inside();
        self.inner.queue.take()
    }

    /// Makes these, and then all that are queued, on a thread that may wait for other processes.
    fn run(self, first: Option<Vec<Job>>) {
        let mut next = first.or_else(|| self.next_jobs());
        while let Some(jobs) = next {
            self.make(WriteTurn::wait_for(&self.inner.writer), jobs);
            next = self.next_jobs();
        }
        self.end();
    }

    /// Makes what is queued now, on the caller's thread, and leaves the rest to another one.
    fn run_here(self, turn: WriteTurn) {
        if let Some(jobs) = self.next_jobs() {
            self.make(Ok(turn), jobs);
        }
        match self.next_jobs() {
            Some(jobs) => drop(tokio::task::spawn_blocking(move || self.run(Some(jobs)))),
            None => self.end(),
        }
    }

    /// A rule that panics ends its own batch; later jobs are served.
    fn make(&self, turn: io::Result<WriteTurn>, jobs: Vec<Job>) {
        let make = std::panic::AssertUnwindSafe(|| self.inner.make(turn, jobs));
        let _ = std::panic::catch_unwind(make);
    }

    /// From here on the queue is another's.
    fn end(mut self) {
        self.is_done = true;
        // This may be the last handle, which closes the database.
        let _inside = fork::inside();
        drop(self);
    }
}

impl Drop for Server {
    /// A runtime that ends never runs what it was given: the next who comes must not wait for us,
    /// and its callers get an error.
    fn drop(&mut self) {
        while !self.is_done && self.inner.queue.take().is_some() {}
    }
}

impl Inner {
    /// Has a change made together with those of others.
    pub(super) async fn transact_together(
        self: &Arc<Inner>,
        transaction: Transaction,
    ) -> Result<Committed, StoreError> {
        self.check_identity()?;
        let (answer, answered) = oneshot::channel();
        if self.queue.add(Job { transaction, answer }) {
            let server = Server { inner: self.clone(), is_done: false };
            match own_thread::is_blocked().then(|| self.turn_now()).flatten() {
                Some(turn) => server.run_here(turn),
                None => drop(tokio::task::spawn_blocking(move || server.run(None))),
            }
        }
        // A caller that gives up while its job is queued removes it by that.
        let answered = self.unless_stopped(answered).await?;
        answered.unwrap_or_else(|_| {
            Err(StoreError::Unknown {
                store: error::store_name(&self.path),
                reason: "the commit was interrupted".to_owned(),
            })
        })
    }

    /// The turn to write, if no other thread and no other process has it.
    fn turn_now(&self) -> Option<WriteTurn> {
        let writer = self.writer.clone().try_lock_owned().ok()?;
        writer.writer_queue.try_enter().ok()?.then_some(WriteTurn { writer })
    }

    /// Makes these together, and answers each.
    fn make(&self, turn: io::Result<WriteTurn>, jobs: Vec<Job>) {
        let _inside = fork::inside();
        let mut jobs: Vec<Job> = jobs.into_iter().filter(|job| !job.answer.is_closed()).collect();
        let made = turn.map_err(|error| self.no_turn(&error)).and_then(|turn| {
            let transactions = jobs.iter_mut().map(|job| &mut job.transaction);
            let made = self.commit_together(&turn, transactions)?;
            self.check_identity()?;
            Ok(made)
        });
        let answers: Vec<Result<Written, StoreError>> = match made {
            Ok(answers) => answers,
            Err(error) => jobs.iter().map(|_| Err(error.clone())).collect(),
        };
        for (job, answer) in jobs.into_iter().zip(answers) {
            // Others are told even if the one who asked went away.
            let _ = job.answer.send(answer.map(|written| self.tell(written)));
        }
    }

    /// Makes changes in one transaction, and commits it durably. The error is of them all.
    pub(super) fn commit_together<'a>(
        &self,
        turn: &WriteTurn,
        transactions: impl Iterator<Item = &'a mut Transaction>,
    ) -> Result<Vec<Result<Written, StoreError>>, StoreError> {
        let connection = &turn.writer.connection;
        let make = || {
            let begun = SqlTransaction::begin(&turn.writer, Synchronous::Full)?;
            let session = Session::new(connection);
            let (mut answers, mut changed, mut is_told) = (Vec::new(), false, false);
            for transaction in transactions {
                let answer = match self.choose_and_write(&session, transaction, true) {
                    Ok(mut written) => {
                        changed |= written.changed;
                        // Watchers are signalled once for all changes.
                        written.has_news &= !is_told;
                        is_told |= written.has_news;
                        Ok(written)
                    }
                    // SQLite itself undoes all after some errors.
                    Err(trouble)
                        if trouble.stage == Stage::Within || connection.is_autocommit() =>
                    {
                        return Err(trouble);
                    }
                    Err(trouble) => Err(self.report(trouble)),
                };
                answers.push(answer);
            }
            if changed {
                begun.commit()?;
            }
            Ok(answers)
        };
        let made = make();
        turn.writer.fold_log();
        made.map_err(|trouble| self.report(trouble))
    }
}
