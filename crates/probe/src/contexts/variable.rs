//! The thread-local variable in which a program or library publishes span contexts, and what its
//! file says of where it is.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    Endianness, Object as _, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind, elf,
};

/// Its name, by which readers know the layout of what it points to.
const NAME: &str = "otel_thread_ctx_v1";
/// Relocations of one file that name it; a linker makes one or two.
const MAX_SLOTS: usize = 16;
const MAX_SEGMENTS: usize = 64;
/// Bytes of the thread-local variables of a file.
const MAX_TLS: u64 = 1 << 30;

/// How the loader of programs says where the variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The distance from the thread pointer.
    Thread,
    /// The number of the module, and behind it the offset in the module's block if `named`.
    Module { named: bool },
    /// A function and its argument (TLSDESC): the distance from the thread pointer, or the address
    /// of the number of the module and the offset.
    Descriptor,
}

/// A place of the file that the loader fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Address, before the file is moved to where it is loaded.
    pub at: u64,
    pub access: Access,
}

/// A part of the file that is loaded as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub address: u64,
    pub offset: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    /// Its offset in the block of the file's thread-local variables.
    pub offset: u64,
    /// Its distance from the thread pointer if the file is the program itself, whose block is next
    /// to that.
    pub in_program: i64,
    pub slots: Vec<Slot>,
    pub segments: Vec<Segment>,
}

impl Variable {
    /// How far the file was moved, if the byte at `offset` of it is at `address` as code.
    pub(super) fn moved(&self, address: u64, offset: u64) -> Option<u64> {
        // Mappings begin at pages, of which a segment may fill only the end.
        let holds = |s: &&Segment| {
            let first = s.offset & !0xfff;
            offset >= first && offset < s.offset.saturating_add(s.bytes)
        };
        let segment = self.segments.iter().find(holds)?;
        let unmoved = segment
            .address
            .wrapping_add(offset.wrapping_sub(segment.offset));
        Some(address.wrapping_sub(unmoved))
    }
}

/// The variable in `file`. A file that is no program and no library, or one of 32 bits, has none.
pub(super) fn variable(file: &File) -> Option<Variable> {
    // The file may be anything: a panic in its reader must not be ours.
    catch_unwind(AssertUnwindSafe(|| read(file))).ok().flatten()
}

fn read(file: &File) -> Option<Variable> {
    let cache = ReadCache::new(file);
    let object = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let endian = object.endian();
    if object.is_little_endian() != cfg!(target_endian = "little")
        || object.elf_header().e_machine.get(endian) != MACHINE
    {
        return None;
    }
    let symbol = object.dynamic_symbols().find(|symbol| {
        symbol.kind() == SymbolKind::Tls
            && !symbol.is_undefined()
            && symbol.name().is_ok_and(|name| name == NAME)
    })?;
    let offset = symbol.address();
    let mut segments = Vec::new();
    let mut tls = None;
    for header in object.elf_program_headers() {
        match header.p_type(endian) {
            // Others may begin or end in the same page of the file.
            elf::PT_LOAD
                if header.p_flags(endian) & elf::PF_X == elf::PF_X
                    && segments.len() < MAX_SEGMENTS =>
            {
                segments.push(Segment {
                    address: header.p_vaddr(endian),
                    offset: header.p_offset(endian),
                    bytes: header.p_filesz(endian),
                });
            }
            elf::PT_TLS => {
                tls = Some((
                    header.p_vaddr(endian),
                    header.p_memsz(endian),
                    header.p_align(endian).max(1),
                ));
            }
            _ => {}
        }
    }
    let (address, bytes, align) = tls?;
    if offset >= bytes || bytes > MAX_TLS || align > MAX_TLS || !align.is_power_of_two() {
        return None;
    }
    let mut slots = Vec::new();
    for (at, relocation) in object.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            continue;
        };
        let named = match relocation.target() {
            RelocationTarget::Symbol(index) if index == symbol.index() => true,
            // Of the file itself: the addend is the offset, if the value has one.
            RelocationTarget::Absolute => false,
            RelocationTarget::Symbol(index) if index.0 == 0 => false,
            _ => continue,
        };
        let here = named || relocation.addend() as u64 == offset;
        let access = match r_type {
            kind if kind == TPOFF && here => Access::Thread,
            kind if kind == DTPMOD => Access::Module { named },
            kind if kind == TLSDESC && here => Access::Descriptor,
            _ => continue,
        };
        if slots.len() < MAX_SLOTS {
            slots.push(Slot { at, access });
        }
    }
    Some(Variable {
        offset,
        in_program: in_program(offset, address, bytes, align),
        slots,
        segments,
    })
}

#[cfg(target_arch = "aarch64")]
use object::elf::{
    EM_AARCH64 as MACHINE, R_AARCH64_TLS_DTPMOD as DTPMOD, R_AARCH64_TLS_TPREL as TPOFF,
    R_AARCH64_TLSDESC as TLSDESC,
};
#[cfg(target_arch = "x86_64")]
use object::elf::{
    EM_X86_64 as MACHINE, R_X86_64_DTPMOD64 as DTPMOD, R_X86_64_TLSDESC as TLSDESC,
    R_X86_64_TPOFF64 as TPOFF,
};

/// The block of the program ends at the thread pointer, aligned as it wants to be.
#[cfg(target_arch = "x86_64")]
fn in_program(offset: u64, address: u64, bytes: u64, align: u64) -> i64 {
    let padding = 0u64.wrapping_sub(address).wrapping_sub(bytes) & (align - 1);
    offset.wrapping_sub(bytes).wrapping_sub(padding) as i64
}

/// The block of the program follows the two words at the thread pointer.
#[cfg(target_arch = "aarch64")]
fn in_program(offset: u64, address: u64, _: u64, align: u64) -> i64 {
    const WORDS: u64 = 16;
    let padding = address.wrapping_sub(WORDS) & (align - 1);
    offset.wrapping_add(WORDS).wrapping_add(padding) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_it() {
        for path in ["/proc/self/maps", "/proc/self/exe"] {
            assert_eq!(variable(&File::open(path).unwrap()), None);
        }
    }

    #[test]
    fn how_far_a_file_was_moved() {
        let variable = Variable {
            offset: 0,
            in_program: 0,
            slots: Vec::new(),
            segments: vec![
                Segment {
                    address: 0x1000,
                    offset: 0x1000,
                    bytes: 0x600,
                },
                Segment {
                    address: 0x3df0,
                    offset: 0x2df0,
                    bytes: 0x240,
                },
            ],
        };
        assert_eq!(variable.moved(0x7000_1000, 0x1000), Some(0x7000_0000));
        assert_eq!(variable.moved(0x7000_3000, 0x2000), Some(0x7000_0000));
        assert_eq!(variable.moved(0x7000_3000, 0x9000), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_block_of_a_program_ends_at_the_thread_pointer() {
        assert_eq!(in_program(0, 0x4000, 8, 8), -8);
        assert_eq!(in_program(8, 0x4000, 12, 8), -8);
        assert_eq!(in_program(0, 0x4000, 24, 64), -64);
        assert_eq!(in_program(0, 0x4010, 24, 64), -48);
    }
}
