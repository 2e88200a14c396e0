//! Converts priorities between tenure's scale, 0 to 100, and that of `tasks.json`, 1 to 10; lower
//! goes first on both.
//!
//! From 2 on, theirs is a tenth of ours: 20 is 2, 50 is 5, 100 is 10. Our 0 to 20 are between their
//! 1 and 2. So each of our priorities has one of theirs, in the same order, and vice versa; values
//! between two of their whole numbers are written as a fraction.

use serde_json::Value;

/// Where the two parts of the scale meet.
const MEET_OURS: f64 = 20.0;
const MEET_THEIRS: f64 = 2.0;

/// Their priority on our scale. It may be outside of it if theirs was.
pub fn from_coordination(theirs: f64) -> f64 {
    match theirs < MEET_THEIRS {
        true => (theirs - 1.0) * MEET_OURS,
        false => theirs * 10.0,
    }
}

/// Our priority on their scale.
pub fn to_coordination(ours: u8) -> Value {
    let ours = f64::from(ours);
    let theirs = match ours < MEET_OURS {
        true => (MEET_OURS + ours) / MEET_OURS,
        false => ours / 10.0,
    };
    match theirs.fract() == 0.0 {
        true => (theirs as u64).into(),
        false => theirs.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_priority_has_one_of_theirs_in_the_same_order() {
        let written: Vec<f64> =
            (0..=100).map(|ours| to_coordination(ours).as_f64().unwrap()).collect();
        assert!(written.windows(2).all(|pair| pair[0] < pair[1]), "{written:?}");
        assert_eq!((written[0], written[100]), (1.0, 10.0), "within their scale");
        for (ours, theirs) in written.into_iter().enumerate() {
            assert_eq!(from_coordination(theirs).round() as usize, ours, "{theirs}");
        }
    }

    #[test]
    fn their_whole_numbers_stay_whole() {
        for theirs in 1..=10_u64 {
            let ours = from_coordination(theirs as f64).round() as u8;
            assert_eq!(to_coordination(ours), Value::from(theirs));
        }
        assert_eq!(from_coordination(5.0), 50.0, "the usual priority of both");
    }
}
