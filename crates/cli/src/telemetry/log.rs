//! The log of a server, on standard error.

use crate::output::aside::LogWriter;
use clap::ValueEnum;
use tenure_server::log::LOG;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text for each entry
    Text,
    /// A JSON object for each entry, on one line
    Json,
}

/// What is logged, and how.
pub(crate) struct LogOptions {
    pub(crate) format: LogFormat,
    /// Whether each request is logged, and not only trouble.
    pub(crate) requests: bool,
    /// Whether even trouble is not logged.
    pub(crate) quiet: bool,
}

/// Writes the log. It takes only what this program means for it: what libraries log may contain
/// secrets of callers.
pub(super) fn layer<S>(options: &LogOptions) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let level = match options {
        LogOptions { requests: true, .. } => LevelFilter::INFO,
        LogOptions { quiet: true, .. } => LevelFilter::OFF,
        LogOptions { .. } => LevelFilter::WARN,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_ansi(false);
    let only_ours = Targets::new().with_target(LOG, level);
    match options.format {
        LogFormat::Text => lines.with_target(false).with_filter(only_ours).boxed(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_target(false).with_span_list(false);
            lines.with_filter(only_ours).boxed()
        }
    }
}
