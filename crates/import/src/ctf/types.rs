//! Types of fields, as the metadata declares them, and their values.

use std::rc::Rc;

/// An integer of 1 to 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Int {
    pub bits: u32,
    pub align: u64,
    pub signed: bool,
    /// `None`: the trace's.
    pub little_endian: Option<bool>,
    /// Characters of a text.
    pub text: bool,
    /// The clock that it sets.
    pub clock: Option<Rc<str>>,
}

#[derive(Clone, Debug)]
pub(super) struct Mapping {
    pub label: Rc<str>,
    pub first: i128,
    pub last: i128,
}

/// Names from the outside to the inside.
pub(super) type Path = Rc<[Rc<str>]>;

#[derive(Debug)]
pub(super) struct Field {
    pub name: Rc<str>,
    pub of: Rc<Type>,
}

#[derive(Debug)]
pub(super) enum Type {
    Int(Int),
    Float {
        bits: u32,
        align: u64,
        little_endian: Option<bool>,
    },
    Enum {
        of: Int,
        labels: Vec<Mapping>,
    },
    Text,
    Struct {
        fields: Vec<Field>,
        align: u64,
        nesting: u32,
    },
    Array {
        of: Rc<Type>,
        length: u64,
        nesting: u32,
    },
    Sequence {
        of: Rc<Type>,
        length: Path,
        nesting: u32,
    },
    Variant {
        tag: Option<Path>,
        options: Vec<Field>,
        nesting: u32,
    },
}

impl Type {
    /// How many types lie in one another in it.
    pub fn nesting(&self) -> u32 {
        match self {
            Type::Struct { nesting, .. }
            | Type::Array { nesting, .. }
            | Type::Sequence { nesting, .. }
            | Type::Variant { nesting, .. } => *nesting,
            _ => 0,
        }
    }

    /// Bits to a multiple of which the position goes before a value.
    pub fn align(&self) -> u64 {
        match self {
            Type::Int(int) | Type::Enum { of: int, .. } => int.align,
            Type::Float { align, .. } | Type::Struct { align, .. } => *align,
            Type::Text => 8,
            Type::Array { of, .. } | Type::Sequence { of, .. } => of.align(),
            // The option's.
            Type::Variant { .. } => 1,
        }
    }
}

/// A value of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// An integer, with the label of an enumeration.
    Int(i128, Option<Rc<str>>),
    Float(f64),
    Text(Vec<u8>),
    Struct(Fields),
    Array(Vec<Value>),
}

pub(super) type Fields = Vec<(Rc<str>, Value)>;

impl Value {
    pub fn int(&self) -> Option<i128> {
        match self {
            Value::Int(n, _) => Some(*n),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn fields(&self) -> &[(Rc<str>, Value)] {
        match self {
            Value::Struct(fields) => fields,
            _ => &[],
        }
    }

    /// A field by its name, which LTTng writes with an underscore before it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let fields = self.fields();
        let found = fields.iter().find(|(field, _)| &**field == name);
        let found = found.or_else(|| {
            fields
                .iter()
                .find(|(field, _)| field.strip_prefix('_') == Some(name))
        });
        found.map(|(_, value)| value)
    }
}
