//! Spans, library calls and slices of a made-up recording.

use fathom_model::StringTable;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{SliceRow, SliceRows, SpanRow, SpanRows, UserCallRow, UserCallRows};

use super::{GAP_NS, Scenario};
use crate::engine::Engine;

/// A span.
#[derive(Clone, Copy)]
pub(crate) struct SpanOf<'a> {
    pub(crate) id: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) attributes: &'a str,
    /// When it began; it ends now.
    pub(crate) began: i64,
}

impl SpanOf<'_> {
    pub(crate) fn since(began: i64) -> Self {
        Self {
            id: "",
            parent: None,
            name: "",
            kind: "server",
            attributes: "",
            began,
        }
    }
}

/// Rows next to the calls of a scenario.
#[derive(Default)]
pub(crate) struct BesideRows {
    spans: (SpanRows, StringTable),
    library: (UserCallRows, StringTable),
    slices: (SliceRows, StringTable),
}

impl BesideRows {
    pub(crate) fn feed(self, engine: &mut Engine) {
        let batches = [
            self.spans.0.into_batch(self.spans.1),
            self.library.0.into_batch(self.library.1),
            self.slices.0.into_batch(self.slices.1),
        ];
        engine.feed_together(&batches);
    }
}

impl Scenario {
    /// When the last call returned.
    pub(crate) fn returned(&self) -> i64 {
        self.now - GAP_NS
    }

    /// A span of the thread ends now.
    pub(crate) fn span(&mut self, of: &SpanOf) {
        let (now, pid) = (self.now, self.pid);
        let tid = self.tid.unwrap_or(pid);
        let (rows, strings) = &mut self.beside.spans;
        let mut text = |text: &str| strings.intern(text.as_bytes());
        rows.push(SpanRow {
            trace_id: text("000000000000000000000000000000ff"),
            span_id: text(of.id),
            parent_span_id: of.parent.map_or(fathom_model::StrId::NULL, &mut text),
            ts_ns: of.began,
            dur_ns: now - of.began,
            pid,
            tid,
            service: text("shop"),
            name: text(of.name),
            kind: text(of.kind),
            status: text("unset"),
            attributes: text(of.attributes),
            source: text("recorded"),
            ..Default::default()
        });
    }

    /// A library call that makes these calls.
    pub(crate) fn library(
        &mut self,
        class: &str,
        function: &str,
        path: &str,
        bytes: i64,
        calls: impl FnOnce(&mut Self),
    ) {
        let id = self.beside.library.0.user_call.len() as i64 + 1;
        let (began, before) = (self.now, self.rows.rid.len());
        calls(self);
        for made in self.rows.user_call.iter_mut().skip(before) {
            *made = id;
        }
        let (rows, strings) = &mut self.beside.library;
        let mut text = |text: &str| strings.intern(text.as_bytes());
        rows.push(UserCallRow {
            user_call: id,
            ts_ns: began,
            dur_ns: self.now - began,
            pid: self.pid,
            tid: self.tid.unwrap_or(self.pid),
            comm: text(self.comm),
            cpu: 0,
            class: text(class),
            function: text(function),
            library: text("/lib/library.so"),
            ret: 0,
            fd: NULL_I32,
            file_id: self.ids.get(path).copied().unwrap_or(NULL_I64),
            size: NULL_I64,
            items: NULL_I64,
            bytes,
            parent: NULL_I64,
            ..Default::default()
        });
        self.now += 100;
    }

    /// The last call spent so long of its time in a layer.
    pub(crate) fn in_layer(&mut self, layer: &str, name: &str, self_ns: i64) {
        let rid = self.rows.rid.len() as i64;
        let (rows, strings) = &mut self.beside.slices;
        rows.push(SliceRow {
            rid,
            layer: strings.intern(layer.as_bytes()),
            name: strings.intern(name.as_bytes()),
            ts_ns: self.now,
            dur_ns: self_ns,
            self_ns,
            depth: 1,
        });
    }
}
