//! The client/server protocol of MySQL and MariaDB.
//!
//! A client sends its next command when it has read the whole response to the one before. So a
//! response ends with the last bytes before the next command.

use fathom_model::bytes::printable;
use fathom_model::statement::{Dialect, digest};
use hashbrown::HashMap;

use super::exchange::{Exchanges, Request, Value, shorten};
use super::step::{Input, Step};

/// Bytes of a packet that are read.
const MOST: usize = 1024;
/// Prepared statements that are remembered; beyond that all are forgotten.
const MAX_NAMES: usize = 256;
const HEADER: usize = 4;

/// Of the client's flags.
const COMPRESS: u32 = 1 << 5;
const ENCRYPT: u32 = 1 << 11;
const QUERY_ATTRIBUTES: u32 = 1 << 27;

/// Commands: their names, and whether they have a response.
const COMMANDS: [(u8, &str, bool); 20] = [
    (1, "QUIT", false),
    (2, "USE", true),
    (3, "QUERY", true),
    (4, "FIELD LIST", true),
    (7, "REFRESH", true),
    (8, "SHUTDOWN", true),
    (9, "STATISTICS", true),
    (10, "PROCESS INFO", true),
    (12, "PROCESS KILL", true),
    (13, "DEBUG", true),
    (14, "PING", true),
    (17, "CHANGE USER", true),
    (22, "PREPARE", true),
    (23, "EXECUTE", true),
    (24, "SEND LONG DATA", false),
    (25, "CLOSE STATEMENT", false),
    (26, "RESET STATEMENT", true),
    (27, "SET OPTION", true),
    (28, "FETCH", true),
    (31, "RESET CONNECTION", true),
];
const QUERY: u8 = 3;
const PREPARE: u8 = 22;
const EXECUTE: u8 = 23;
const CLOSE: u8 = 25;

#[derive(Debug, Default)]
pub(super) struct Mysql {
    /// The client has logged in, as far as it sends commands.
    greets: bool,
    /// It has asked for encryption before.
    encrypted: bool,
    attributes: bool,
    statements: HashMap<u32, String>,
    /// The statement that is being prepared.
    prepares: Option<String>,
    /// Responses from here on are not read any more.
    blind: bool,
}

fn length_of(bytes: &[u8]) -> Option<(usize, u8)> {
    match bytes {
        [a, b, c, number, ..] => Some((u32::from_le_bytes([*a, *b, *c, 0]) as usize, *number)),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// Whether these bytes are the greeting of a server; `None` while there are too few of them.
pub(super) fn greets(bytes: &[u8]) -> Option<bool> {
    let Some((length, number)) = length_of(bytes) else {
        return if bytes.is_empty() { None } else { Some(false) };
    };
    if number != 0 || !(40..1024).contains(&length) {
        return Some(false);
    }
    match bytes.get(HEADER..) {
        Some([]) | None => None,
        Some([10, version @ ..]) => match version.iter().position(|b| *b == 0) {
            Some(end) => Some(end > 2 && version.iter().take(end).all(|b| b.is_ascii_graphic())),
            None if bytes.len() < HEADER + length => None,
            None => Some(false),
        },
        Some(_) => Some(false),
    }
}

/// Whether these bytes are a whole query in the middle of a connection.
pub(super) fn begins(bytes: &[u8]) -> Option<Mysql> {
    let (length, number) = length_of(bytes)?;
    let body = bytes.get(HEADER..)?;
    let query = body.strip_prefix(&[QUERY])?;
    let word = query.iter().take(3).all(u8::is_ascii_alphabetic);
    let sound = number == 0 && body.len() == length && query.len() > 3 && word;
    sound.then(Mysql::default)
}

impl Mysql {
    /// A connection that begins.
    pub(super) fn new() -> Self {
        Self {
            greets: true,
            ..Self::default()
        }
    }

    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        let Some((length, number)) = length_of(input.bytes) else {
            return input.wait();
        };
        let whole = length + HEADER;
        let Some(bytes) = input.beginning(whole, MOST) else {
            return Step::More;
        };
        let body = bytes.get(HEADER..).unwrap_or_default();
        if self.greets {
            let flags = u32_at(body, 0).unwrap_or(0);
            if number != 1 + u8::from(self.encrypted) || flags & COMPRESS != 0 {
                return Step::Leave;
            }
            if flags & ENCRYPT != 0 && length <= 36 {
                self.encrypted = true;
                return Step::Encrypts;
            }
            self.attributes = flags & QUERY_ATTRIBUTES != 0;
            self.greets = false;
            return Step::Take(whole as u64);
        }
        // A packet with another number goes on with a command, or with the login.
        if number != 0 {
            return Step::Take(whole as u64);
        }
        let Some((command, rest)) = body.split_first() else {
            return Step::Fail;
        };
        let known = COMMANDS.iter().find(|(number, ..)| number == command);
        let Some((_, name, responds)) = known else {
            // Replication, or something newer.
            return Step::Leave;
        };
        if *command == CLOSE {
            let id = u32_at(rest, 0);
            id.and_then(|id| self.statements.remove(&id));
        }
        if !responds {
            return Step::Take(whole as u64);
        }
        // The client did not wait.
        if all.waiting() > 0 {
            return Step::Fail;
        }
        let cut = bytes.len() < whole;
        let mut attributes = vec![("db.system.name", Value::Text("mysql".into()))];
        let mut name = (*name).to_owned();
        self.prepares = None;
        match *command {
            QUERY | PREPARE => {
                if let Some(text) = self.text(*command, rest) {
                    let statement = digest(text, Dialect::Mysql, cut);
                    name = match *command {
                        QUERY => statement,
                        _ => {
                            let mut kept = statement.clone();
                            shorten(&mut kept, 256);
                            self.prepares = Some(kept);
                            format!("PREPARE {statement}")
                        }
                    };
                    if all.plain {
                        attributes.push(("db.query.text", Value::Text(printable(text))));
                    }
                }
            }
            EXECUTE => {
                let statement = u32_at(rest, 0).and_then(|id| self.statements.get(&id));
                name = statement.cloned().unwrap_or(name);
            }
            _ => {}
        }
        let begun = all.begin(Request {
            name,
            attributes,
            ask: *command,
            ..Request::default()
        });
        self.blind = false;
        if begun {
            Step::Take(whole as u64)
        } else {
            Step::Fail
        }
    }

    /// The text of a statement; `None` where parameters come before it.
    fn text<'a>(&self, command: u8, rest: &'a [u8]) -> Option<&'a [u8]> {
        if command == QUERY && self.attributes {
            return rest.strip_prefix(&[0, 1]);
        }
        Some(rest)
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.blind {
            return Step::Rest;
        }
        let Some((length, number)) = length_of(input.bytes) else {
            return self.unseen(input, all);
        };
        let whole = length + HEADER;
        let Some(bytes) = input.beginning(whole, HEADER + 64) else {
            return Step::More;
        };
        let body = bytes.get(HEADER..).unwrap_or_default();
        let Some(first) = all.first() else {
            return Step::Take(whole as u64);
        };
        match body {
            // No row and no other packet begins with this byte.
            [0xff, low, high, rest @ ..] if number > 0 => {
                let code = u16::from_le_bytes([*low, *high]);
                let text = match rest {
                    [b'#', _, _, _, _, _, text @ ..] => text,
                    _ => rest,
                };
                first.error = Some((code.to_string(), printable(text)));
            }
            [0, id @ ..] if first.request.ask == PREPARE && number == 1 => {
                if let (Some(id), Some(statement)) = (u32_at(id, 0), self.prepares.take()) {
                    if self.statements.len() >= MAX_NAMES {
                        self.statements.clear();
                    }
                    self.statements.insert(id, statement);
                }
            }
            _ => {}
        }
        Step::Take(whole as u64)
    }

    /// Where the next packet begins is not known, but the response still ends before the next
    /// command.
    fn unseen(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if !input.cut {
            return Step::More;
        }
        if all.waiting() != 1 {
            return Step::Fail;
        }
        self.blind = true;
        Step::Rest
    }

    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        self.blind = false;
        if all.first().is_some_and(|first| first.responded.is_some()) {
            all.end();
        }
        true
    }

    pub(super) fn restart(&mut self) {
        (self.greets, self.blind, self.prepares) = (false, false, None);
    }

    pub(super) fn bytes(&self) -> usize {
        self.statements.values().map(|name| 64 + name.len()).sum()
    }
}
