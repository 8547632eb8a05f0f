//! Values of fields from the bits of a packet.

use std::io;
use std::rc::Rc;

use super::bits::Bits;
use super::types::{Fields, Int, Type, Value};

/// Values of one event at most: more are taken for damage.
const MAX_VALUES: u32 = 1 << 16;
/// Bytes of the texts of one event at most.
const MAX_TEXT: usize = 1 << 20;

/// Why a value could not be read.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    /// The packet ends in it, or its declaration and the bits contradict each other.
    Damaged(&'static str),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Io(e)
    }
}

const CUT: Failure = Failure::Damaged("a value reaches beyond the end of its packet");

/// Reads the values of one packet in order.
pub(super) struct Decoder<'a> {
    pub bits: &'a mut Bits,
    /// Bit in the file.
    pub at: u64,
    /// Start of the packet, from which alignment counts.
    pub start: u64,
    /// Behind its last bit.
    pub end: u64,
    pub little_endian: bool,
    /// Values by the dynamic scope's name, such as `stream.event.header`.
    pub roots: &'a [(&'static str, &'a Value)],
    /// Integers that set a clock: the bits of each, and its value.
    pub clock: Option<(u32, u64)>,
    values: u32,
    text: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(
        bits: &'a mut Bits,
        at: u64,
        (start, end): (u64, u64),
        little_endian: bool,
        roots: &'a [(&'static str, &'a Value)],
    ) -> Self {
        Decoder {
            bits,
            at,
            start,
            end,
            little_endian,
            roots,
            clock: None,
            values: 0,
            text: 0,
        }
    }

    /// Reads a value of a type.
    pub fn value(&mut self, of: &Type) -> Result<Value, Failure> {
        self.read(of, &mut Vec::new())
    }

    fn align(&mut self, align: u64) -> Result<(), Failure> {
        let since = self.at - self.start;
        let next = since.checked_next_multiple_of(align.max(1)).ok_or(CUT)?;
        self.at = self.start.checked_add(next).ok_or(CUT)?;
        match self.at <= self.end {
            true => Ok(()),
            false => Err(CUT),
        }
    }

    fn int(&mut self, int: &Int) -> Result<i128, Failure> {
        self.align(int.align)?;
        let end = self.at.checked_add(u64::from(int.bits)).ok_or(CUT)?;
        if end > self.end {
            return Err(CUT);
        }
        let order = int.little_endian.unwrap_or(self.little_endian);
        let raw = self.bits.integer(self.at, int.bits, order)?.ok_or(CUT)?;
        self.at = end;
        if int.clock.is_some() {
            self.clock = Some((int.bits, raw));
        }
        let unused = 64 - int.bits;
        Ok(match int.signed {
            true => i128::from(((raw << unused) as i64) >> unused),
            false => i128::from(raw),
        })
    }

    /// `outer` has the structs around the value, the innermost last.
    fn read(&mut self, of: &Type, outer: &mut Vec<Fields>) -> Result<Value, Failure> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Failure::Damaged("an event has too many values"));
        }
        match of {
            Type::Int(int) => Ok(Value::Int(self.int(int)?, None)),
            Type::Enum { of, labels } => {
                let number = self.int(of)?;
                let label = labels
                    .iter()
                    .find(|m| m.first <= number && number <= m.last)
                    .map(|m| m.label.clone());
                Ok(Value::Int(number, label))
            }
            Type::Float {
                bits,
                align,
                little_endian,
            } => {
                let int = Int {
                    bits: *bits,
                    align: *align,
                    signed: false,
                    little_endian: *little_endian,
                    text: false,
                    clock: None,
                };
                let raw = self.int(&int)?;
                Ok(Value::Float(match bits {
                    32 => f64::from(f32::from_bits(raw as u32)),
                    _ => f64::from_bits(raw as u64),
                }))
            }
            Type::Text => self.string(),
            Type::Struct { fields, align, .. } => {
                self.align(*align)?;
                outer.push(Fields::with_capacity(fields.len().min(64)));
                for field in fields {
                    let value = self.read(&field.of, outer)?;
                    if let Some(own) = outer.last_mut() {
                        own.push((field.name.clone(), value));
                    }
                }
                Ok(Value::Struct(outer.pop().unwrap_or_default()))
            }
            Type::Array { of, length, .. } => self.array(of, *length, outer),
            Type::Sequence { of, length, .. } => {
                let length = self.find(length, outer).and_then(|(number, _)| number);
                let length = length.and_then(|n| u64::try_from(n).ok());
                let length = length.ok_or(Failure::Damaged("a sequence without a length"))?;
                self.array(of, length, outer)
            }
            Type::Variant { tag, options, .. } => {
                let label = tag.as_ref().and_then(|tag| self.find(tag, outer));
                let label = label.and_then(|(_, label)| label);
                let label = label.ok_or(Failure::Damaged("a variant without a selection"))?;
                // A keyword cannot be a name, so that writers prefix it.
                let chosen = options.iter().find(|option| option.name == label);
                let chosen = chosen.or_else(|| {
                    let plain = |name: &Rc<str>| name.trim_start_matches('_').to_owned();
                    options.iter().find(|o| plain(&o.name) == plain(&label))
                });
                let chosen = chosen.ok_or(Failure::Damaged("a variant without that option"))?;
                // Its fields are found like the fields of the struct around it.
                self.read(&chosen.of, outer)
            }
        }
    }

    fn string(&mut self) -> Result<Value, Failure> {
        self.align(8)?;
        let mut text = Vec::new();
        loop {
            let left = usize::try_from((self.end - self.at) / 8).unwrap_or(usize::MAX);
            let chunk = self.bits.bytes(self.at / 8, left.min(4096))?;
            let end = chunk.iter().position(|b| *b == 0);
            let taken = end.unwrap_or(chunk.len());
            if chunk.is_empty() {
                return Err(CUT);
            }
            text.extend_from_slice(chunk.get(..taken).unwrap_or_default());
            self.at += 8 * (taken as u64 + u64::from(end.is_some()));
            self.text += taken;
            if self.text > MAX_TEXT {
                return Err(Failure::Damaged("an event has too long texts"));
            }
            if end.is_some() {
                return Ok(Value::Text(text));
            }
        }
    }

    fn array(&mut self, of: &Type, length: u64, outer: &mut Vec<Fields>) -> Result<Value, Failure> {
        let is_text = matches!(of, Type::Int(int) if int.text && int.bits == 8);
        self.align(of.align())?;
        let mut all = Vec::new();
        let mut text = Vec::new();
        for _ in 0..length {
            let value = self.read(of, outer)?;
            match value.int().filter(|_| is_text) {
                Some(byte) => text.push(byte as u8),
                None => all.push(value),
            }
        }
        if !is_text {
            return Ok(Value::Array(all));
        }
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        text.truncate(end);
        Ok(Value::Text(text))
    }

    /// The integer that a path leads to, and its label.
    fn find(&self, path: &[Rc<str>], outer: &[Fields]) -> Option<(Option<i128>, Option<Rc<str>>)> {
        let answer = |value: &Value| match value {
            Value::Int(number, label) => Some((Some(*number), label.clone())),
            _ => None,
        };
        let (first, rest) = path.split_first()?;
        for fields in outer.iter().rev() {
            if let Some((_, value)) = fields.iter().rev().find(|(name, _)| name == first) {
                return answer(inside(value, rest)?);
            }
        }
        // `stream.event.header.id`, or a name in one of them.
        for (root, value) in self.roots.iter().rev() {
            let words = root.split('.').count();
            let whole = path
                .get(..words)
                .is_some_and(|p| p.iter().map(|w| &**w).eq(root.split('.')));
            if whole {
                return answer(inside(value, path.get(words..)?)?);
            }
        }
        let roots = self.roots.iter().rev();
        roots
            .filter_map(|(_, value)| inside(value, path))
            .find_map(answer)
    }
}

fn inside<'v>(value: &'v Value, path: &[Rc<str>]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| {
        let fields = value.fields();
        let found = fields.iter().rev().find(|(field, _)| field == name);
        found.map(|(_, value)| value)
    })
}
