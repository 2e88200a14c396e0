//! Locks, leases and task claims for fleets of agents and workers.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let url = format!("sqlite:{}", folder.path().join("locks.db").display());
//! use tenure::blocking::{Attempt, Client};
//!
//! let client = Client::open(&url)?; // "sqlite:locks.db"
//! let guard = client.acquire("deploy")?;
//! println!("held under token {}", guard.token());
//!
//! // Whoever else asks meanwhile is told who is in the way.
//! let other = Client::open(&url)?;
//! assert!(matches!(other.try_acquire("deploy")?, Attempt::Busy(_)));
//!
//! drop(guard);
//! assert!(matches!(other.try_acquire("deploy")?, Attempt::Held(_)));
//! # Ok(())
//! # }
//! ```
//!
//! The same in async code, waiting up to a limit and noticing the loss of the lease:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tenure::Error> {
//! use std::time::Duration;
//! use tenure::{Attempt, Client};
//!
//! let client = Client::open("memory:").await?;
//! match client.acquire_within("deploy", Duration::from_secs(5)).await? {
//!     Attempt::Held(guard) => {
//!         tokio::select! {
//!             () = guard.lost() => eprintln!("lost: stop writing"),
//!             () = async { /* the work */ } => { guard.release().await?; }
//!         }
//!     }
//!     Attempt::Busy(busy) => eprintln!("not in time: {} in the way", busy.blockers.len()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The parts, in reading order:
//!
//! 1. [`tenure_core`]: the rules, pure.
//! 2. [`store`]: what a store promises; [`store::memory`] is the reference,
//!    [`store::sqlite`] the embedded default. [`conformance`] is the test that each passes.
//! 3. [`world`]: time, randomness and processes, which a test can replace.
//! 4. [`Client`], [`Request`], [`Guard`]: asking, waiting, keeping, losing. [`blocking`]: the same
//!    without async.
//! 5. [`url`] and [`local_server`]: naming a store, and finding the servers of this user.
//! 6. [`mod@file`]: files that many processes change, replaced whole or appended to in whole lines.

pub mod blocking;
mod client;
pub mod conformance;
pub mod error;
pub mod file;
pub mod local_server;
pub mod locate;
pub mod place;
pub mod platform;
#[cfg(feature = "http")]
pub mod remote;
pub mod secret;
pub mod store;
pub mod url;
mod watched;
pub mod wire;
pub mod world;

pub use client::{
    Attempt, Backend, Binding, Broken, Busy, ClaimRequest, Claims, Cleanup, Client, ClientBuilder,
    Free, GUARD_LEASE, Guard, IntoResource, Lease, LeaseAttempt, Left, Local, PLACE_LEASE,
    ReleaseOutcome, Request, RequestId, Runner, Stop, Stopper, Swarm, SwarmReport, Tasks, Wait,
    Waiting, Work, WorkEvent,
};
pub use error::Error;
pub use tenure_core as core;
pub use world as clock;
