//! The two records, a hold and a place in the queue, and how holds exclude each other.

use crate::{GrantId, Holder, Resource, Token, millis};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How a resource is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Beside other shared holders.
    Shared,
    /// One of so many slots. Where holders disagree on the number, the lowest counts.
    Slot {
        /// How many may hold at once.
        of: u32,
    },
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Exclusive => f.write_str("exclusive"),
            Mode::Shared => f.write_str("shared"),
            Mode::Slot { of } => write!(f, "slot:{of}"),
        }
    }
}

/// The text is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{text:?} is not a mode; modes are exclusive, shared and slot:N")]
pub struct ModeError {
    /// What was given.
    pub text: String,
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Mode, ModeError> {
        match text {
            "exclusive" => Ok(Mode::Exclusive),
            "shared" => Ok(Mode::Shared),
            slot => slot
                .strip_prefix("slot:")
                // Only as it is written: without a sign and without leading zeros.
                .and_then(|of| of.parse().ok().filter(|number: &u32| number.to_string() == of))
                .map(|of| Mode::Slot { of })
                .ok_or_else(|| ModeError { text: text.chars().take(40).collect() }),
        }
    }
}

impl TryFrom<String> for Mode {
    type Error = ModeError;

    fn try_from(text: String) -> Result<Mode, ModeError> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> String {
        mode.to_string()
    }
}

/// One resource, and how it is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Want {
    /// What.
    pub resource: Resource,
    /// How.
    pub mode: Mode,
}

impl Want {
    /// The resource, alone.
    pub fn exclusive(resource: Resource) -> Want {
        Want { resource, mode: Mode::Exclusive }
    }

    /// The resource, beside other readers.
    pub fn shared(resource: Resource) -> Want {
        Want { resource, mode: Mode::Shared }
    }
}

impl Want {
    /// Whether holding this includes holding the other: the same or more of the resource, in the
    /// same or a stricter mode.
    pub fn includes(&self, other: &Want) -> bool {
        let strict = self.mode == Mode::Exclusive || self.mode == other.mode;
        strict && self.resource.includes(&other.resource)
    }
}

/// Whether these wants can be held beside `others`, all at once.
pub fn compatible<'a>(wants: &[Want], others: impl Iterator<Item = &'a Want> + Clone) -> bool {
    wants.iter().all(|want| {
        let mut overlapping =
            others.clone().filter(|other| other.resource.overlaps(&want.resource));
        match want.mode {
            Mode::Exclusive => overlapping.next().is_none(),
            Mode::Shared => overlapping.all(|other| other.mode == Mode::Shared),
            Mode::Slot { of } => {
                let mut taken = 0;
                let mut lowest = of;
                for other in overlapping {
                    let Mode::Slot { of } = other.mode else { return false };
                    taken += 1;
                    lowest = lowest.min(of);
                }
                taken < lowest
            }
        }
    })
}

/// Whether two sets of wants touch each other at all in a way that could exclude one. Slots count
/// as excluding: whether they really do depends on how many others hold.
pub fn may_exclude(wants: &[Want], others: &[Want]) -> bool {
    any_pair(wants, others, |want, other| !(want == Mode::Shared && other == Mode::Shared))
}

/// Whether one set of wants must wait until the other is gone. Of several slots any may come free,
/// so no single holder of one is waited for.
pub fn must_exclude(wants: &[Want], others: &[Want]) -> bool {
    any_pair(wants, others, |want, other| match (want, other) {
        (Mode::Shared, Mode::Shared) => false,
        (Mode::Slot { of: mine }, Mode::Slot { of: theirs }) => mine.min(theirs) == 1,
        _ => true,
    })
}

fn any_pair(wants: &[Want], others: &[Want], excludes: impl Fn(Mode, Mode) -> bool) -> bool {
    wants.iter().any(|want| {
        others
            .iter()
            .any(|other| excludes(want.mode, other.mode) && want.resource.overlaps(&other.resource))
    })
}

/// One resource held under one grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What is held, and how.
    pub want: Want,
    /// The act of holding that this belongs to. All resources of one request share it.
    pub grant: GrantId,
    /// The fencing token, shared by all resources of the grant.
    pub token: Token,
    /// Who.
    pub holder: Holder,
    /// What for, in the holder's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How long the lease lasts from each renewal.
    #[serde(rename = "ttl_ms", with = "millis")]
    pub ttl: Duration,
    /// Which slot it is, from 0, where the resource has slots: no other holder has the same. Holds
    /// of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
}

/// A place in the first-come queue of each wanted resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// The request, and the grant that it will become.
    pub grant: GrantId,
    /// Its turn: lower goes first.
    pub ticket: u64,
    /// What it waits for, all or nothing.
    pub wants: Vec<Want>,
    /// Who.
    pub holder: Holder,
    /// What for, in the waiter's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Grants that the caller keeps while it waits: what makes a cycle possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<GrantId>,
    /// How long the place lasts without a sign of life.
    #[serde(rename = "ttl_ms", with = "millis")]
    pub ttl: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(name: &str, mode: Mode) -> Want {
        Want { resource: name.parse().unwrap(), mode }
    }

    #[test]
    fn modes_exclude_as_their_names_say() {
        use Mode::*;
        let cases: &[(Mode, &[Mode], bool)] = &[
            (Exclusive, &[], true),
            (Exclusive, &[Shared], false),
            (Exclusive, &[Exclusive], false),
            (Exclusive, &[Slot { of: 9 }], false),
            (Shared, &[Shared, Shared], true),
            (Shared, &[Shared, Exclusive], false),
            (Shared, &[Slot { of: 2 }], false),
            (Slot { of: 2 }, &[Slot { of: 2 }], true),
            (Slot { of: 2 }, &[Slot { of: 2 }, Slot { of: 2 }], false),
            (Slot { of: 3 }, &[Slot { of: 2 }, Slot { of: 2 }], false),
            (Slot { of: 2 }, &[Slot { of: 3 }, Slot { of: 3 }], false),
            (Slot { of: 2 }, &[Shared], false),
        ];
        for (mode, others, expected) in cases {
            let others: Vec<Want> = others.iter().map(|mode| want("a", *mode)).collect();
            assert_eq!(
                compatible(&[want("a", *mode)], others.iter()),
                *expected,
                "{mode:?} beside {others:?}"
            );
            assert!(compatible(&[want("b", *mode)], others.iter()));
        }
    }

    #[test]
    fn what_is_held_includes_the_same_or_less_of_it() {
        use Mode::*;
        let cases = [
            (("a", Exclusive), ("a", Exclusive), true),
            (("a", Exclusive), ("a", Shared), true),
            (("a", Exclusive), ("a", Slot { of: 3 }), true),
            (("a", Shared), ("a", Shared), true),
            (("a", Shared), ("a", Exclusive), false),
            (("a", Slot { of: 3 }), ("a", Slot { of: 3 }), true),
            (("a", Slot { of: 3 }), ("a", Slot { of: 2 }), false),
            (("a", Exclusive), ("b", Exclusive), false),
            (("path:src/**", Exclusive), ("path:src/a.rs", Exclusive), true),
            (("path:src/a.rs", Exclusive), ("path:src/**", Exclusive), false),
            (("path:src/**", Shared), ("path:src/a.rs", Exclusive), false),
            (("path:src/**", Exclusive), ("path://tree/src/a.rs", Exclusive), true),
            (("path://tree/src/**", Exclusive), ("path:src/a.rs", Exclusive), false),
        ];
        for ((held, mode), (wanted, wanted_mode), expected) in cases {
            let includes = want(held, mode).includes(&want(wanted, wanted_mode));
            assert_eq!(includes, expected, "{held} {mode} and {wanted} {wanted_mode}");
        }
    }

    #[test]
    fn overlapping_paths_exclude_each_other() {
        let held = [want("path:src/**", Mode::Exclusive)];
        assert!(!compatible(&[want("path:src/a.rs", Mode::Exclusive)], held.iter()));
        assert!(compatible(&[want("path:docs/a", Mode::Exclusive)], held.iter()));
    }

    #[test]
    fn a_mode_is_shown_stored_and_read_in_one_form() {
        for (mode, text) in [
            (Mode::Exclusive, "exclusive"),
            (Mode::Shared, "shared"),
            (Mode::Slot { of: 0 }, "slot:0"),
            (Mode::Slot { of: 12 }, "slot:12"),
        ] {
            assert_eq!(mode.to_string(), text);
            assert_eq!(text.parse(), Ok(mode));
            let stored = serde_json::to_string(&mode).unwrap();
            assert_eq!(stored, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Mode>(&stored).unwrap(), mode);
        }
    }

    #[test]
    fn no_other_text_is_a_mode() {
        for text in
            ["", "Shared", "slot", "slot:", "slot:+2", "slot:02", "slot:-1", "slot:4294967296"]
        {
            let refused = text.parse::<Mode>().unwrap_err();
            let modes = "modes are exclusive, shared and slot:N";
            assert_eq!(refused.to_string(), format!("{text:?} is not a mode; {modes}"));
        }
    }
}
