//! Metrics as text: OpenMetrics 1.0.

use std::fmt::Write as _;

use crate::metrics::{Histogram, Metric, Number, Samples};

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics.
pub fn text(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for metric in metrics {
        write(&mut out, metric);
    }
    out.push_str("# EOF\n");
    out
}

fn write(out: &mut String, metric: &Metric) {
    let Metric {
        name,
        unit,
        help,
        samples,
    } = metric;
    let kind = match samples {
        Samples::Counter(_) => "counter",
        Samples::Gauge(_) => "gauge",
        Samples::Histogram(_) => "histogram",
    };
    // Writing to a string does not fail.
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {}", escaped(help));
    match samples {
        Samples::Counter(samples) => {
            for (labels, value) in samples {
                sample(out, name, "_total", &labels.all, None, &number(*value));
            }
        }
        Samples::Gauge(samples) => {
            for (labels, value) in samples {
                sample(out, name, "", &labels.all, None, &number(*value));
            }
        }
        Samples::Histogram(samples) => {
            for (labels, value) in samples {
                histogram(out, name, &labels.all, value);
            }
        }
    }
}

fn histogram(out: &mut String, name: &str, labels: &[(&str, &str)], value: &Histogram) {
    let mut below = 0;
    for (end_ns, count) in &value.buckets {
        below += count;
        let end = seconds((*end_ns).into());
        sample(out, name, "_bucket", labels, Some(&end), &below.to_string());
    }
    let count = value.count.to_string();
    sample(out, name, "_bucket", labels, Some("+Inf"), &count);
    sample(out, name, "_count", labels, None, &count);
    sample(out, name, "_sum", labels, None, &seconds(value.sum_ns));
}

fn sample(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: &[(&str, &str)],
    end: Option<&str>,
    value: &str,
) {
    out.push_str(name);
    out.push_str(suffix);
    let mut separator = '{';
    // A label without a value is a label that is not there.
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    for (label, value) in labels.copied().chain(end.map(|end| ("le", end))) {
        let _ = write!(out, "{separator}{label}=\"{}\"", escaped(value));
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

fn number(number: Number) -> String {
    match number {
        Number::Whole(n) => n.to_string(),
        Number::Nanoseconds(ns) => seconds(ns),
        Number::Real(x) => x.to_string(),
    }
}

/// Seconds, exactly.
fn seconds(ns: u128) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let text = text.trim_end_matches('0');
    match text.ends_with('.') {
        true => format!("{text}0"),
        false => text.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_form_of_openmetrics() {
        let metrics = [
            Metric {
                name: "fathom_x_bytes",
                unit: "bytes",
                help: "So \"it\" is.",
                samples: Samples::Counter(vec![(
                    vec![("command", "a\\\"\nb"), ("unit", "")].into(),
                    Number::Whole(7),
                )]),
            },
            Metric {
                name: "fathom_y_seconds",
                unit: "seconds",
                help: "Long.",
                samples: Samples::Histogram(vec![(
                    vec![("operation", "read")].into(),
                    Histogram {
                        count: 6,
                        sum_ns: 12_000_000_003,
                        buckets: vec![(1023, 2), (4095, 3)],
                    },
                )]),
            },
            Metric {
                name: "fathom_z_ratio",
                unit: "ratio",
                help: "Share.",
                samples: Samples::Gauge(vec![(Vec::new().into(), Number::Real(0.5))]),
            },
        ];
        assert_eq!(
            text(&metrics),
            "# TYPE fathom_x_bytes counter\n\
             # UNIT fathom_x_bytes bytes\n\
             # HELP fathom_x_bytes So \\\"it\\\" is.\n\
             fathom_x_bytes_total{command=\"a\\\\\\\"\\nb\"} 7\n\
             # TYPE fathom_y_seconds histogram\n\
             # UNIT fathom_y_seconds seconds\n\
             # HELP fathom_y_seconds Long.\n\
             fathom_y_seconds_bucket{operation=\"read\",le=\"0.000001023\"} 2\n\
             fathom_y_seconds_bucket{operation=\"read\",le=\"0.000004095\"} 5\n\
             fathom_y_seconds_bucket{operation=\"read\",le=\"+Inf\"} 6\n\
             fathom_y_seconds_count{operation=\"read\"} 6\n\
             fathom_y_seconds_sum{operation=\"read\"} 12.000000003\n\
             # TYPE fathom_z_ratio gauge\n\
             # UNIT fathom_z_ratio ratio\n\
             # HELP fathom_z_ratio Share.\n\
             fathom_z_ratio 0.5\n\
             # EOF\n"
        );
    }
}
