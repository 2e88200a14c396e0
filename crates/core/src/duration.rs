//! Durations as people read them.

use std::time::Duration;

const DAY_S: u64 = 86_400;

/// Writes a duration briefly, for people: `1h 30m`, `45s`, `3.2s`, `850ms`.
///
/// Shows the two largest units and drops the rest, so it never claims more time than there is.
/// For display only: it does not read back as the same duration.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format_below_one_second(duration),
        1..10 => match duration.subsec_millis() / 100 {
            0 => format!("{seconds}s"),
            tenths => format!("{seconds}.{tenths}s"),
        },
        10..60 => format!("{seconds}s"),
        60..3_600 => two_units(seconds / 60, "m", seconds % 60, "s"),
        3_600..DAY_S => two_units(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two_units(seconds / DAY_S, "d", seconds % DAY_S / 3_600, "h"),
    }
}

fn format_below_one_second(duration: Duration) -> String {
    match (duration.subsec_millis(), duration.subsec_micros()) {
        (0, 0) => "0s".to_owned(),
        (0, micros) => format!("{micros}us"),
        (millis, _) => format!("{millis}ms"),
    }
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit} {small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn durations_are_written_briefly() {
        for (duration, expected) in [
            (ms(0), "0s"),
            (Duration::from_micros(250), "250us"),
            (ms(850), "850ms"),
            (ms(3_000), "3s"),
            (ms(3_290), "3.2s"),
            (ms(9_999), "9.9s"),
            (ms(45_900), "45s"),
            (ms(60_000), "1m"),
            (ms(65_000), "1m 5s"),
            (ms(5_400_000), "1h 30m"),
            (ms(3_630_000), "1h"),
            (ms(86_400_000), "1d"),
            (ms(97_200_000), "1d 3h"),
        ] {
            assert_eq!(format_duration(duration), expected);
        }
    }
}
