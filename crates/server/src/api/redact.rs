//! Grants prove ownership, so a caller is never shown those of others.
//!
//! This works on the JSON that is about to be sent, whatever it is about: no kind of answer can be
//! forgotten. Most answers have no grant but the caller's own, and are sent as they are. A grant
//! that the caller named itself is known to it; that of a hold under the label that it chose is its
//! own.

use serde_json::Value;
use std::collections::HashSet;
use tenure::core::GrantId;
use uuid::Uuid;

/// The fields that have a grant, or several.
const GRANT: &str = "grant";
const KEEPS: &str = "keeps";

/// The grants that a caller knows, and the label that it chose.
#[derive(Default)]
pub(crate) struct GrantRedactor {
    grants: HashSet<GrantId>,
    label: Option<String>,
}

/// The length of a grant as text.
const LENGTH: usize = 36;

/// All that looks like a grant in a text.
fn grants_in(text: &[u8]) -> impl Iterator<Item = GrantId> {
    // Whatever looks like one begins after a quote.
    let quoted = text.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    let words = quoted.filter_map(|(quote, _)| text.get(quote + 1..quote + 1 + LENGTH));
    words.filter(|word| word[8] == b'-' && word[13] == b'-').filter_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Uuid::try_parse(word).ok().map(|id| GrantId::from_bits(id.as_u128()))
    })
}

impl GrantRedactor {
    /// What the sender of this request knows: every grant that is in it, wherever.
    pub(crate) fn from_request(request: &[u8], label: Option<String>) -> GrantRedactor {
        GrantRedactor { grants: grants_in(request).collect(), label }
    }

    /// The answer without what the caller must not see.
    pub(crate) fn without_secrets(&self, answer: Vec<u8>) -> serde_json::Result<Vec<u8>> {
        if grants_in(&answer).all(|grant| self.grants.contains(&grant)) {
            return Ok(answer);
        }
        let mut answer = serde_json::from_slice(&answer)?;
        self.veil(&mut answer);
        serde_json::to_vec(&answer)
    }

    /// Replaces every grant that the caller does not know by its public form, which its owner recognises and
    /// which proves nothing.
    fn veil(&self, answer: &mut Value) {
        match answer {
            Value::Array(values) => values.iter_mut().for_each(|value| self.veil(value)),
            Value::Object(fields) => {
                let own = self.is_own(fields.get("holder"));
                for (name, value) in fields.iter_mut() {
                    match name.as_str() {
                        GRANT if !own => self.veil_grant(value),
                        KEEPS if !own => {
                            let keeps = value.as_array_mut().into_iter().flatten();
                            keeps.for_each(|grant| self.veil_grant(grant));
                        }
                        GRANT | KEEPS => {}
                        _ => self.veil(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn is_own(&self, holder: Option<&Value>) -> bool {
        let (Some(label), Some(holder)) = (&self.label, holder) else { return false };
        holder["chosen"] == true && holder["label"] == label.as_str()
    }

    fn veil_grant(&self, grant: &mut Value) {
        // What is not text may have a grant further inside: a proof, for example.
        let Some(text) = grant.as_str() else { return self.veil(grant) };
        *grant = match Uuid::try_parse(text).map(|id| GrantId::from_bits(id.as_u128())) {
            Ok(known) if self.grants.contains(&known) => return,
            Ok(secret) => Value::String(secret.redacted().to_string()),
            Err(_) => Value::Null,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MINE: &str = "11111111-1111-4111-8111-111111111111";
    const THEIRS: &str = "22222222-2222-4222-8222-222222222222";

    #[test]
    fn grants_of_others_are_taken_away_wherever_they_are() {
        let request = json!({ "ask": { "grants": [MINE.to_uppercase()] } }).to_string();
        let knows = GrantRedactor::from_request(request.as_bytes(), Some("alice".to_owned()));
        let hold = |grant: &str, label: &str, chosen: bool| json!({ "hold": { "grant": grant, "holder": { "label": label, "chosen": chosen } } });
        let answer = json!([
            { "Ok": [{ "grant": MINE, "task": { "claim": { "grant": THEIRS } } }] },
            hold(THEIRS, "bob", true),
            hold(THEIRS, "alice", false),
            hold(THEIRS, "alice", true),
            { "waiter": { "grant": THEIRS, "keeps": [THEIRS, MINE] } },
        ]);
        let answer = knows.without_secrets(answer.to_string().into_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let redacted = THEIRS.parse::<GrantId>().unwrap().redacted().to_string();
        let expected = json!([
            { "Ok": [{ "grant": MINE, "task": { "claim": { "grant": redacted } } }] },
            hold(&redacted, "bob", true),
            hold(&redacted, "alice", false),
            hold(THEIRS, "alice", true),
            { "waiter": { "grant": redacted, "keeps": [redacted, MINE] } },
        ]);
        assert_eq!(answer, expected);
    }
}
