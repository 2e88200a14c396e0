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
    /// Every store decides by this function: `show` reads one scope and fills in the stored reply
    /// of the request's slot.
    pub fn choose<X, E>(
        &mut self,
        mut show: impl FnMut(&Scope) -> Result<(Snapshot, X), E>,
    ) -> Result<Chosen<X>, E> {
        let mut wider: Option<Scope> = None;
        let (mut snapshot, mut beside) = show(&self.scope)?;
        for _ in 0..SCOPES_MAX {
            let change = match (self.decide)(&snapshot) {
                Decision::Nothing => None,
                Decision::Write(change) => {
                    self.debug_check(wider.as_ref(), &change, &snapshot);
                    Some(change)
                }
                need => {
                    let scope = match need {
                        Decision::Need(scope) => scope,
                        _ => Scope::Everything,
                    };
                    (snapshot, beside) = show(&scope)?;
                    wider = Some(scope);
                    continue;
                }
            };
            return Ok(Chosen { snapshot, beside, change });
        }
        debug_assert!(false, "a rule asked {SCOPES_MAX} times to see more and did not decide");
        Ok(Chosen { snapshot, beside, change: None })
    }

    /// Checks in debug builds that a rule only writes what it was shown. A store that locks what it
    /// shows could not make the change safely otherwise.
    fn debug_check(&self, wider: Option<&Scope>, change: &Change, shown: &Snapshot) {
        if cfg!(debug_assertions) {
            let scope = wider.unwrap_or(&self.scope);
            let outside = change.writes.iter().find(|write| !scope.admits(write, shown));
            assert!(outside.is_none(), "{outside:?} is not within {scope:?}");
        }
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
