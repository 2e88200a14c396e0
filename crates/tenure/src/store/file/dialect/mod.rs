//! The lock files of other programs: what they say, when they are stale, where they lie.

use std::str::FromStr;

/// Whose lock files a folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// One `TASK.lock` for each task that a worker has.
    Worker,
    /// A list of tasks, changed under a kernel lock beside it.
    Coordination,
    /// One lock file for each path that an agent edits, named by a hash.
    Swarm,
    /// One `.lock` for a whole folder.
    Memory,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] =
        [Dialect::Worker, Dialect::Coordination, Dialect::Swarm, Dialect::Memory];

    /// The word in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Worker => "worker",
            Dialect::Coordination => "coordination",
            Dialect::Swarm => "swarm",
            Dialect::Memory => "memory",
        }
    }
}

/// The word is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a dialect")]
pub struct DialectError {
    /// What was given.
    pub word: String,
}

impl FromStr for Dialect {
    type Err = DialectError;

    fn from_str(word: &str) -> Result<Dialect, DialectError> {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.word() == word);
        found.ok_or_else(|| DialectError { word: word.to_owned() })
    }
}
