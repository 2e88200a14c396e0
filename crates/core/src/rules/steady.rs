//! A witness that does not change its mind.

use crate::{Evidence, Liveness, Witness};
use std::cell::RefCell;
use std::collections::HashMap;

/// Asks another witness about each process once, and remembers the answer for one decision.
///
/// A process may die while a rule decides. Found alive in one place and dead in the next, it would
/// be in the way of a request and yet not hold up its turn. And to look at a process is dear.
pub(crate) struct SteadyWitness<'a> {
    witness: &'a dyn Witness,
    answers: RefCell<HashMap<Evidence, Liveness>>,
}

impl<'a> SteadyWitness<'a> {
    pub(crate) fn new(witness: &'a dyn Witness) -> SteadyWitness<'a> {
        SteadyWitness { witness, answers: RefCell::default() }
    }
}

impl Witness for SteadyWitness<'_> {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        if let Some(answer) = self.answers.borrow().get(evidence) {
            return *answer;
        }
        let answer = self.witness.liveness(evidence);
        self.answers.borrow_mut().insert(evidence.clone(), answer);
        answer
    }
}
