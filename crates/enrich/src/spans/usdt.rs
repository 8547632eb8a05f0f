//! Spans between static probes of programs (`record --usdt`): from the probe that begins a span to
//! the one of the same thread that ends it.

use fathom_model::abi::{MAX_USDT_PLACES, UsdtPlaceRecord, UsdtRecord};
use fathom_model::bytes::{escape_invalid_utf8, printable};
use fathom_model::ids::spread;
use fathom_model::statement::{Dialect, digest};
use fathom_model::tables::SpanRow;
use fathom_model::usdt::TextKind;
use fathom_model::{StrId, batch::Null};
use hashbrown::HashMap;

use super::Spans;
use super::exchange::shorten;
use super::joining::Place;
use crate::strings::Known;
use crate::{id, signed};

/// Column `source`.
const SOURCE: &str = "usdt";
/// Spans that are open at a time, of one thread and of all.
const MAX_OF_THREAD: usize = 4096;
const MAX_OPEN: usize = 1 << 17;
/// Bytes of a name.
const MAX_NAME: usize = 256;

/// A place of a probe.
#[derive(Clone, Debug)]
struct ProbePlace {
    ends: bool,
    span: u16,
    provider: String,
    name: String,
    /// The meaning of what the probe passes.
    text: Option<TextKind>,
    /// Column `attributes` without the text.
    attributes: Box<[u8]>,
}

/// A span that has begun.
#[derive(Clone, Debug)]
struct Open {
    kind: u16,
    place: u16,
    began_ns: u64,
    sp: u64,
    span: u64,
    trace: u128,
    /// 0 for none.
    parent: u64,
    text: Box<[u8]>,
    cut: bool,
}

/// Column `attributes` of the spans of a place.
fn attributes(provider: &str, name: &str, statement: Option<&str>) -> Vec<u8> {
    let mut json = String::from("{");
    super::put(&mut json, "usdt.provider", provider);
    super::put(&mut json, "usdt.span", name);
    if let Some(statement) = statement {
        super::put(&mut json, "db.query.text", statement);
    }
    json.push('}');
    json.into_bytes()
}

/// The places, and the spans that have begun.
#[derive(Debug, Default)]
pub(super) struct StaticProbes {
    places: Vec<Option<ProbePlace>>,
    /// By thread, in the order of their beginnings.
    open: HashMap<u32, Vec<Open>>,
    count: usize,
}

impl StaticProbes {
    fn place(&self, number: u16) -> Option<&ProbePlace> {
        self.places.get(usize::from(number))?.as_ref()
    }

    /// The span that a thread is in.
    pub(super) fn innermost(&self, tid: u32) -> Option<Place> {
        let open = self.open.get(&tid)?.last()?;
        Some((open.trace, open.span))
    }

    /// All spans of one trace belong to another one.
    pub(super) fn rename(&mut self, trace: u128, to: u128) {
        let open = self.open.values_mut().flatten();
        for open in open.filter(|open| open.trace == trace) {
            open.trace = to;
        }
    }

    /// Drops the spans of a thread from the given one on; how many those are.
    fn drop_from(&mut self, tid: u32, from: usize) -> u64 {
        let Some(open) = self.open.get_mut(&tid) else {
            return 0;
        };
        let dropped = open.len().saturating_sub(from);
        open.truncate(from);
        if open.is_empty() {
            self.open.remove(&tid);
        }
        self.count = self.count.saturating_sub(dropped);
        dropped as u64
    }
}

impl Spans {
    /// A place was found.
    pub(crate) fn usdt_place(
        &mut self,
        record: &UsdtPlaceRecord,
        [provider, name, text]: [&[u8]; 3],
    ) {
        let number = usize::from(record.place);
        if number >= MAX_USDT_PLACES as usize {
            return;
        }
        let places = &mut self.usdt.places;
        if places.len() <= number {
            places.resize(number + 1, None);
        }
        if let Some(place) = places.get_mut(number) {
            let provider = escape_invalid_utf8(provider).into_owned();
            let name = escape_invalid_utf8(name).into_owned();
            *place = Some(ProbePlace {
                ends: record.ends != 0,
                span: record.span,
                attributes: attributes(&provider, &name, None).into(),
                provider,
                name,
                text: std::str::from_utf8(text).ok().and_then(TextKind::named),
            });
        }
    }

    /// A thread has come by a static probe.
    pub(crate) fn usdt(&mut self, record: &UsdtRecord, text: &[u8], known: &mut Known) {
        self.counts.usdt += 1;
        let Some(place) = self.usdt.place(record.place) else {
            self.counts.usdt_unpaired += 1;
            return;
        };
        match (place.ends, place.span) {
            (true, kind) => self.usdt_ends(record, kind, known),
            (false, kind) => self.usdt_begins(record, kind, text),
        }
    }

    fn usdt_begins(&mut self, record: &UsdtRecord, kind: u16, text: &[u8]) {
        let open = self
            .usdt
            .open
            .get(&record.tid)
            .map_or(&[][..], Vec::as_slice);
        let mut of_thread = open.len();
        // Left without an end, by longjmp() for instance: its frame of the stack is gone.
        let left = |open: &Open| open.kind == kind && open.sp <= record.sp;
        if let Some(first) = open.iter().position(left) {
            self.counts.usdt_unpaired += self.usdt.drop_from(record.tid, first);
            of_thread = first;
        }
        if of_thread >= MAX_OF_THREAD || self.usdt.count >= MAX_OPEN {
            self.counts.usdt_unpaired += 1;
            return;
        }
        self.made += 1;
        let span = spread(spread(self.made) ^ record.ts_ns).max(1);
        let cause = self.usdt.innermost(record.tid);
        let cause = cause.or_else(|| self.served(record.tid, None));
        let (trace, parent) = cause.unwrap_or_else(|| (super::joining::new_trace(span), 0));
        self.usdt.count += 1;
        self.usdt.open.entry(record.tid).or_default().push(Open {
            kind,
            place: record.place,
            began_ns: record.ts_ns,
            sp: record.sp,
            span,
            trace,
            parent,
            text: text.into(),
            cut: record.cut != 0,
        });
    }

    fn usdt_ends(&mut self, record: &UsdtRecord, kind: u16, known: &mut Known) {
        let open = self.usdt.open.get_mut(&record.tid);
        let found = open.and_then(|open| {
            let at = open.iter().rposition(|open| open.kind == kind)?;
            Some((open.remove(at), open.is_empty()))
        });
        let Some((open, last)) = found else {
            self.counts.usdt_unpaired += 1;
            return;
        };
        self.usdt.count = self.usdt.count.saturating_sub(1);
        if last {
            self.usdt.open.remove(&record.tid);
        }
        self.usdt_row(&open, record, known);
    }

    fn usdt_row(&mut self, open: &Open, end: &UsdtRecord, known: &mut Known) {
        let service = self.strings.comm(end.pid, end.ts_ns, known);
        let Some(place) = self.usdt.place(open.place) else {
            return;
        };
        self.counts.recorded += 1;
        self.counts.usdt_rows += 1;
        let dialect = match place.provider.as_str() {
            "mysql" => Dialect::Mysql,
            _ => Dialect::Postgresql,
        };
        let text = place.text.filter(|_| !open.text.is_empty());
        let mut name = match text {
            Some(TextKind::Sql) => digest(&open.text, dialect, open.cut),
            Some(TextKind::Url) if !self.plain => {
                let path = open.text.split(|byte| *byte == b'?').next();
                format!("{} {}", place.name, printable(path.unwrap_or_default()))
            }
            Some(_) => format!("{} {}", place.name, printable(&open.text)),
            None => place.name.clone(),
        };
        shorten(&mut name, MAX_NAME);
        let strings = &mut self.strings;
        let attributes = if text == Some(TextKind::Sql) && self.plain {
            let statement = printable(&open.text);
            strings.text(&attributes(&place.provider, &place.name, Some(&statement)))
        } else {
            strings.text(&place.attributes)
        };
        let parent = format!("{:016x}", open.parent);
        let row = SpanRow {
            trace_id: strings.text(format!("{:032x}", open.trace).as_bytes()),
            span_id: strings.text(format!("{:016x}", open.span).as_bytes()),
            parent_span_id: match open.parent {
                0 => StrId::NULL,
                _ => strings.text(parent.as_bytes()),
            },
            ts_ns: signed(open.began_ns),
            dur_ns: signed(end.ts_ns.saturating_sub(open.began_ns)),
            pid: id(end.pid),
            tid: id(end.tid).when(end.tid != 0),
            service,
            name: strings.text(name.as_bytes()),
            kind: strings.word("internal"),
            status: strings.word("unset"),
            status_message: StrId::NULL,
            attributes,
            source: strings.word(SOURCE),
        };
        self.rows.push(row);
    }

    /// The thread has ended, or runs another program.
    pub(crate) fn thread_ended(&mut self, tid: u32) {
        self.counts.usdt_unpaired += self.usdt.drop_from(tid, 0);
    }

    /// Records of static probes were lost, or the recording is over: what was not ended so far
    /// may have been.
    pub(crate) fn usdt_lost(&mut self) {
        self.counts.usdt_unpaired += self.usdt.count as u64;
        self.usdt.count = 0;
        self.usdt.open.clear();
    }
}

#[cfg(test)]
mod tests;
