//! Reads BTF: which types there are, by number and by name.

use std::io;
use std::path::Path;
use std::rc::Rc;

use libbpf_sys::{
    BTF_KIND_ARRAY, BTF_KIND_CONST, BTF_KIND_DATASEC, BTF_KIND_DECL_TAG, BTF_KIND_ENUM,
    BTF_KIND_ENUM64, BTF_KIND_FLOAT, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO, BTF_KIND_FWD,
    BTF_KIND_INT, BTF_KIND_PTR, BTF_KIND_RESTRICT, BTF_KIND_STRUCT, BTF_KIND_TYPE_TAG,
    BTF_KIND_TYPEDEF, BTF_KIND_UNION, BTF_KIND_VAR, BTF_KIND_VOLATILE, BTF_MAGIC,
};

use crate::error::ProbeError;

/// Where the kernel shows its types and its modules'.
const DIRECTORY: &str = "/sys/kernel/btf";

/// Bytes of a type before what depends on its kind: its name, its kind and how many parts it has, and
/// its size or the type that it refers to.
const TYPE_BYTES: usize = 12;

/// The kind in a type's second word.
fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// Bytes that follow a type with this second word; none if its kind is unknown.
fn more(info: u32) -> Option<usize> {
    let parts = (info & 0xffff) as usize;
    match kind(info) {
        BTF_KIND_INT | BTF_KIND_VAR | BTF_KIND_DECL_TAG => Some(4),
        BTF_KIND_ARRAY => Some(12),
        BTF_KIND_STRUCT | BTF_KIND_UNION | BTF_KIND_DATASEC | BTF_KIND_ENUM64 => Some(12 * parts),
        BTF_KIND_ENUM | BTF_KIND_FUNC_PROTO => Some(8 * parts),
        BTF_KIND_PTR | BTF_KIND_FWD | BTF_KIND_FUNC | BTF_KIND_FLOAT => Some(0),
        kind => refers(kind).then_some(0),
    }
}

/// Whether types of this kind are another type, with a name or a qualifier.
pub(super) fn refers(kind: u32) -> bool {
    matches!(
        kind,
        BTF_KIND_TYPEDEF
            | BTF_KIND_VOLATILE
            | BTF_KIND_CONST
            | BTF_KIND_RESTRICT
            | BTF_KIND_TYPE_TAG
    )
}

/// Whether CO-RE takes a type of one kind for one of the other (`btf_kind_core_compat()` of libbpf).
pub(super) fn compatible(kind: u32, other: u32) -> bool {
    let is_enum = |kind| matches!(kind, BTF_KIND_ENUM | BTF_KIND_ENUM64);
    kind == other || is_enum(kind) && is_enum(other)
}

/// One type.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    /// One of libbpf's `BTF_KIND_*`.
    pub(super) kind: u32,
    /// Kind, number of parts, and a flag, as the format has them.
    pub(super) info: u32,
    /// Where its name is among the names.
    pub(super) name: u32,
    /// Its size, or the number of the type that it refers to.
    pub(super) size_or_type: u32,
    /// The bytes that follow: members, enumerators, parameters, or the like.
    pub(super) parts: &'a [u8],
}

impl<'a> Type<'a> {
    /// The first two numbers of each enumerator or parameter: its name, and its value or type.
    pub(super) fn pairs(self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let pair = |part| Some((u32_at(part, 0)?, u32_at(part, 4)?));
        self.parts.chunks_exact(8).filter_map(pair)
    }
}

/// The types of the kernel or of a module.
pub(crate) struct Types {
    bytes: Vec<u8>,
    /// Where the names begin in `bytes`, and where they end.
    names: (usize, usize),
    /// Where each type begins in `bytes`.
    places: Vec<u32>,
    /// Number of the first type, and of the first byte of the names. A module's continue the kernel's.
    first: u32,
    first_name: u32,
    /// Types by the hash of their name without its flavor: the newest, and for each the one before it, both plus one.
    newest: Vec<u32>,
    before: Vec<u32>,
    /// The kernel's types, if these are a module's.
    kernel: Option<Rc<Types>>,
}

impl Types {
    /// The types of the running kernel.
    ///
    /// # Errors
    /// When the kernel shows none, or types of an unknown kind.
    pub(crate) fn of_kernel() -> Result<Self, ProbeError> {
        let path = Path::new(DIRECTORY).join("vmlinux");
        let failed = |source| ProbeError::Types {
            at: path.display().to_string(),
            source,
        };
        let bytes = std::fs::read(&path).map_err(failed)?;
        let unknown = || {
            failed(io::Error::other(
                "it has kinds of types that this version does not know; try a newer one",
            ))
        };
        Self::parse(bytes, None).ok_or_else(unknown)
    }

    /// The types of a loaded module that has its own.
    pub(crate) fn of_module(name: &str, kernel: &Rc<Self>) -> Option<Self> {
        if name.is_empty() || name.contains(['/', '.']) {
            return None;
        }
        let bytes = std::fs::read(Path::new(DIRECTORY).join(name)).ok()?;
        Self::parse(bytes, Some(Rc::clone(kernel)))
    }

    /// The types of all loaded modules.
    pub(super) fn of_modules(kernel: &Rc<Self>) -> Vec<Rc<Self>> {
        let files = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
        files
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|name| name != "vmlinux")
            .filter_map(|name| Some(Rc::new(Self::of_module(&name, kernel)?)))
            .collect()
    }

    /// The types in `bytes`, which may refer to the kernel's; none if they are malformed.
    pub(super) fn parse(bytes: Vec<u8>, kernel: Option<Rc<Self>>) -> Option<Self> {
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        if u32::from(magic) != BTF_MAGIC {
            return None;
        }
        let header = u32_at(&bytes, 4)?;
        let part = |at: usize| {
            let begin = header.checked_add(u32_at(&bytes, at)?)? as usize;
            let end = begin.checked_add(u32_at(&bytes, at + 4)? as usize)?;
            (end <= bytes.len()).then_some((begin, end))
        };
        let (mut at, end) = part(8)?;
        let names = part(16)?;
        let mut places = Vec::with_capacity((end - at) / 24);
        while at < end {
            places.push(u32::try_from(at).ok()?);
            let info = u32_at(&bytes, at + 4)?;
            at += TYPE_BYTES + more(info)?;
        }
        if at != end {
            return None;
        }
        let mut types = Self {
            newest: vec![0; (places.len() * 2).next_power_of_two()],
            before: vec![0; places.len()],
            bytes,
            names,
            places,
            first: kernel.as_ref().map_or(1, |kernel| kernel.end()),
            first_name: kernel
                .as_ref()
                .map_or(0, |k| (k.names.1 - k.names.0) as u32),
            kernel,
        };
        for index in 0..types.places.len() {
            let place = u32_at(&types.bytes, types.places[index] as usize)?;
            if place > 0 {
                let slot = types.slot(essential(types.name(place)?));
                types.before[index] = std::mem::replace(&mut types.newest[slot], index as u32 + 1);
            }
        }
        Some(types)
    }

    /// The number after the last type's.
    pub(super) fn end(&self) -> u32 {
        self.first + self.places.len() as u32
    }

    /// Whether the type with this number is here, not among the kernel's that a module refers to.
    pub(super) fn have(&self, number: u32) -> bool {
        (self.first..self.end()).contains(&number)
    }

    /// The type with this number.
    pub(super) fn get(&self, number: u32) -> Option<Type<'_>> {
        let Some(index) = number.checked_sub(self.first) else {
            return self.kernel.as_ref()?.get(number);
        };
        let at = *self.places.get(index as usize)? as usize;
        let info = u32_at(&self.bytes, at + 4)?;
        let parts = at + TYPE_BYTES;
        Some(Type {
            kind: kind(info),
            info,
            name: u32_at(&self.bytes, at)?,
            size_or_type: u32_at(&self.bytes, at + 8)?,
            parts: self.bytes.get(parts..parts + more(info)?)?,
        })
    }

    /// The name at this place.
    pub(super) fn name(&self, place: u32) -> Option<&[u8]> {
        let Some(place) = place.checked_sub(self.first_name) else {
            return self.kernel.as_ref()?.name(place);
        };
        let names = self
            .bytes
            .get(self.names.0 + place as usize..self.names.1)?;
        names.split(|byte| *byte == 0).next()
    }

    fn slot(&self, name: &[u8]) -> usize {
        // FNV-1a; the names are the kernel's.
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash ^ hash >> 32) as usize & (self.newest.len() - 1)
    }

    /// The numbers and types whose names are `name`, flavors aside.
    pub(super) fn flavors<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = (u32, Type<'a>)> {
        let newest = self.newest.get(self.slot(name)).copied();
        let before = |at: &u32| self.before.get(*at as usize - 1).copied();
        let some = |at: &u32| *at > 0;
        std::iter::successors(newest.filter(some), move |at| before(at).filter(some))
            .filter_map(|at| {
                let number = self.first + at - 1;
                Some((number, self.get(number)?))
            })
            .filter(move |(_, of)| self.name(of.name).is_some_and(|n| essential(n) == name))
    }

    /// The first type of this kind and name.
    pub(crate) fn find(&self, kind: u32, name: &str) -> Option<u32> {
        self.flavors(essential(name.as_bytes()))
            .filter(|(_, of)| of.kind == kind && self.name(of.name) == Some(name.as_bytes()))
            .map(|(number, _)| number)
            .min()
    }

    /// The value of the enumerator `name` in the enumeration `of`, or in any if there is none.
    pub(crate) fn enumerator(&self, of: Option<&str>, name: &str) -> Option<u32> {
        let value = |number: u32| {
            let of = self.get(number).filter(|of| of.kind == BTF_KIND_ENUM)?;
            let is_named = |(place, _): &(u32, u32)| self.name(*place) == Some(name.as_bytes());
            of.pairs().find(is_named).map(|(_, value)| value)
        };
        match of {
            Some(of) => value(self.find(BTF_KIND_ENUM, of)?),
            None => (self.first..self.end()).find_map(value),
        }
    }

    /// The types of the parameters of the function that the typedef `name` points to.
    pub(crate) fn parameters(&self, name: &str) -> Option<Vec<u32>> {
        let pointer = self.get(self.find(BTF_KIND_TYPEDEF, name)?)?.size_or_type;
        let function = self.get(self.get(pointer)?.size_or_type)?;
        (function.kind == BTF_KIND_FUNC_PROTO).then(|| function.pairs().map(|(_, of)| of).collect())
    }

    /// The name of the type to which the pointer with this number leads.
    pub(crate) fn pointed(&self, pointer: u32) -> Option<&[u8]> {
        let mut of = self.get(self.get(pointer)?.size_or_type)?;
        while refers(of.kind) {
            of = self.get(of.size_or_type)?;
        }
        self.name(of.name)
    }
}

/// A name without the flavor that may follow it: `task_struct` of `task_struct___old`
/// (`bpf_core_essential_name_len()` of libbpf).
pub(super) fn essential(name: &[u8]) -> &[u8] {
    let flavor = name
        .windows(5)
        .rposition(|w| w[0] != b'_' && w[1..4] == *b"___" && w[4] != b'_');
    flavor.map_or(name, |at| &name[..=at])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}
