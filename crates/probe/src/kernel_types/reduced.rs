//! The few types of a kernel that an object asks for, as BTF of their own. libbpf resolves the
//! relocations of CO-RE with it, instead of looking at all types for each.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use libbpf_sys::{
    BTF_KIND_ARRAY, BTF_KIND_ENUM, BTF_KIND_ENUM64, BTF_KIND_FUNC_PROTO, BTF_KIND_INT,
    BTF_KIND_PTR, BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_MAGIC,
};

use super::btf::{Type, Types, compatible, essential, refers, u32_at};
use super::relocations::Relocations;

/// Numbers of types of the kernel, for programs that cast pointers (`bpf/include/compat.h`): the
/// kernel wants its own numbers, not the ones here. They are the values of an enumeration, for which the programs ask as
/// for any other.
const NUMBERS: &str = "kernel_type";
const NUMBER_OF: &[u8] = b"KERNEL_TYPE_";

/// The types that the object in `elf` asks for, with all that is in them, but nothing behind pointers:
/// where a member is, and how large, does not depend on it. None if the object is malformed.
///
/// As libbpf does, this looks into the modules for what the kernel itself does not have.
pub(crate) fn reduced(elf: &[u8], kernel: &Rc<Types>) -> Option<Vec<u8>> {
    let Relocations { types, asked } = Relocations::read(elf)?;
    let mut wanted = BTreeSet::new();
    for (number, _) in asked {
        let of = types.get(number)?;
        wanted.insert((essential(types.name(of.name)?), of.kind));
    }
    wanted.retain(|(name, _)| *name != NUMBERS.as_bytes());
    let mut out = Reduced::new(vec![Rc::clone(kernel)]);
    wanted.retain(|(name, kind)| !out.take(0, name, *kind));
    if !wanted.is_empty() {
        out.sources.extend(Types::of_modules(kernel));
        for source in 1..out.sources.len() {
            for (name, kind) in &wanted {
                out.take(source, name, *kind);
            }
        }
    }
    out.copy()?;
    if let Some(wanted) = types
        .find(BTF_KIND_ENUM, NUMBERS)
        .and_then(|number| types.get(number))
    {
        out.enumerate(wanted, &types)?;
    }
    Some(out.finish())
}

pub(super) struct Reduced {
    /// The kernel, and modules.
    sources: Vec<Rc<Types>>,
    /// New numbers of types, by where they come from, and the number there.
    numbers: HashMap<(usize, u32), u32>,
    /// Types that have a number and are not copied yet, in the order of the numbers.
    next: VecDeque<(usize, u32)>,
    types: Vec<u32>,
    names: Vec<u8>,
    places: HashMap<Vec<u8>, u32>,
}

impl Reduced {
    pub(super) fn new(sources: Vec<Rc<Types>>) -> Self {
        Self {
            sources,
            numbers: HashMap::new(),
            next: VecDeque::new(),
            types: Vec::new(),
            names: vec![0],
            places: HashMap::new(),
        }
    }

    /// Takes the types of this name and kind over; returns whether there are any.
    pub(super) fn take(&mut self, source: usize, name: &[u8], kind: u32) -> bool {
        let types = Rc::clone(&self.sources[source]);
        let found = types
            .flavors(name)
            .filter(|(_, of)| compatible(of.kind, kind));
        let mut any = false;
        for (number, _) in found {
            self.number(source, number);
            any = true;
        }
        any
    }

    /// The new number of a type. `void` has none: it stays 0.
    fn number(&mut self, source: usize, number: u32) -> u32 {
        if number == 0 {
            return 0;
        }
        // Types of modules refer to the kernel's.
        let source = if self.sources[source].have(number) {
            source
        } else {
            0
        };
        let new = self.numbers.len() as u32 + 1;
        let next = &mut self.next;
        *self.numbers.entry((source, number)).or_insert_with(|| {
            next.push_back((source, number));
            new
        })
    }

    /// Where a name is among the new ones.
    fn place(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.names.extend_from_slice(name);
        self.names.push(0);
        self.places.insert(name.to_vec(), place);
        place
    }

    /// Copies the types that have numbers, and all that is in them.
    pub(super) fn copy(&mut self) -> Option<()> {
        while let Some((source, number)) = self.next.pop_front() {
            let types = Rc::clone(&self.sources[source]);
            let of = types.get(number)?;
            // Words of each part, and which of them are a name and a type.
            let (words, name_at, types_at): (usize, Option<usize>, &[usize]) = match of.kind {
                BTF_KIND_STRUCT | BTF_KIND_UNION => (3, Some(0), &[1]),
                BTF_KIND_ENUM => (2, Some(0), &[]),
                BTF_KIND_ENUM64 => (3, Some(0), &[]),
                BTF_KIND_ARRAY => (3, None, &[0, 1]),
                BTF_KIND_INT => (1, None, &[]),
                _ => (0, None, &[]),
            };
            // Only pointers lead to functions, whose parameters are not copied.
            let info = if words > 0 {
                of.info
            } else {
                of.info & !0xffff
            };
            let size_or_type = match of.kind {
                BTF_KIND_PTR | BTF_KIND_FUNC_PROTO => 0,
                kind if refers(kind) => self.number(source, of.size_or_type),
                _ => of.size_or_type,
            };
            let name = self.place(types.name(of.name)?);
            self.types.extend([name, info, size_or_type]);
            for part in of.parts.chunks_exact((4 * words).max(1)) {
                for at in 0..words {
                    let word = u32_at(part, 4 * at)?;
                    let word = match at {
                        _ if name_at == Some(at) => self.place(types.name(word)?),
                        _ if types_at.contains(&at) => self.number(source, word),
                        _ => word,
                    };
                    self.types.push(word);
                }
            }
        }
        Some(())
    }

    /// Adds the enumeration of the kernel's numbers of the structures that `wanted`, of the object's types,
    /// names. One that the kernel does not have is left out: libbpf makes the instructions that want it invalid.
    fn enumerate(&mut self, wanted: Type<'_>, types: &Types) -> Option<()> {
        let mut known = Vec::new();
        for (place, _) in wanted.pairs() {
            let name = types.name(place)?;
            let of = std::str::from_utf8(name.strip_prefix(NUMBER_OF)?).ok()?;
            if let Some(number) = self.sources[0].find(BTF_KIND_STRUCT, of) {
                known.extend([self.place(name), number]);
            }
        }
        let name = self.place(NUMBERS.as_bytes());
        self.types
            .extend([name, (BTF_KIND_ENUM << 24) | (known.len() as u32 / 2), 4]);
        self.types.extend(known);
        Some(())
    }

    pub(super) fn finish(self) -> Vec<u8> {
        const HEADER: u32 = 24;
        let types = 4 * self.types.len() as u32;
        let mut out = Vec::new();
        // Magic number and version, as the machine orders them.
        out.extend((BTF_MAGIC as u16).to_ne_bytes());
        out.extend([1, 0]);
        for word in [HEADER, 0, types, types, self.names.len() as u32] {
            out.extend(word.to_ne_bytes());
        }
        out.extend(self.types.into_iter().flat_map(u32::to_ne_bytes));
        out.extend(self.names);
        out
    }
}
