//! Requests on a connection that wait for their responses.

use std::collections::VecDeque;
use std::net::IpAddr;

/// Requests that may wait at a time; beyond that the connection is out of step.
const MAX_OPEN: usize = 1024;
/// Bytes of a name.
const MAX_NAME: usize = 256;
/// Bytes of another text.
const MAX_TEXT: usize = 4096;

/// The call in which bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// When it returned, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: u64,
    pub pid: u32,
    pub tid: u32,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(u64),
}

/// Trace and span that a request names as its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub trace: u128,
    pub span: u64,
}

/// A request, as its protocol describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub name: String,
    pub attributes: Vec<(&'static str, Value)>,
    pub origin: Option<Origin>,
    /// Address and port of the client for which another server asks, if it says them.
    pub received_from: Option<(IpAddr, u16)>,
    /// The kind of request, by which the protocol reads the response.
    pub ask: u8,
    /// The number by which the response names it, if the protocol has any.
    pub id: Option<i32>,
    /// The request has the name of its message: the command in it could not be read.
    pub unread: bool,
    /// It is no request, but has its place in the order of responses.
    pub marker: bool,
}

/// A request that waits for its response, or has got it.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    pub request: Request,
    /// The call with its first byte.
    pub began: Moment,
    /// Where its first byte is in the stream, if that is known: the same at both ends.
    pub place: Option<u64>,
    /// The call with the latest byte of its response.
    pub responded: Option<Moment>,
    /// The error that the response reports: a code, and a text that may contain data.
    pub error: Option<(String, String)>,
    /// Its number and the id of its span, 0 until it has them.
    pub number: u64,
    pub span: u64,
    pub trace: u128,
    /// The span that caused it, 0 if there is none.
    pub parent: u64,
    /// All calls so far were made by one thread.
    pub of_thread: bool,
}

impl Exchange {
    /// Memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Number(_) => 0,
        };
        let attributes = &self.request.attributes;
        size_of::<Self>()
            + self.request.name.len()
            + attributes.iter().map(|(_, v)| 48 + text(v)).sum::<usize>()
    }
}

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// The call whose bytes are being read.
    pub now: Moment,
    /// The call with the first byte of the message that is being read.
    pub since: Moment,
    /// Where that message begins in the stream, if that is known.
    pub place: Option<u64>,
    /// Texts are kept as they are.
    pub plain: bool,
    open: VecDeque<Exchange>,
    /// Exchanges that are over.
    pub done: Vec<Exchange>,
    /// Requests that are given up: their spans, and the threads in which they began.
    pub dropped: Vec<(u64, u32)>,
    /// Memory of the open ones, about.
    held: usize,
}

impl Exchanges {
    pub(super) fn new(plain: bool) -> Self {
        Self {
            plain,
            ..Self::default()
        }
    }

    /// A request begins; false if too many wait.
    #[must_use]
    pub(super) fn begin(&mut self, mut request: Request) -> bool {
        if self.open.len() >= MAX_OPEN {
            return false;
        }
        shorten(&mut request.name, MAX_NAME);
        for (_, value) in &mut request.attributes {
            if let Value::Text(text) = value {
                shorten(text, MAX_TEXT);
            }
        }
        let exchange = Exchange {
            request,
            began: self.since,
            place: self.place,
            of_thread: self.since.tid == self.now.tid,
            ..Exchange::default()
        };
        self.held += exchange.bytes();
        self.open.push_back(exchange);
        true
    }

    /// The request whose response comes next.
    pub(super) fn first(&mut self) -> Option<&mut Exchange> {
        self.open.front_mut()
    }

    /// Makes the request with a number the first one; false if no such request waits.
    pub(super) fn select(&mut self, id: i32) -> bool {
        let at = self.open.iter().position(|e| e.request.id == Some(id));
        let Some(exchange) = at.and_then(|at| self.open.remove(at)) else {
            return false;
        };
        self.open.push_front(exchange);
        true
    }

    pub(super) fn waiting(&self) -> usize {
        self.open.len()
    }

    /// Whether a request has no span yet.
    pub(super) fn fresh(&self) -> bool {
        self.open.iter().any(|e| e.span == 0 && !e.request.marker)
    }

    /// The request that begins there in the stream.
    pub(super) fn at(&mut self, place: u64) -> Option<&mut Exchange> {
        self.open.iter_mut().find(|e| e.place == Some(place))
    }

    pub(super) fn open(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.open.iter_mut()
    }

    /// Bytes of the response to the first request moved.
    pub(super) fn responds(&mut self) {
        let now = self.now;
        if let Some(first) = self.open.front_mut() {
            first.of_thread &= first.began.tid == now.tid;
            first.responded = Some(now);
        }
    }

    /// The response to the first request has ended with its latest bytes.
    pub(super) fn end(&mut self) {
        match self.pop() {
            Some(exchange) if exchange.request.marker => {}
            Some(exchange) if exchange.responded.is_some() => self.done.push(exchange),
            Some(exchange) => self.dropped.push((exchange.span, exchange.began.tid)),
            None => {}
        }
    }

    fn pop(&mut self) -> Option<Exchange> {
        let exchange = self.open.pop_front();
        match self.open.is_empty() {
            true => self.held = 0,
            false => {
                let bytes = exchange.as_ref().map_or(0, Exchange::bytes);
                self.held = self.held.saturating_sub(bytes);
            }
        }
        exchange
    }

    /// The first request gets no response, which is in order.
    pub(super) fn skip(&mut self) {
        if let Some(exchange) = self.pop().filter(|exchange| !exchange.request.marker) {
            self.dropped.push((exchange.span, exchange.began.tid));
        }
    }

    /// Which response belongs to which request is no longer known.
    pub(super) fn give_up(&mut self) {
        self.held = 0;
        let open = std::mem::take(&mut self.open);
        let spans = open.iter().filter(|e| !e.request.marker);
        self.dropped.extend(spans.map(|e| (e.span, e.began.tid)));
    }

    /// Memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.held
    }
}

/// Cuts a text at a character.
pub(super) fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
        text.shrink_to_fit();
    }
}
