//! What the API answers: these types are sent, describe the answers in the OpenAPI document, and
//! read them in Rust programs. What holds and tasks look like everywhere is in
//! [`tenure_frontend::view`].

mod locks;
mod rates;
mod tasks;

pub use locks::*;
pub use rates::*;
pub use tasks::*;
pub use tenure_frontend::view::{
    Counts, Event, Hold, Lock, OpenSection, Section, Tally, Task, Waiter, Worker,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// How the API says no.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the code tells more.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: Option<String>,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// A word for programs, the same as on the command line.
    #[schema(pattern = "^[A-Z][A-Z_]*$")]
    pub code: String,
    /// One sentence.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// More for programs, depending on the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub details: Option<Value>,
}

/// Events, oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Events {
    /// The events.
    pub events: Vec<Event>,
    /// Ask with `after` this for what comes next.
    pub revision: u64,
    /// Events after this revision, which was asked for, may be missing: the store keeps none that are so old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_after: Option<u64>,
}

/// All holders.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    /// The holders, each with what it holds.
    pub workers: Vec<Worker>,
}

/// All sections, in the order of claims.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Sections {
    /// The sections.
    pub sections: Vec<OpenSection>,
    /// Whether nothing at all is handed out for now.
    pub paused: bool,
}

/// A section as it is now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OneSection {
    /// The section.
    pub section: Section,
}

/// What was paused or resumed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Paused {
    /// Which section; `*` for everything.
    pub section: String,
    /// Whether it is paused now.
    pub paused: bool,
}
