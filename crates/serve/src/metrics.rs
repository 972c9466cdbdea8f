//! What is counted, in the words of Prometheus. Labels are routes and statuses, never anything that a client
//! sent.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

/// All counters.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<OfRoute, Histogram, fn() -> Histogram>,
    pub(crate) connections: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) encounters: Counter,
    pub(crate) unknown_codes: Counter,
    pub(crate) batches: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        // From 1 ms to 33 s.
        let durations: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        let mut metrics = Metrics {
            registry: Registry::with_prefix("gct"),
            requests: Family::default(),
            durations: Family::new_with_constructor(durations),
            connections: Gauge::default(),
            waiting: Gauge::default(),
            encounters: Counter::default(),
            unknown_codes: Counter::default(),
            batches: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Requests that were answered", metrics.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "From the header of a request to its answer",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register("connections", "Connections that are open", metrics.connections.clone());
        registry.register("waiting_requests", "Requests that wait for the model", metrics.waiting.clone());
        registry.register("encounters", "Encounters that the model was run on", metrics.encounters.clone());
        registry.register(
            "unknown_codes",
            "Codes of requests that the run does not know",
            metrics.unknown_codes.clone(),
        );
        registry.register("batch_encounters", "Encounters per batch of the model", metrics.batches.clone());
        metrics
    }

    pub(crate) fn answered(&self, route: &str, status: u16, seconds: f64) {
        self.requests.get_or_create(&Answered { route: route.into(), status }).inc();
        self.durations.get_or_create(&OfRoute { route: route.into() }).observe(seconds);
    }

    /// The text of `/metrics`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        text::encode(&mut text, &self.registry).expect("text can always be written");
        text
    }
}
