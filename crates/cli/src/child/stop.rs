//! Stops a command together with all processes that it started.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::tree::Process;
use super::{Child, Stopped};

/// The first pause between two looks at the remaining processes; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How often SIGKILL is repeated, in about three seconds. More than once is needed only if
/// processes start others faster than they are found. What remains then belongs to another user, or
/// cannot die.
const KILL_ROUNDS: u32 = 64;

impl Child {
    /// Stops the command and all its processes: SIGTERM, up to `grace` for all to end, then
    /// SIGKILL.
    ///
    /// Suspended processes are continued so that they can end. It also stops what an ended command
    /// left behind. It can be called again if it was cancelled.
    pub async fn stop(&mut self, grace: Duration) -> Stopped {
        if let Some(ward) = &self.ward {
            ward.is_stopped_by_tenure();
        }
        let members = self.members();
        self.tree.signal(&members, Signal::TERM);
        self.tree.signal(&members, Signal::CONT);
        let mut rest = self.wait_until_gone(grace).await;

        let mut pause = FIRST_PAUSE;
        for _ in 0..KILL_ROUNDS {
            // At least once: if processes cannot be listed, the group may not be empty.
            self.tree.signal(&rest, Signal::KILL);
            if rest.is_empty() {
                break;
            }
            self.pause(&mut pause).await;
            rest = self.members();
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back(true);
        }
        Stopped { ended: self.look_for_end(), survivors: rest.iter().map(Process::id).collect() }
    }

    /// Waits up to `grace` until all have ended, and returns the remaining processes.
    async fn wait_until_gone(&mut self, grace: Duration) -> Vec<Process> {
        let deadline = Instant::now() + grace;
        let mut pause = FIRST_PAUSE;
        loop {
            let rest = self.members();
            let left = deadline.saturating_duration_since(Instant::now());
            if rest.is_empty() || left.is_zero() {
                return rest;
            }
            let _ = timeout(left, self.pause(&mut pause)).await;
        }
    }

    /// Waits a little, or less if the command ends.
    async fn pause(&mut self, length: &mut Duration) {
        if self.look_for_end().is_some() {
            sleep(*length).await;
        } else {
            let _ = timeout(*length, self.changed()).await;
        }
        *length = (*length * 2).min(LONGEST_PAUSE);
    }

    /// The living processes of the command.
    fn members(&mut self) -> Vec<Process> {
        let leader_ended = self.look_for_end().is_some();
        self.tree.look(leader_ended)
    }
}
