//! The caller of a request and its role.

use crate::problem::Problem;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tenure::core::LabelPatterns;
use tenure::server_support::Actor;

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

/// How events name the user who runs the server, whose requests need no token of the token file. No new
/// token gets this name.
pub const LOCAL: &str = "local";

/// The caller of a request. The middleware puts it into the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of its token; `None` without a token file.
    pub name: Option<String>,
    /// Its role.
    pub role: Role,
    /// The labels in whose name it may act.
    pub labels: LabelPatterns,
}

impl Caller {
    /// A caller that may act under every label.
    pub fn new(name: Option<&str>, role: Role) -> Caller {
        Caller { name: name.map(str::to_owned), role, labels: LabelPatterns::default() }
    }

    /// The user who runs the server, or with `--no-auth` any user of this machine.
    pub fn local() -> Caller {
        Caller::new(None, Role::Admin)
    }

    /// The token that events of the caller's changes name, with the labels that it may use.
    pub fn token(&self) -> Actor {
        Actor { name: self.token_name().to_owned(), labels: self.labels.clone() }
    }

    /// Refuses what this caller may not do.
    pub fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("this needs the role {role}; the token has the role {}", self.role);
        Err(Problem::new(StatusCode::FORBIDDEN, "FORBIDDEN", message))
    }

    /// The name under which events record the caller's changes.
    pub fn token_name(&self) -> &str {
        self.name.as_deref().unwrap_or(LOCAL)
    }

    /// The name of this caller in the audit log, given the label that it chose.
    pub fn actor(&self, label: Option<&str>) -> String {
        match (label, &self.name) {
            (Some(label), Some(name)) => format!("{label} (token {name})"),
            (None, Some(name)) => format!("token {name}"),
            (Some(label), None) => label.to_owned(),
            (None, None) => "a user of this machine".to_owned(),
        }
    }
}
