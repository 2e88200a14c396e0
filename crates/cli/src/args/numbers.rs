//! Numbers on the command line. A wrong one is answered with what would be right.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads a number; `rule` says which numbers are right.
fn number<T>(text: &str, rule: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("{rule}, not {:?}", beginning(text)))
}

/// As much of a wrong value as fits into a sentence.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// How many slots a resource has. The same limit holds over HTTP.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    number(text, "the number of slots is a whole number from 1 to 999999", 1..=999_999)
}

/// What a process can end with.
pub(crate) fn exit_code(text: &str) -> Result<u8, String> {
    number(text, "an exit code is a whole number from 0 to 255", 0..=255)
}

/// A fencing token.
pub(crate) fn token(text: &str) -> Result<u64, String> {
    number(text, "a token is a whole number", 0..=u64::MAX)
}

/// The number of an event.
pub(crate) fn revision(text: &str) -> Result<u64, String> {
    number(text, "a revision is a whole number", 0..=u64::MAX)
}

/// The number of an attempt.
pub(crate) fn attempt(text: &str) -> Result<u32, String> {
    number(text, "an attempt is a whole number from 1", 1..=u32::MAX)
}

/// The number of a process.
pub(crate) fn pid(text: &str) -> Result<u32, String> {
    number(text, "a process id is a whole number from 1", 1..=u32::MAX)
}

/// A place among equals.
pub(crate) fn position(text: &str) -> Result<i64, String> {
    number(text, "a position is a whole number", i64::MIN..=i64::MAX)
}

/// How often a task may be tried.
pub(crate) fn attempts(text: &str) -> Result<u32, String> {
    number(text, "the number of attempts is a whole number from 1", 1..=u32::MAX)
}

/// How many tasks a worker does.
pub(crate) fn tasks(text: &str) -> Result<u64, String> {
    number(text, "the number of tasks is a whole number from 1", 1..=u64::MAX)
}

/// How many tasks are listed.
pub(crate) fn listed(text: &str) -> Result<u32, String> {
    number(text, "the number of tasks is a whole number from 1", 1..=u32::MAX)
}

/// How many tasks are claimed at once.
pub(crate) fn claimed(text: &str) -> Result<u16, String> {
    number(text, "the number of tasks is a whole number from 1 to 1000", 1..=1000)
}

/// How many events are shown.
pub(crate) fn events(text: &str) -> Result<usize, String> {
    number(text, "the number of events is a whole number", 0..=usize::MAX)
}

/// How many workers a swarm has.
pub(crate) fn workers(text: &str) -> Result<u16, String> {
    number(text, "the number of workers is a whole number from 1 to 1000", 1..=1000)
}

/// How many processes a selftest starts.
pub(crate) fn processes(text: &str) -> Result<u8, String> {
    number(text, "the number of processes is a whole number from 2 to 64", 2..=64)
}

/// The largest body of a request.
pub(crate) fn body_bytes(text: &str) -> Result<u64, String> {
    number(text, "a size in bytes is a whole number from 1 to 1073741824", 1..=1 << 30)
}

/// How many connections a server takes.
pub(crate) fn connections(text: &str) -> Result<u32, String> {
    number(text, "the number of connections is a whole number from 1 to 100000", 1..=100_000)
}

/// How many requests per second a server takes of each caller.
pub(crate) fn rate(text: &str) -> Result<NonZeroU32, String> {
    number(text, "a rate is a whole number from 1", NonZeroU32::MIN..=NonZeroU32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_answered_with_what_is_right() {
        assert_eq!(slots("3"), Ok(3));
        assert_eq!(
            slots("0").unwrap_err(),
            "the number of slots is a whole number from 1 to 999999, not \"0\""
        );
        assert_eq!(token("").unwrap_err(), "a token is a whole number, not \"\"");
        assert!(token(&"9".repeat(10_000)).unwrap_err().len() < 200);
    }
}
