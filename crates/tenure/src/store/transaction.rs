//! One change as a value: what it looks at, under which request, and how it is decided.

use super::{Store, StoreError};
use parking_lot::Mutex;
use std::sync::Arc;
use tenure_core::{Change, Decision, Revision, Scope, Snapshot};

/// Decides what to write from what a store shows. It is pure: a store may call it again on a newer
/// snapshot, and only its last decision counts.
pub type Decide = Box<dyn FnMut(&Snapshot) -> Decision + Send>;

/// A change to be decided and made in one step: see [`Store::transact`].
pub struct Transaction {
    /// What the rule must see first.
    pub scope: Scope,
    /// The request that the change answers, where the request may be repeated.
    pub request: Option<RequestId>,
    /// Decides what is written.
    pub decide: Decide,
}

/// Names a request that may be repeated: see [`Store::transact`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The line of requests that it belongs to; each request of a slot follows the answer to the
    /// one before.
    pub slot: String,
    /// Its number in the slot, from 1.
    pub number: u64,
}

/// The outcome of a transaction that a store carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of the newest event that the change recorded; none where it recorded none.
    pub revision: Option<Revision>,
}

/// How many scopes a rule may see before it has to decide. The rules of this library ask for three at
/// most: a part, all waits, everything.
const SCOPES_MAX: usize = 4;

/// What a rule chose, and the snapshot on which it chose.
pub struct Chosen<X> {
    /// What was shown last.
    pub snapshot: Snapshot,
    /// What the store found out beside the snapshot.
    pub beside: X,
    /// What is to be written, if anything is.
    pub change: Option<Change>,
}

/// What a rule made of a snapshot.
pub enum Step {
    /// It chose what is to be written, if anything is.
    Chosen(Option<Change>),
    /// It needs to see this scope.
    Wider(Scope),
}

impl Transaction {
    /// A transaction over this scope that answers no request.
    pub fn new(
        scope: Scope,
        decide: impl FnMut(&Snapshot) -> Decision + Send + 'static,
    ) -> Transaction {
        Transaction { scope, request: None, decide: Box::new(decide) }
    }

    /// The slot of the request, if there is one.
    pub fn slot(&self) -> Option<&str> {
        self.request.as_ref().map(|request| request.slot.as_str())
    }

    /// Shows the scope and lets the rule choose; where the rule needs to see more, shows that too.
    /// Every store that can do so without waiting decides by this function: `show` reads one scope
    /// and fills in the stored reply of the request's slot. Others repeat [`Transaction::step`].
    pub fn choose<X, E>(
        &mut self,
        mut show: impl FnMut(&Scope) -> Result<(Snapshot, X), E>,
    ) -> Result<Chosen<X>, E> {
        let mut scope = self.scope.clone();
        let mut steps = 0;
        loop {
            let (snapshot, beside) = show(&scope)?;
            match self.step(&scope, &snapshot, &mut steps) {
                Step::Chosen(change) => return Ok(Chosen { snapshot, beside, change }),
                Step::Wider(wider) => scope = wider,
            }
        }
    }

    /// Lets the rule choose on this snapshot of this scope. `steps` counts how often the rule asked
    /// to see more; it begins with 0.
    pub fn step(&mut self, scope: &Scope, snapshot: &Snapshot, steps: &mut usize) -> Step {
        let wider = match (self.decide)(snapshot) {
            Decision::Nothing => return Step::Chosen(None),
            Decision::Write(change) => {
                debug_check(scope, &change, snapshot);
                return Step::Chosen(Some(change));
            }
            Decision::Need(scope) => scope,
            Decision::NeedAll => Scope::Everything,
        };
        *steps += 1;
        if *steps < SCOPES_MAX {
            return Step::Wider(wider);
        }
        debug_assert!(false, "a rule asked {SCOPES_MAX} times to see more and did not decide");
        Step::Chosen(None)
    }
}

/// Checks in debug builds that a rule only writes what it was shown. A store that locks what it
/// shows could not make the change safely otherwise.
fn debug_check(scope: &Scope, change: &Change, shown: &Snapshot) {
    if cfg!(debug_assertions) {
        let outside = change.writes.iter().find(|write| !scope.admits(write, shown));
        assert!(outside.is_none(), "{outside:?} is not within {scope:?}");
    }
}

/// Carries out a transaction whose rule also gives an answer, and returns the answer that belongs
/// to the last decision.
pub async fn transact_with<T: Send + 'static>(
    store: &(impl Store + ?Sized),
    scope: Scope,
    request: Option<RequestId>,
    mut rule: impl FnMut(&Snapshot) -> (Decision, T) + Send + 'static,
) -> Result<(Committed, T), StoreError> {
    let last = Arc::new(Mutex::new(None));
    let shared = last.clone();
    let decide = move |snapshot: &Snapshot| {
        let (decision, answer) = rule(snapshot);
        *shared.lock() = Some(answer);
        decision
    };
    let decide = Box::new(decide);
    let committed = store.transact(Transaction { scope, request, decide }).await?;
    let answer = last.lock().take();
    match answer {
        Some(answer) => Ok((committed, answer)),
        None => Err(StoreError::Unknown {
            store: store.info().url,
            reason: "the store reported a change that it did not decide".to_owned(),
        }),
    }
}
