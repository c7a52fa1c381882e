//! Spans for an OpenTelemetry collector, over OTLP and HTTP: the feature `otel`, which is off by default.
//!
//! The standard's variables say where to: without `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) nothing is sent.
//! Only the spans `call` and `attempt` go out, with their fields, and no log line. A call's span continues Lambda's X-Ray trace,
//! and its decision whether to sample.

use std::{sync::OnceLock, time::Duration};

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// How long sending may take. It delays the next invocation, and not this one's answer.
const TIME: Duration = Duration::from_secs(1);

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sends our spans, if a collector is named.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> Option<impl Layer<S>> {
    let is_ours =
        |metadata: &Metadata<'_>| metadata.is_span() && metadata.target().starts_with(env!("CARGO_CRATE_NAME"));
    let provider = is_wanted().then(provider).flatten()?;
    let tracer = PROVIDER.get_or_init(|| provider).tracer(env!("CARGO_PKG_NAME"));
    Some(tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_filter(filter_fn(is_ours)))
}

fn is_wanted() -> bool {
    let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn provider() -> Option<SdkTracerProvider> {
    // The exporter's HTTP client wants one even for a collector without TLS. An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().with_timeout(TIME).build();
    // Nothing is logged yet at this point, and no tool fails for want of a trace.
    let exporter = exporter.inspect_err(|error| eprintln!("Spans cannot be sent: {error}.")).ok()?;
    let name = ["OTEL_SERVICE_NAME", "SERVICE_NAME", "AWS_LAMBDA_FUNCTION_NAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let resource = Resource::builder().with_service_name(name.unwrap_or_else(|| String::from(env!("CARGO_PKG_NAME"))));
    Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// Makes the span part of the trace that Lambda's header names.
pub(super) fn join_trace(span: &Span, header: Option<&str>) {
    if let Some(parent) = header.and_then(parent) {
        // It fails only where no layer is there to take it.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`.
fn parent(header: &str) -> Option<SpanContext> {
    let part = |name: &str| header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    let mut root = part("Root")?.split('-').skip(1);
    let trace = TraceId::from_hex(&[root.next()?, root.next()?].concat()).ok()?;
    let span = SpanId::from_hex(part("Parent")?).ok()?;
    let flags = if part("Sampled") == Some("1") { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let parent = SpanContext::new(trace, span, flags, true, TraceState::default());
    parent.is_valid().then_some(parent)
}

/// Sends what waits. The exporter blocks, so it has a thread of its own.
pub(super) async fn flush() {
    if let Some(provider) = PROVIDER.get() {
        let _ = tokio::task::spawn_blocking(|| provider.force_flush()).await; // what cannot be sent is lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_lambda_goes_on() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let parent = parent(header).expect("a parent");
        assert_eq!(parent.trace_id().to_string(), "5759e988bd862e3fe1be46a994272793");
        assert_eq!(parent.span_id().to_string(), "53995c3f42cd8ad8");
        assert!(parent.is_sampled() && parent.is_remote());
    }

    #[test]
    fn a_header_that_is_none_is_no_parent_and_no_panic() {
        for header in
            ["", "Root=1-2", "Root=1-x-y;Parent=z", "Root=1-5759e988-bd862e3fe1be46a994272793", "Root=;Parent=;"]
        {
            assert!(parent(header).is_none(), "{header}");
        }
        let unsampled = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";
        assert!(!parent(unsampled).expect("a parent").is_sampled());
    }
}
