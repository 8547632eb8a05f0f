//! The frontend/backend protocol of PostgreSQL, version 3.

use fathom_model::bytes::printable;
use fathom_model::statement::{Dialect, digest};
use hashbrown::HashMap;

use super::exchange::{Exchanges, Moment, Request, Value};
use super::step::{Input, Step};

/// Bytes of a message that are read.
const MOST: usize = 2048;
/// Bytes of a message: the server refuses longer ones.
const MAX_LENGTH: u32 = 1 << 30;
/// Statements and portals that are remembered, and their memory; beyond that all are forgotten.
const MAX_NAMES: usize = 512;
const MAX_HELD: usize = 1 << 20;

const VERSION_3: u32 = 3 << 16;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Kinds of requests that wait for a response.
const QUERY: u8 = 0;
const EXECUTE: u8 = 1;
const SYNC: u8 = 2;

/// A statement without literals, and as it is.
#[derive(Clone, Debug)]
struct Statement {
    name: String,
    text: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Postgresql {
    /// The client's next message has no type.
    starts: bool,
    /// The server's next byte says whether the connection is encrypted.
    asked: bool,
    statements: HashMap<Vec<u8>, Statement>,
    portals: HashMap<Vec<u8>, Statement>,
    /// The first of the messages that lead to the next Execute.
    since: Option<Moment>,
    /// The server ignores messages up to the next Sync.
    discards: bool,
    /// Responses are not read any more until the client asks again.
    blind: bool,
    /// Memory of names and statements, about.
    held: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

/// The text at the beginning, and the bytes behind it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Whether these bytes begin what a client sends; `None` while there are too few of them.
pub(super) fn begins(bytes: &[u8]) -> Option<Postgresql> {
    if is_start(bytes) {
        return Some(Postgresql {
            starts: true,
            ..Postgresql::default()
        });
    }
    // In the middle of a connection: all bytes are messages.
    let mut rest = bytes;
    let mut messages = 0;
    while let Some((kind, behind)) = rest.split_first() {
        let length = u32_at(behind, 0).filter(|n| (4..=MAX_LENGTH).contains(n))?;
        if !b"QPBEDSCHX".contains(kind) {
            return None;
        }
        let body = behind.get(4..length as usize)?;
        match kind {
            b'Q' if body.last() != Some(&0) || body.len() < 2 => return None,
            b'S' | b'H' | b'X' if length != 4 => return None,
            _ => {}
        }
        messages += 1;
        rest = behind.get(length as usize..)?;
    }
    (messages > 0).then(Postgresql::default)
}

fn is_start(bytes: &[u8]) -> bool {
    let (Some(length), Some(code)) = (u32_at(bytes, 0), u32_at(bytes, 4)) else {
        return false;
    };
    match code {
        SSL | GSS => length == 8,
        CANCEL => length == 16,
        _ => code & 0xffff_0000 == VERSION_3 && (9..=10_000).contains(&length),
    }
}

impl Postgresql {
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.starts {
            return self.start(input);
        }
        let (Some(kind), Some(length)) = (input.bytes.first(), u32_at(input.bytes, 1)) else {
            return input.wait();
        };
        if !(4..=MAX_LENGTH).contains(&length) || !b"QPBEDSCHXFpdcf".contains(kind) {
            return Step::Fail;
        }
        let whole = length as usize + 1;
        let read = if b"QPBEC".contains(kind) { MOST } else { 5 };
        let Some(bytes) = input.beginning(whole, read) else {
            return Step::More;
        };
        let (body, cut) = (bytes.get(5..).unwrap_or_default(), bytes.len() < whole);
        let begun = match kind {
            b'Q' => {
                let statement = statement(body, cut, all.plain);
                begin(statement, QUERY, None, all)
            }
            b'F' => begin(named("FUNCTION CALL"), QUERY, None, all),
            b'P' => {
                self.since.get_or_insert(all.since);
                if let Some((name, query)) = text(body) {
                    self.remember(true, name, statement(query, cut, all.plain));
                }
                true
            }
            b'B' => {
                self.since.get_or_insert(all.since);
                if let Some((portal, rest)) = text(body)
                    && let Some((name, _)) = text(rest)
                {
                    let statement = match self.statements.get(name) {
                        Some(statement) => statement.clone(),
                        // It was prepared before the recording.
                        None => named(&format!("EXECUTE {}", printable(name))),
                    };
                    self.remember(false, portal, statement);
                }
                true
            }
            b'E' => {
                let portal = text(body).and_then(|(portal, _)| self.portals.get(portal));
                let statement = portal.cloned().unwrap_or_else(|| named("EXECUTE"));
                let since = self.since.take();
                self.discards || begin(statement, EXECUTE, since, all)
            }
            b'C' => {
                if let Some((kind, name)) = body.split_first() {
                    let name = text(name).map_or(name, |(name, _)| name);
                    match kind {
                        b'S' => drop(self.statements.remove(name)),
                        _ => drop(self.portals.remove(name)),
                    }
                }
                true
            }
            b'S' => {
                self.since = None;
                self.discards = false;
                all.begin(Request {
                    ask: SYNC,
                    marker: true,
                    ..Request::default()
                })
            }
            _ => true,
        };
        if begun {
            Step::Take(whole as u64)
        } else {
            Step::Fail
        }
    }

    fn start(&mut self, input: Input<'_>) -> Step {
        let (Some(length), Some(code)) = (u32_at(input.bytes, 0), u32_at(input.bytes, 4)) else {
            return input.wait();
        };
        match code {
            SSL | GSS if length == 8 => self.asked = true,
            CANCEL => return Step::Leave,
            _ if is_start(input.bytes) => self.starts = false,
            _ => return Step::Fail,
        }
        Step::Take(length.into())
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.blind {
            return Step::Rest;
        }
        let Some(kind) = input.bytes.first() else {
            return self.unseen(input, all);
        };
        if self.asked {
            self.asked = false;
            return match kind {
                b'N' => Step::Take(1),
                b'S' => Step::Encrypts,
                b'G' => Step::Leave,
                _ => Step::Fail,
            };
        }
        let Some(length) = u32_at(input.bytes, 1) else {
            return self.unseen(input, all);
        };
        if !(4..=MAX_LENGTH).contains(&length) || !b"RSKZCTDEN123nstIAGHWdcvV".contains(kind) {
            return Step::Fail;
        }
        let whole = length as usize + 1;
        let read = if *kind == b'E' { MOST } else { 5 };
        let Some(bytes) = input.beginning(whole, read) else {
            return Step::More;
        };
        let ask = all.first().map(|first| first.request.ask);
        match (kind, ask) {
            (b'C' | b's' | b'I', Some(EXECUTE)) => all.end(),
            (b'E', Some(ask)) => {
                let error = error(bytes.get(5..).unwrap_or_default());
                if let Some(first) = all.first() {
                    first.error = Some(error);
                }
                if ask == EXECUTE {
                    all.end();
                }
                if ask != QUERY {
                    self.discard(all);
                }
            }
            // The message that failed leads to no Execute that has come.
            (b'E', None) => self.discards = !self.starts && self.since.is_some(),
            (b'Z', Some(QUERY)) => all.end(),
            (b'Z', Some(_)) => {
                // An Execute without a response would be out of order.
                while all
                    .first()
                    .is_some_and(|first| first.request.ask == EXECUTE)
                {
                    all.skip();
                }
                if all.first().is_some_and(|first| first.request.ask == SYNC) {
                    all.end();
                }
            }
            _ => {}
        }
        Step::Take(whole as u64)
    }

    /// The server ignores the messages up to the next Sync.
    fn discard(&mut self, all: &mut Exchanges) {
        while all
            .first()
            .is_some_and(|first| first.request.ask == EXECUTE)
        {
            all.skip();
        }
        self.discards = all.waiting() == 0;
    }

    /// Where the next message begins is not known, but the response to the only request still ends
    /// before the next one.
    fn unseen(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if !input.cut {
            return input.wait();
        }
        let mut markers = all.open().map(|exchange| exchange.request.marker);
        let alone = markers.next() == Some(false) && markers.next() != Some(false);
        if !alone || markers.next().is_some() {
            return Step::Fail;
        }
        self.blind = true;
        Step::Rest
    }

    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        if std::mem::take(&mut self.blind) {
            all.end();
            // The Sync behind it.
            all.end();
        }
        true
    }

    /// A server that reports a fatal error closes the connection.
    pub(super) fn ends(&mut self, all: &mut Exchanges) {
        self.turns(all);
        if all.first().is_some_and(|first| first.error.is_some()) {
            all.end();
        }
    }

    pub(super) fn restart(&mut self) {
        (self.starts, self.asked, self.discards, self.blind) = (false, false, false, false);
        self.since = None;
    }

    pub(super) fn bytes(&self) -> usize {
        self.held
    }

    /// Keeps the statement of a name, or of a portal.
    fn remember(&mut self, prepared: bool, name: &[u8], statement: Statement) {
        let names = [self.portals.len(), self.statements.len()];
        let size = |statement: &Statement| {
            let text = statement.text.as_ref().map_or(0, String::len);
            128 + name.len() + statement.name.len() + text
        };
        if names.iter().any(|n| *n >= MAX_NAMES) || self.held > MAX_HELD {
            self.statements.clear();
            self.portals.clear();
            self.held = 0;
        }
        let of = match prepared {
            true => &mut self.statements,
            false => &mut self.portals,
        };
        self.held += size(&statement);
        let replaced = of.insert(name.to_vec(), statement);
        self.held = self.held.saturating_sub(replaced.as_ref().map_or(0, size));
    }
}

fn named(name: &str) -> Statement {
    Statement {
        name: name.to_owned(),
        text: None,
    }
}

/// A statement that ends with a byte 0, unless it is `cut`.
fn statement(bytes: &[u8], cut: bool, plain: bool) -> Statement {
    let (query, cut) = match text(bytes) {
        Some((query, _)) => (query, false),
        None => (bytes, cut),
    };
    let mut name = digest(query, Dialect::Postgresql, cut);
    super::exchange::shorten(&mut name, 256);
    Statement {
        name,
        text: plain.then(|| printable(query)),
    }
}

fn begin(statement: Statement, ask: u8, since: Option<Moment>, all: &mut Exchanges) -> bool {
    let mut attributes = vec![("db.system.name", Value::Text("postgresql".into()))];
    if let Some(text) = statement.text {
        attributes.push(("db.query.text", Value::Text(text)));
    }
    let now = all.since;
    all.since = since.unwrap_or(now);
    let begun = all.begin(Request {
        name: statement.name,
        attributes,
        ask,
        ..Request::default()
    });
    all.since = now;
    begun
}

/// SQLSTATE and text of an ErrorResponse.
fn error(body: &[u8]) -> (String, String) {
    let (mut code, mut message) = (String::new(), String::new());
    let mut rest = body;
    while let Some((field, behind)) = rest.split_first().filter(|(field, _)| **field != 0) {
        let (value, next) = text(behind).unwrap_or((behind, b""));
        match field {
            b'C' => code = printable(value),
            b'M' => message = printable(value),
            _ => {}
        }
        rest = next;
    }
    (code, message)
}
