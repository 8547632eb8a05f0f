//! `GET /sessions/ID/glance`: what a session was, for a row of the list.

use axum::extract::{Path, State};
use fathom_diagnose::Severity;
use fathom_query::zoom::By;
use serde::Serialize;

use super::tiles::{self, Extras};
use super::top::Sums;
use super::{Json, Shared};
use crate::columns::{collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::SelectionParams;
use crate::view::Reader;

/// Buckets of the line, at least.
const BUCKETS: u32 = 60;
/// Calls up to which a session is diagnosed for the list.
const MOST_DIAGNOSED: u64 = 1 << 21;

/// A session at a glance.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Glance {
    /// Width of the buckets, nanoseconds, and the beginning of the first one.
    pub bucket_ns: i64,
    pub from: i64,
    /// Time in calls in each bucket, nanoseconds, by purpose.
    pub busy: Vec<PurposeLine>,
    /// Devices with requests, those with most of them first.
    pub devices: Vec<String>,
    /// The worst finding; null without findings, and where `diagnosed` is false.
    pub worst: Option<Worst>,
    /// How many findings there are.
    pub findings: usize,
    /// Whether the findings are known. Sessions with millions of calls are diagnosed when they
    /// are opened.
    pub diagnosed: bool,
}

/// Calls of one purpose.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PurposeLine {
    /// read, write, sync, metadata or other.
    pub purpose: String,
    /// Time in calls in each bucket, nanoseconds.
    pub busy_ns: Vec<f64>,
    pub calls: f64,
    pub time_ns: f64,
    /// 99th percentile, from a histogram by powers of two; null without calls.
    pub p99_ns: Option<f64>,
    pub max_ns: f64,
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Worst {
    #[cfg_attr(test, ts(type = "\"low\" | \"medium\" | \"high\""))]
    pub severity: Severity,
    pub title: String,
    pub rule: String,
}

/// `GET /sessions/ID/glance`.
pub(crate) async fn glance(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Glance>, ApiError> {
    let query = |reader: &Reader, stop: &Stop| {
        let few = reader.session.rows("syscalls") <= MOST_DIAGNOSED && !reader.session.is_live();
        Ok((of(reader, stop)?, few))
    };
    let (mut glance, few) = app.jobs.query(id.clone(), Lane::Quick, query).await?;
    if few {
        let told = app.diagnoses.of(&app.library, &id).await?;
        let findings = &told.diagnosis.findings;
        glance.diagnosed = true;
        glance.findings = findings.len();
        // They are in order of their weight; the severity is not.
        let worst = findings.iter().rev().max_by_key(|f| f.severity as u8);
        glance.worst = worst.map(|finding| Worst {
            severity: finding.severity,
            title: finding.title.clone(),
            rule: finding.rule.to_string(),
        });
    }
    Ok(Json(glance))
}

fn of(reader: &Reader, stop: &Stop) -> Result<Glance, ApiError> {
    let selection = SelectionParams {
        pixels: Some(BUCKETS),
        ..SelectionParams::default()
    };
    let selection = selection.parse()?;
    let extras = Extras {
        latency: true,
        busy: true,
        faults: true,
    };
    // Every purpose, and page faults.
    let sums = tiles::sums(reader, &selection, By::Purpose, 6, extras)?;
    let rows = &sums.rows;
    let (t, purpose) = (numbers(rows, "ts_ns")?, texts(rows, "purpose")?);
    let (busy, calls) = (numbers(rows, "busy_ns")?, numbers(rows, "calls")?);
    let in_faults = numbers(rows, "fault_ns")?;
    let (time, longest) = (numbers(rows, "total_ns")?, numbers(rows, "max_ns")?);
    let histograms = tiles::latencies(rows)?;
    let (first, width) = (sums.window_ns.start, sums.bucket_ns.max(1));
    let buckets = ((sums.window_ns.end - first) / width).clamp(0, 4 * i64::from(BUCKETS)) as usize;
    let mut lines: Vec<(PurposeLine, Sums)> = Vec::new();
    for (i, histogram) in histograms.iter().enumerate().take(rows.num_rows()) {
        let name = purpose.value(i);
        let known = lines.iter().position(|(line, _)| line.purpose == name);
        let place = known.unwrap_or_else(|| {
            let line = PurposeLine {
                purpose: name.to_string(),
                busy_ns: vec![0.0; buckets],
                calls: 0.0,
                time_ns: 0.0,
                p99_ns: None,
                max_ns: 0.0,
            };
            lines.push((line, Sums::default()));
            lines.len() - 1
        });
        let Some((line, sums)) = lines.get_mut(place) else {
            continue;
        };
        let bucket = (t.value(i) as i64 - first) / width;
        if let Some(ns) = line.busy_ns.get_mut(bucket.max(0) as usize) {
            *ns += busy.value(i);
        }
        line.calls += calls.value(i);
        line.time_ns += time.value(i) + in_faults.value(i);
        line.max_ns = line.max_ns.max(longest.value(i));
        sums.longest = line.max_ns;
        sums.add(histogram);
    }
    stop.check()?;
    let devices = collect(reader.db().run(
        "SELECT device, count(*) AS n FROM block WHERE device IS NOT NULL GROUP BY 1 ORDER BY n DESC, 1 LIMIT 8",
    )?)?;
    let devices = texts(&devices, "device")?;
    Ok(Glance {
        bucket_ns: width,
        from: first - reader.started_at_ns(),
        busy: lines
            .into_iter()
            .map(|(line, sums)| PurposeLine {
                p99_ns: sums.percentile(0.99),
                ..line
            })
            .collect(),
        devices: devices.iter().flatten().map(str::to_string).collect(),
        worst: None,
        findings: 0,
        diagnosed: false,
    })
}
