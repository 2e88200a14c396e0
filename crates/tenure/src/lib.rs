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

#![cfg_attr(
    not(all(feature = "sqlite", feature = "file-store", feature = "http")),
    allow(dead_code, unused_imports, reason = "what only some stores use is compiled with all")
)]

pub mod blocking;
mod client;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
#[cfg(feature = "file")]
pub mod file;
#[cfg(any(feature = "file", feature = "file-store"))]
mod kernel_lock;
mod local_server;
#[cfg(feature = "discover")]
pub mod locate;
pub mod place;
mod platform;
#[cfg(feature = "http")]
mod remote;
mod secret;
pub mod store;
pub mod url;
mod watched;
mod wire;
pub mod world;

pub use client::{
    Attempt, Binding, Broken, Busy, ClaimRequest, Claims, Cleanup, Client, ClientBuilder, Free,
    GUARD_LEASE, Guard, IntoResource, Lease, LeaseAttempt, Left, PLACE_LEASE, ReleaseOutcome,
    Request, Runner, Stop, Stopper, Swarm, SwarmReport, Tasks, Wait, Waiting, Work, WorkEvent,
};
pub use error::{Error, LEASE_MAX, LEASE_MIN, RequestError};
pub use secret::Secret;
pub use tenure_core as core;

/// What the server and the command of the same version need besides the public API: the protocol
/// between client and server, and the record of the servers that run on this machine.
///
/// No promise covers it: it changes whenever they do.
#[doc(hidden)]
pub mod server_support {
    pub use crate::client::{Backend, Local, RequestId};

    /// The servers of this user on this machine.
    pub mod local_server {
        pub use crate::local_server::*;
    }

    /// Evidence for this process, and its witness.
    pub mod platform {
        pub use crate::platform::{LocalWitness, process_evidence, this_boot, this_process};
    }

    /// The protocol between clients and servers.
    pub mod wire {
        pub use crate::wire::*;
    }
}
