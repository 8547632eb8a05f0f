//! Metrics to a collector: OTLP as JSON over HTTP (opentelemetry/proto/metrics/v1).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_probe::realtime_ns;
use serde_json::{Value, json};

use crate::collector::Collector;
use crate::config::{Endpoint, Otlp};
use crate::metrics::{LabelValues, Metric, Number, Samples, metrics};
use crate::status::Status;
use crate::sums::SharedSums;

/// Temporality of sums since the start, as the protocol has it.
const CUMULATIVE: u32 = 2;

/// Pushes until it is stopped.
pub struct Pusher {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Pusher {
    /// Starts to push. The first of several failures in a row becomes a message.
    ///
    /// # Errors
    /// A wrong configuration, or no thread.
    pub fn start(
        config: &Otlp,
        endpoint: Endpoint,
        sums: SharedSums,
        status: Arc<Mutex<Status>>,
    ) -> Result<Self, String> {
        let collector = Collector::new(config, endpoint)?;
        let (stop, stopped) = channel();
        let push = Push {
            collector,
            interval: config.interval,
            resource: resource(&config.attributes, false),
            started_ns: realtime_ns(),
            sums,
            status,
        };
        let thread = std::thread::Builder::new()
            .name("fathom-otlp".into())
            .spawn(move || push.run(&stopped))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { stop, thread })
    }

    /// Pushes once more, and ends.
    pub fn stop(self) {
        drop(self.stop);
        self.thread.join().ok();
    }
}

struct Push {
    collector: Collector,
    interval: Duration,
    resource: Value,
    started_ns: u64,
    sums: SharedSums,
    status: Arc<Mutex<Status>>,
}

impl Push {
    fn run(self, stopped: &Receiver<()>) {
        let mut failing = false;
        loop {
            let ends = !matches!(
                stopped.recv_timeout(self.interval),
                Err(RecvTimeoutError::Timeout)
            );
            match self.collector.send(&self.message().to_string()) {
                Ok(_) => failing = false,
                Err(error) => {
                    let mut status = self.status();
                    status.failed_pushes += 1;
                    if !failing {
                        status.say(format!(
                            "cannot send metrics to {}: {error}; trying again",
                            self.collector.url()
                        ));
                    }
                    failing = true;
                }
            }
            if ends {
                break;
            }
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(&self) -> Value {
        let sums = self.sums.lock();
        let status = self.status();
        message(
            &metrics(&sums, &status),
            &self.resource,
            (self.started_ns, realtime_ns()),
        )
    }
}

/// The resource of metrics and logs; `redacted` without the id of the host.
pub(crate) fn resource(attributes: &BTreeMap<String, String>, redacted: bool) -> Value {
    let host = fathom_recorder::describe_host();
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([
        ("service.name", "fathom"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("host.name", &host.name),
    ]);
    if !host.machine_id.is_empty() && !redacted {
        all.insert("host.id", &host.machine_id);
    }
    all.extend(attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    let all: Vec<Value> = all.into_iter().map(attribute).collect();
    json!({ "attributes": all })
}

pub(crate) fn attribute((key, value): (&str, &str)) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The message with all metrics, between two times of day in nanoseconds.
fn message(metrics: &[Metric], resource: &Value, (from, to): (u64, u64)) -> Value {
    let point = |labels: &LabelValues| {
        let some = labels.all.iter().filter(|(_, value)| !value.is_empty());
        json!({
            "attributes": some.copied().map(attribute).collect::<Vec<_>>(),
            "startTimeUnixNano": labels.since_ns.unwrap_or(from).to_string(),
            "timeUnixNano": to.to_string(),
        })
    };
    let numbers = |samples: &[(LabelValues, Number)]| -> Vec<Value> {
        let point = |(labels, number): &(LabelValues, Number)| {
            let mut point = point(labels);
            match number {
                Number::Whole(n) => point["asInt"] = n.to_string().into(),
                Number::Nanoseconds(ns) => point["asDouble"] = seconds(*ns).into(),
                Number::Real(x) => point["asDouble"] = (*x).into(),
            }
            point
        };
        samples.iter().map(point).collect()
    };
    let metrics = metrics.iter().map(|metric| {
        let mut out =
            json!({ "name": metric.name, "description": metric.help, "unit": unit(metric.unit) });
        match &metric.samples {
            Samples::Counter(samples) => {
                out["sum"] = json!({
                    "dataPoints": numbers(samples),
                    "aggregationTemporality": CUMULATIVE,
                    "isMonotonic": true,
                });
            }
            Samples::Gauge(samples) => out["gauge"] = json!({ "dataPoints": numbers(samples) }),
            Samples::Histogram(samples) => {
                let points = samples.iter().map(|(labels, of)| {
                    let mut point = point(labels);
                    let below: u64 = of.buckets.iter().map(|bucket| bucket.1).sum();
                    let counts = of.buckets.iter().map(|bucket| bucket.1);
                    let counts = counts.chain([of.count.saturating_sub(below)]);
                    let ends = of.buckets.iter().map(|bucket| seconds(bucket.0.into()));
                    point["count"] = of.count.to_string().into();
                    point["sum"] = seconds(of.sum_ns).into();
                    point["bucketCounts"] = counts.map(|n| n.to_string()).collect();
                    point["explicitBounds"] = ends.collect();
                    point
                });
                out["histogram"] = json!({
                    "dataPoints": points.collect::<Vec<_>>(),
                    "aggregationTemporality": CUMULATIVE,
                });
            }
        }
        out
    });
    json!({
        "resourceMetrics": [{
            "resource": resource,
            "scopeMetrics": [{
                "scope": { "name": "fathom", "version": env!("CARGO_PKG_VERSION") },
                "metrics": metrics.collect::<Vec<_>>(),
            }],
        }],
    })
}

fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

/// The unit as UCUM has it.
fn unit(unit: &str) -> &str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        _ => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Histogram;

    #[test]
    fn messages_have_the_form_of_the_protocol() {
        let metric = Metric {
            name: "fathom_x_seconds",
            unit: "seconds",
            help: "Long.",
            samples: Samples::Histogram(vec![
                (
                    vec![("operation", "read"), ("unit", "")].into(),
                    Histogram {
                        count: 6,
                        sum_ns: 1_500_000_000,
                        buckets: vec![(1023, 2), (4095, 3)],
                    },
                ),
                (
                    LabelValues {
                        since_ns: Some(2),
                        ..LabelValues::default()
                    },
                    Histogram {
                        count: 0,
                        sum_ns: 0,
                        buckets: Vec::new(),
                    },
                ),
            ]),
        };
        let sent = message(&[metric], &resource(&BTreeMap::new(), false), (1, 2));
        let metric = &sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
        assert_eq!(metric["unit"], "s");
        let began_again = &metric["histogram"]["dataPoints"][1];
        assert_eq!(began_again["startTimeUnixNano"], "2");
        assert_eq!(
            metric["histogram"]["dataPoints"][0],
            json!({
                "attributes": [{ "key": "operation", "value": { "stringValue": "read" } }],
                "startTimeUnixNano": "1",
                "timeUnixNano": "2",
                "count": "6",
                "sum": 1.5,
                "bucketCounts": ["2", "3", "1"],
                "explicitBounds": [0.000_001_023, 0.000_004_095],
            })
        );
    }
}
