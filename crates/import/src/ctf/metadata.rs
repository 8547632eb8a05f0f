//! The metadata of a trace: clocks, streams, events, from the words of TSDL.

mod type_parser;

use std::collections::HashMap;
use std::rc::Rc;

use super::lexer::{Word, words};
use super::types::{Field, Type};

/// How deep types and blocks may lie in one another.
const DEPTH: u32 = 48;
/// Largest alignment, in bits.
const MAX_ALIGN: i128 = 4096 * 8;

#[derive(Debug, Clone)]
pub(super) struct Clock {
    pub frequency: u64,
    pub offset_s: i64,
    pub offset: i64,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub packet_context: Option<Rc<Type>>,
    pub event_header: Option<Rc<Type>>,
    pub event_context: Option<Rc<Type>>,
    /// The clock of its events.
    pub clock: Option<Rc<str>>,
}

#[derive(Debug)]
pub(super) struct Event {
    pub name: Rc<str>,
    pub context: Option<Rc<Type>>,
    pub fields: Option<Rc<Type>>,
}

/// A parsed metadata text.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub little_endian: bool,
    pub packet_header: Option<Rc<Type>>,
    pub environment: HashMap<String, String>,
    pub clocks: HashMap<String, Clock>,
    pub streams: HashMap<u64, Stream>,
    /// By stream class and id.
    pub events: HashMap<(u64, u64), Event>,
}

/// Parses the text.
pub(super) fn parse(text: &[u8]) -> Result<Metadata, String> {
    let mut parser = Parser {
        words: words(text)?,
        at: 0,
        scopes: vec![HashMap::new()],
        depth: 0,
        metadata: Metadata {
            little_endian: true,
            ..Metadata::default()
        },
    };
    while parser.at < parser.words.len() {
        parser.top()?;
    }
    Ok(parser.metadata)
}

type Parsed<T> = Result<T, String>;

struct Parser {
    words: Vec<Word>,
    at: usize,
    /// Types by name; `struct x` and its like with the keyword.
    scopes: Vec<HashMap<String, Rc<Type>>>,
    depth: u32,
    metadata: Metadata,
}

/// An assignment of a block.
enum Entry {
    Value(String, Word),
    Type(String, Rc<Type>),
}

impl Parser {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at)
    }

    fn next(&mut self) -> Parsed<Word> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word.ok_or_else(|| "it ends too early".to_owned())
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Word::Sign(s)) if *s == sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Word::Name(n)) if n == name)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(format!("{sign:?} expected, not {:?}", self.peek())),
        }
    }

    fn name(&mut self) -> Parsed<String> {
        match self.next()? {
            Word::Name(name) => Ok(name),
            other => Err(format!("a name expected, not {other:?}")),
        }
    }

    fn integer(&mut self) -> Parsed<i128> {
        let minus = self.take("-");
        self.take("+");
        match self.next()? {
            Word::Number(n) => Ok(if minus { -n } else { n }),
            other => Err(format!("a number expected, not {other:?}")),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("its types lie too deep in one another".into());
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn top(&mut self) -> Parsed<()> {
        if self.take(";") {
            return Ok(());
        }
        let block = match self.peek() {
            Some(Word::Name(name)) => name.clone(),
            other => return Err(format!("a block expected, not {other:?}")),
        };
        let brace = self.words.get(self.at + 1) == Some(&Word::Sign("{"));
        match block.as_str() {
            "trace" | "env" | "clock" | "stream" | "event" | "callsite" if brace => {
                self.at += 1;
                let entries = self.block()?;
                self.take(";");
                self.declared(&block, entries)
            }
            _ => self.declaration(),
        }
    }

    /// `typealias`, `typedef`, or a type with a name.
    fn declaration(&mut self) -> Parsed<()> {
        if self.is_name("typealias") {
            self.at += 1;
            let of = self.specifier()?;
            self.expect(":=")?;
            let mut name = String::new();
            while !self.is(";") {
                match self.next()? {
                    Word::Name(word) => {
                        if !name.is_empty() {
                            name.push(' ');
                        }
                        name.push_str(&word);
                    }
                    Word::Sign("*") => name.push_str(" *"),
                    other => return Err(format!("a type's name expected, not {other:?}")),
                }
            }
            self.define(name, of);
        } else if self.is_name("typedef") {
            self.at += 1;
            let of = self.specifier()?;
            loop {
                let field = self.declarator(of.clone())?;
                self.define(field.name.to_string(), field.of);
                if !self.take(",") {
                    break;
                }
            }
        } else {
            self.specifier()?;
        }
        self.expect(";")
    }

    fn define(&mut self, name: String, of: Rc<Type>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, of);
        }
    }

    fn find(&self, name: &str) -> Option<Rc<Type>> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).cloned()
    }

    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push(HashMap::new());
        let result = self.deeper(parse);
        self.scopes.pop();
        result
    }

    /// `{ name = value; name.name := type; ... }`
    fn block(&mut self) -> Parsed<Vec<Entry>> {
        self.scoped(|p| {
            p.expect("{")?;
            let mut entries = Vec::new();
            while !p.take("}") {
                if p.take(";") {
                    continue;
                }
                if p.is_name("typealias") || p.is_name("typedef") {
                    p.declaration()?;
                    continue;
                }
                if ["struct", "variant", "enum"]
                    .iter()
                    .any(|word| p.is_name(word))
                {
                    p.declaration()?;
                    continue;
                }
                let mut name = p.name()?;
                while p.take(".") {
                    name.push('.');
                    name.push_str(&p.name()?);
                }
                if p.take(":=") {
                    entries.push(Entry::Type(name, p.specifier()?));
                } else {
                    p.expect("=")?;
                    entries.push(Entry::Value(name, p.value()?));
                }
                p.expect(";")?;
            }
            Ok(entries)
        })
    }

    /// A number, a text, or names with dots.
    fn value(&mut self) -> Parsed<Word> {
        Ok(match self.peek() {
            Some(Word::Sign("-" | "+") | Word::Number(_)) => Word::Number(self.integer()?),
            Some(Word::Text(_)) => self.next()?,
            _ => {
                let mut name = self.name()?;
                while self.take(".") {
                    name.push('.');
                    name.push_str(&self.name()?);
                }
                Word::Name(name)
            }
        })
    }

    fn declared(&mut self, block: &str, entries: Vec<Entry>) -> Parsed<()> {
        let number = |name: &str| {
            entries.iter().find_map(|entry| match entry {
                Entry::Value(n, Word::Number(number)) if n == name => Some(*number),
                _ => None,
            })
        };
        let text = |name: &str| {
            entries.iter().find_map(|entry| match entry {
                Entry::Value(n, Word::Text(text)) if n == name => {
                    Some(String::from_utf8_lossy(text).into_owned())
                }
                Entry::Value(n, Word::Name(text)) if n == name => Some(text.clone()),
                _ => None,
            })
        };
        let kind = |name: &str| {
            entries.iter().find_map(|entry| match entry {
                Entry::Type(n, of) if n == name => Some(of.clone()),
                _ => None,
            })
        };
        let unsigned = |name: &str| number(name).and_then(|n| u64::try_from(n).ok());
        match block {
            "trace" => {
                match text("byte_order").as_deref() {
                    Some("be" | "network") => self.metadata.little_endian = false,
                    Some("le") | None => self.metadata.little_endian = true,
                    Some(other) => return Err(format!("unknown byte order {other:?}")),
                }
                if number("major").is_some_and(|major| major != 1) {
                    return Err("it is not CTF 1".into());
                }
                self.metadata.packet_header = kind("packet.header");
            }
            "env" => {
                for entry in &entries {
                    let Entry::Value(name, value) = entry else {
                        continue;
                    };
                    let value = match value {
                        Word::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        Word::Number(number) => number.to_string(),
                        _ => continue,
                    };
                    self.metadata.environment.insert(name.clone(), value);
                }
            }
            "clock" => {
                let name = text("name").ok_or("a clock without a name")?;
                let long = |name| {
                    number(name)
                        .and_then(|n| i64::try_from(n).ok())
                        .unwrap_or(0)
                };
                let clock = Clock {
                    frequency: unsigned("freq").unwrap_or(1_000_000_000).max(1),
                    offset_s: long("offset_s"),
                    offset: long("offset"),
                };
                self.metadata.clocks.insert(name, clock);
            }
            "stream" => {
                let header = kind("event.header");
                let stream = Stream {
                    clock: header.as_deref().and_then(clock_of),
                    packet_context: kind("packet.context"),
                    event_header: header,
                    event_context: kind("event.context"),
                };
                self.metadata
                    .streams
                    .insert(unsigned("id").unwrap_or(0), stream);
            }
            "event" => {
                let event = Event {
                    name: text("name").unwrap_or_default().into(),
                    context: kind("context"),
                    fields: kind("fields"),
                };
                let key = (
                    unsigned("stream_id").unwrap_or(0),
                    unsigned("id").unwrap_or(0),
                );
                self.metadata.events.insert(key, event);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The clock that integers of a header set. Headers are shallow, and others are not searched.
fn clock_of(kind: &Type) -> Option<Rc<str>> {
    match kind {
        Type::Int(int) | Type::Enum { of: int, .. } => int.clock.clone(),
        Type::Struct { fields: inner, .. } | Type::Variant { options: inner, .. } => inner
            .iter()
            .take(16)
            .filter(|field| field.of.nesting() < 4)
            .find_map(|field| clock_of(&field.of)),
        _ => None,
    }
}

fn within(nesting: u32) -> Parsed<u32> {
    match nesting {
        0..=DEPTH => Ok(nesting),
        _ => Err("its types lie too deep in one another".into()),
    }
}

fn nesting(fields: &[Field]) -> Parsed<u32> {
    within(
        fields
            .iter()
            .map(|field| field.of.nesting() + 1)
            .max()
            .unwrap_or(1),
    )
}

fn alignment(bits: i128) -> Parsed<u64> {
    match u64::try_from(bits) {
        Ok(align) if align.is_power_of_two() && bits <= MAX_ALIGN => Ok(align),
        _ => Err(format!("an alignment of {bits} bits")),
    }
}

fn truth(value: &Word) -> bool {
    match value {
        Word::Number(n) => *n != 0,
        Word::Name(name) => matches!(name.as_str(), "true" | "TRUE"),
        _ => false,
    }
}

fn endian(order: &str) -> Option<bool> {
    match order {
        "le" => Some(true),
        "be" | "network" => Some(false),
        _ => None,
    }
}
