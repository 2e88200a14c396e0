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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Lease {
        #[serde(with = "super")]
        ttl: Duration,
        #[serde(default, with = "optional")]
        left: Option<Duration>,
    }

    #[test]
    fn a_duration_is_stored_as_milliseconds_and_never_shortened() {
        for (nanoseconds, stored) in
            [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2), (29_999_999_999, 30_000)]
        {
            let duration = Duration::from_nanos(nanoseconds);
            let lease = Lease { ttl: duration, left: Some(duration) };
            let text = serde_json::to_string(&lease).unwrap();
            assert_eq!(text, format!("{{\"ttl\":{stored},\"left\":{stored}}}"));
            let read: Lease = serde_json::from_str(&text).unwrap();
            let expected = Duration::from_millis(stored);
            assert_eq!(read, Lease { ttl: expected, left: Some(expected) });
        }
    }

    #[test]
    fn the_longest_duration_that_can_be_stored_stands_for_longer_ones() {
        let lease = Lease { ttl: Duration::MAX, left: None };
        let text = serde_json::to_string(&lease).unwrap();
        assert_eq!(text, format!("{{\"ttl\":{},\"left\":null}}", u64::MAX));
        assert_eq!(serde_json::from_str::<Lease>("{\"ttl\":5}").unwrap().left, None);
    }

    #[test]
    fn what_is_no_number_of_milliseconds_is_refused() {
        for text in ["{\"ttl\":-1}", "{\"ttl\":\"1s\"}", "{\"ttl\":1,\"left\":\"1s\"}", "{}"] {
            assert!(serde_json::from_str::<Lease>(text).is_err(), "{text}");
        }
    }
}
