//! Locks, leases and task claims for fleets of agents and workers.
//!
//! A program holds a *resource* (a lock, a section, a task or the files of a glob) under a *lease*. The
//! lease is renewed while the program lives, ends when the program gives it back or dies, and always
//! has a limit. Each hold has a *token* that only rises, so that a store further on can refuse a late
//! writer. What is held is remembered by a *store*, which many processes share.
//!
//! # A lock
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tenure::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let url = &format!("sqlite:{}", folder.path().join("locks.db").display());
//! use std::time::Duration;
//! use tenure::{Attempt, Client};
//!
//! let client = Client::open(url).await?; // for example "sqlite:locks.db"
//! match client.acquire_within("deploy", Duration::from_secs(5)).await? {
//!     Attempt::Held(guard) => {
//!         tokio::select! {
//!             () = guard.lost() => eprintln!("lost: stop writing"),
//!             () = async { /* the work, under token guard.token() */ } => { guard.release().await?; }
//!         }
//!     }
//!     Attempt::Busy(busy) => eprintln!("{busy}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Tasks
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tenure::{ClaimRequest, Client, Finish, NewTask, Swarm};
//!
//! let client = Client::open("memory:").await?;
//! let task = NewTask::titled("resize photo").with_payload(&"photo.jpg")?;
//! client.tasks().add(vec![task]).await?;
//!
//! let swarm = Swarm::new(&client, ClaimRequest::default()).workers(3);
//! let report = swarm
//!     .run(
//!         |work| async move {
//!             let name: Option<String> = work.task().payload_as().unwrap_or_default();
//!             Finish::completed_with(&name).unwrap_or_else(|error| Finish::failed(error.to_string()))
//!         },
//!         |_event| (),
//!     )
//!     .await?;
//! assert_eq!(report.completed, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # The parts, in reading order
//!
//! 1. [`Client`] opens a store: by its URL ([`Client::open`]), or the one that the command would use in
//!    this folder ([`Client::discover`]). [`blocking`] is the same without async.
//! 2. [`Request`] asks for a resource, [`Guard`] holds it, [`Lease`] is what was obtained, [`Busy`] says
//!    what is in the way.
//! 3. [`Tasks`] adds, claims and finishes tasks; [`Runner`] takes one after another; [`Swarm`] runs many
//!    workers in one process.
//! 4. [`Error`] is what can go wrong. That something is held by another is an answer, not an error.
//! 5. [`store`] is the contract of stores, with those that come with the library; [`url`] names them;
//!    [`place`] and [`locate`] find the one that is meant.
//! 6. [`core`] has the types and the rules, which do no I/O.
//! 7. [`agent`] finds the agent that a process acts for.
//! 8. [`world`] is where time, randomness and processes come from, which a test can replace;
//!    [`mod@file`] changes files that many processes change. The crate `tenure-conformance` is the test
//!    that each store passes.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `sqlite` | yes | `sqlite:PATH` and `machine:`: one database, for processes of one machine |
//! | `file-store` | yes | `file:FOLDER`: readable files, also the lock files and task lists of other programs |
//! | `http` | yes | `http://`, `https://` and `unix:`: a server as a store |
//! | `discover` | yes | [`Client::discover`] and [`locate`]: settings files and `.tenure` folders |
//! | `file` | no | [`mod@file`]: files replaced whole, or appended to in whole lines |
//!
//! `memory:` is always there, for one process.
//!
//! # What is promised
//!
//! - At most one holder of an exclusive resource by the store's clock, and tokens that rise with each
//!   hold of it.
//! - A guard counts its lease from before the request that obtained or renewed it, and ends its trust
//!   early. When [`Guard::lost`] returns, or [`Guard::is_held`] is false, others may hold it soon, not
//!   before.
//! - A resource whose holder died on this machine is free at once; elsewhere when its lease ends.
//! - Requests are granted in the order in which they came.
//!
//! # What is not promised
//!
//! - A process that is stopped for longer than its lease, and goes on before it looks, still writes. Only
//!   a token that the written store checks can prevent that.
//! - Nothing keeps a program from changing what it does not hold: all who share a resource must ask.
//! - What the documentation does not show may change with any version.
//!
//! # Cancellation
//!
//! All futures may be dropped at any await. A request that is dropped leaves nothing held and nothing
//! queued, in a local store and behind a server: what it was granted meanwhile is released in the
//! background, and so is its place in the queue. If the process ends first, the store sees that it is
//! gone. Dropping a [`Guard`] releases in the background; [`Guard::release`] waits for it and says whether
//! it was held until then.

#![cfg_attr(
    not(all(feature = "sqlite", feature = "file-store", feature = "http")),
    allow(dead_code, unused_imports, reason = "what only some stores use is compiled with all")
)]

pub mod agent;
pub mod blocking;
mod client;
mod deadline;
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
    Attempt, Binding, Broken, Busy, ClaimBuilder, ClaimRequest, ClaimWaiting, Claims, Cleanup,
    Client, ClientBuilder, Collected, Free, GUARD_LEASE, Guard, IntoResource, Lease, LeaseAttempt,
    Left, Next, PLACE_LEASE, ReleaseOutcome, Request, Runner, Stop, Stopper, Swarm, SwarmReport,
    TaskOutput, Tasks, Trust, Wait, Waiting, Work, WorkEvent,
};
pub use error::{Error, LEASE_MAX, LEASE_MIN, RequestError};
pub use secret::Secret;
pub use tenure_core as core;
pub use tenure_core::rules::tasks::{Finish, Finished, NewTask, NoClaim};
pub use tenure_core::{Resource, Status, Task, TaskId, Token};

/// What the server and the command of the same version need besides the public API: the protocol
/// between client and server, and the record of the servers that run on this machine.
///
/// No promise covers it: it changes whenever they do.
#[doc(hidden)]
pub mod server_support {
    pub use crate::client::{Actor, Backend, GivenUp, Local, RequestId, Sent};
    #[cfg(feature = "http")]
    pub use crate::remote::{ObservedRequest, Observer, RequestObserver};

    /// Deadlines of requests.
    pub mod deadline {
        pub use crate::deadline::*;
    }

    /// The servers of this user on this machine.
    pub mod local_server {
        pub use crate::local_server::*;
    }

    /// Evidence for this process, and its witness.
    pub mod platform {
        pub use crate::platform::{
            LocalWitness, left_running, process_evidence, this_boot, this_process,
        };
    }

    /// The protocol between clients and servers.
    pub mod wire {
        pub use crate::wire::*;
    }
}
