//! The mappings of a process, and the unwinding of its stacks.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use fathom_model::abi::StackRecord;
use framehop::{Module, Unwinder as _};

use super::objects::{Bytes, Objects};
use super::{Place, Policy};
use crate::mappings::code;

type Unwinder = framehop::UnwinderNative<Bytes, Policy>;
pub(crate) type Cache = framehop::CacheNative<Policy>;

/// Mappings with code of one process at most.
const MAX_MAPPINGS: usize = 4096;

struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    object: Option<u32>,
}

pub(crate) struct Process {
    /// In order of their addresses.
    mappings: Vec<Mapping>,
    pub(crate) unwinder: Unwinder,
    /// When code that is not known is worth another look; `None`: at once.
    pub(crate) again: Option<Instant>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            mappings: Vec::new(),
            unwinder: Unwinder::new(),
            again: None,
        }
    }
}

impl Process {
    /// Reads what is mapped now. Of a process that has ended what was known stays.
    pub(crate) fn read(&mut self, pid: u32, objects: &mut Objects) {
        let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else {
            return;
        };
        let maps = String::from_utf8_lossy(&maps);
        let (mut mappings, mut unwinder) = (Vec::new(), Unwinder::new());
        for (range, offset, path) in maps.lines().filter_map(code).take(MAX_MAPPINGS) {
            let Some((start, end)) = bounds(range) else {
                continue;
            };
            // Code without a file: the kernel's own page, or made while it runs.
            let object = path.starts_with('/').then(|| {
                let link = PathBuf::from(format!("/proc/{pid}/map_files/{range}"));
                objects.of_mapping(&link, path)
            });
            let object = object.flatten();
            let known = object.and_then(|number| objects.get(number));
            if let Some((known, bias)) = known.and_then(|o| Some((o, o.bias(start, offset)?))) {
                let sections = known.sections.clone();
                unwinder.add_module(Module::new(path.to_owned(), start..end, bias, sections));
            }
            mappings.push(Mapping {
                start,
                end,
                offset,
                object,
            });
        }
        (self.mappings, self.unwinder) = (mappings, unwinder);
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let behind = self.mappings.partition_point(|m| m.start <= address);
        let mapping = self.mappings.get(behind.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Whether code is mapped at an address.
    pub(crate) fn knows(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    /// Where in which file an address is.
    pub(crate) fn place(&self, address: u64) -> Place {
        // A return address may lie behind the last instruction of its function.
        let mapping = self.mapping(address.saturating_sub(1));
        match mapping.and_then(|m| Some((m, m.object?))) {
            Some((mapping, object)) => Place {
                object: Some(object),
                at: (address - mapping.start).saturating_add(mapping.offset),
            },
            None => Place {
                object: None,
                at: address,
            },
        }
    }
}

fn bounds(range: &str) -> Option<(u64, u64)> {
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?))
}

/// The registers that unwinding begins with.
#[cfg(target_arch = "x86_64")]
pub(crate) fn registers(record: &StackRecord) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(record.ip, record.sp, record.fp)
}

/// The registers that unwinding begins with.
#[cfg(target_arch = "aarch64")]
pub(crate) fn registers(record: &StackRecord) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(record.lr, record.sp, record.fp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_maps() {
        assert_eq!(
            bounds("7f00a000-7f00c000"),
            Some((0x7f00_a000, 0x7f00_c000))
        );
        assert_eq!(bounds("7f00a000"), None);
    }

    #[test]
    fn a_thread_of_this_process_is_unwound() {
        let mut objects = Objects::default();
        let mut process = Process::default();
        process.read(std::process::id(), &mut objects);
        let here = a_thread_of_this_process_is_unwound as fn() as usize as u64;
        assert!(process.knows(here) && !process.knows(16));
        let place = process.place(here + 1);
        let own = std::env::current_exe().unwrap();
        let (path, _) = objects.names(place.object);
        assert_eq!(path, own.to_string_lossy());
        let names = super::super::symbols::of(vec![place], &objects);
        let function = &names[&place][names[&place].len() - 1];
        assert!(
            function
                .name
                .contains("a_thread_of_this_process_is_unwound"),
            "{function:?}"
        );
    }
}
