//! Giving up a place in the queue.

use crate::decision::Decision;
use crate::event::WhyLeft;
use crate::rules::draft::Draft;
use crate::{GrantId, Seen, Witness};

/// Gives up the place of this request; those behind it may go on. Says whether there was one.
pub fn leave(seen: &Seen, grant: GrantId, witness: &dyn Witness) -> (Decision, bool) {
    let Some(place) = seen.waiters.iter().find(|seen| seen.waiter.grant == grant) else {
        // Deep in a long queue it may just not be shown.
        let hidden = seen.truncated && !seen.whole;
        return (if hidden { Decision::LookWider } else { Decision::Nothing }, false);
    };
    let mut draft = Draft::new(seen, witness);
    draft.drop_wait(&place.waiter, WhyLeft::GaveUp);
    (draft.decide(None), true)
}
