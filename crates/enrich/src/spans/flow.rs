//! The two directions of a connection.

use fathom_model::protocols::{Protocol, Protocols};

use super::StreamEnd;
use super::exchange::{Exchanges, Moment};
use super::fastcgi::Fastcgi;
use super::http::Http;
use super::mongodb::Mongodb;
use super::mysql::Mysql;
use super::redis::Redis;
use super::step::{Input, MOST_BYTES, Parser, Step};
use super::{fastcgi, http, mongodb, mysql, postgresql, redis};

/// Calls of a connection that was there before the recording, in which a request is looked for.
const TRIES: u32 = 16;

/// How a connection without requests was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Unrecognized,
    Encrypted,
}

/// The protocol in an encrypted connection.
#[derive(Debug)]
pub(super) struct Inside {
    protocol: Protocol,
    parser: Parser,
    serves: bool,
}

/// Bytes that a call moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved<'a> {
    /// The process received them.
    pub is_in: bool,
    /// The first ones.
    pub seen: &'a [u8],
    /// How many there are.
    pub total: u64,
    /// Their place in the stream, if it is known.
    pub offset: Option<u64>,
}

#[derive(Debug, Default)]
enum State {
    /// The protocol is not known yet.
    #[default]
    New,
    Known(Protocol, Parser),
    /// None of the protocols that are looked for.
    Ignored,
}

#[derive(Debug, Default)]
struct Direction {
    /// The beginning of a message that is not whole.
    buffer: Vec<u8>,
    /// The call with its first byte.
    since: Moment,
    /// Bytes that are still to come and are not read.
    skip: u64,
    /// The parser waits for the end of the skipped bytes.
    pass: bool,
    /// Where the next bytes are in the stream, if that is known.
    next: Option<u64>,
}

/// A connection, as one of its ends sees it.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Inode of the socket.
    pub ino: u64,
    /// The process that used it last, and when.
    pub pid: u32,
    pub last_ns: u64,
    pub all: Exchanges,
    /// The end of the connection, as the kernel described it.
    pub end: Option<StreamEnd>,
    /// Connections that were given up, connections that are encrypted, times that bytes were missing.
    pub unrecognized: u64,
    pub encrypted: u64,
    pub gaps: u64,
    /// Bytes that a TLS library has received and sent, of a connection that was seen from its beginning.
    pub plain: Option<[u64; 2]>,
    /// How it was counted.
    pub counted: Option<Counted>,
    /// The protocol of the bytes that are encrypted from here on.
    inside: Option<Inside>,
    state: State,
    tries: u32,
    /// Requests are received, not sent.
    serves: bool,
    received: Direction,
    sent: Direction,
    /// The direction of the latest bytes.
    last_in: Option<bool>,
    /// Bytes are missing; the next request is waited for.
    lost: bool,
}

impl Flow {
    pub(super) fn new(ino: u64, plain: bool) -> Self {
        Self {
            ino,
            all: Exchanges::new(plain),
            ..Self::default()
        }
    }

    /// Whether the process answers requests.
    pub(super) fn serves(&self) -> bool {
        self.serves
    }

    /// Memory that it takes besides its own size, about.
    pub(super) fn bytes(&self) -> usize {
        let parser = match &self.state {
            State::Known(_, parser) => parser.bytes(),
            _ => 0,
        };
        self.received.buffer.capacity() + self.sent.buffer.capacity() + self.all.bytes() + parser
    }

    /// Takes what a call moved.
    pub(super) fn moved(&mut self, moved: &Moved<'_>, now: Moment, protocols: Protocols) {
        (self.pid, self.last_ns) = (now.pid, now.at_ns);
        self.all.now = now;
        let direction = self.direction(moved.is_in);
        let missing = match (direction.next, moved.offset) {
            (Some(next), Some(offset)) if next != offset => Some(offset.checked_sub(next)),
            _ => None,
        };
        direction.next = moved
            .offset
            .map(|offset| offset.saturating_add(moved.total));
        if let Some(missing) = missing {
            self.missing(moved.is_in, missing);
        }
        match self.state {
            State::Ignored => {}
            State::New => self.find(moved, protocols),
            State::Known(..) => self.go_on(moved),
        }
        self.last_in = Some(moved.is_in);
    }

    /// The connection is closed, or the recording ends.
    pub(super) fn ends(&mut self) {
        match &mut self.state {
            State::Known(_, parser) if !self.lost => parser.ends(&mut self.all),
            State::New if self.last_in.is_some() => {
                self.unrecognized += 1;
                self.counted = Some(Counted::Unrecognized);
            }
            _ => {}
        }
        self.all.give_up();
        self.state = State::Ignored;
    }

    /// A library encrypts the bytes that follow, and gives them before it does: nothing more is
    /// looked for here. Returns the protocol that they are of, if it is known.
    pub(super) fn give_over(&mut self) -> Option<Inside> {
        self.state = State::Ignored;
        self.all.give_up();
        self.clear();
        self.inside.take()
    }

    /// Its protocol was found before the bytes were encrypted.
    pub(super) fn take_over(&mut self, inside: Inside) {
        if let State::New = self.state {
            self.serves = inside.serves;
            self.state = State::Known(inside.protocol, inside.parser);
        }
    }

    /// Records of this connection may be missing.
    pub(super) fn missed(&mut self) {
        self.plain = None;
        if matches!(self.state, State::Known(..)) && !self.lost {
            self.lose();
        }
        (self.received.next, self.sent.next) = (None, None);
    }

    /// Records were lost, maybe of this connection.
    pub(super) fn doubt(&mut self) {
        let known = self.received.next.is_some() && self.sent.next.is_some();
        if matches!(self.state, State::Known(..)) && !known && !self.lost {
            self.lose();
        }
    }

    /// Nothing more is looked for.
    pub(super) fn ignore(&mut self) {
        self.unrecognized += 1;
        self.counted = Some(Counted::Unrecognized);
        self.state = State::Ignored;
        self.all.give_up();
        self.clear();
    }

    /// Its bytes are encrypted from here on.
    fn encrypts(&mut self) {
        self.encrypted += 1;
        self.counted = Some(Counted::Encrypted);
        let state = std::mem::replace(&mut self.state, State::Ignored);
        if let State::Known(protocol, parser) = state {
            self.inside = Some(Inside {
                protocol,
                parser,
                serves: self.serves,
            });
        }
        self.all.give_up();
        self.clear();
    }

    fn direction(&mut self, is_in: bool) -> &mut Direction {
        match is_in {
            true => &mut self.received,
            false => &mut self.sent,
        }
    }

    fn clear(&mut self) {
        for direction in [&mut self.received, &mut self.sent] {
            direction.buffer = Vec::new();
            (direction.skip, direction.pass) = (0, false);
        }
    }

    /// Which response belongs to which request is not known until a request comes that follows a
    /// response.
    fn lose(&mut self) {
        self.gaps += 1;
        self.lost = true;
        self.all.give_up();
        self.clear();
    }

    /// Bytes before the present ones were not recorded: so many, if that is known.
    fn missing(&mut self, is_in: bool, bytes: Option<u64>) {
        if !matches!(self.state, State::Known(..)) {
            return;
        }
        let lost = self.lost;
        let direction = self.direction(is_in);
        match bytes {
            Some(bytes) if !lost && bytes < direction.skip => direction.skip -= bytes,
            _ => {
                if !lost {
                    self.lose();
                }
                // The present bytes may be in the middle of anything, or the missing ones a
                // request whose response is still to come.
                self.last_in = Some(self.serves);
            }
        }
    }

    /// Looks for the beginning of a protocol.
    fn find(&mut self, moved: &Moved<'_>, protocols: Protocols) {
        if moved.seen.is_empty() {
            return;
        }
        let other = match moved.is_in {
            true => &mut self.sent,
            false => &mut self.received,
        };
        other.buffer = Vec::new();
        let now = self.all.now;
        let direction = self.direction(moved.is_in);
        if direction.buffer.is_empty() {
            direction.since = now;
        }
        direction.buffer.extend_from_slice(moved.seen);
        let cut = moved.total > moved.seen.len() as u64;
        let wait = !cut && direction.buffer.len() < MOST_BYTES;
        match detect(&direction.buffer) {
            Some(Found {
                protocol,
                parser,
                asks,
            }) if protocols.has(protocol) => {
                self.serves = moved.is_in == asks;
                self.state = State::Known(protocol, parser);
                let unseen = moved.total.saturating_sub(moved.seen.len() as u64);
                self.run(moved.is_in, unseen);
            }
            None if is_tls(&direction.buffer) => self.encrypts(),
            None if wait => {}
            None if self.tries < TRIES => {
                self.tries += 1;
                self.clear();
            }
            _ => self.ignore(),
        }
    }

    fn go_on(&mut self, moved: &Moved<'_>) {
        let is_request = moved.is_in == self.serves;
        let turns = self.last_in.is_some_and(|last| last != moved.is_in);
        let State::Known(protocol, parser) = &mut self.state else {
            return;
        };
        if self.lost {
            let begins = is_request && turns && begins(*protocol, moved.seen);
            if !begins {
                return;
            }
            self.lost = false;
            parser.restart();
        } else if turns && is_request {
            if !parser.turns(&mut self.all) {
                return self.lose();
            }
        } else if turns {
            parser.answers();
        }
        let now = self.all.now;
        let (mut seen, mut total) = (moved.seen, moved.total);
        let direction = self.direction(moved.is_in);
        let skipped = direction.skip.min(total);
        if skipped > 0 {
            direction.skip -= skipped;
            total -= skipped;
            seen = usize::try_from(skipped)
                .ok()
                .and_then(|n| seen.get(n..))
                .unwrap_or_default();
            let passed = direction.skip == 0 && std::mem::take(&mut direction.pass);
            if let State::Known(_, parser) = &mut self.state {
                if !is_request {
                    parser.responds(&mut self.all);
                }
                if passed {
                    parser.passed(is_request, &mut self.all);
                }
            }
        }
        let direction = self.direction(moved.is_in);
        if direction.buffer.is_empty() {
            direction.since = now;
        }
        direction.buffer.extend_from_slice(seen);
        self.run(moved.is_in, total.saturating_sub(seen.len() as u64));
    }

    /// Parses the bytes in the buffer of a direction, behind which `unseen` further ones moved.
    fn run(&mut self, is_in: bool, mut unseen: u64) {
        let is_request = is_in == self.serves;
        let direction = match is_in {
            true => &mut self.received,
            false => &mut self.sent,
        };
        let State::Known(_, parser) = &mut self.state else {
            return;
        };
        let all = &mut self.all;
        let next = direction.next;
        let (mut at, mut idle) = (0, 0);
        let end = loop {
            let bytes = direction.buffer.get(at..).unwrap_or_default();
            if bytes.is_empty() && unseen == 0 {
                break End::Dealt;
            }
            let input = Input {
                bytes,
                cut: unseen > 0,
            };
            all.since = direction.since;
            all.place =
                next.and_then(|next| next.checked_sub(unseen)?.checked_sub(bytes.len() as u64));
            let step = match is_request {
                true => parser.request(input, all),
                false => {
                    parser.responds(all);
                    parser.response(input, all)
                }
            };
            let (taken, passes) = match step {
                Step::More if unseen > 0 => break End::Lost,
                Step::More => break End::Dealt,
                Step::Take(bytes) => (bytes, false),
                Step::Pass(bytes) => (bytes, true),
                Step::Rest => {
                    at = direction.buffer.len();
                    break End::Dealt;
                }
                Step::Fail => break End::Lost,
                Step::Leave => break End::Left,
                Step::Encrypts => break End::Encrypted,
            };
            // A parser that takes nothing has gone on to another part, as a rule.
            idle = if taken == 0 { idle + 1 } else { 0 };
            if idle > 4 {
                break End::Lost;
            }
            let there = bytes.len() as u64;
            let behind = taken.saturating_sub(there);
            at += taken.min(there) as usize;
            let skipped = behind.min(unseen);
            unseen -= skipped;
            direction.skip = behind - skipped;
            direction.since = all.now;
            match (passes, direction.skip) {
                (true, 0) => parser.passed(is_request, all),
                (passes, _) => direction.pass = passes,
            }
        };
        direction.buffer.drain(..at.min(direction.buffer.len()));
        if direction.buffer.is_empty() {
            direction.buffer = Vec::new();
        }
        match end {
            End::Dealt => {}
            End::Lost => self.lose(),
            End::Left => self.ignore(),
            End::Encrypted => self.encrypts(),
        }
    }
}

enum End {
    Dealt,
    Lost,
    Left,
    Encrypted,
}

/// Whether a record of TLS begins with these bytes.
fn is_tls(bytes: &[u8]) -> bool {
    /// Change of ciphers, alert, handshake, and data.
    const KINDS: std::ops::RangeInclusive<u8> = 20..=23;
    const MOST: u16 = (1 << 14) + 2048;
    let [kind, 3, minor, high, low, ..] = bytes else {
        return false;
    };
    let length = u16::from_be_bytes([*high, *low]);
    KINDS.contains(kind) && *minor <= 4 && (1..=MOST).contains(&length)
}

/// A protocol that was recognized.
struct Found {
    protocol: Protocol,
    parser: Parser,
    /// By bytes of the client.
    asks: bool,
}

/// The protocol that begins with these bytes, if any does so far.
fn detect(bytes: &[u8]) -> Option<Found> {
    let asks = |protocol, parser| {
        Some(Found {
            protocol,
            parser,
            asks: true,
        })
    };
    if http::begins(bytes) == Some(true) {
        return asks(Protocol::Http, Parser::Http(Http::default()));
    }
    if fastcgi::begins(bytes) == Some(true) {
        return asks(Protocol::Fastcgi, Parser::Fastcgi(Fastcgi::default()));
    }
    if redis::begins(bytes) == Some(true) {
        return asks(Protocol::Redis, Parser::Redis(Redis::default()));
    }
    if let Some(parser) = postgresql::begins(bytes) {
        return asks(Protocol::Postgresql, Parser::Postgresql(parser));
    }
    if let Some(parser) = mysql::begins(bytes) {
        return asks(Protocol::Mysql, Parser::Mysql(parser));
    }
    if mongodb::begins(bytes) {
        return asks(Protocol::Mongodb, Parser::Mongodb(Mongodb::default()));
    }
    (mysql::greets(bytes) == Some(true)).then(|| Found {
        protocol: Protocol::Mysql,
        parser: Parser::Mysql(Mysql::new()),
        asks: false,
    })
}

/// Whether these bytes of a client begin a request.
fn begins(protocol: Protocol, bytes: &[u8]) -> bool {
    match protocol {
        Protocol::Http => http::begins(bytes) == Some(true),
        Protocol::Postgresql => postgresql::begins(bytes).is_some(),
        Protocol::Redis => redis::begins(bytes) == Some(true),
        Protocol::Mysql => mysql::begins(bytes).is_some(),
        Protocol::Fastcgi => fastcgi::begins(bytes) == Some(true),
        Protocol::Mongodb => mongodb::begins(bytes),
    }
}
