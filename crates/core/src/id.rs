//! Identifiers and numbers that must not be swapped for one another.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// One act of asking for and then holding something.
///
/// It proves ownership on renew and release, so it is shown to its holder only. The request that
/// waits and the grant that it becomes share one id: an answer that was lost on the way is found
/// again by asking once more with the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(Uuid);

impl GrantId {
    /// A new id that nobody can guess.
    pub fn random() -> GrantId {
        GrantId(Uuid::new_v4())
    }

    /// The id made of the given bits; for stores and tests.
    pub fn from_bits(bits: u128) -> GrantId {
        GrantId(Uuid::from_u128(bits))
    }

    /// An id by which whoever has this one recognises it, and which is of no use to anybody else.
    pub fn veiled(self) -> GrantId {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        GrantId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// The bits of this id; for stores.
    pub fn to_bits(self) -> u128 {
        self.0.as_u128()
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrantId({})", self.0)
    }
}

/// The text is not a grant id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a grant: a grant looks like 01234567-89ab-cdef-0123-456789abcdef")]
pub struct GrantIdError {
    /// What was given.
    pub text: String,
}

impl FromStr for GrantId {
    type Err = GrantIdError;

    fn from_str(text: &str) -> Result<GrantId, GrantIdError> {
        Uuid::try_parse(text)
            .map(GrantId)
            .map_err(|_| GrantIdError { text: text.chars().take(80).collect() })
    }
}

/// A fencing token: an integer that only ever rises for a resource.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of an event in a store's history; each change has a higher one than all before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970 on the wall clock. For showing to people, never for judging a lease.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct WallTime(pub i64);
