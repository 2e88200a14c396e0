//! Durations as whole milliseconds, rounded up: a lease that was stored must not end earlier.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

/// How many milliseconds, rounded up.
fn up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Writes whole milliseconds.
pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(up(*value))
}

/// Reads whole milliseconds.
pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Duration, D::Error> {
    u64::deserialize(source).map(Duration::from_millis)
}

/// The same for what may be absent.
pub mod optional {
    use super::*;

    /// Writes whole milliseconds, or nothing.
    pub fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_some(&up(*duration)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads whole milliseconds, or nothing.
    pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(source)?.map(Duration::from_millis))
    }
}
