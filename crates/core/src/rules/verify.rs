//! Checking a fencing token.

use crate::{Resource, Snapshot, Token, Witness};

/// Whether a token may be trusted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyAnswer {
    /// It belongs to a hold that counts.
    Valid,
    /// It does not: the resource is free, lapsed, or held under another token.
    Refused {
        /// The highest token that holds the resource now.
        current: Option<Token>,
    },
}

/// Checks that this token holds this resource now.
pub fn verify(
    seen: &Snapshot,
    resource: &Resource,
    token: Token,
    witness: &dyn Witness,
) -> VerifyAnswer {
    let live = || {
        seen.holds
            .iter()
            .filter(|seen| seen.hold.want.resource == *resource && !seen.gone(witness))
            .map(|seen| seen.hold.token)
    };
    if live().any(|held| held == token) {
        return VerifyAnswer::Valid;
    }
    VerifyAnswer::Refused { current: live().max() }
}
