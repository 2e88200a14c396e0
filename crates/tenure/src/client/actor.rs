//! In whose name a server changes its store: a token, its role, and the labels that it may use.
//!
//! All that a server's clients ask for passes here, whatever way it came.

use crate::store::StoreError;
use tenure_core::act::Act;
use tenure_core::{LabelPatterns, Proof, Role};

/// The token through which a change comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The name of the token; events record it.
    pub name: String,
    /// What the token may do.
    pub role: Role,
    /// The labels in whose name the token may act.
    pub labels: LabelPatterns,
}

impl Actor {
    /// A token that may do everything under every label.
    pub fn named(name: &str) -> Actor {
        Actor { name: name.to_owned(), role: Role::Admin, labels: LabelPatterns::default() }
    }

    /// Refuses an act that needs a higher role, or a label that the token may not use. Nothing is
    /// changed then.
    pub(crate) fn check<A: Act>(&self, act: &A) -> Result<(), StoreError> {
        self.check_role(act.role())?;
        self.check_labels(act.labels())
    }

    fn check_role(&self, needed: Role) -> Result<(), StoreError> {
        if self.role >= needed {
            return Ok(());
        }
        let reason = format!("this needs the role {needed}; the token has the role {}", self.role);
        Err(StoreError::Refused { store: String::new(), reason, hint: None })
    }

    fn check_labels<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), StoreError> {
        let Some(label) = labels.into_iter().find(|label| !self.admits(label)) else {
            return Ok(());
        };
        let Actor { name, labels, .. } = self;
        let hint = match labels.list() {
            [one] => format!("Use this label: {one}"),
            _ => format!("Use one of these labels: {labels}"),
        };
        let reason = format!("the token {name:?} may not act as {label:?}");
        // Where the server keeps its store is not for its clients.
        Err(StoreError::Refused { store: String::new(), reason, hint: Some(hint) })
    }

    /// The same for a renewal by a proof. A grant is a secret of its own.
    pub(crate) fn check_proof(&self, proof: &Proof) -> Result<(), StoreError> {
        self.check_role(Role::Work)?;
        match proof {
            Proof::Label(label) => self.check_labels([label.as_str()]),
            Proof::Grant(_) => Ok(()),
        }
    }

    /// Whether the token may use this label. The name of the token itself is what a server writes for a
    /// caller that gives no label.
    fn admits(&self, label: &str) -> bool {
        let own = format!("token {}", self.name);
        let chosen = label.strip_suffix(&format!(" ({own})")).unwrap_or(label);
        label == own || self.labels.admits(chosen)
    }
}
