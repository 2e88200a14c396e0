//! Parses and formats times.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;
use tenure_core::WallTime;

/// A number at or above this is milliseconds: as seconds it would be beyond the year 5000.
const MILLISECONDS_FROM: f64 = 1e11;

/// Whole numbers up to here are exact in floating point.
const EXACT_BELOW: f64 = 9e15;

/// Parses a time: ISO 8601 with `T` or a space, with an offset, `Z` or neither (then it is UTC), or
/// seconds since 1970, fractions allowed.
pub fn parse_time(text: &str) -> Option<WallTime> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return from_number(number);
    }
    let timestamp = match text.parse::<Timestamp>() {
        Ok(timestamp) => timestamp,
        Err(_) => {
            let civil: DateTime = text.parse().ok()?;
            civil.to_zoned(TimeZone::UTC).ok()?.timestamp()
        }
    };
    Some(WallTime(timestamp.as_millisecond()))
}

/// Parses a time that may be a number.
pub fn from_value(value: &Value) -> Option<WallTime> {
    match value {
        Value::String(text) => parse_time(text),
        Value::Number(number) => from_number(number.as_f64()?),
        _ => None,
    }
}

fn from_number(number: f64) -> Option<WallTime> {
    let ms = if number.abs() >= MILLISECONDS_FROM { number } else { number * 1000.0 };
    (ms.abs() < EXACT_BELOW).then_some(WallTime(ms.round() as i64))
}

/// Formats a time in RFC 3339, in UTC, to the millisecond; a time beyond the years of that format
/// becomes milliseconds since 1970.
pub fn to_value(time: WallTime) -> Value {
    match Timestamp::from_millisecond(time.0) {
        Ok(timestamp) => timestamp.to_string().into(),
        Err(_) => time.0.into(),
    }
}

/// Formats a time for people and scripts: RFC 3339 in UTC, to the second.
pub fn to_seconds_text(time: WallTime) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{}ms", time.0),
    }
}

/// Formats a time for other programs' files, in the one form that every version of Python's
/// `datetime.fromisoformat` reads: six digits, and an offset instead of `Z`.
pub fn to_foreign_text(time: WallTime) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string(),
        Err(_) => "1970-01-01T00:00:00.000000+00:00".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_form_is_the_same_moment() {
        for text in [
            "2024-01-15T10:30:00.250Z",
            "2024-01-15T10:30:00.250+00:00",
            "2024-01-15T12:30:00.250+02:00",
            "2024-01-15 10:30:00.250Z",
            "2024-01-15T10:30:00.250000",
            "2024-01-15 10:30:00.250",
            "1705314600.25",
            " 1705314600250 ",
        ] {
            assert_eq!(parse_time(text), Some(WallTime(1_705_314_600_250)), "{text}");
        }
        assert_eq!(parse_time("2024-01-15"), Some(WallTime(1_705_276_800_000)));
        assert_eq!(parse_time("1969-12-31T23:59:59Z"), Some(WallTime(-1000)));
        for text in ["", "soon", "2024-13-01", "NaN", "inf", "1e300", "10:30"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_written_is_read() {
        for ms in [
            0,
            -1,
            1_705_314_600_250,
            253_402_207_200_999,
            900_000_000_000_000,
            -62_135_596_800_000,
        ] {
            assert_eq!(from_value(&to_value(WallTime(ms))), Some(WallTime(ms)));
        }
        assert_eq!(to_value(WallTime(1_705_314_600_000)), "2024-01-15T10:30:00Z");
        let foreign = to_foreign_text(WallTime(1_705_314_600_250));
        assert_eq!(foreign, "2024-01-15T10:30:00.250000+00:00");
        assert_eq!(parse_time(&foreign), Some(WallTime(1_705_314_600_250)));
    }
}
