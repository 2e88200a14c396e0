//! The clock that decides whether requests of tenure's own clients come in time: see [`tenure::server_support::deadline`].

use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tenure::server_support::deadline::{ServerTime, deadline_by};
use tenure::server_support::{GivenUp, wire};
use tenure::world::{Clock, SystemClock};

/// The clock of one start of a server.
#[derive(Clone)]
pub struct ServerClock {
    name: Arc<str>,
    clock: Arc<dyn Clock>,
}

/// A request that is to be carried out soon, or not at all.
#[derive(Clone)]
pub struct Deadline {
    at: Duration,
    clock: Arc<dyn Clock>,
}

impl ServerClock {
    /// The machine's clock, under a name that no other start of a server has.
    pub fn new() -> ServerClock {
        let name = uuid::Uuid::new_v4().simple().to_string();
        ServerClock { name: name.into(), clock: Arc::new(SystemClock) }
    }

    /// What it shows, for the header of an answer.
    pub fn header(&self) -> HeaderValue {
        let at = self.clock.now_with_suspend();
        let time = ServerTime { clock: self.name.to_string(), at };
        HeaderValue::try_from(time.to_string()).unwrap_or(HeaderValue::from_static("-"))
    }

    /// The deadline of a request. Refuses a request that has none by this clock, or that comes too late.
    pub fn deadline(&self, headers: &HeaderMap) -> Result<Deadline, Problem> {
        let deadlines = headers.get(wire::DEADLINE).and_then(|value| value.to_str().ok());
        let deadlines = deadlines.map(wire::deadlines_from_text).unwrap_or_default();
        let Some(at) = deadline_by(&self.name, &deadlines) else {
            let message = "the request has no deadline by this server's clock";
            return Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                wire::CLOCK_UNKNOWN,
                message,
            ));
        };
        let deadline = Deadline { at, clock: self.clock.clone() };
        if deadline.is_over() { Err(too_late()) } else { Ok(deadline) }
    }
}

impl Deadline {
    /// Whether the sender has given the request up.
    pub fn is_over(&self) -> bool {
        self.clock.now_with_suspend() >= self.at
    }

    /// The same, to be asked when the request is carried out.
    pub fn given_up(&self) -> GivenUp {
        let deadline = self.clone();
        Arc::new(move || deadline.is_over())
    }
}

/// Nothing was done; if the sender still waits, it may ask again.
pub fn too_late() -> Problem {
    let message = "the request came so late that its sender has given it up";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "TOO_LATE", message)
}
