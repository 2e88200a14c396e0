//! The caller of a request and its role.

use crate::problem::Problem;
use axum::http::StatusCode;
use tenure::core::LabelPatterns;
pub use tenure::core::Role;
use tenure::server_support::Actor;

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

    /// The token that events of the caller's changes name, with what it may do.
    pub fn token(&self) -> Actor {
        let labels = self.labels.clone();
        Actor { name: self.token_name().to_owned(), role: self.role, labels }
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
