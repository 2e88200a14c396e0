//! Deadlines of requests to a server.
//!
//! A request may be held up on its way: in a network, in a proxy, in a server that is stopped for a
//! while. If it were carried out after its sender gave it up, it could undo what the sender was told
//! since. A release that comes late, for example, would end a lease that its owner has asked for again
//! and trusts.
//!
//! So every request that changes something has a deadline, after which the server refuses it. The
//! server's clock decides. Clocks of two machines cannot be compared, but they run equally fast, or
//! nearly so: each answer says what the server's clock showed, and the client adds the time since the
//! answer came. A client that does not know the server's clock yet is told it, and sends the request
//! again.

use parking_lot::Mutex;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The part by which two clocks may run differently: far more than real ones do.
const DRIFT: u32 = 20;

/// How many clocks a client remembers: several servers may share one address.
const CLOCKS_MAX: usize = 8;

/// A moment by the clock of one server, which is another one after each start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTime {
    /// The clock.
    pub clock: String,
    /// What it shows, in whole milliseconds.
    pub at: Duration,
}

impl fmt::Display for ServerTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.clock, self.at.as_millis())
    }
}

impl FromStr for ServerTime {
    type Err = NoServerTime;

    fn from_str(text: &str) -> Result<ServerTime, NoServerTime> {
        let (clock, at) = text.trim().rsplit_once('/').ok_or(NoServerTime)?;
        let at = at.parse().map(Duration::from_millis).map_err(|_| NoServerTime)?;
        let is_name = (1..=64).contains(&clock.len())
            && clock.chars().all(|letter| letter.is_ascii_alphanumeric());
        is_name.then(|| ServerTime { clock: clock.to_owned(), at }).ok_or(NoServerTime)
    }
}

/// A text that is no time of a server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoServerTime;

/// What a client knows of the clocks of the servers that answered it.
#[derive(Debug, Default)]
pub struct KnownClocks {
    /// The one that answered last comes last.
    known: Mutex<Vec<Known>>,
}

#[derive(Debug)]
struct Known {
    time: ServerTime,
    /// What the client's own clock showed when the answer came.
    came_at: Duration,
}

impl Known {
    /// What the server's clock shows now at the least.
    fn shows_at_least(&self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.came_at);
        self.time.at + since - since / DRIFT
    }
}

impl KnownClocks {
    /// Notes what a server's clock showed, in an answer that has just come. An answer that was on its way
    /// for long says less than an earlier one that came quickly.
    pub fn learn(&self, time: ServerTime, now: Duration) {
        let mut known = self.known.lock();
        let before = known.iter().position(|known| known.time.clock == time.clock);
        let before = before.map(|index| known.remove(index));
        if known.len() == CLOCKS_MAX {
            known.remove(0);
        }
        let heard = Known { time, came_at: now };
        known.push(match before {
            Some(before) if before.shows_at_least(now) > heard.time.at => before,
            _ => heard,
        });
    }

    /// The deadline of a request that is sent now and given up after this time, by each clock that is
    /// known well enough. None is later than the moment at which the sender gives up: an answer was on
    /// its way for a while before it came, and clocks may run differently.
    pub fn deadlines(&self, now: Duration, patience: Duration) -> Vec<ServerTime> {
        let known = self.known.lock();
        let deadlines = known.iter().filter_map(|known| {
            let since = now.checked_sub(known.came_at)?;
            let uncertain = (since + patience) / DRIFT;
            // What is left would be too short to be of use: the clock is asked for again.
            let is_long_enough = uncertain < patience / 2;
            let at = known.time.at + (since + patience) - uncertain;
            is_long_enough.then(|| ServerTime { clock: known.time.clock.clone(), at })
        });
        deadlines.collect()
    }
}

/// The deadline by this clock, if the request names one.
pub fn deadline_by(clock: &str, deadlines: &[ServerTime]) -> Option<Duration> {
    deadlines.iter().find(|deadline| deadline.clock == clock).map(|deadline| deadline.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(clock: &str, at: Duration) -> ServerTime {
        ServerTime { clock: clock.to_owned(), at }
    }

    #[test]
    fn a_time_is_read_as_it_is_written() {
        let time = at("0badc0de", Duration::from_millis(12_345));
        assert_eq!(time.to_string(), "0badc0de/12345");
        assert_eq!(time.to_string().parse(), Ok(time));
        for text in ["", "/1", "a/", "a/-1", "a/b", "a b/1", "a"] {
            assert_eq!(text.parse::<ServerTime>(), Err(NoServerTime), "{text:?}");
        }
    }

    #[test]
    fn a_deadline_is_never_later_than_the_sender_gives_up() {
        // The server's clock is 100 s ahead, and runs up to 4 % slower or faster than the client's.
        for permille in [960, 1000, 1040] {
            let server = |now: Duration| 100 * SECOND + now * permille / 1000;
            let clocks = KnownClocks::default();
            // An answer that was on its way for half a second.
            clocks.learn(at("a", server(9 * SECOND + SECOND / 2)), 10 * SECOND);
            for sent in [10, 11, 30, 100] {
                let sent = sent * SECOND;
                let deadlines = clocks.deadlines(sent, 15 * SECOND);
                let [deadline] = deadlines.as_slice() else { panic!("{deadlines:?}") };
                assert!(deadline.at <= server(sent + 15 * SECOND), "{permille} {sent:?}");
                // There is time enough to arrive.
                assert!(deadline.at > server(sent + 3 * SECOND), "{permille} {sent:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_was_on_its_way_for_long_does_not_shorten_deadlines() {
        let clocks = KnownClocks::default();
        let left = |now| {
            let deadlines = clocks.deadlines(now, SECOND);
            deadlines[0].at.saturating_sub(now)
        };
        clocks.learn(at("a", 10 * SECOND), 10 * SECOND);
        let before = left(12 * SECOND);
        clocks.learn(at("a", 10 * SECOND + SECOND / 2), 12 * SECOND);
        assert_eq!(left(12 * SECOND), before);
        clocks.learn(at("a", 12 * SECOND), 12 * SECOND);
        assert!(left(12 * SECOND) > before);
    }

    #[test]
    fn a_clock_that_was_not_heard_of_for_long_is_not_relied_on() {
        let clocks = KnownClocks::default();
        assert_eq!(clocks.deadlines(SECOND, SECOND), []);
        clocks.learn(at("a", SECOND), SECOND);
        assert_eq!(clocks.deadlines(SECOND, 15 * SECOND).len(), 1);
        assert_eq!(clocks.deadlines(1000 * SECOND, 15 * SECOND), []);
        clocks.learn(at("a", 1000 * SECOND), 1000 * SECOND);
        assert_eq!(clocks.deadlines(1000 * SECOND, 15 * SECOND).len(), 1);
    }

    #[test]
    fn several_servers_at_one_address_are_all_known() {
        let clocks = KnownClocks::default();
        for number in 0..20 {
            clocks.learn(at(&format!("c{number}"), SECOND), SECOND);
        }
        clocks.learn(at("c15", 2 * SECOND), SECOND);
        let deadlines = clocks.deadlines(SECOND, SECOND);
        assert_eq!(deadlines.len(), CLOCKS_MAX);
        assert_eq!(deadline_by("c0", &deadlines), None);
        let later = deadline_by("c15", &deadlines);
        assert_eq!(later, Some(3 * SECOND - SECOND / DRIFT));
    }
}
