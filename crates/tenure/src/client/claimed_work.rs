//! A task that is being worked on, and what its command prints.

use super::keeper::{BackgroundCleanup, TrackedLease};
use super::lease::Lease;
use super::{Client, Tasks};
use crate::error::Error;
use crate::watched::Watched;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::act::{FinishTask, PutOutput};
use tenure_core::output::{self, OutputTail};
use tenure_core::record::attempt_of;
use tenure_core::rules::tasks::{Finish, FinishAsk, Finished};
use tenure_core::{GrantId, Proof, RecordRange, RecordSnapshot, Resource, Task, TaskId, WallTime};

/// The last lines that the command of an attempt printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOutput {
    /// The lines: plain text without control characters but tab and newline.
    pub text: String,
    /// Whether earlier lines were dropped; the first line says so.
    pub is_truncated: bool,
    /// When it was saved.
    pub written_at: WallTime,
}

impl Tasks {
    /// The last lines that the command of an attempt printed; none if nothing is known of it.
    pub async fn output(&self, task: &TaskId, attempt: u32) -> Result<Option<TaskOutput>, Error> {
        let found = self.client.records(RecordRange::output(task, attempt)).await?;
        let shown = |record: RecordSnapshot| TaskOutput {
            is_truncated: output::is_truncated(&record.text),
            text: record.text,
            written_at: record.written_at,
        };
        Ok(found.into_iter().next().map(shown))
    }

    /// The attempts of a task of which an output is kept.
    pub async fn attempts_with_output(&self, task: &TaskId) -> Result<Vec<u32>, Error> {
        let found = self.client.records(RecordRange::outputs(task)).await?;
        Ok(found.iter().filter_map(|record| attempt_of(&record.key)).collect())
    }
}

/// A task that is being worked on: renewed in the background, handed back if dropped.
pub struct Work {
    client: Client,
    task: Task,
    held: Arc<TrackedLease>,
    /// The hold of its section, where the runner keeps that: when it is lost, the claim is.
    section: Option<Arc<TrackedLease>>,
    runner: Option<GrantId>,
    /// Whether the work is to stop.
    call: Watched<bool>,
    ended: AtomicBool,
    /// What was printed for the task, as far as it is told.
    printed: Mutex<OutputTail>,
    /// Whether something was printed since it was saved last.
    unsaved: AtomicBool,
}

/// How often what a command prints is saved while it runs.
const SAVE_OUTPUT_EVERY: Duration = Duration::from_secs(1);

impl Work {
    pub(super) fn new(
        client: Client,
        task: Task,
        held: Arc<TrackedLease>,
        section: Option<Arc<TrackedLease>>,
        runner: Option<GrantId>,
    ) -> Work {
        Work {
            client,
            task,
            held,
            section,
            runner,
            call: Watched::new(false),
            ended: AtomicBool::new(false),
            printed: Mutex::default(),
            unsaved: AtomicBool::new(false),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// All of the claim.
    pub(super) fn parts(&self) -> Vec<Arc<TrackedLease>> {
        std::iter::once(&self.held).chain(&self.section).cloned().collect()
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The grant, token and time of the claim.
    pub fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// The grant under which the runner keeps the section of the task, from task to task.
    pub fn section_grant(&self) -> Option<GrantId> {
        self.section.as_ref().map(|held| held.lease.grant)
    }

    /// What is held for it.
    pub fn resources(&self) -> &[Resource] {
        &self.held.lease.resources
    }

    /// Returns when the claim or a part of it is lost; never, while all of it is held.
    pub async fn lost(&self) {
        let section = async {
            match &self.section {
                Some(section) => super::guard::lost(&self.client, section).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = super::guard::lost(&self.client, &self.held) => {}
            () = section => self.held.lose(),
        }
    }

    /// Whether the claim, with all of its parts, may be trusted now.
    pub fn is_held(&self) -> bool {
        let section = self.section.as_ref();
        super::guard::is_held(&self.client, &self.held)
            && section.is_none_or(|section| super::guard::is_held(&self.client, section))
    }

    /// Says that this process group works on it too; see [`Guard::bind_group`](super::Guard).
    pub async fn bind_group(&self, leader: u32) -> Result<bool, Error> {
        super::guard::bind_group(&self.client, &self.held, leader).await
    }

    /// Takes in what was printed for the task. The last lines are kept with the attempt, see
    /// [`Tasks::output`], where they are shown to all that may read tasks. A [`Swarm`](super::Swarm)
    /// saves them about every second, and with the finish.
    pub fn print(&self, printed: &[u8]) {
        if !printed.is_empty() {
            self.printed.lock().push(printed);
            self.unsaved.store(true, Ordering::SeqCst);
        }
    }

    /// What was printed, if anything was.
    fn printed_text(&self) -> Option<String> {
        let printed = self.printed.lock();
        (!printed.is_empty()).then(|| printed.text())
    }

    /// Saves what was printed since it was saved last. Of a claim that was lost nothing is saved.
    pub async fn save_output(&self) -> Result<(), Error> {
        if !self.unsaved.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let Some(attempt) = self.task.open_try().map(|open| open.number) else { return Ok(()) };
        let Some(text) = self.printed_text() else { return Ok(()) };
        let (task, grant) = (self.task.id.clone(), self.held.lease.grant);
        let act = PutOutput { task, attempt, grant, text };
        self.client.inner.backend.perform(&act).await?;
        Ok(())
    }

    /// Saves what is printed, again and again.
    pub(super) async fn keep_saving_output(&self) {
        loop {
            self.client.inner.world.sleep(SAVE_OUTPUT_EVERY).await;
            if self.is_held() && self.save_output().await.is_err() {
                self.unsaved.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Returns when the work is to stop, whatever came of it so far: the claim is lost, the task's
    /// time is over, or the worker is to end. What was started for it must then be stopped.
    pub async fn called_off(&self) {
        tokio::select! {
            biased;
            () = self.lost() => {}
            () = self.call.wait_for(|called| called) => {}
        }
    }

    pub(super) fn call_off(&self) {
        self.call.update(|_| true);
    }

    /// Says how the work ended. A claim that was lost changes nothing. If the store fails, the
    /// claim is handed back.
    pub async fn finish(self, finish: Finish) -> Result<Finished, Error> {
        self.try_finish(&finish).await
    }

    /// The same, to be tried again if the store fails.
    pub(super) async fn try_finish(&self, finish: &Finish) -> Result<Finished, Error> {
        let proof = Proof::Grant(self.held.lease.grant);
        let token = Some(self.held.lease.token);
        let ask = FinishAsk {
            task: self.task.id.clone(),
            proof,
            token,
            runner: self.runner,
            finish: finish.clone(),
        };
        let output = self.printed_text();
        let finished = self.client.inner.backend.perform(&FinishTask { ask, output }).await?;
        self.end();
        Ok(finished)
    }

    /// Renews it no longer, and does not hand it back when dropped.
    fn end(&self) {
        self.client.inner.keeper.forget(&self.held);
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Lets go of a claim that was lost. What the store still has of it, if a part of it was lost,
    /// is freed, and the task taken back. A store that does not answer takes it back when its lease
    /// has lapsed.
    pub async fn abandon(&self) {
        self.end();
        let _ = self.client.tasks().recover().await;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if *self.ended.get_mut() || self.held.is_inherited(&*self.client.inner.world) {
            return;
        }
        self.client.inner.keeper.forget(&self.held);
        let output = self.printed_text();
        let ask = FinishAsk {
            task: self.task.id.clone(),
            proof: Proof::Grant(self.held.lease.grant),
            token: Some(self.held.lease.token),
            runner: self.runner,
            finish: Finish::Release,
        };
        self.client
            .inner
            .keeper
            .send(BackgroundCleanup::HandBack(Box::new(FinishTask { ask, output })));
    }
}
