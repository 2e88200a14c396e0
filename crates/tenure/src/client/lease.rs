//! What was obtained.

use crate::store::Renewal;
use std::time::Duration;
use tenure_core::{GrantId, Holder, Reason, Resource, Takeover, Token, WallTime};

/// A grant with its token and time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// What is held.
    pub resources: Vec<Resource>,
    /// Proves ownership; not to be shown to others.
    pub grant: GrantId,
    /// Under which label, and tied to what.
    pub holder: Holder,
    /// The fencing token.
    pub token: Token,
    /// How long it lasts from each renewal.
    pub ttl: Duration,
    /// How it came about.
    pub reason: Reason,
    /// Whose holds ended for it.
    pub takeovers: Vec<Takeover>,
    /// Which slot of each resource it is, from 0, where they are held by slots: no other holder has
    /// the same now.
    pub slots: Vec<u32>,
    /// How long it was waited for.
    pub waited: Duration,
    /// When it was obtained, for showing.
    pub acquired_at: WallTime,
    /// When it lapses unless renewed, for showing.
    pub expires_at: WallTime,
    /// Until when, on the client's clock, its holder may trust it: counted from before the call
    /// that obtained it, and ending a margin early.
    pub trusted_until: Duration,
    pub(crate) margin: Duration,
    /// Whether it goes under a hold that another request of its owner took and will give back.
    pub(crate) is_covered: bool,
    /// Whether another request took it before, which will give it back.
    pub(crate) is_shared: bool,
}

impl Lease {
    /// Whether another request of the same owner took it before: then it is not this one's to give back.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Takes note of a renewal that was asked for at this time.
    pub(crate) fn start_anew(&mut self, asked_at: Duration, wall: WallTime) {
        self.trusted_until = (asked_at + self.ttl).saturating_sub(self.margin);
        self.expires_at = WallTime(wall.0.saturating_add(self.ttl.as_millis() as i64));
    }

    pub(crate) fn renewal(&self) -> Renewal {
        Renewal {
            grant: self.grant,
            token: self.token,
            resources: self.resources.clone(),
            ttl: self.ttl,
            bind: None,
        }
    }
}
