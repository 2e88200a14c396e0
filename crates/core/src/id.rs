//! Identifiers and numbers that must not be swapped for one another.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// How the public form of every grant begins; ids that are made up at random never have its version.
const VEILED: [u8; 4] = [0x7e, 0x11, 0xed, 0x00];

/// One act of asking for and then holding something.
///
/// It proves ownership on renew and release, so it is shown to its holder only. The request that
/// waits and the grant that it becomes share one id: an answer that was lost on the way is found
/// again by asking once more with the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(Uuid);

impl GrantId {
    /// Makes a new id that cannot be guessed.
    pub fn random() -> GrantId {
        GrantId(Uuid::new_v4())
    }

    /// The id made of the given bits; for stores and tests.
    pub fn from_bits(bits: u128) -> GrantId {
        GrantId(Uuid::from_u128(bits))
    }

    /// The public form of this id: its owner recognises it, and it proves nothing. The public form
    /// of a public form is itself.
    pub fn redacted(self) -> GrantId {
        if self.is_veiled() {
            return self;
        }
        let digest = Sha256::digest(self.0.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[..4].copy_from_slice(&VEILED);
        GrantId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Whether this is the public form of an id.
    pub fn is_veiled(self) -> bool {
        self.0.as_bytes()[..4] == VEILED && self.0.get_version_num() == 8
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

/// Shows a part of the public form, which tells grants apart in a log and proves nothing.
impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redacted = self.redacted().to_bits();
        write!(f, "GrantId(..{:08x})", redacted as u32)
    }
}

/// The text is not a grant id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantIdError {
    /// It has another form.
    #[error("{text:?} is not a grant: a grant looks like 01234567-89ab-cdef-0123-456789abcdef")]
    Form {
        /// The beginning of what was given.
        text: String,
    },
    /// It is the public form of a grant.
    #[error("{text:?} is the public form of a grant and cannot prove ownership")]
    Veiled {
        /// What was given.
        text: String,
    },
}

impl FromStr for GrantId {
    type Err = GrantIdError;

    fn from_str(text: &str) -> Result<GrantId, GrantIdError> {
        let shown = || text.chars().take(80).collect();
        match Uuid::try_parse(text).map(GrantId) {
            Ok(grant) if grant.is_veiled() => Err(GrantIdError::Veiled { text: shown() }),
            Ok(grant) => Ok(grant),
            Err(_) => Err(GrantIdError::Form { text: shown() }),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_form_of_a_grant_is_recognised_and_proves_nothing() {
        let (grant, other) = (GrantId::random(), GrantId::random());
        let redacted = grant.redacted();
        assert!(redacted.is_veiled() && !grant.is_veiled());
        assert_ne!(redacted, other.redacted());
        assert_eq!(redacted.redacted(), redacted, "however often it is passed on");
        assert!(matches!(
            redacted.to_string().parse::<GrantId>(),
            Err(GrantIdError::Veiled { .. })
        ));
        assert_eq!(grant.to_string().parse(), Ok(grant));
    }

    #[test]
    fn both_the_beginning_and_the_version_make_a_public_form() {
        let redacted = GrantId::random().redacted().to_bits();
        let version = 0xf << 76;
        for (bits, is_veiled) in [
            (redacted, true),
            (redacted ^ 1, true),
            (redacted ^ (1 << 127), false),
            ((redacted & !version) | (4 << 76), false),
        ] {
            assert_eq!(GrantId::from_bits(bits).is_veiled(), is_veiled, "{bits:x}");
        }
    }

    #[test]
    fn numbers_are_shown_as_they_are() {
        assert_eq!((Token(7).to_string(), Revision(8).to_string()), ("7".into(), "8".into()));
    }

    #[test]
    fn debug_output_has_no_part_of_the_secret() {
        let (grant, other) = (GrantId::random(), GrantId::random());
        let shown = format!("{grant:?}");
        assert!(shown.starts_with("GrantId(..") && shown != format!("{other:?}"), "{shown}");
        assert_eq!(shown, format!("{:?}", grant.redacted()), "a log tells that both are one");
        for part in grant.to_string().split('-') {
            assert!(part.len() <= 4 || !shown.contains(part), "{shown} has {part}");
        }
    }
}
