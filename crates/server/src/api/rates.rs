//! `/v1/rates`: how fast tasks are done and how long things take, for small charts.

use super::Api;
use super::input::Params;
use super::schema;
use super::values::SectionName;
use crate::http::limits::Limits;
use crate::metrics::rates::{Bucket, Times, Window, sum};
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::Json;
use serde::Deserialize;
use tenure::core::WallTime;
use tenure::world::{Clock, SystemClock};
use tenure_frontend::view::time;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes<Api> {
    Routes::new().documented(Access::READ, Limits::Quick, routes!(rates))
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AskedWindow {
    /// The last hour, by minutes.
    #[default]
    Hour,
    /// The last day, by quarters of an hour.
    Day,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The last hour unless told otherwise.
    #[param(inline)]
    window: Option<AskedWindow>,
    /// Only this section; the whole store unless told otherwise.
    #[param(inline)]
    section: Option<SectionName>,
}

/// Tasks per minute, and how long tasks and requests wait and take.
#[utoipa::path(
    get, path = "/v1/rates", operation_id = "show_rates", tag = "live", params(Asked),
    responses((status = 200, description = "Rates", body = schema::Rates)),
)]
async fn rates(api: Api, Params(asked): Params<Asked>) -> Result<Json<schema::Rates>, Problem> {
    let (window, word) = match asked.window.unwrap_or_default() {
        AskedWindow::Hour => (Window::Hour, "hour"),
        AskedWindow::Day => (Window::Day, "day"),
    };
    let section = asked.section.map(|section| section.0);
    let now = SystemClock.wall();
    let read = api.app.metrics.rates().read(window, section.as_deref(), now);
    let minutes = window.bucket_ms() as f64 / 60_000.0;
    let window_minutes = minutes * window.buckets() as f64;
    let from = read.buckets.first().map_or(now, |(at, _)| *at);
    let is_complete = read.complete_since.is_none_or(|since| since.0 <= from.0);
    let total = |(name, bucket): &(String, Bucket)| schema::SectionRates {
        name: name.clone(),
        rates: figures(bucket, window_minutes),
    };
    Ok(Json(schema::Rates {
        window: word.to_owned(),
        section,
        bucket_seconds: (window.bucket_ms() / 1000) as u64,
        from: time(from),
        to: time(now),
        complete_since: read.complete_since.filter(|_| !is_complete).map(time),
        totals: figures(&sum(&read.buckets), window_minutes),
        buckets: read.buckets.iter().map(|bucket| shown(bucket, minutes)).collect(),
        sections: read.sections.iter().map(total).collect(),
    }))
}

fn shown((at, bucket): &(WallTime, Bucket), minutes: f64) -> schema::RatesBucket {
    schema::RatesBucket { at: time(*at), rates: figures(bucket, minutes) }
}

fn figures(bucket: &Bucket, minutes: f64) -> schema::RateFigures {
    schema::RateFigures {
        completed: bucket.completed,
        failed: bucket.failed,
        claimed: bucket.claimed,
        completed_per_minute: (bucket.completed as f64 / minutes * 1000.0).round() / 1000.0,
        queue: times(&bucket.queue),
        progress: times(&bucket.progress),
        hold: times(&bucket.hold),
        wait: times(&bucket.wait),
    }
}

fn times(times: &Times) -> schema::RateTimes {
    schema::RateTimes {
        count: times.count,
        mean_ms: (times.count > 0).then(|| times.sum_ms / times.count.max(1)),
        max_ms: (times.count > 0).then_some(times.max_ms),
    }
}
