//! Grants prove ownership, so nobody is shown those of others.
//!
//! This works on the JSON that is about to be sent, whatever it is about: no kind of answer can be
//! forgotten. A grant that the caller named itself is known to it; that of a hold under the label
//! that it chose is its own.

use serde_json::Value;
use std::collections::HashSet;
use tenure::core::GrantId;
use uuid::Uuid;

/// The fields that have a grant, or several.
const GRANT: &str = "grant";
const KEEPS: &str = "keeps";

/// The grants that a caller knows, and the label that it chose.
#[derive(Default)]
pub(crate) struct Knows {
    grants: HashSet<String>,
    label: Option<String>,
}

impl Knows {
    /// What the sender of this request knows: every grant that is in it, wherever.
    pub(crate) fn from_request(request: &Value, label: Option<String>) -> Knows {
        let mut knows = Knows { grants: HashSet::new(), label };
        knows.collect(request);
        knows
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) if Uuid::try_parse(text).is_ok() => {
                self.grants.insert(text.to_lowercase());
            }
            Value::Array(values) => values.iter().for_each(|value| self.collect(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    /// Veils every grant that the caller does not know: whoever has it recognises it, and nobody
    /// else can make use of it.
    pub(crate) fn veil(&self, answer: &mut Value) {
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
        if !self.grants.contains(&text.to_lowercase()) {
            let veiled = text.parse().map(|grant: GrantId| grant.veiled());
            *grant = Value::String(veiled.map_or_else(|_| String::new(), |id| id.to_string()));
        }
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
        let request = json!({ "ask": { "grants": [MINE.to_uppercase()] } });
        let knows = Knows::from_request(&request, Some("alice".to_owned()));
        let hold = |grant: &str, label: &str, chosen: bool| json!({ "hold": { "grant": grant, "holder": { "label": label, "chosen": chosen } } });
        let mut answer = json!([
            { "Ok": [{ "grant": MINE, "task": { "claim": { "grant": THEIRS } } }] },
            hold(THEIRS, "bob", true),
            hold(THEIRS, "alice", false),
            hold(THEIRS, "alice", true),
            { "waiter": { "grant": THEIRS, "keeps": [THEIRS, MINE] } },
        ]);
        knows.veil(&mut answer);
        let veiled = THEIRS.parse::<GrantId>().unwrap().veiled().to_string();
        let expected = json!([
            { "Ok": [{ "grant": MINE, "task": { "claim": { "grant": veiled } } }] },
            hold(&veiled, "bob", true),
            hold(&veiled, "alice", false),
            hold(THEIRS, "alice", true),
            { "waiter": { "grant": veiled, "keeps": [veiled, MINE] } },
        ]);
        assert_eq!(answer, expected);
    }
}
