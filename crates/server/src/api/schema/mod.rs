//! What the API answers, for its description and for Rust programs that read it. The JSON itself is
//! made by [`tenure_frontend::view`]; a test compares the two.

mod locks;
mod tasks;

pub use locks::*;
pub use tasks::*;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// How the API says no.
#[derive(Debug, Deserialize, ToSchema)]
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
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// More for programs, depending on the code.
    #[schema(nullable = false, value_type = Option<Object>)]
    pub details: Option<Value>,
}

/// Something that happened. Some kinds have more fields, such as `operation`, `by`, `reason`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the store's history.
    pub revision: u64,
    /// When.
    pub at: String,
    /// What, in a word.
    pub event: String,
    /// To what.
    #[schema(required)]
    pub resource: Option<String>,
    /// To whose hold or place, or by whom.
    pub holder: String,
    /// Under which token.
    #[schema(required)]
    pub token: Option<u64>,
}

/// Events, oldest first.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Events {
    /// The events.
    pub events: Vec<Event>,
    /// Ask with `after` this for what comes next.
    pub revision: u64,
}

/// Somebody who holds something.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Worker {
    /// Its label.
    pub holder: String,
    /// Where it runs, where that is known.
    #[schema(required)]
    pub hostname: Option<String>,
    /// Its process, where that is known.
    #[schema(required)]
    pub pid: Option<u32>,
    /// `alive`, `dead` or `unknown`.
    pub alive: String,
    /// Whether nothing that it holds counts any more.
    pub is_stale: bool,
    /// Since when it holds something.
    #[schema(required)]
    pub since: Option<String>,
    /// What it holds, tasks aside.
    pub locks: Vec<String>,
    /// The tasks that it has.
    pub tasks: Vec<WorkerTask>,
    /// When the first of its leases lapses unless renewed.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// The same, from now.
    #[schema(required)]
    pub seconds_left: Option<f64>,
}

/// A task that somebody has.
#[derive(Debug, Deserialize, ToSchema)]
pub struct WorkerTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
}

/// Everybody who holds something.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Workers {
    /// They.
    pub workers: Vec<Worker>,
}

/// A section of the task list.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// How many runners may work in it at once; null means any number.
    #[schema(required)]
    pub max_runners: Option<u32>,
    /// Lower goes first.
    pub priority: u8,
    /// Among equals of priority, lower goes first.
    pub position: i64,
    /// Sections that must be done before.
    pub depends_on: Vec<String>,
    /// Whether nothing of it is handed out for now.
    pub paused: bool,
}

/// A section, with what goes on in it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct OpenSection {
    /// Its description.
    #[serde(flatten)]
    pub section: Section,
    /// How many of its tasks have not come to their end.
    pub open: u64,
    /// Who works in it.
    pub runners: Vec<SectionRunner>,
}

/// Somebody who works in a section.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SectionRunner {
    /// Its label.
    pub runner_id: String,
    /// Since when.
    pub acquired_at: String,
    /// Until when, unless renewed.
    pub expires_at: String,
}

/// All sections, in the order of claims.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Sections {
    /// They.
    pub sections: Vec<OpenSection>,
    /// Whether nothing at all is handed out for now.
    pub paused: bool,
}

/// A section as it is now.
#[derive(Debug, Deserialize, ToSchema)]
pub struct OneSection {
    /// It.
    pub section: Section,
}

/// What was paused or resumed.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Paused {
    /// Which section; `*` for everything.
    pub section: String,
    /// Whether it is paused now.
    pub paused: bool,
}
