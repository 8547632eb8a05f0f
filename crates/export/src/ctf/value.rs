//! Fields of events: their types in the metadata, and their bytes.

use fathom_model::bytes::of_text;

/// Longest text of a field.
const MAX_TEXT: usize = 64 << 10;
/// Bytes of a thread's name in the context, with the zero at its end: as many as LTTng has.
pub(super) const NAME_BYTES: usize = 17;

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    /// An address.
    Hex(u64),
    /// Permissions.
    Octal(u16),
    /// Without the zero at its end.
    Text(Vec<u8>),
}

impl Value {
    /// A text of the session, as the bytes that it stands for.
    pub fn text(text: &str) -> Self {
        let bytes = of_text(text);
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let end = end.min(MAX_TEXT);
        Value::Text(bytes.get(..end).unwrap_or_default().to_vec())
    }

    /// Its type in the metadata, and one letter for it.
    pub fn kind(&self) -> (char, &'static str) {
        match self {
            Value::I32(_) => (
                'i',
                "integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; }",
            ),
            Value::U32(_) => (
                'u',
                "integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; }",
            ),
            Value::I64(_) => (
                'l',
                "integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; }",
            ),
            Value::U64(_) => (
                'v',
                "integer { size = 64; align = 8; signed = 0; encoding = none; base = 10; }",
            ),
            Value::Hex(_) => (
                'x',
                "integer { size = 64; align = 8; signed = 0; encoding = none; base = 16; }",
            ),
            Value::Octal(_) => (
                'o',
                "integer { size = 16; align = 8; signed = 0; encoding = none; base = 8; }",
            ),
            Value::Text(_) => ('s', "string"),
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::I32(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::U32(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::I64(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::U64(n) | Value::Hex(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Octal(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Text(text) => {
                out.extend_from_slice(text);
                out.push(0);
            }
        }
    }
}

/// The known values of an event, in order.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// A thread as the context of an event, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context<'a> {
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub name: Option<&'a str>,
}

impl Context<'_> {
    /// Which values are known, as bits.
    pub fn known(&self) -> u32 {
        u32::from(self.pid.is_some())
            | u32::from(self.tid.is_some()) << 1
            | u32::from(self.name.is_some()) << 2
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        for id in [self.pid, self.tid].into_iter().flatten() {
            out.extend_from_slice(&id.to_le_bytes());
        }
        if let Some(name) = self.name {
            let mut bytes = [0; NAME_BYTES];
            let name = of_text(name);
            for (to, from) in bytes.iter_mut().take(NAME_BYTES - 1).zip(name.iter()) {
                *to = *from;
            }
            out.extend_from_slice(&bytes);
        }
    }
}
