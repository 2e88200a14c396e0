//! Numbers for Prometheus.
