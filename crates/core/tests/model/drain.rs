//! That every queue drains.

use super::history::History;
use super::line::{Plea, State, Verdict};

/// More rounds than there are requests in a history, so that one served per round is enough.
const ROUNDS_MAX: usize = 100;

/// Shorter than a place lasts; and all rounds together are longer than any lease of those who are
/// dead and of whom nobody can know it.
const ROUND_MS: u64 = 20;

impl History {
    /// Holders release at once; waiters ask again when they can go, and give signs of life.
    pub fn drain_by_looking_again(mut self) {
        for _ in 0..ROUNDS_MAX {
            self.release_all_but(|_, _| false);
            for plea in self.living_waiters() {
                self.ask(&plea);
                self.check(false);
            }
            self.pass(ROUND_MS);
            self.check(true);
            if self.living_waiters().is_empty() {
                return;
            }
        }
        panic!("these were never served: {:?}", self.living_waiters());
    }

    /// Holders release one after the other; waiters ask only when they were woken.
    pub fn drain_by_wakes(mut self) {
        for _ in 0..ROUNDS_MAX {
            self.release_all_but(|_, _| false);
            self.ask_all_who_were_woken();
        }
        assert!(self.living_waiters().is_empty(), "asleep: {:?}", self.living_waiters());
    }

    /// The same, but whoever waits keeps what it holds.
    pub fn drain_while_waiters_keep(mut self) {
        for _ in 0..ROUNDS_MAX {
            self.release_all_but(|history, plea| history.waits(plea.process));
            self.ask_all_who_were_woken();
        }
        assert!(self.living_waiters().is_empty(), "asleep: {:?}", self.living_waiters());
    }

    fn living_waiters(&self) -> Vec<Plea> {
        let waiting = self.line.requests.iter().filter(|one| one.state == State::Waiting);
        let living = waiting.filter(|one| self.lives(one.process));
        living.map(|one| self.pleas[&one.number].clone()).collect()
    }

    fn release_all_but(&mut self, keeps: impl Fn(&History, &Plea) -> bool) {
        let holding = self.line.requests.iter().filter(|one| one.state == State::Holding);
        let held: Vec<u32> = holding.map(|one| one.number).collect();
        for number in held {
            let plea = self.pleas[&number].clone();
            if self.lives(plea.process) && !keeps(self, &plea) {
                self.release(&plea);
                self.check(false);
            }
        }
    }

    fn ask_all_who_were_woken(&mut self) {
        for plea in self.living_waiters() {
            let grant = crate::support::grant_id(plea.number);
            if self.world.pending.contains(&grant) {
                let verdict = self.ask(&plea);
                assert!(matches!(verdict, Verdict::Granted | Verdict::Waiting));
                self.check(false);
            }
        }
    }
}
