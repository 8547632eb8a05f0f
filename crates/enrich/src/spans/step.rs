//! Parsers of protocols, and their answers to bytes of one direction.

use super::exchange::Exchanges;
use super::fastcgi::Fastcgi;
use super::http::Http;
use super::mongodb::Mongodb;
use super::mysql::Mysql;
use super::postgresql::Postgresql;
use super::redis::Redis;

/// Bytes of the beginning of a message that a protocol may wait for.
pub(super) const MOST_BYTES: usize = 4096;

/// The answer of a parser to the bytes that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More of them are needed.
    More,
    /// So many bytes are dealt with, which may be more than are there.
    Take(u64),
    /// The same; [`Parser::passed`] is called when they have moved.
    Pass(u64),
    /// All bytes of this call, also the bytes that were not read.
    Rest,
    /// They are none of this protocol, or the beginning of the next message is not known.
    Fail,
    /// From here on the connection is none of this protocol.
    Leave,
    /// From here on the connection is encrypted, and goes on with this protocol.
    Encrypts,
}

/// Bytes of one direction that are not dealt with.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub bytes: &'a [u8],
    /// Further bytes have moved that were not read.
    pub cut: bool,
}

impl<'a> Input<'a> {
    /// The first `most` of `length` bytes, or as many as there will ever be; `None` while they are
    /// still to come.
    pub(super) fn beginning(self, length: usize, most: usize) -> Option<&'a [u8]> {
        let wanted = length.min(most);
        match self.bytes.get(..wanted) {
            Some(bytes) => Some(bytes),
            None if self.cut => Some(self.bytes),
            None => None,
        }
    }

    /// While the beginning of a message is missing.
    pub(super) fn wait(self) -> Step {
        if self.cut || self.bytes.len() >= MOST_BYTES {
            Step::Fail
        } else {
            Step::More
        }
    }
}

/// The state of a connection in one of the protocols.
#[derive(Debug)]
pub(super) enum Parser {
    Http(Http),
    Postgresql(Postgresql),
    Redis(Redis),
    Mysql(Mysql),
    Fastcgi(Fastcgi),
    Mongodb(Mongodb),
}

macro_rules! each {
    ($parser:expr, $one:ident => $do:expr) => {
        match $parser {
            Parser::Http($one) => $do,
            Parser::Postgresql($one) => $do,
            Parser::Redis($one) => $do,
            Parser::Mysql($one) => $do,
            Parser::Fastcgi($one) => $do,
            Parser::Mongodb($one) => $do,
        }
    };
}

impl Parser {
    /// Takes bytes that the client sent.
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        each!(self, one => one.request(input, all))
    }

    /// Bytes that the server sent moved.
    pub(super) fn responds(&self, all: &mut Exchanges) {
        match self {
            Parser::Mongodb(one) => one.responds(all),
            _ => all.responds(),
        }
    }

    /// Takes bytes that the server sent.
    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        each!(self, one => one.response(input, all))
    }

    /// The bytes of a [`Step::Pass`] have moved.
    pub(super) fn passed(&mut self, is_request: bool, all: &mut Exchanges) {
        match self {
            Parser::Http(http) if !is_request => http.response_passed(all),
            Parser::Redis(redis) if !is_request => redis.response_passed(all),
            Parser::Mongodb(one) if !is_request => one.response_passed(all),
            _ => {}
        }
    }

    /// The first bytes of the client come after bytes of the server; false if that makes no sense.
    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        match self {
            Parser::Http(one) => one.turns(all),
            Parser::Postgresql(one) => one.turns(all),
            Parser::Redis(one) => one.turns(all),
            Parser::Mysql(one) => one.turns(all),
            Parser::Fastcgi(one) => one.turns(all),
            Parser::Mongodb(_) => true,
        }
    }

    /// The first bytes of the server come after bytes of the client.
    pub(super) fn answers(&mut self) {
        if let Parser::Http(http) = self {
            http.answers();
        }
    }

    /// The end of the connection, or of the recording: no more bytes will come.
    pub(super) fn ends(&mut self, all: &mut Exchanges) {
        match self {
            Parser::Http(http) => drop(http.turns(all)),
            Parser::Mysql(mysql) => drop(mysql.turns(all)),
            Parser::Redis(redis) => drop(redis.turns(all)),
            Parser::Postgresql(postgresql) => postgresql.ends(all),
            Parser::Fastcgi(fastcgi) => drop(fastcgi.turns(all)),
            Parser::Mongodb(_) => {}
        }
    }

    /// Bytes were missed; the next ones begin a request.
    pub(super) fn restart(&mut self) {
        each!(self, one => one.restart());
    }

    /// Memory that it takes besides its own size, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Parser::Postgresql(one) => one.bytes(),
            Parser::Mysql(one) => one.bytes(),
            Parser::Fastcgi(one) => one.bytes(),
            _ => 0,
        }
    }
}
