//! The grant under which a worker that is known by its label keeps its section.

use tenure_core::GrantId;

/// The grant under which a worker keeps its section from one command to the next. It is derived
/// from the label, because only the label lasts from command to command. It need not be secret: a
/// chosen label is accepted in place of a grant everywhere.
pub fn runner_grant(label: &str) -> GrantId {
    // FNV-1a, twice from different starts. It must be the same in every version and on every
    // machine, which the hashes of the standard library do not promise.
    let hash = |start: u64| {
        label
            .bytes()
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    };
    let (high, low) = (hash(0xcbf2_9ce4_8422_2325), hash(0x7465_6e75_7265_0001));
    GrantId::from_bits(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_the_same_runner_grant_in_every_version() {
        let grant = runner_grant("alice").to_string();
        assert_eq!(grant, "508b2abb-65a0-3907-68fa-5652a6d5cd5b");
        assert_ne!(runner_grant("alice"), runner_grant("bob"));
    }
}
