//! What the caller of a server may do.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a caller may do; each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read.
    Read,
    /// Hold, add, claim and finish.
    Work,
    /// End other holders' holds, and change tasks of others.
    Admin,
}

impl Role {
    /// All roles, weakest first.
    pub const ALL: [Role; 3] = [Role::Read, Role::Work, Role::Admin];

    /// The name of the role.
    pub fn word(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Work => "work",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The word is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a role; roles are read, work and admin")]
pub struct RoleError {
    /// The word as it was given.
    pub word: String,
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(word: &str) -> Result<Role, RoleError> {
        let found = Role::ALL.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| RoleError { word: word.chars().take(40).collect() })
    }
}
