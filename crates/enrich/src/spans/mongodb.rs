//! The wire protocol of MongoDB: OP_MSG, and OP_QUERY with OP_REPLY as far as they are in use.
//!
//! A response names its request (`responseTo`), so responses may come in any order. A response of which
//! the server sends more than one (exhaust) ends with the first.

use fathom_model::bytes::printable;

use super::bson::{self, Text, Value, elements};
use super::exchange::{Exchanges, Request, Value as Attribute};
use super::step::{Input, Step};

const HEADER: usize = 16;
/// Bytes of a message that are read.
const MOST: usize = 4096;
/// Bytes of the largest message that servers take.
const MAX_MESSAGE: usize = 48_000_000 + (16 << 10);
/// Bytes of a filter's text; names are shorter.
const MAX_SHAPE: usize = 256;
/// Bytes of a command's name, and of the names of a database and collection.
const MAX_WORD: usize = 64;
const MAX_NAMESPACE: usize = 255;

// Operations.
const REPLY: i32 = 1;
const UPDATE: i32 = 2001;
const INSERT: i32 = 2002;
const QUERY: i32 = 2004;
const GET_MORE: i32 = 2005;
const DELETE: i32 = 2006;
const KILL_CURSORS: i32 = 2007;
const COMPRESSED: i32 = 2012;
const MSG: i32 = 2013;

// Flags of OP_MSG.
const CHECKSUM: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST: u32 = 1 << 16;

/// Commands that name a collection, and the field with their filter, or with the statements that have one.
const COMMANDS: [(&[u8], Filter); 26] = [
    (b"find", Filter::Field(b"filter")),
    (b"aggregate", Filter::Field(b"pipeline")),
    (b"count", Filter::Field(b"query")),
    (b"distinct", Filter::Field(b"query")),
    (b"findAndModify", Filter::Field(b"query")),
    (b"findandmodify", Filter::Field(b"query")),
    (b"mapReduce", Filter::Field(b"query")),
    (b"update", Filter::Statements(b"updates")),
    (b"delete", Filter::Statements(b"deletes")),
    (b"insert", Filter::None),
    (b"create", Filter::None),
    (b"drop", Filter::None),
    (b"createIndexes", Filter::None),
    (b"dropIndexes", Filter::None),
    (b"deleteIndexes", Filter::None),
    (b"listIndexes", Filter::None),
    (b"reIndex", Filter::None),
    (b"collMod", Filter::None),
    (b"collStats", Filter::None),
    (b"collstats", Filter::None),
    (b"compact", Filter::None),
    (b"validate", Filter::None),
    (b"killCursors", Filter::None),
    (b"cloneCollectionAsCapped", Filter::None),
    (b"convertToCapped", Filter::None),
    (b"planCacheClear", Filter::None),
];

/// Commands whose fields contain secrets: their text is never kept.
const SECRET: [&[u8]; 12] = [
    b"saslStart",
    b"saslContinue",
    b"authenticate",
    b"getnonce",
    b"createUser",
    b"updateUser",
    b"copydb",
    b"copydbgetnonce",
    b"copydbsaslstart",
    b"hello",
    b"isMaster",
    b"ismaster",
];

/// Fields that drivers add to every command.
const ADDED: [&[u8]; 3] = [b"lsid", b"$clusterTime", b"$db"];

#[derive(Clone, Copy)]
enum Filter {
    None,
    Field(&'static [u8]),
    /// Statements with a filter in their field `q`, in an array or a section of documents.
    Statements(&'static [u8]),
}

#[derive(Debug, Default)]
pub(super) struct Mongodb {
    /// The present response answers a request.
    answers: bool,
}

/// The header of a message.
#[derive(Clone, Copy)]
struct Header {
    /// Bytes of the message, with the header.
    length: usize,
    id: i32,
    response_to: i32,
    operation: i32,
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(i32::from_le_bytes)
}

fn header(bytes: &[u8]) -> Option<Header> {
    let word = |at| i32_at(bytes, at);
    Some(Header {
        length: usize::try_from(word(0)?).unwrap_or(0),
        id: word(4)?,
        response_to: word(8)?,
        operation: word(12)?,
    })
}

impl Header {
    fn is_sound(&self) -> bool {
        (HEADER..=MAX_MESSAGE).contains(&self.length)
    }
}

fn flags(body: &[u8]) -> Option<u32> {
    i32_at(body, 0).map(i32::cast_unsigned)
}

/// Whether these bytes begin a request.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let Some(header) = header(bytes).filter(|h| h.is_sound() && h.response_to == 0) else {
        return false;
    };
    let body = bytes.get(HEADER..).unwrap_or_default();
    let known = CHECKSUM | MORE_TO_COME | EXHAUST;
    let begins_document = |bytes: &[u8]| {
        bson::length(bytes).is_some_and(|length| length <= header.length)
            && bytes.get(4).is_some_and(|kind| *kind == 2 || *kind < 0x14)
    };
    match header.operation {
        MSG => {
            let section = body.get(4..).unwrap_or_default();
            flags(body).is_some_and(|flags| flags & !known == 0)
                && match section.split_first() {
                    Some((0, document)) => begins_document(document),
                    Some((1, rest)) => bson::length(rest).is_some_and(|n| n < header.length),
                    _ => false,
                }
        }
        QUERY => body
            .get(4..)
            .and_then(bson::text)
            .is_some_and(|(name, rest)| {
                name.contains(&b'.') && begins_document(rest.get(8..).unwrap_or_default())
            }),
        COMPRESSED => {
            let inside = i32_at(body, 0);
            let method = body.get(8);
            matches!(inside, Some(MSG | QUERY)) && method.is_some_and(|method| *method < 4)
        }
        _ => false,
    }
}

/// A part of a message of OP_MSG.
struct Sections<'a> {
    /// The command, or the response.
    body: Option<&'a [u8]>,
    /// Documents that belong to a field of the command, behind the name of the field.
    documents: Option<(&'a [u8], &'a [u8])>,
}

/// The parts that are there.
fn sections(mut bytes: &[u8]) -> Sections<'_> {
    let mut all = Sections {
        body: None,
        documents: None,
    };
    while let Some((kind, rest)) = bytes.split_first() {
        let Some(length) = bson::length(rest) else {
            break;
        };
        let part = rest.get(..length.min(rest.len())).unwrap_or_default();
        match kind {
            0 if all.body.is_none() => all.body = Some(part),
            1 if all.documents.is_none() => all.documents = part.get(4..).and_then(bson::text),
            1 => {}
            _ => break,
        }
        bytes = rest.get(length..).unwrap_or_default();
    }
    all
}

fn is_word(bytes: &[u8]) -> bool {
    let sound = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    (1..=MAX_WORD).contains(&bytes.len()) && bytes.iter().all(sound)
}

fn name_of(bytes: &[u8]) -> Option<String> {
    (1..=MAX_NAMESPACE)
        .contains(&bytes.len())
        .then(|| printable(bytes))
}

impl Mongodb {
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        let Some(header) = header(input.bytes) else {
            return input.wait();
        };
        if !header.is_sound() {
            return Step::Fail;
        }
        let Some(bytes) = input.beginning(header.length, MOST) else {
            return Step::More;
        };
        let body = bytes.get(HEADER..).unwrap_or_default();
        let request = match header.operation {
            MSG => match flags(body) {
                Some(flags) if flags & MORE_TO_COME != 0 => None,
                Some(_) => Some(message(body.get(4..).unwrap_or_default(), all.plain)),
                None => return Step::Fail,
            },
            QUERY => Some(query(body, all.plain)),
            GET_MORE => Some(unread("OP_GET_MORE")),
            // Whether a response follows is not known. It is for all commands but writes that ask for none.
            COMPRESSED => Some(unread("OP_COMPRESSED")),
            UPDATE | INSERT | DELETE | KILL_CURSORS => None,
            _ => return Step::Fail,
        };
        if let Some(mut request) = request {
            request.id = Some(header.id);
            if !all.begin(request) {
                return Step::Fail;
            }
        }
        Step::Take(header.length as u64)
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        let Some(header) = header(input.bytes) else {
            return input.wait();
        };
        if !header.is_sound() || !matches!(header.operation, MSG | REPLY | COMPRESSED) {
            return Step::Fail;
        }
        let Some(bytes) = input.beginning(header.length, MOST) else {
            return Step::More;
        };
        self.answers = all.select(header.response_to);
        self.responds(all);
        let body = bytes.get(HEADER..).unwrap_or_default();
        let document = match header.operation {
            MSG => sections(body.get(4..).unwrap_or_default()).body,
            REPLY => body.get(20..),
            _ => None,
        };
        if let (true, Some(document), Some(first)) = (self.answers, document, all.first())
            && let Some(Failure { code, name, text }) = failure(document)
        {
            if let Some(name) = name {
                first.request.attributes.push(("error.type", name));
            }
            first.error = Some((code, text));
        }
        Step::Pass(header.length as u64)
    }

    /// Bytes of the present response moved.
    pub(super) fn responds(&self, all: &mut Exchanges) {
        if self.answers {
            all.responds();
        }
    }

    /// A response has moved.
    pub(super) fn response_passed(&mut self, all: &mut Exchanges) {
        if std::mem::take(&mut self.answers) {
            all.end();
        }
    }

    pub(super) fn restart(&mut self) {
        self.answers = false;
    }
}

fn attributes(operation: &str) -> Vec<(&'static str, Attribute)> {
    vec![
        ("db.system.name", Attribute::Text("mongodb".into())),
        ("db.operation.name", Attribute::Text(operation.into())),
    ]
}

/// A request whose command is not read.
fn unread(operation: &str) -> Request {
    Request {
        name: operation.into(),
        attributes: vec![("db.system.name", Attribute::Text("mongodb".into()))],
        unread: true,
        ..Request::default()
    }
}

/// A command in sections.
fn message(bytes: &[u8], plain: bool) -> Request {
    let sections = sections(bytes);
    match sections.body {
        Some(body) => command(body, sections.documents, None, plain),
        None => unread("OP_MSG"),
    }
}

/// A command as it was sent before there was OP_MSG, or a query of that time.
fn query(body: &[u8], plain: bool) -> Request {
    let Some((name, rest)) = body.get(4..).and_then(bson::text) else {
        return unread("OP_QUERY");
    };
    let document = rest.get(8..).unwrap_or_default();
    match name.strip_suffix(b".$cmd") {
        Some(database) => {
            // The command may have options of its own around it.
            let wrapped = elements(document).next();
            let inside = match wrapped {
                Some((b"$query" | b"query", Value::Document(inside))) => inside,
                _ => document,
            };
            command(inside, None, Some(database), plain)
        }
        None => unread("OP_QUERY"),
    }
}

fn command(
    body: &[u8],
    documents: Option<(&[u8], &[u8])>,
    database: Option<&[u8]>,
    plain: bool,
) -> Request {
    let Some((word, target)) = elements(body).next().filter(|(word, _)| is_word(word)) else {
        return unread("OP_MSG");
    };
    let operation = printable(word);
    let mut attributes = attributes(&operation);
    let mut name = operation;
    let field = |wanted: &[u8]| elements(body).find(|(key, _)| *key == wanted).map(|e| e.1);
    let known = COMMANDS.iter().find(|(known, _)| *known == word);
    let collection = match (known, target) {
        (Some(_), Value::Text(collection)) => name_of(collection),
        _ if word == b"getMore" => match field(b"collection") {
            Some(Value::Text(collection)) => name_of(collection),
            _ => None,
        },
        _ => None,
    };
    let database = match field(b"$db") {
        Some(Value::Text(database)) => Some(database),
        _ => database,
    };
    if let Some(database) = database.and_then(name_of) {
        attributes.push(("db.namespace", Attribute::Text(database)));
    }
    if let Some(collection) = collection {
        name.push(' ');
        name.push_str(&collection);
        attributes.push(("db.collection.name", Attribute::Text(collection)));
    }
    if let Some(shape) = known.and_then(|(_, filter)| shape(*filter, body, documents)) {
        name.push(' ');
        name.push_str(&shape);
    }
    if plain && !SECRET.contains(&word) {
        let mut text = Text::new(MOST, true);
        text.document(body, &ADDED);
        if let Some((field, documents)) = documents {
            text.out.push(' ');
            text.out.push_str(&printable(field));
            for document in each(documents) {
                text.out.push(' ');
                text.document(document, &[]);
            }
        }
        attributes.push(("db.query.text", Attribute::Text(text.out)));
    }
    Request {
        name,
        attributes,
        ..Request::default()
    }
}

/// Documents one behind the other.
fn each(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = bson::length(bytes)?;
        let (document, rest) = bytes.split_at(length.min(bytes.len()));
        bytes = rest;
        Some(document)
    })
}

/// The filter without its values; of several statements, the filter of the first.
fn shape(filter: Filter, body: &[u8], documents: Option<(&[u8], &[u8])>) -> Option<String> {
    let field = |wanted: &[u8]| elements(body).find(|(key, _)| *key == wanted).map(|e| e.1);
    let mut text = Text::new(MAX_SHAPE, false);
    match filter {
        Filter::None => return None,
        Filter::Field(name) => match field(name)? {
            value @ (Value::Document(_) | Value::Array(_)) => text.value(value),
            _ => return None,
        },
        Filter::Statements(name) => {
            let (first, more) = match documents.filter(|(field, _)| *field == name) {
                Some((_, documents)) => {
                    let mut all = each(documents);
                    (all.next()?, all.next().is_some())
                }
                None => match field(name)? {
                    Value::Array(array) => {
                        let mut all = elements(array);
                        match all.next()? {
                            (_, Value::Document(first)) => (first, all.next().is_some()),
                            _ => return None,
                        }
                    }
                    _ => return None,
                },
            };
            let filter = elements(first).find(|(key, _)| *key == b"q");
            match filter?.1 {
                value @ Value::Document(_) => text.value(value),
                _ => return None,
            }
            if more {
                text.out.push_str(", ...");
            }
        }
    }
    Some(text.out)
}

/// The error that a response reports.
struct Failure {
    code: String,
    name: Option<Attribute>,
    text: String,
}

/// The error of a command that failed; of a command that did not, the first error of its writes, or that
/// of their acknowledgement.
fn failure(document: &[u8]) -> Option<Failure> {
    let mut within = None;
    let mut failed = false;
    for (key, value) in elements(document) {
        match (key, value) {
            (b"ok", Value::Double(ok)) => failed = ok == 0.0,
            (b"ok", Value::Int(ok)) => failed = ok == 0,
            (b"ok", Value::Bool(ok)) => failed = !ok,
            (b"writeErrors", Value::Array(errors)) => {
                if let Some((_, Value::Document(first))) = elements(errors).next() {
                    within = Some(first);
                }
            }
            (b"writeConcernError", Value::Document(error)) => within = within.or(Some(error)),
            _ => {}
        }
    }
    if failed {
        return Some(reported(document));
    }
    within.map(reported)
}

fn reported(document: &[u8]) -> Failure {
    let (mut code, mut name, mut text) = (None, None, String::new());
    for (key, value) in elements(document) {
        match (key, value) {
            (b"code", Value::Int(number)) => code = Some(number.to_string()),
            (b"code", Value::Double(number)) => code = Some(number.to_string()),
            (b"codeName", Value::Text(word)) if is_word(word) => {
                name = Some(Attribute::Text(printable(word)));
            }
            (b"errmsg", Value::Text(message)) => text = printable(message),
            _ => {}
        }
    }
    Failure {
        code: code.unwrap_or_else(|| "ERROR".into()),
        name,
        text,
    }
}

#[cfg(test)]
pub(super) mod tests;
