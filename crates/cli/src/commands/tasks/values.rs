//! Parses values that only task commands take.

use serde_json::Value;
use std::time::Duration;
use tenure::core::task::PRIORITY_MAX;
use tenure::core::{Status, WallTime};
use tenure::world::{Clock, SystemClock};

/// Parses a status, in the words of this or of another tool.
pub(crate) fn status(text: &str) -> Result<Status, String> {
    text.parse().map_err(|error: tenure::core::task::StatusError| error.to_string())
}

/// Parses a priority.
pub(crate) fn priority(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| *number <= PRIORITY_MAX);
    number.ok_or_else(|| format!("a priority is a number from 0 (first) to {PRIORITY_MAX} (last)"))
}

/// Parses JSON and keeps its spelling.
pub(crate) fn json(text: &str) -> Result<String, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("this is not JSON: {error}")),
    }
}

/// JSON as written, or else the text as a JSON string.
pub(crate) fn json_or_text(text: &str) -> String {
    json(text).unwrap_or_else(|_| Value::String(text.to_owned()).to_string())
}

/// A point in time, or a duration from now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeArg {
    At(WallTime),
    In(Duration),
}

impl TimeArg {
    pub(crate) fn wall(self) -> WallTime {
        match self {
            TimeArg::At(time) => time,
            TimeArg::In(span) => {
                let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                WallTime(SystemClock.wall().0.saturating_add(span_ms))
            }
        }
    }
}

/// Parses RFC 3339, or `+` and a duration.
pub(crate) fn time(text: &str) -> Result<TimeArg, String> {
    if let Some(span) = text.strip_prefix('+') {
        return crate::args::span(span).map(TimeArg::In).map_err(|error| error.to_string());
    }
    let time = text.parse::<jiff::Timestamp>();
    time.map(|time| TimeArg::At(WallTime(time.as_millisecond())))
        .map_err(|_| "a time is 2026-01-29T20:30:00Z, or +10m for ten minutes from now".to_owned())
}
