//! The rules of tenure: who may hold what, decided by pure functions.
//!
//! This crate touches nothing: no clock, no file, no environment, no async runtime. A rule looks
//! at what a store has [`Snapshot`] and at what is asked, and answers with a [`Decision`]: what to
//! write, which events to record, which waiters to wake. Every store runs these same rules, so each rule is
//! written and tested once.
//!
//! Reading order:
//!
//! 1. [`resource`]: what can be held, and when two resources overlap ([`glob`] for paths).
//! 2. [`holder`]: who holds, and what counts as proof that a holder is dead.
//! 3. [`hold`]: the two records, a [`Hold`] and a [`Waiter`], and how holds exclude each other.
//! 4. [`snapshot`]: what a store shows to a rule.
//! 5. [`decision`] and [`event`]: what a rule answers; [`touched`]: which records that concerns.
//! 6. [`rules`]: acquire, release, break, leave, reap.
//! 7. [`task`] and [`handover`]: what is to be done, and what is remembered for the next worker.
//! 8. [`overview`]: what counts as held and as waiting, for everything that shows it.
//! 9. [`retention`]: how much of what is over is kept.
//!
//! ```
//! use std::time::Duration;
//! use tenure_core::{rules, Ask, GrantId, Holder, NoWitness, Outcome, Snapshot, Want};
//!
//! let empty = Snapshot::empty();
//! let ask = Ask {
//!     grant: GrantId::random(),
//!     wants: vec![Want::exclusive("deploy".parse().unwrap())],
//!     holder: Holder::chosen("alice").unwrap(),
//!     presence: None,
//!     operation: None,
//!     ttl: Duration::from_secs(30),
//!     keeps: vec![],
//!     owner: Default::default(),
//!     queue: None,
//! };
//! let (decision, outcome) = rules::acquire(&empty, &ask, &NoWitness);
//! assert!(matches!(outcome, Outcome::Granted(_)));
//! assert_eq!(decision.writes().len(), 1);
//! ```

// All other crates need Unix and depend on this one, so its error is the first.
#[cfg(not(unix))]
compile_error!(
    "tenure runs on Unix systems. On Windows, use the HTTP API of a server: see docs/http.md"
);

pub mod act;
pub mod decision;
mod duration;
pub mod event;
mod event_filter;
pub mod glob;
pub mod handover;
pub mod hold;
pub mod holder;
pub mod id;
mod label_patterns;
pub mod millis;
pub mod output;
pub mod overview;
pub mod owner;
pub mod path_like;
pub mod record;
pub mod registry;
mod rescue_reference;
pub mod resource;
pub mod retention;
mod role;
pub mod rules;
#[doc(hidden)]
pub mod sample;
pub mod snapshot;
pub mod task;
pub mod text;
pub mod touched;

pub use decision::{Change, Decision, StoredReply, Write};
pub use duration::format_duration;
pub use event::{Event, EventKind, NewEvent, WhyLeft};
pub use event_filter::EventFilter;
pub use handover::{Note, NoteError, Try, TryOutcome, Workspace};
pub use hold::{Hold, Mode, Waiter, Want};
pub use holder::{
    Evidence, Group, Holder, LabelError, Liveness, NoWitness, Observer, Process, Witness,
};
pub use id::{GrantId, Revision, Token, WallTime};
pub use label_patterns::LabelPatterns;
pub use overview::{Counts, HoldState, JudgedHold, Overview, Worker};
pub use owner::Owner;
pub use path_like::{PathSign, path_sign};
pub use record::{RecordKind, RecordRange, RecordSnapshot, SmallRecord};
pub use registry::{RegisteredWorker, WorkerReport};
pub use rescue_reference::{
    RESCUE_REFERENCES, is_rescue_reference, reference_component, rescue_folder, rescue_reference,
};
pub use resource::{Kind, Resource, ResourceError};
pub use retention::{EndedTask, Keep, Retention};
pub use role::{Role, RoleError};
pub use rules::{
    Ask, Blocker, BreakAsk, Cycle, CycleStep, Grant, Outcome, Owned, Proof, Reason, ReleaseAsk,
    Released, Takeover, TakeoverReason, VerifyAnswer,
};
pub use snapshot::{
    HoldSnapshot, NO_LIMIT, Pick, Scope, SectionSnapshot, Snapshot, TURN_TIMEOUT, TaskScope,
    WaiterSnapshot,
};
pub use task::{Claim, FinishedClaim, Part, RECOVERIES_MAX, Section, Status, Task, TaskId, Verb};
pub use text::TextError;
pub use touched::Touched;
