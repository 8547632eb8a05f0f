//! BSON: the elements of a document, and its text with or without values.
//!
//! Documents come from the memory of programs: lengths are checked against the bytes that are there, and
//! a document may be cut anywhere.

use fathom_model::bytes::printable;

/// Documents within documents that are followed.
const MAX_DEPTH: u32 = 24;

/// The value of an element, as far as it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Double(f64),
    Text(&'a [u8]),
    /// With its length at the beginning.
    Document(&'a [u8]),
    Array(&'a [u8]),
    Bool(bool),
    Int(i64),
    Null,
    /// 12 bytes.
    ObjectId(&'a [u8]),
    /// Milliseconds since 1970.
    Date(i64),
    /// One of a type that is not read, or one whose end is missing.
    Other,
}

/// The elements of a document, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
    /// Elements are missing, or make no sense.
    cut: bool,
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(i32::from_le_bytes)
}

fn i64_at(bytes: &[u8]) -> Option<i64> {
    let bytes = bytes.get(..8)?;
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// The bytes of the document at the beginning of `bytes`; `None` if none begins there.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let length = usize::try_from(i32_at(bytes, 0)?).ok()?;
    (length >= 5).then_some(length)
}

/// The elements of the document at the beginning of `bytes`.
pub(super) fn elements(bytes: &[u8]) -> Elements<'_> {
    let Some(length) = length(bytes) else {
        return Elements {
            rest: b"",
            cut: true,
        };
    };
    let end = length.min(bytes.len());
    Elements {
        rest: bytes.get(4..end).unwrap_or_default(),
        cut: bytes.len() < length,
    }
}

/// Bytes up to the NUL that ends them, and the bytes behind it.
pub(super) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Bytes that a value of this type has; `None` if that is not known.
fn size(kind: u8, bytes: &[u8]) -> Option<usize> {
    let counted = |more: usize| {
        let length = usize::try_from(i32_at(bytes, 0)?).ok()?;
        length.checked_add(more)
    };
    match kind {
        0x06 | 0x0a | 0x7f | 0xff => Some(0),
        0x08 => Some(1),
        0x10 => Some(4),
        0x01 | 0x09 | 0x11 | 0x12 => Some(8),
        0x07 => Some(12),
        0x13 => Some(16),
        0x02 | 0x0d | 0x0e => counted(4),
        0x03 | 0x04 => length(bytes),
        0x0f => counted(0).filter(|n| *n >= 4),
        0x05 => counted(5),
        0x0c => counted(16),
        0x0b => {
            let (pattern, rest) = text(bytes)?;
            let (options, _) = text(rest)?;
            Some(pattern.len() + options.len() + 2)
        }
        _ => None,
    }
}

fn value(kind: u8, bytes: &[u8], whole: bool) -> Value<'_> {
    let read = match kind {
        0x03 => Some(Value::Document(bytes)),
        0x04 => Some(Value::Array(bytes)),
        _ if !whole => None,
        0x01 => i64_at(bytes).map(|bits| Value::Double(f64::from_bits(bits.cast_unsigned()))),
        0x02 => bytes
            .get(4..)
            .and_then(|text| Some(Value::Text(text.split_last()?.1))),
        0x07 => Some(Value::ObjectId(bytes)),
        0x08 => bytes.first().map(|byte| Value::Bool(*byte != 0)),
        0x09 => i64_at(bytes).map(Value::Date),
        0x0a => Some(Value::Null),
        0x10 => i32_at(bytes, 0).map(|n| Value::Int(n.into())),
        0x12 => i64_at(bytes).map(Value::Int),
        _ => None,
    };
    read.unwrap_or(Value::Other)
}

impl Elements<'_> {
    /// Whether elements are missing, after all others were taken.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = std::mem::take(&mut self.rest).split_first()?;
        if *kind == 0 {
            return None;
        }
        let Some((key, rest)) = text(rest) else {
            self.cut = true;
            return None;
        };
        let Some(size) = size(*kind, rest) else {
            self.cut = true;
            return Some((key, Value::Other));
        };
        let whole = size <= rest.len();
        self.cut |= !whole;
        let (bytes, rest) = rest.split_at(size.min(rest.len()));
        self.rest = rest;
        Some((key, value(*kind, bytes, whole)))
    }
}

/// Writes documents as text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) out: String,
    most: usize,
    /// With the values, otherwise `?` for each.
    plain: bool,
}

impl Text {
    /// `most`: bytes from which on nothing is added.
    pub(super) fn new(most: usize, plain: bool) -> Self {
        Self {
            out: String::new(),
            most,
            plain,
        }
    }

    fn full(&self) -> bool {
        self.out.len() > self.most
    }

    /// A document, without the elements in `but`.
    pub(super) fn document(&mut self, bytes: &[u8], but: &[&[u8]]) {
        self.inside(Value::Document(bytes), 0, but);
    }

    pub(super) fn value(&mut self, value: Value<'_>) {
        self.inside(value, 0, &[]);
    }

    fn inside(&mut self, value: Value<'_>, depth: u32, but: &[&[u8]]) {
        let (bytes, named, [open, close]) = match value {
            Value::Document(bytes) => (bytes, true, ['{', '}']),
            Value::Array(bytes) => (bytes, false, ['[', ']']),
            value => return self.literal(value),
        };
        self.out.push(open);
        if depth >= MAX_DEPTH {
            self.out.push('…');
            self.out.push(close);
            return;
        }
        let mut elements = elements(bytes);
        let (mut first, mut literals) = (true, 0);
        for (key, value) in elements.by_ref() {
            if self.full() {
                return;
            }
            if but.contains(&key) {
                continue;
            }
            let is_literal = !matches!(value, Value::Document(_) | Value::Array(_));
            // Lists of any length have one text.
            if !named && !self.plain && is_literal {
                literals += 1;
                if literals == 2 {
                    self.out.push_str(", ...");
                }
                if literals > 1 {
                    continue;
                }
            } else {
                literals = 0;
            }
            if !first {
                self.out.push_str(", ");
            }
            first = false;
            if named {
                self.key(key);
            }
            self.inside(value, depth + 1, &[]);
        }
        if elements.is_cut() {
            self.out.push('…');
        }
        self.out.push(close);
    }

    fn key(&mut self, key: &[u8]) {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.' | b'-');
        let quote = key.is_empty() || !key.iter().all(plain);
        if quote {
            self.quoted(key);
        } else {
            self.out.push_str(&printable(key));
        }
        self.out.push_str(": ");
    }

    fn quoted(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(..self.most).unwrap_or(bytes);
        self.out.push('"');
        for c in printable(bytes).chars() {
            if matches!(c, '"' | '\\') {
                self.out.push('\\');
            }
            self.out.push(c);
        }
        self.out.push('"');
    }

    fn literal(&mut self, value: Value<'_>) {
        if !self.plain {
            return self.out.push('?');
        }
        match value {
            Value::Double(number) => self.out.push_str(&number.to_string()),
            Value::Int(number) => self.out.push_str(&number.to_string()),
            Value::Bool(is) => self.out.push_str(if is { "true" } else { "false" }),
            Value::Null => self.out.push_str("null"),
            Value::Text(text) => self.quoted(text),
            Value::Date(ms) => self.out.push_str(&format!("Date({ms})")),
            Value::ObjectId(id) => {
                let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
                self.out.push_str(&format!("ObjectId({hex})"));
            }
            Value::Document(_) | Value::Array(_) | Value::Other => self.out.push('…'),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An element of a document that tests write.
    pub(in super::super) enum Given<'a> {
        Text(&'a str),
        Int(i32),
        Long(i64),
        Double(f64),
        Document(Vec<u8>),
        Array(Vec<u8>),
        Id([u8; 12]),
        Null,
    }

    pub(in super::super) fn document(elements: &[(&str, Given<'_>)]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for (key, value) in elements {
            let (kind, value): (u8, Vec<u8>) = match value {
                Given::Double(n) => (1, n.to_le_bytes().into()),
                Given::Text(text) => {
                    let length = (text.len() as i32 + 1).to_le_bytes();
                    (2, [&length[..], text.as_bytes(), b"\0"].concat())
                }
                Given::Document(bytes) => (3, bytes.clone()),
                Given::Array(bytes) => (4, bytes.clone()),
                Given::Id(id) => (7, id.to_vec()),
                Given::Null => (10, Vec::new()),
                Given::Int(n) => (16, n.to_le_bytes().into()),
                Given::Long(n) => (18, n.to_le_bytes().into()),
            };
            bytes.push(kind);
            bytes.extend(key.as_bytes());
            bytes.push(0);
            bytes.extend(value);
        }
        bytes.push(0);
        let length = bytes.len() as i32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn written(bytes: &[u8], plain: bool) -> String {
        let mut text = Text::new(300, plain);
        text.document(bytes, &[b"lsid"]);
        text.out
    }

    #[test]
    fn shapes_have_no_values() {
        let list = document(&[
            ("0", Given::Int(1)),
            ("1", Given::Int(2)),
            ("2", Given::Null),
        ]);
        let bytes = document(&[
            ("name", Given::Text("secret")),
            ("age", Given::Document(document(&[("$gt", Given::Int(30))]))),
            (
                "tag",
                Given::Document(document(&[("$in", Given::Array(list))])),
            ),
            ("lsid", Given::Null),
            ("a key\n", Given::Id([7; 12])),
            ("n", Given::Double(1.5)),
        ]);
        assert_eq!(
            written(&bytes, false),
            "{name: ?, age: {$gt: ?}, tag: {$in: [?, ...]}, \"a key\u{fffd}\": ?, n: ?}"
        );
        assert_eq!(
            written(&bytes, true),
            "{name: \"secret\", age: {$gt: 30}, tag: {$in: [1, 2, null]}, \
             \"a key\u{fffd}\": ObjectId(070707070707070707070707), n: 1.5}"
        );
    }

    #[test]
    fn documents_may_be_cut_anywhere() {
        let inner = document(&[("b", Given::Text("xyz")), ("c", Given::Long(5))]);
        let bytes = document(&[("a", Given::Document(inner)), ("d", Given::Text("secret"))]);
        for end in 0..bytes.len() {
            let text = written(&bytes[..end], false);
            assert!(!text.contains("xyz") && !text.contains("secret"), "{text}");
            // The final NUL says nothing.
            assert!(text.contains('…'), "{end}: {text}");
        }
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let mut bytes = document(&[]);
        for _ in 0..1000 {
            bytes = document(&[("a", Given::Document(bytes))]);
        }
        let text = written(&bytes, false);
        assert!(text.len() < 300 && text.contains('…'), "{text}");
        let keys: Vec<String> = (0..1000).map(|n| format!("key{n}")).collect();
        let many: Vec<(&str, Given<'_>)> = keys.iter().map(|k| (k.as_str(), Given::Null)).collect();
        assert!(written(&document(&many), false).len() < 400);
    }
}
