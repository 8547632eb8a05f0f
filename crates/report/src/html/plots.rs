//! Plots as inline SVG. Everything in them is numbers of ours and escaped text.

use std::fmt::Write as _;

use super::escape_html;
use crate::report::{Latency, Slice, Timeline};
use fathom_model::units::{count, duration};

const WIDTH: f64 = 1040.0;
const LEFT: f64 = 96.0;
const HEIGHT: f64 = 120.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;

/// A plot over time: two values a slice, one upon the other.
pub(super) fn over_time(
    timeline: &Timeline,
    values: fn(&Slice) -> (i64, i64),
    unit: fn(i64) -> String,
    title: &str,
) -> String {
    let per_second = |n: i64| n as f64 * 1e9 / timeline.slice_ns.max(1) as f64;
    let peak = timeline
        .slices
        .iter()
        .map(|s| per_second(values(s).0.saturating_add(values(s).1)))
        .fold(0.0, f64::max)
        .max(1e-9);
    let number = timeline.slices.len().max(1) as f64;
    let (plot_width, plot_height) = (WIDTH - LEFT - 8.0, HEIGHT - TOP - BOTTOM);
    let step = plot_width / number;
    let mut out = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape_html(title)
    );
    for share in [0.0, 0.5, 1.0] {
        let y = TOP + plot_height * (1.0 - share);
        let label = unit((peak * share).round() as i64);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}/s</text>",
            WIDTH - 8.0,
            LEFT - 8.0,
            y + 4.0,
            escape_html(&label)
        );
    }
    for (i, slice) in timeline.slices.iter().enumerate() {
        let (lower, upper) = values(slice);
        let x = LEFT + i as f64 * step;
        let scale = plot_height / peak;
        let (low, high) = (per_second(lower) * scale, per_second(upper) * scale);
        let base = TOP + plot_height;
        for (class, from, height) in [("a", base - low, low), ("b", base - low - high, high)] {
            if height > 0.0 {
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{from:.2}\" width=\"{:.2}\" \
                     height=\"{height:.2}\"/>",
                    (step - 0.6).max(0.4)
                );
            }
        }
    }
    let length = timeline.slice_ns as f64 * number;
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = LEFT + plot_width * share;
        let anchor = if share == 1.0 { "end" } else { "middle" };
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            HEIGHT - 6.0,
            escape_html(&duration((length * share) as i64))
        );
    }
    out.push_str("</svg>");
    out
}

/// The latency histogram of each call: one row per call, one cell per power of two,
/// darker where more of the call's time is.
pub(super) fn latencies(latency: &[Latency]) -> String {
    const ROW: f64 = 20.0;
    const NAMES: f64 = 150.0;
    let buckets = || latency.iter().flat_map(|l| &l.buckets).map(|b| b.bucket);
    let (Some(first), Some(last)) = (buckets().min(), buckets().max()) else {
        return String::new();
    };
    let columns = (last - first + 1) as f64;
    let cell = ((WIDTH - NAMES - 100.0) / columns).min(60.0);
    let height = latency.len() as f64 * ROW + 28.0;
    let mut out = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"latency histograms\">"
    );
    for (row, l) in latency.iter().enumerate() {
        let y = row as f64 * ROW;
        let total: i64 = l.buckets.iter().map(|b| b.calls).sum();
        let most = l.buckets.iter().map(|b| b.calls).max().unwrap_or(1).max(1);
        let _ = write!(
            out,
            "<text class=\"label\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            NAMES - 8.0,
            y + 14.0,
            escape_html(&l.syscall)
        );
        for b in &l.buckets {
            // Square root: rare slow calls are what one looks for.
            let opacity = (b.calls as f64 / most as f64).sqrt().clamp(0.2, 1.0);
            let range = match b.below_ns {
                Some(below) => format!("{} to {}", duration(b.from_ns), duration(below)),
                None => format!("{} and more", duration(b.from_ns)),
            };
            let share = fathom_model::units::percent(b.calls as f64 / total.max(1) as f64);
            let _ = write!(
                out,
                "<rect class=\"a\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill-opacity=\"{opacity:.2}\"><title>{}: {} calls ({share}) of {range}</title></rect>",
                NAMES + (b.bucket - first) as f64 * cell,
                y + 1.0,
                (cell - 1.5).max(1.0),
                ROW - 3.0,
                escape_html(&l.syscall),
                count(b.calls)
            );
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            NAMES + columns * cell + 8.0,
            y + 14.0,
            count(total)
        );
    }
    let every = ((columns / 12.0).ceil() as i64).max(1);
    for bucket in (first..=last + 1).filter(|b| (b - first) % every == 0) {
        let from = if bucket <= 0 {
            0
        } else {
            1_i64 << bucket.min(62)
        };
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            NAMES + (bucket - first) as f64 * cell,
            height - 8.0,
            escape_html(&duration(from))
        );
    }
    out.push_str("</svg>");
    out
}

/// A bar of two values as shares of `most`.
pub(super) fn bar(first: i64, second: i64, most: i64) -> String {
    let percent = |n: i64| n as f64 * 100.0 / most.max(1) as f64;
    let (a, b) = (percent(first), percent(second));
    format!(
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"a\" width=\"{a:.2}\" height=\"10\"/>\
         <rect class=\"b\" x=\"{a:.2}\" width=\"{b:.2}\" height=\"10\"/></svg>"
    )
}
