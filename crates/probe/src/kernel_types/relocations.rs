//! The questions of the programs on the kernel's types: the relocations of CO-RE in their object.

use std::collections::BTreeSet;

use object::{Object, ObjectSection};

use super::btf::{Types, u32_at};

/// The types of an object, and what is asked for.
pub(super) struct Relocations {
    pub(super) types: Types,
    /// Types, as the object numbers them, and kinds of questions on them.
    pub(super) asked: BTreeSet<(u32, u32)>,
}

impl Relocations {
    /// The relocations of the object in `elf` (`struct btf_ext_header` and `struct bpf_core_relo`); none if
    /// it is malformed.
    pub(super) fn read(elf: &[u8]) -> Option<Self> {
        let file = object::File::parse(elf).ok()?;
        let section = |name| file.section_by_name(name)?.data().ok();
        let types = Types::parse(section(".BTF")?.to_vec(), None)?;
        let all = section(".BTF.ext")?;
        let begin = (u32_at(all, 4)? + u32_at(all, 24)?) as usize;
        let mut rest = all.get(begin..begin.checked_add(u32_at(all, 28)? as usize)?)?;
        let mut asked = BTreeSet::new();
        let each = u32_at(rest, 0)? as usize;
        rest = &rest[4..];
        while !rest.is_empty() {
            let (many, after) = (u32_at(rest, 4)? as usize, rest.get(8..)?);
            let (records, next) = after.split_at_checked(many.checked_mul(each)?)?;
            for record in records.chunks_exact(each.max(16)) {
                asked.insert((u32_at(record, 4)?, u32_at(record, 12)?));
            }
            rest = next;
        }
        Some(Self { types, asked })
    }
}
