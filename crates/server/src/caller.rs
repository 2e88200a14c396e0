//! Who asks, and what it may do.

use crate::problem::Problem;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a caller may do; each may do all that those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Read,
    /// Hold, add, claim and finish.
    Work,
    /// End what others hold, and change what others are to do.
    Admin,
}

impl Role {
    /// All of them, the weakest first.
    pub const ALL: [Role; 3] = [Role::Read, Role::Work, Role::Admin];

    /// The word for it.
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

/// The word is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a role; roles are read, work and admin")]
pub struct RoleError {
    /// What was given.
    pub word: String,
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(word: &str) -> Result<Role, RoleError> {
        let found = Role::ALL.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| RoleError { word: word.chars().take(40).collect() })
    }
}

/// Who asks. The gate puts it into the extensions of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of its token; none where there is no file of tokens.
    pub name: Option<String>,
    /// What it may do.
    pub role: Role,
}

impl Caller {
    /// The user who runs the server, or anybody on this machine where it was told to let all in.
    pub fn local() -> Caller {
        Caller { name: None, role: Role::Admin }
    }

    /// Refuses what this caller may not do.
    pub fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("this needs the role {role}, and the token has {}", self.role);
        Err(Problem::new(StatusCode::FORBIDDEN, "FORBIDDEN", message))
    }

    /// How the audit log names this caller, which calls itself so.
    pub fn actor(&self, label: Option<&str>) -> String {
        match (label, &self.name) {
            (Some(label), Some(name)) => format!("{label} (token {name})"),
            (None, Some(name)) => format!("token {name}"),
            (Some(label), None) => label.to_owned(),
            (None, None) => "somebody on this machine".to_owned(),
        }
    }
}
