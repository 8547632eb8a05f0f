//! The kernel's types that the programs name, without the others.
//!
//! For each type that the programs name, libbpf looks at the names of all types of the kernel, of which
//! there are more than 100,000, to fit the programs to this kernel (CO-RE). That took a fifth of the
//! processor time of a start. Here all of them are looked at once, and libbpf is given the named types
//! and the types of their members.
//!
//! Types have a number. Programs that cast (`bpf_rdonly_cast`) contain numbers of the kernel's own, so
//! a type that they cast to keeps its number; the others take the numbers that are left.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use object::{Object, ObjectSection};
use rustix::fs::{MemfdFlags, memfd_create};

const DIRECTORY: &str = "/sys/kernel/btf";
const KERNEL: &str = "vmlinux";
/// `btf_header`: a magic number, version, flags, and lengths.
const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// `btf_type` without what follows it for some kinds.
const TYPE: usize = 12;
/// Kinds (`include/uapi/linux/btf.h`).
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
/// Kind of a relocation: the number of a type in the kernel (`enum bpf_core_relo_kind`).
const TYPE_ID_TARGET: u32 = 7;

/// A file in memory with the types of this kernel, and of its modules, that the programs of `object`
/// name. None if they cannot be read, or a program needs a number that cannot be kept: libbpf then looks
/// for itself.
pub(crate) fn named_by(object: &[u8]) -> Option<OwnedFd> {
    let types = reduced(&wanted(object)?, Path::new(DIRECTORY))?;
    let file = memfd_create("fathom-types", MemfdFlags::CLOEXEC).ok()?;
    let mut file = fs::File::from(file);
    file.write_all(&types).ok()?;
    Some(file.into())
}

/// Names of types in programs, without what follows `___`.
#[derive(Default)]
struct Wanted {
    names: HashSet<Vec<u8>>,
    /// Those whose number is in a program.
    numbered: HashSet<Vec<u8>>,
}

/// Native 32 bits at `at`.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn slice(bytes: &[u8], from: u32, len: u32) -> Option<&[u8]> {
    let from = from as usize;
    bytes.get(from..from.checked_add(len as usize)?)
}

/// The types that the relocations of `object` name (`.BTF.ext`, `struct bpf_core_relo`).
fn wanted(object: &[u8]) -> Option<Wanted> {
    let elf = object::File::parse(object).ok()?;
    let types = elf.section_by_name(".BTF")?.data().ok()?;
    let types = Types::parse(types, None)?;
    let ext = elf.section_by_name(".BTF.ext")?.data().ok()?;
    let (header, from, len) = (word(ext, 4)?, word(ext, 24)?, word(ext, 28)?);
    let relocations = slice(ext, header.checked_add(from)?, len)?;
    let size = word(relocations, 0)? as usize;
    let mut wanted = Wanted::default();
    let mut at = 4;
    while at < relocations.len() {
        let count = word(relocations, at + 4)?;
        at += 8;
        for _ in 0..count {
            let (number, kind) = (word(relocations, at + 4)?, word(relocations, at + 12)?);
            at += size;
            let name = essential(types.name(types.bytes(number)?)?).to_vec();
            if kind == TYPE_ID_TARGET {
                wanted.numbered.insert(name.clone());
            }
            wanted.names.insert(name);
        }
    }
    Some(wanted)
}

/// A name without its flavor, as libbpf's `bpf_core_essential_name_len` has it.
fn essential(name: &[u8]) -> &[u8] {
    let flavor = name.windows(5).rposition(|part| {
        matches!(part, [before, b'_', b'_', b'_', after] if *before != b'_' && *after != b'_')
    });
    match flavor {
        Some(at) => name.get(..=at).unwrap_or(name),
        None => name,
    }
}

/// Where in the bytes of a type the numbers of others and names are: the first, and how far the next of
/// several lie.
struct Layout {
    len: usize,
    numbers: (usize, usize, usize),
    names: (usize, usize, usize),
}

impl Layout {
    /// Of the type with which `bytes` begins; none for kinds that are not known.
    fn of(bytes: &[u8]) -> Option<Self> {
        // How many members, values, or parameters follow it.
        let count = (word(bytes, 4)? & 0xffff) as usize;
        let plain = |len| (len, (0, 0, 0), (0, 0, 0));
        let (len, numbers, names) = match kind(bytes)? {
            INT | VAR | DECL_TAG => plain(TYPE + 4),
            // The type behind a pointer is never looked at.
            PTR | FWD | FUNC | FLOAT => plain(TYPE),
            FUNC_PROTO => plain(TYPE + 8 * count),
            DATASEC => plain(TYPE + 12 * count),
            ARRAY => (TYPE + 12, (TYPE, 4, 2), (0, 0, 0)),
            STRUCT | UNION => (TYPE + 12 * count, (TYPE + 4, 12, count), (TYPE, 12, count)),
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => (TYPE, (8, 0, 1), (0, 0, 0)),
            ENUM => (TYPE + 8 * count, (0, 0, 0), (TYPE, 8, count)),
            ENUM64 => (TYPE + 12 * count, (0, 0, 0), (TYPE, 12, count)),
            _ => return None,
        };
        Some(Self {
            len,
            numbers,
            names,
        })
    }
}

fn places((first, step, count): (usize, usize, usize)) -> impl Iterator<Item = usize> {
    (0..count).map(move |i| first + i * step)
}

/// The kind of the type with which `bytes` begins.
fn kind(bytes: &[u8]) -> Option<u32> {
    Some(word(bytes, 4)? >> 24 & 31)
}

/// Types in the format of BTF. Numbers and offsets of names of a module continue the kernel's.
struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The number of the first, and where it begins in `types`, then the others.
    first: u32,
    begins: Vec<u32>,
    /// The offset of the first name.
    names_from: u32,
}

impl<'a> Types<'a> {
    /// `kernel`: if these are a module's.
    fn parse(bytes: &'a [u8], kernel: Option<&Types<'_>>) -> Option<Self> {
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        if magic != MAGIC {
            return None;
        }
        let header = word(bytes, 4)?;
        let part = |at| -> Option<&'a [u8]> {
            slice(
                bytes,
                header.checked_add(word(bytes, at)?)?,
                word(bytes, at + 4)?,
            )
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut begins = Vec::new();
        let mut at = 0;
        while at < types.len() {
            begins.push(at as u32);
            at += Layout::of(types.get(at..)?)?.len;
        }
        Some(Self {
            types,
            strings,
            first: kernel.map_or(1, |kernel| kernel.end()),
            begins,
            names_from: kernel.map_or(0, |kernel| kernel.strings.len() as u32),
        })
    }

    /// The number after the last.
    fn end(&self) -> u32 {
        self.first + self.begins.len() as u32
    }

    fn bytes(&self, number: u32) -> Option<&'a [u8]> {
        let begin = *self.begins.get(number.checked_sub(self.first)? as usize)?;
        self.types.get(begin as usize..)
    }

    fn text(&self, offset: u32) -> Option<&'a [u8]> {
        let text = self
            .strings
            .get(offset.checked_sub(self.names_from)? as usize..)?;
        text.split(|byte| *byte == 0).next()
    }

    fn name(&self, bytes: &[u8]) -> Option<&'a [u8]> {
        self.text(word(bytes, 0)?)
    }

    /// Numbers of the types with one of these names, of kinds that programs name.
    fn named(&self, names: &HashSet<Vec<u8>>) -> Vec<(u32, &'a [u8])> {
        let numbers = self.first..self.end();
        let named = numbers.filter_map(|number| {
            let bytes = self.bytes(number)?;
            let kind = kind(bytes)?;
            if !matches!(
                kind,
                INT | STRUCT | UNION | ENUM | ENUM64 | FWD | TYPEDEF | FLOAT
            ) {
                return None;
            }
            let name = essential(self.name(bytes)?);
            names.contains(name).then_some((number, name))
        });
        named.collect()
    }
}

/// The types in `directory` that are wanted, and the types of their members.
fn reduced(wanted: &Wanted, directory: &Path) -> Option<Vec<u8>> {
    let kernel = fs::read(directory.join(KERNEL)).ok()?;
    let kernel = Types::parse(&kernel, None)?;
    let roots = kernel.named(&wanted.names);
    let found: HashSet<&[u8]> = roots.iter().map(|(_, name)| *name).collect();
    let missing = wanted
        .names
        .iter()
        .filter(|name| !found.contains(name.as_slice()));
    let missing: HashSet<Vec<u8>> = missing.cloned().collect();
    // libbpf looks for those in all modules.
    let files = match missing.is_empty() {
        true => Vec::new(),
        false => modules(directory)?,
    };
    let mut chosen = Chosen::default();
    for (number, name) in roots {
        chosen.add(0, number, wanted.numbered.contains(name));
    }
    let mut parts = vec![kernel];
    for file in &files {
        let [kernel, ..] = parts.as_slice() else {
            return None;
        };
        let module = Types::parse(file, Some(kernel))?;
        let roots = module.named(&missing);
        if roots.is_empty() {
            continue;
        }
        for (number, name) in roots {
            if wanted.numbered.contains(name) {
                return None;
            }
            chosen.add(parts.len(), number, false);
        }
        parts.push(module);
    }
    chosen.close(&parts)?;
    chosen.write(&parts)
}

/// The types of modules, a file each.
fn modules(directory: &Path) -> Option<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        if entry.file_name() != KERNEL {
            files.push(fs::read(entry.path()).ok()?);
        }
    }
    Some(files)
}

/// A type: its part (the kernel, or a module) and its number there.
type Place = (usize, u32);

/// Types that are written, in the order in which they were found.
#[derive(Default)]
struct Chosen {
    places: Vec<Place>,
    /// Whether they keep their number.
    kept: HashMap<Place, bool>,
}

impl Chosen {
    fn add(&mut self, part: usize, number: u32, keeps: bool) {
        self.kept.entry((part, number)).or_insert_with(|| {
            self.places.push((part, number));
            keeps
        });
    }

    /// Adds the types of members, and theirs.
    fn close(&mut self, parts: &[Types<'_>]) -> Option<()> {
        let mut next = 0;
        while let Some(&(part, number)) = self.places.get(next) {
            next += 1;
            let bytes = parts.get(part)?.bytes(number)?;
            for at in places(Layout::of(bytes)?.numbers) {
                let (part, number) = place(parts, part, word(bytes, at)?)?;
                // Type 0 is void.
                if number > 0 {
                    self.add(part, number, false);
                }
            }
        }
        Some(())
    }

    /// The new numbers: the kernel's if it is kept, else one that is free.
    fn numbers(&self) -> HashMap<Place, u32> {
        let kept = |place: &Place| self.kept.get(place) == Some(&true);
        let taken: HashSet<u32> = self
            .places
            .iter()
            .filter(|p| kept(p))
            .map(|p| p.1)
            .collect();
        let mut free = (1..).filter(|number| !taken.contains(number));
        let numbers = self.places.iter().map(|place| match kept(place) {
            true => (*place, place.1),
            false => (*place, free.next().unwrap_or_default()),
        });
        numbers.collect()
    }

    /// All in the format of BTF. A number that no type has is one of a kind that is never looked for.
    fn write(&self, parts: &[Types<'_>]) -> Option<Vec<u8>> {
        let numbers = self.numbers();
        let by_number: HashMap<u32, Place> = numbers.iter().map(|(p, n)| (*n, *p)).collect();
        let last = by_number.keys().copied().max()?;
        let mut strings = vec![0];
        let mut offsets: HashMap<&[u8], u32> = HashMap::new();
        let mut types = Vec::new();
        for number in 1..=last {
            let Some(&(part, there)) = by_number.get(&number) else {
                types.extend(
                    [0, FLOAT << 24, 4]
                        .iter()
                        .flat_map(|word: &u32| word.to_ne_bytes()),
                );
                continue;
            };
            let of = parts.get(part)?;
            let bytes = of.bytes(there)?;
            let layout = Layout::of(bytes)?;
            let mut bytes = bytes.get(..layout.len)?.to_vec();
            for at in places(layout.numbers) {
                let other = place(parts, part, word(&bytes, at)?)?;
                put(&mut bytes, at, numbers.get(&other).copied().unwrap_or(0))?;
            }
            if kind(&bytes)? == PTR {
                put(&mut bytes, 8, 0)?;
            }
            for at in std::iter::once(0).chain(places(layout.names)) {
                let offset = word(&bytes, at)?;
                let of = if offset < of.names_from {
                    parts.first()?
                } else {
                    of
                };
                let name = of.text(offset)?;
                let offset = *offsets.entry(name).or_insert_with(|| {
                    if name.is_empty() {
                        return 0;
                    }
                    let offset = strings.len() as u32;
                    strings.extend_from_slice(name);
                    strings.push(0);
                    offset
                });
                put(&mut bytes, at, offset)?;
            }
            types.extend(bytes);
        }
        let mut all = Vec::with_capacity(HEADER + types.len() + strings.len());
        all.extend(MAGIC.to_ne_bytes());
        // Version 1, no flags.
        all.extend([1, 0]);
        let (of_types, of_strings) = (types.len() as u32, strings.len() as u32);
        for word in [HEADER as u32, 0, of_types, of_types, of_strings] {
            all.extend(word.to_ne_bytes());
        }
        all.extend(types);
        all.extend(strings);
        Some(all)
    }
}

/// The place of the type that `number` means in a part.
fn place(parts: &[Types<'_>], part: usize, number: u32) -> Option<Place> {
    let own = number >= parts.get(part)?.first;
    Some((if own { part } else { 0 }, number))
}

fn put(bytes: &mut [u8], at: usize, word: u32) -> Option<()> {
    bytes
        .get_mut(at..at + 4)?
        .copy_from_slice(&word.to_ne_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

    use std::os::fd::AsRawFd;

    use libbpf_rs::HasSize;
    use libbpf_rs::btf::{Btf, types};

    use super::*;
    use crate::features::Features;
    use crate::variant::loadable;

    #[test]
    fn flavors_are_cut_off() {
        let cut = |name: &str| String::from_utf8(essential(name.as_bytes()).to_vec()).unwrap();
        assert_eq!(cut("request___old"), "request");
        assert_eq!(cut("a___b___c"), "a___b");
        assert_eq!(cut("__kernel_timespec"), "__kernel_timespec");
        assert_eq!(cut("a____b"), "a____b");
        assert_eq!(cut("___"), "___");
    }

    /// Members with their offsets in bits, and in those the members of structures that lie in them.
    fn members(types: &Btf<'_>, of: &types::Composite<'_>, from: u32, all: &mut Vec<String>) {
        for member in of.iter() {
            let libbpf_rs::btf::types::MemberAttr::Normal { offset } = member.attr else {
                continue;
            };
            let name = member.name.map(|name| name.to_string_lossy().into_owned());
            let ty = types
                .type_by_id::<libbpf_rs::btf::BtfType<'_>>(member.ty)
                .unwrap();
            let ty = ty.skip_mods_and_typedefs();
            all.push(format!("{name:?} {} {:?}", from + offset, ty.kind()));
            if let Ok(inner) = types::Composite::try_from(ty) {
                members(types, &inner, from + offset, all);
            }
        }
    }

    /// Members lie where they do in all types of the kernel, and types that programs cast to have its numbers.
    #[test]
    fn types_are_those_of_the_kernel() {
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            eprintln!("SKIPPED: this kernel has no BTF");
            return;
        }
        let all = Btf::from_vmlinux().unwrap();
        for variant in loadable(&Features::read().unwrap()).unwrap() {
            let wanted = wanted(variant.object).unwrap();
            assert!(wanted.names.len() > 20, "{}", wanted.names.len());
            let file = named_by(variant.object).unwrap();
            let few = Btf::from_path(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
            assert!(few.len() * 3 < all.len(), "{} {}", few.len(), all.len());
            let mut compared = 0;
            for name in &wanted.names {
                let name = str::from_utf8(name).unwrap();
                let of = |types: &Btf<'_>| {
                    let found = types.type_by_name::<types::Composite<'_>>(name)?;
                    let mut all = vec![format!("{} bytes", found.size())];
                    members(types, &found, 0, &mut all);
                    Some((all, found.type_id()))
                };
                let (Some((there, number)), here) = (of(&all), of(&few)) else {
                    continue;
                };
                let (here, own) = here.unwrap_or_else(|| panic!("{name}"));
                assert_eq!(here, there, "{name}");
                if wanted.numbered.contains(name.as_bytes()) {
                    assert_eq!(own, number, "{name}");
                }
                compared += 1;
            }
            assert!(compared > 20, "{compared}");
        }
    }

    /// Bytes that are no types are no reason to fail.
    #[test]
    fn damaged_types_are_left_alone() {
        assert!(named_by(b"no object").is_none());
        let dir = std::env::temp_dir().join(format!("fathom-types-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut names = Wanted::default();
        names.names.insert(b"inode".to_vec());
        for bytes in [b"".as_slice(), b"\x9f\xeb\x01", &[0xff; 64]] {
            fs::write(dir.join(KERNEL), bytes).unwrap();
            assert!(reduced(&names, &dir).is_none());
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
