//! Lets a session find its holds after a server restart: all its grants begin with bytes derived
//! from its key. Only the agent and its server know the key and the grants, so nothing about
//! sessions needs to be stored.

use sha2::{Digest, Sha256};
use tenure::core::GrantId;

/// What the grants of one session have in common.
#[derive(Clone, Copy)]
pub(super) struct SessionGrants {
    /// The first half: half of it from the key alone, half from key and owner.
    first: u64,
    /// A public number of the session.
    mark: u16,
    /// The second half of the runner's grant.
    runner: u64,
}

impl SessionGrants {
    /// The grants of the session with this key and owner.
    pub(super) fn of(key: &str, owner: Option<&str>) -> SessionGrants {
        let own = digest(&[key, owner.unwrap_or_default()]);
        let bits = |at: usize| u64::from_be_bytes(own[at..at + 8].try_into().expect("8 bytes"));
        let first = u64::from(of_key(key)) << 32 | bits(0) >> 32;
        SessionGrants { first, mark: (bits(8) >> 48) as u16, runner: bits(16) }
    }

    /// Whether this grant belongs to a session with this key, of any owner.
    pub(super) fn is_of_key(key: &str, grant: GrantId) -> bool {
        (grant.to_bits() >> 96) as u32 == of_key(key)
    }

    /// A new grant.
    pub(super) fn grant(&self) -> GrantId {
        self.with(GrantId::random().to_bits() as u64)
    }

    /// The grant under which the session keeps its sections.
    pub(super) fn runner(&self) -> GrantId {
        self.with(self.runner)
    }

    fn with(&self, second: u64) -> GrantId {
        GrantId::from_bits(u128::from(self.first) << 64 | u128::from(second))
    }

    /// Whether this grant belongs to the session.
    pub(super) fn has(&self, grant: GrantId) -> bool {
        (grant.to_bits() >> 64) as u64 == self.first
    }

    /// A public suffix that distinguishes sessions with the same name.
    pub(super) fn mark(&self) -> String {
        format!("{:04x}", self.mark)
    }
}

fn of_key(key: &str) -> u32 {
    let bytes = digest(&[key]);
    u32::from_be_bytes(bytes[..4].try_into().expect("4 bytes"))
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix("tenure session");
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_knows_its_own_grants_and_no_others() {
        let bob = SessionGrants::of("key", Some("bob"));
        for grant in [bob.grant(), bob.runner()] {
            assert!(SessionGrants::of("key", Some("bob")).has(grant));
            assert!(!SessionGrants::of("key", Some("eve")).has(grant));
            assert!(!SessionGrants::of("key", None).has(grant));
            assert!(!SessionGrants::of("another", Some("bob")).has(grant));
            assert!(SessionGrants::is_of_key("key", grant));
            assert!(!SessionGrants::is_of_key("another", grant));
        }
        assert_eq!(bob.runner(), SessionGrants::of("key", Some("bob")).runner());
        assert_ne!(bob.grant(), bob.grant());
        assert!(!bob.runner().to_string().contains(&bob.mark()));
    }
}
