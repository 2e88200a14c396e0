//! The formats of metrics: OpenMetrics, and the older text format of Prometheus, as the scraper asks.

use axum::http::{HeaderMap, header};
use std::fmt::Write;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, which every scraper reads.
    Text,
}

impl Format {
    /// The format that a scraper prefers.
    pub(super) fn accepted(headers: &HeaderMap) -> Format {
        let (mut open_metrics, mut text) = (0, 0);
        for value in headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()) {
            for (media, weight) in value.split(',').map(media_range) {
                match media {
                    "application/openmetrics-text" => open_metrics = open_metrics.max(weight),
                    "text/plain" | "text/*" | "*/*" => text = text.max(weight),
                    _ => {}
                }
            }
        }
        if open_metrics > 0 && open_metrics >= text { Format::OpenMetrics } else { Format::Text }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Metrics in this format, from OpenMetrics text.
    pub(super) fn encode(self, open_metrics: String) -> String {
        match self {
            Format::OpenMetrics => open_metrics,
            Format::Text => as_text(&open_metrics),
        }
    }
}

/// A media type of an `Accept` header, and how much it is wanted in thousandths. The version is not
/// looked at: there is one of each.
fn media_range(range: &str) -> (&str, u32) {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q="));
    let quality = quality.map_or(Some(1.0), |quality| quality.parse::<f64>().ok());
    (media, (quality.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u32)
}

/// Rewrites OpenMetrics text, in which a family has another name than its samples: a counter ends
/// with `_total` and an info with `_info`. The older format has no units, no infos and no end mark.
fn as_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        if let Some(described) = comment.strip_prefix("HELP ") {
            help = described.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) =
            comment.strip_prefix("TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name}{suffix} {help}");
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,\
            text/plain;version=0.0.4;q=0.5,*/*;q=0.2";
        for (accept, format) in [
            (None, Format::Text),
            (Some("*/*"), Format::Text),
            (Some("text/plain"), Format::Text),
            (Some(prometheus), Format::OpenMetrics),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (Some("application/openmetrics-text;q=0.1, text/plain;q=0.9"), Format::Text),
            (Some("application/openmetrics-text;q=0"), Format::Text),
            (Some("application/openmetrics-text;q=x"), Format::Text),
            (Some("text/html"), Format::Text),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (header::ACCEPT, accept.parse().unwrap())));
            assert_eq!(Format::accepted(&headers), format, "{accept:?}");
        }
    }

    #[test]
    fn names_and_types_are_those_of_the_older_format() {
        let open_metrics = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n\
            # UNIT a_seconds seconds\na_seconds_total 1.5\n# HELP b The version.\n\
            # TYPE b info\nb_info{version=\"1\"} 1\n# HELP c Now.\n# TYPE c gauge\nc 2\n# EOF\n";
        let expected = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
            a_seconds_total 1.5\n# HELP b_info The version.\n# TYPE b_info gauge\n\
            b_info{version=\"1\"} 1\n# HELP c Now.\n# TYPE c gauge\nc 2\n";
        assert_eq!(Format::Text.encode(open_metrics.to_owned()), expected);
        assert_eq!(Format::OpenMetrics.encode(open_metrics.to_owned()), open_metrics);
    }
}
