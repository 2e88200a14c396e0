//! Parses and formats durations.
//!
//! There are three parsers, because a number means different things in three places:
//! [`parse_duration`] needs a unit, [`parse_lease`] also checks the bounds of a lease, and
//! [`parse_seconds`] accepts bare seconds as flock(1) does.

use std::time::Duration;

pub use tenure_core::format_duration;

/// The shortest lease: a shorter one would lapse before its first renewal could reach a store.
pub const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// The longest lease: beyond a year a lease no longer protects against a holder that is gone.
pub const LONGEST_LEASE: Duration = Duration::from_secs(365 * DAY_S);

/// The longest duration of any kind, a hundred years: added to any clock it cannot overflow.
pub const LONGEST_DURATION: Duration = Duration::from_secs(100 * 365 * DAY_S);

const DAY_S: u64 = 86_400;

/// How much of the input a message quotes.
const QUOTED_CHARACTERS: usize = 40;

/// A text that is not a usable duration.
///
/// The `text` of each variant is already shortened and free of control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is empty.
    #[error("the duration is empty: write 90s, 15m or 1h30m")]
    Empty,
    /// A number has no unit.
    #[error("{text} has no unit: write {number}s, {number}m or {number}h")]
    MissingUnit {
        /// The input.
        text: String,
        /// The number without a unit.
        number: String,
    },
    /// The unit is not a unit of time.
    #[error("{text} has the unknown unit {unit}: use ms, s, m, h, d or w")]
    UnknownUnit {
        /// The input.
        text: String,
        /// The unknown unit.
        unit: String,
    },
    /// The duration is negative.
    #[error("{text} is negative: a duration is zero or more")]
    Negative {
        /// The input.
        text: String,
    },
    /// The text is not a duration.
    #[error("{text} is not a duration: write 90s, 15m or 1h30m")]
    Malformed {
        /// The input.
        text: String,
    },
    /// The text is neither a number of seconds nor a duration.
    #[error("{text} is not a time in seconds: write 10, 0.5 or 1m30s")]
    MalformedSeconds {
        /// The input.
        text: String,
    },
    /// The duration is shorter than allowed.
    #[error("{text} is too short: at least {} is needed", format_duration(*.shortest))]
    TooShort {
        /// The input.
        text: String,
        /// The shortest allowed.
        shortest: Duration,
    },
    /// The duration is longer than allowed.
    #[error("{text} is too long: at most {} is allowed", format_duration(*.longest))]
    TooLong {
        /// The input.
        text: String,
        /// The longest allowed.
        longest: Duration,
    },
}

/// Parses a duration with units, such as `60m`, `1h30m`, `250ms` or `1d 12h`.
///
/// A number without a unit is refused, including zero: `0` could have any unit, `0s` is fine. At
/// most [`LONGEST_DURATION`].
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(DurationError::Empty);
    }
    if trimmed.starts_with('-') {
        return Err(DurationError::Negative { text: quote(text) });
    }
    let mut total = Duration::ZERO;
    for term in terms(trimmed) {
        total = parse_term(term, text)?
            .checked_add(total)
            .filter(|total| *total <= LONGEST_DURATION)
            .ok_or_else(|| too_long(text, LONGEST_DURATION))?;
    }
    Ok(total)
}

/// Parses the length of a lease: a duration between [`SHORTEST_LEASE`] and [`LONGEST_LEASE`].
pub fn parse_lease(text: &str) -> Result<Duration, DurationError> {
    parse_between(text, SHORTEST_LEASE, LONGEST_LEASE)
}

/// Parses a time to wait as flock(1) does: a bare number is seconds, fractions allowed, and `0`
/// means not at all. Everything that [`parse_duration`] accepts is accepted too.
pub fn parse_seconds(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if is_bare_number(trimmed) {
        return seconds_from_number(trimmed, text);
    }
    parse_duration(text).map_err(|error| match error {
        DurationError::Malformed { text } => DurationError::MalformedSeconds { text },
        other => other,
    })
}

/// Parses a duration between two bounds, inclusive.
pub fn parse_between(
    text: &str,
    shortest: Duration,
    longest: Duration,
) -> Result<Duration, DurationError> {
    let duration = parse_duration(text)?;
    if duration < shortest {
        let text = quote(text);
        return Err(DurationError::TooShort { text, shortest });
    }
    if duration > longest {
        return Err(too_long(text, longest));
    }
    Ok(duration)
}

/// Splits `1h 30m` into `1h ` and `30m`.
///
/// humantime gets one term at a time because its own sum can overflow and panic, and because it
/// would read `1 30m` as 130 minutes.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut previous = rest.chars().next()?;
        let next_term = rest.char_indices().skip(1).find(|&(_, character)| {
            let inside_number = previous.is_ascii_digit() || previous == '.';
            previous = character;
            character.is_ascii_digit() && !inside_number
        });
        let (term, after) = rest.split_at(next_term.map_or(rest.len(), |(start, _)| start));
        rest = after;
        Some(term)
    })
}

/// The units that are accepted. humantime knows more, of which some are read otherwise than they are
/// meant: `5M` is five months there.
const UNITS: [&str; 20] = [
    "ms",
    "millisecond",
    "milliseconds",
    "s",
    "sec",
    "second",
    "seconds",
    "m",
    "min",
    "minute",
    "minutes",
    "h",
    "hour",
    "hours",
    "d",
    "day",
    "days",
    "w",
    "week",
    "weeks",
];

fn parse_term(term: &str, text: &str) -> Result<Duration, DurationError> {
    let term = term.trim();
    if is_bare_number(term) {
        return Err(DurationError::MissingUnit { text: quote(text), number: shorten(term) });
    }
    let unit = term.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    let is_word = !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
    let has_number = term.starts_with(|c: char| c.is_ascii_digit());
    if has_number && is_word && !UNITS.contains(&unit) {
        return Err(DurationError::UnknownUnit { text: quote(text), unit: quote(unit) });
    }
    humantime::parse_duration(term).map_err(|error| match error {
        humantime::DurationError::UnknownUnit { unit, .. } => {
            DurationError::UnknownUnit { text: quote(text), unit: quote(&unit) }
        }
        humantime::DurationError::NumberOverflow => too_long(text, LONGEST_DURATION),
        _ => DurationError::Malformed { text: quote(text) },
    })
}

fn is_bare_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn seconds_from_number(number: &str, text: &str) -> Result<Duration, DurationError> {
    let seconds: f64 =
        number.parse().map_err(|_| DurationError::MalformedSeconds { text: quote(text) })?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| *duration <= LONGEST_DURATION)
        .ok_or_else(|| too_long(text, LONGEST_DURATION))
}

fn too_long(text: &str, longest: Duration) -> DurationError {
    let text = quote(text);
    DurationError::TooLong { text, longest }
}

fn quote(text: &str) -> String {
    format!("{:?}", shorten(text))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn durations_with_units_are_read() {
        for (text, expected) in [
            ("60m", ms(3_600_000)),
            ("1h30m", ms(5_400_000)),
            ("1h 30m", ms(5_400_000)),
            ("  90 s ", ms(90_000)),
            ("250ms", ms(250)),
            ("1d 12h", ms(129_600_000)),
            ("1.5s", ms(1_500)),
            ("2 weeks", ms(1_209_600_000)),
            ("0s", ms(0)),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_bad_duration_has_its_own_sentence() {
        for (text, expected) in [
            ("", "the duration is empty: write 90s, 15m or 1h30m"),
            ("  ", "the duration is empty: write 90s, 15m or 1h30m"),
            ("90", "\"90\" has no unit: write 90s, 90m or 90h"),
            ("0", "\"0\" has no unit: write 0s, 0m or 0h"),
            ("1h30", "\"1h30\" has no unit: write 30s, 30m or 30h"),
            ("1 30m", "\"1 30m\" has no unit: write 1s, 1m or 1h"),
            ("-1s", "\"-1s\" is negative: a duration is zero or more"),
            (
                "5 parsecs",
                "\"5 parsecs\" has the unknown unit \"parsecs\": use ms, s, m, h, d or w",
            ),
            ("1e9h", "\"1e9h\" has the unknown unit \"e\": use ms, s, m, h, d or w"),
            (
                "99999999999999999999h",
                "\"99999999999999999999h\" is too long: at most 36500d is allowed",
            ),
            ("5M", "\"5M\" has the unknown unit \"M\": use ms, s, m, h, d or w"),
            ("1y", "\"1y\" has the unknown unit \"y\": use ms, s, m, h, d or w"),
            ("9us", "\"9us\" has the unknown unit \"us\": use ms, s, m, h, d or w"),
            ("99999w", "\"99999w\" is too long: at most 36500d is allowed"),
            ("soon", "\"soon\" is not a duration: write 90s, 15m or 1h30m"),
            ("1s\0", "\"1s\\0\" is not a duration: write 90s, 15m or 1h30m"),
            ("5s\n-", "\"5s\\n-\" is not a duration: write 90s, 15m or 1h30m"),
            ("1.s", "\"1.s\" is not a duration: write 90s, 15m or 1h30m"),
        ] {
            let error = parse_duration(text).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_sum_at_the_end_of_the_number_range_is_refused_without_a_panic() {
        let error = parse_duration("18446744073709551615s 1000ms").expect_err("out of range");
        assert!(matches!(error, DurationError::TooLong { .. }));
    }

    #[test]
    fn a_very_long_text_is_quoted_in_part() {
        let error = parse_duration(&"🦀".repeat(10_000)).expect_err("not a duration");
        assert!(error.to_string().chars().count() < 120, "{error}");
    }

    #[test]
    fn a_lease_has_a_shortest_and_a_longest_length() {
        assert_eq!(parse_lease("100ms"), Ok(SHORTEST_LEASE));
        assert_eq!(parse_lease("365d"), Ok(LONGEST_LEASE));
        for text in ["0s", "99ms"] {
            let error = parse_lease(text).expect_err(text);
            assert_eq!(
                error.to_string(),
                format!("\"{text}\" is too short: at least 100ms is needed")
            );
        }
        let error = parse_lease("365d 1s").expect_err("too long");
        assert_eq!(error.to_string(), "\"365d 1s\" is too long: at most 365d is allowed");
    }

    #[test]
    fn seconds_are_read_like_flock_does() {
        for (text, expected) in [
            ("0", ms(0)),
            ("10", ms(10_000)),
            ("0.25", ms(250)),
            (".5", ms(500)),
            ("0.1", ms(100)),
            ("1m30s", ms(90_000)),
            ("0s", ms(0)),
        ] {
            assert_eq!(parse_seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn seconds_that_are_no_time_are_refused() {
        for (text, expected) in [
            ("-1", "\"-1\" is negative: a duration is zero or more"),
            ("-0.5s", "\"-0.5s\" is negative: a duration is zero or more"),
            ("", "the duration is empty: write 90s, 15m or 1h30m"),
            ("NaN", "\"NaN\" is not a time in seconds: write 10, 0.5 or 1m30s"),
            ("inf", "\"inf\" is not a time in seconds: write 10, 0.5 or 1m30s"),
            (".", "\".\" is not a time in seconds: write 10, 0.5 or 1m30s"),
            ("1.2.3", "\"1.2.3\" is not a time in seconds: write 10, 0.5 or 1m30s"),
            ("99999999999", "\"99999999999\" is too long: at most 36500d is allowed"),
        ] {
            let error = parse_seconds(text).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
        let many_digits = "9".repeat(400);
        assert!(matches!(parse_seconds(&many_digits), Err(DurationError::TooLong { .. })));
    }
}
