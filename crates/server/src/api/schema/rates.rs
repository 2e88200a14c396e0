//! What `/v1/rates` answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Rates over the last hour or day.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Rates {
    /// `hour` or `day`.
    pub window: String,
    /// The section that `buckets` and `totals` are about; null for the whole store.
    #[schema(required)]
    pub section: Option<String>,
    /// The width of a bucket.
    pub bucket_seconds: u64,
    /// When the first bucket begins.
    pub from: String,
    /// The time now; the last bucket is not over yet.
    pub to: String,
    /// From when on everything is counted, if that is after `from`: the stored history was too long to
    /// be read when the server started. Null if all buckets are complete.
    #[schema(required)]
    pub complete_since: Option<String>,
    /// All buckets together.
    pub totals: RateFigures,
    /// The buckets, oldest first, without gaps.
    pub buckets: Vec<RatesBucket>,
    /// The totals of each section that had something to tell in the last day, at most 50, by name.
    pub sections: Vec<SectionRates>,
}

/// What happened from this time on, for the width of a bucket.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RatesBucket {
    /// When it begins.
    pub at: String,
    /// The figures.
    #[serde(flatten)]
    pub rates: RateFigures,
}

/// The rates of a section.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SectionRates {
    /// The section.
    pub name: String,
    /// The figures.
    #[serde(flatten)]
    pub rates: RateFigures,
}

/// What happened in some time.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RateFigures {
    /// Tasks completed by their workers.
    pub completed: u64,
    /// Tasks failed by their workers, retried or not.
    pub failed: u64,
    /// Tasks claimed by workers.
    pub claimed: u64,
    /// `completed` per minute.
    pub completed_per_minute: f64,
    /// How long claimed tasks had been in the queue.
    pub queue: RateTimes,
    /// How long tasks were in progress, by when they ended.
    pub progress: RateTimes,
    /// How long locks, paths and sections were held; of a section, how long it was held.
    pub hold: RateTimes,
    /// How long requests waited for a resource; of a section, for it.
    pub wait: RateTimes,
}

/// How long something took.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RateTimes {
    /// How often.
    pub count: u64,
    /// The mean; null if there was none.
    #[schema(required)]
    pub mean_ms: Option<u64>,
    /// The longest; null if there was none.
    #[schema(required)]
    pub max_ms: Option<u64>,
}
