//! Looks that are known without asking the servers.
//!
//! A change also reads, after it wrote, what its look had read. If the next change of this handle looks at
//! the same, it can be decided on that at once: it compares all that it is based on, as after any look, so
//! where others changed something meanwhile it is too late, and looks again. A release after an acquire, and
//! the acquire after that, then take one round trip each.
//!
//! Guards do not tell that a lease ended or was renewed. So such a look also compares each hold that it
//! shows. A rule that decides to change nothing compares nothing, so it is shown a look of its own.

use super::connection::{Ask, Pages};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// A look is remembered for so long: the longer ago, the more probably others changed something.
const AGE_MAX: Duration = Duration::from_secs(5);

/// So many are remembered.
const LOOKS_MAX: usize = 64;

/// For how long nothing is remembered after others changed what was: a try in vain costs more than a look.
const DISTRUST: Duration = Duration::from_millis(500);

/// The most resources of a look that is remembered: with many, one of them changes soon.
pub(super) const RESOURCES_MAX: usize = 4;

/// See the module.
#[derive(Default)]
pub(super) struct RememberedLooks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    looks: HashMap<Vec<Ask>, (Pages, Instant)>,
    distrusted_until: Option<Instant>,
}

impl RememberedLooks {
    /// What these reads would have found when they were last made together, once.
    pub(super) fn take(&self, asks: &[Ask]) -> Option<Pages> {
        let (pages, since) = self.state.lock().looks.remove(asks)?;
        (since.elapsed() < AGE_MAX).then_some(pages)
    }

    pub(super) fn put(&self, asks: Vec<Ask>, pages: Pages) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.distrusted_until.is_some_and(|until| now < until) {
            return;
        }
        if state.looks.len() >= LOOKS_MAX {
            state.looks.clear();
        }
        state.looks.insert(asks, (pages, now));
    }

    /// Others changed what was remembered: there is contention.
    pub(super) fn distrust(&self) {
        let mut state = self.state.lock();
        state.looks.clear();
        state.distrusted_until = Some(Instant::now() + DISTRUST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_used_once_and_not_after_contention() {
        let looks = RememberedLooks::default();
        let asks = |key: &str| vec![Ask::one(key.to_owned())];
        looks.put(asks("a"), Pages::none(1));
        looks.put(asks("b"), Pages::none(2));
        assert_eq!(looks.take(&asks("a")).map(|pages| pages.revision), Some(1));
        assert!(looks.take(&asks("a")).is_none());
        looks.distrust();
        looks.put(asks("c"), Pages::none(3));
        assert!(looks.take(&asks("b")).is_none() && looks.take(&asks("c")).is_none());
    }
}
