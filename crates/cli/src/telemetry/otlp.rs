//! Sends traces and metrics to an OpenTelemetry collector, over OTLP as protobuf on HTTP.
//!
//! Where to and how often is said by the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and others),
//! which the SDK reads. Nothing of this is started unless the setting `telemetry` asks for it.

use super::http_client::CollectorClient;
use crate::exit::Exit;
use crate::failure::Failure;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::sync::Arc;
use tenure_server::log::{METRIC, TRACE};
use tracing::Subscriber;
use tracing_opentelemetry::{MetricsLayer, OpenTelemetryLayer};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// The name of the service, unless `OTEL_SERVICE_NAME` has another.
const SERVICE: &str = "tenure";

/// What is sent until it is shut down.
pub(super) struct Export {
    tracer: SdkTracerProvider,
    meter: SdkMeterProvider,
}

impl Export {
    /// Starts the threads that send.
    pub(super) fn start() -> Result<Export, Failure> {
        let client = Arc::new(CollectorClient::new()?);
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("cannot send telemetry: {error}");
            Failure::new(Exit::Configuration, "TELEMETRY", message)
                .hint("Check the variables OTEL_EXPORTER_OTLP_…, or set `telemetry` to off.")
        };
        let spans = SpanExporter::builder().with_http().with_shared_http_client(client.clone());
        let spans = spans.build().map_err(|error| failed(&error))?;
        let metrics = MetricExporter::builder().with_http().with_shared_http_client(client);
        let metrics = metrics.build().map_err(|error| failed(&error))?;
        let resource = || {
            let attributes = super::variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
            let named = super::variable("OTEL_SERVICE_NAME").is_some()
                || attributes.contains("service.name=");
            let builder = Resource::builder();
            match named {
                true => builder.build(),
                false => builder.with_service_name(SERVICE).build(),
            }
        };
        let tracer = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_resource(resource())
            .build();
        let meter = SdkMeterProvider::builder()
            .with_periodic_exporter(metrics)
            .with_resource(resource())
            .build();
        Ok(Export { tracer, meter })
    }

    /// Takes spans and measurements of this program, and nothing of libraries.
    pub(super) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let spans = OpenTelemetryLayer::new(self.tracer.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_filter(Targets::new().with_target(TRACE, LevelFilter::INFO));
        let metrics = MetricsLayer::new(self.meter.clone())
            .with_filter(Targets::new().with_target(METRIC, LevelFilter::INFO));
        spans.and_then(metrics).boxed()
    }

    /// Sends what is left, for a few seconds at most.
    pub(super) fn shutdown(&self) {
        // A collector that does not answer must not fail the command.
        let _ = self.tracer.shutdown_with_timeout(super::LAST_EXPORT);
        let _ = self.meter.shutdown_with_timeout(super::LAST_EXPORT);
    }
}
