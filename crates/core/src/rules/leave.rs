//! Giving up a place in the queue.

use crate::decision::Decision;
use crate::event::WhyLeft;
use crate::rules::draft::Draft;
use crate::{GrantId, Seen, Witness};

/// Gives up the place of this request; those behind it may go on. Says whether there was one;
/// the look must show its ticket.
pub fn leave(seen: &Seen, grant: GrantId, witness: &dyn Witness) -> (Decision, bool) {
    let Some(place) = seen.waiters.iter().find(|seen| seen.waiter.grant == grant) else {
        return (Decision::Nothing, false);
    };
    let mut draft = Draft::new(seen, witness);
    draft.drop_wait(&place.waiter, WhyLeft::GaveUp);
    (draft.decide(None), true)
}
