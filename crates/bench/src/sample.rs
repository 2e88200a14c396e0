//! Statistics of samples.

use std::time::Duration;
use tenure::world::{Clock, SystemClock};

/// Time on the clock that all processes of the machine share.
pub(crate) fn now() -> Duration {
    SystemClock.now()
}

/// The value that this share of the samples does not exceed; zero without samples.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The largest value; zero without samples.
pub(crate) fn longest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 50.0);
        assert_eq!(quantile(&values, 0.99), 99.0);
        assert_eq!(quantile(&values, 1.0), 100.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(longest(&[1.0, 3.0, 2.0]), 3.0);
    }
}
