//! Types in the words of TSDL.

use std::rc::Rc;

use super::super::lexer::Word;
use super::super::types::{Field, Int, Mapping, Path, Type};
use super::*;

impl Parser {
    pub(super) fn specifier(&mut self) -> Parsed<Rc<Type>> {
        self.deeper(|p| {
            while p.is_name("const") {
                p.at += 1;
            }
            let word = p.name()?;
            match word.as_str() {
                "integer" => Ok(Rc::new(Type::Int(p.int()?))),
                "floating_point" => p.float(),
                "string" => {
                    if p.is("{") {
                        p.block()?;
                    }
                    Ok(Rc::new(Type::Text))
                }
                "struct" => p.structure(),
                "variant" => p.variant(),
                "enum" => p.enumeration(),
                first => p.named(first),
            }
        })
    }

    /// A type by its name of one or several words, of which the last may be the field's.
    fn named(&mut self, first: &str) -> Parsed<Rc<Type>> {
        let mut name = first.to_owned();
        let mut found = self.find(&name).map(|of| (of, self.at));
        let start = self.at;
        while let Some(Word::Name(_) | Word::Sign("*")) = self.peek() {
            match self.next()? {
                Word::Name(word) => {
                    name.push(' ');
                    name.push_str(&word);
                }
                _ => name.push_str(" *"),
            }
            if let Some(of) = self.find(&name) {
                found = Some((of, self.at));
            }
        }
        self.at = start;
        let (of, at) = found.ok_or_else(|| format!("unknown type {name:?}"))?;
        self.at = at;
        Ok(of)
    }

    /// `{ size = 32; ... }`
    fn int(&mut self) -> Parsed<Int> {
        let mut int = Int {
            bits: 0,
            align: 0,
            signed: false,
            little_endian: None,
            text: false,
            clock: None,
        };
        for entry in self.block()? {
            let Entry::Value(name, value) = entry else {
                continue;
            };
            match (name.as_str(), value) {
                ("size", Word::Number(bits)) => int.bits = u32::try_from(bits).unwrap_or(0),
                ("align", Word::Number(align)) => int.align = alignment(align)?,
                ("signed", value) => int.signed = truth(&value),
                ("byte_order", Word::Name(order)) => int.little_endian = endian(&order),
                ("encoding", Word::Name(encoding)) => int.text = encoding != "none",
                ("map", Word::Name(path)) => {
                    let clock = path.strip_prefix("clock.").unwrap_or(&path);
                    let clock = clock.strip_suffix(".value").unwrap_or(clock);
                    int.clock = Some(clock.into());
                }
                _ => {}
            }
        }
        if !(1..=64).contains(&int.bits) {
            return Err(format!("an integer of {} bits", int.bits));
        }
        if int.align == 0 {
            int.align = if int.bits.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(int)
    }

    fn float(&mut self) -> Parsed<Rc<Type>> {
        let (mut bits, mut align, mut little_endian) = (0, 1, None);
        for entry in self.block()? {
            match entry {
                Entry::Value(name, Word::Number(n)) if name == "exp_dig" || name == "mant_dig" => {
                    bits += u32::try_from(n).unwrap_or(0).min(128);
                }
                Entry::Value(name, Word::Number(n)) if name == "align" => align = alignment(n)?,
                Entry::Value(name, Word::Name(order)) if name == "byte_order" => {
                    little_endian = endian(&order);
                }
                _ => {}
            }
        }
        if bits != 32 && bits != 64 {
            return Err(format!("a floating-point number of {bits} bits"));
        }
        if align == 1 && bits.is_multiple_of(8) {
            align = 8;
        }
        Ok(Rc::new(Type::Float {
            bits,
            align,
            little_endian,
        }))
    }

    /// The name behind a keyword, if there is one.
    fn tag(&mut self, keyword: &str) -> Option<String> {
        match self.peek() {
            Some(Word::Name(name)) if name != "align" => {
                let name = format!("{keyword} {name}");
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    fn structure(&mut self) -> Parsed<Rc<Type>> {
        let name = self.tag("struct");
        if !self.is("{") {
            let name = name.ok_or("a struct without contents")?;
            return self.find(&name).ok_or_else(|| format!("unknown {name}"));
        }
        let fields = self.fields()?;
        let mut align = 1;
        if self.is_name("align") {
            self.at += 1;
            self.expect("(")?;
            let least = self.integer()?;
            align = alignment(least)?;
            self.expect(")")?;
        }
        let own = fields.iter().map(|field| field.of.align()).max();
        let of = Rc::new(Type::Struct {
            align: own.unwrap_or(1).max(align),
            nesting: nesting(&fields)?,
            fields,
        });
        if let Some(name) = name {
            self.define(name, of.clone());
        }
        Ok(of)
    }

    fn variant(&mut self) -> Parsed<Rc<Type>> {
        let name = self.tag("variant");
        let mut tag: Option<Path> = None;
        if self.take("<") {
            tag = Some(self.path()?);
            self.expect(">")?;
        }
        let of = if self.is("{") {
            let options = self.fields()?;
            let of = Rc::new(Type::Variant {
                tag: tag.clone(),
                nesting: nesting(&options)?,
                options,
            });
            if let Some(name) = name {
                self.define(name, of.clone());
            }
            of
        } else {
            let name = name.ok_or("a variant without contents")?;
            self.find(&name).ok_or_else(|| format!("unknown {name}"))?
        };
        // A variant that was declared without its tag.
        match (&*of, tag) {
            (
                Type::Variant {
                    options, nesting, ..
                },
                Some(tag),
            ) => {
                let options = options
                    .iter()
                    .map(|field| Field {
                        name: field.name.clone(),
                        of: field.of.clone(),
                    })
                    .collect();
                Ok(Rc::new(Type::Variant {
                    tag: Some(tag),
                    options,
                    nesting: *nesting,
                }))
            }
            _ => Ok(of),
        }
    }

    fn enumeration(&mut self) -> Parsed<Rc<Type>> {
        let name = match self.is(":") {
            true => None,
            false => self.tag("enum"),
        };
        let mut of = None;
        if self.take(":") {
            of = Some(self.specifier()?);
        }
        if !self.is("{") {
            let name = name.ok_or("an enum without contents")?;
            return self.find(&name).ok_or_else(|| format!("unknown {name}"));
        }
        let of = of.or_else(|| self.find("int"));
        let int = match of.as_deref() {
            Some(Type::Int(int)) => int.clone(),
            _ => return Err("an enum of no integer".into()),
        };
        self.expect("{")?;
        let mut labels = Vec::new();
        let mut next: i128 = 0;
        while !self.take("}") {
            let label = match self.next()? {
                Word::Name(name) => name,
                Word::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                other => return Err(format!("a label expected, not {other:?}")),
            };
            let (mut first, mut last) = (next, next);
            if self.take("=") {
                first = self.integer()?;
                last = first;
                if self.take("...") {
                    last = self.integer()?;
                }
            }
            next = last.saturating_add(1);
            labels.push(Mapping {
                label: label.into(),
                first,
                last,
            });
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let of = Rc::new(Type::Enum { of: int, labels });
        if let Some(name) = name {
            self.define(name, of.clone());
        }
        Ok(of)
    }

    /// `{ type name; ... }`
    fn fields(&mut self) -> Parsed<Vec<Field>> {
        self.scoped(|p| {
            p.expect("{")?;
            let mut fields = Vec::new();
            while !p.take("}") {
                if p.is_name("typealias") || p.is_name("typedef") {
                    p.declaration()?;
                    continue;
                }
                let of = p.specifier()?;
                // A type with a name and no field.
                if p.take(";") {
                    continue;
                }
                loop {
                    fields.push(p.declarator(of.clone())?);
                    if !p.take(",") {
                        break;
                    }
                }
                p.expect(";")?;
            }
            Ok(fields)
        })
    }

    /// `name[3][length]`
    pub(super) fn declarator(&mut self, of: Rc<Type>) -> Parsed<Field> {
        let name: Rc<str> = self.name()?.into();
        let mut lengths = Vec::new();
        while self.take("[") {
            let length = match self.peek() {
                Some(Word::Number(_)) => Err(u64::try_from(self.integer()?).unwrap_or(u64::MAX)),
                _ => Ok(self.path()?),
            };
            lengths.push(length);
            self.expect("]")?;
        }
        // The first one is the outermost.
        let mut of = of;
        for length in lengths.into_iter().rev() {
            let nesting = within(of.nesting() + 1)?;
            of = Rc::new(match length {
                Ok(length) => Type::Sequence {
                    of,
                    length,
                    nesting,
                },
                Err(length) => Type::Array {
                    of,
                    length,
                    nesting,
                },
            });
        }
        Ok(Field { name, of })
    }

    fn path(&mut self) -> Parsed<Path> {
        let mut path: Vec<Rc<str>> = vec![self.name()?.into()];
        while self.take(".") {
            path.push(self.name()?.into());
        }
        Ok(path.into())
    }
}
