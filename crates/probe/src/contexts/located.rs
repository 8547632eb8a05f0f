//! Where the variable is in the threads of a process.

use std::fs::File;
use std::os::unix::fs::FileExt;

use fathom_model::abi::ContextPlace;

use super::variable::{Access, Slot, Variable};
use crate::mappings::code;

/// Modules that a process can have loaded; a larger number is no module.
const MAX_MODULES: u64 = 1 << 16;
/// Distance from the thread pointer, bytes; a larger one is an address.
const MAX_DISTANCE: i64 = 1 << 30;

/// The mappings of a process.
pub(super) struct Mapped<'a> {
    pub maps: &'a str,
    /// Its memory.
    pub memory: &'a File,
}

impl Mapped<'_> {
    /// Where threads have the variable, which is in a file that was moved by `moved`; `None` before the
    /// loader has filled in what says so.
    pub(super) fn place(
        &self,
        variable: &Variable,
        moved: u64,
        is_program: bool,
    ) -> Option<ContextPlace> {
        if is_program {
            return Some(at_thread(variable.in_program));
        }
        let mut slots = variable.slots.iter();
        slots.find_map(|slot| self.filled(variable, *slot, moved.wrapping_add(slot.at)))
    }

    fn filled(&self, variable: &Variable, slot: Slot, address: u64) -> Option<ContextPlace> {
        let [first, second] = self.words(address)?;
        match slot.access {
            Access::Thread => is_distance(first).then(|| at_thread(first as i64)),
            Access::Module { named } => {
                let offset = if named { second } else { variable.offset };
                self.in_module(first, offset)
            }
            Access::Descriptor => {
                // Before the loader has filled it in there is no function.
                self.is_code(first).then_some(())?;
                let dynamic = self
                    .words(second)
                    .filter(|[_, offset]| *offset == variable.offset)
                    .and_then(|[module, offset]| self.in_module(module, offset));
                dynamic.or_else(|| is_distance(second).then(|| at_thread(second as i64)))
            }
        }
    }

    fn words(&self, address: u64) -> Option<[u64; 2]> {
        let mut bytes = [0; 16];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        let (first, second) = bytes.split_first_chunk::<8>()?;
        let second = second.first_chunk::<8>()?;
        Some([*first, *second].map(u64::from_ne_bytes))
    }

    fn is_code(&self, address: u64) -> bool {
        self.maps.lines().filter_map(code).any(|(range, ..)| {
            let bounds = range.split_once('-').and_then(|(from, to)| {
                let number = |text| u64::from_str_radix(text, 16).ok();
                Some(number(from)?..number(to)?)
            });
            bounds.is_some_and(|bounds| bounds.contains(&address))
        })
    }

    fn in_module(&self, module: u64, offset: u64) -> Option<ContextPlace> {
        if !(1..MAX_MODULES).contains(&module) || offset >= MAX_DISTANCE as u64 {
            return None;
        }
        let table = if self.is_musl() { MUSL } else { GLIBC };
        Some(ContextPlace {
            offset: offset as i64,
            module: module as u32,
            ..table
        })
    }

    /// Whether the C library of the process is musl, not glibc.
    fn is_musl(&self) -> bool {
        self.maps.lines().filter_map(code).any(|(_, _, path)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            // glibc's is libc.so.6.
            name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
        })
    }
}

/// Where a C library has the blocks of the modules of a thread: how to get from the thread pointer to
/// the table of blocks, how many it has, and the bytes of an entry as a power of two.
const GLIBC: ContextPlace = ContextPlace {
    offset: 0,
    code_pages: 0,
    module: 0,
    dtv_at: if cfg!(target_arch = "x86_64") { 8 } else { 0 },
    // In front of the entries, of two words each; entry 0 is a generation.
    length_at: -16,
    entry_shift: 4,
    found: 1,
    reserved: 0,
};
const MUSL: ContextPlace = ContextPlace {
    dtv_at: if cfg!(target_arch = "x86_64") { 8 } else { -8 },
    length_at: 0,
    entry_shift: 3,
    ..GLIBC
};

fn at_thread(distance: i64) -> ContextPlace {
    ContextPlace {
        offset: distance,
        ..GLIBC
    }
}

/// The blocks of modules are in front of the thread pointer, or behind it.
fn is_distance(word: u64) -> bool {
    let distance = word as i64;
    match cfg!(target_arch = "x86_64") {
        true => (-MAX_DISTANCE..0).contains(&distance),
        false => (1..MAX_DISTANCE).contains(&distance),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::variable::Access;
    use super::*;

    /// Memory with `words` at its beginning, and with code from 0x1000 on.
    fn place(words: &[u64], access: Access) -> Option<ContextPlace> {
        let mut memory = tempfile();
        for word in words {
            memory.write_all(&word.to_ne_bytes()).unwrap();
        }
        let variable = Variable {
            offset: 24,
            in_program: -64,
            slots: vec![Slot { at: 0, access }],
            segments: Vec::new(),
        };
        let mapped = Mapped {
            maps: "1000-2000 r-xp 00000000 00:01 7 /lib/ld-linux-x86-64.so.2\n",
            memory: &memory,
        };
        mapped.place(&variable, 0, false)
    }

    fn tempfile() -> File {
        let name = std::ffi::CString::new("memory").unwrap();
        // SAFETY: the name is a string that outlives the call.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), 0) };
        assert!(fd >= 0);
        // SAFETY: the descriptor is new, and nothing else has it.
        unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(fd) }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_access_model() {
        let minus = |n: u64| 0u64.wrapping_sub(n);
        let offsets = |place: Option<ContextPlace>| place.map(|p| (p.module, p.offset));
        let thread = Access::Thread;
        assert_eq!(offsets(place(&[minus(8), 0], thread)), Some((0, -8)));
        assert_eq!(offsets(place(&[0, 0], thread)), None);
        let module = Access::Module { named: true };
        assert_eq!(offsets(place(&[5, 24], module)), Some((5, 24)));
        assert_eq!(offsets(place(&[0, 0], module)), None);
        assert_eq!(offsets(place(&[1 << 40, 24], module)), None);
        let module = Access::Module { named: false };
        assert_eq!(offsets(place(&[5, 0], module)), Some((5, 24)));
        let descriptor = Access::Descriptor;
        assert_eq!(
            offsets(place(&[0x1100, minus(40)], descriptor)),
            Some((0, -40))
        );
        assert_eq!(
            offsets(place(&[0x1100, 16, 3, 24], descriptor)),
            Some((3, 24))
        );
        // The loader has not been there, or the words are something else.
        assert_eq!(offsets(place(&[0, 0], descriptor)), None);
        assert_eq!(offsets(place(&[0x5000, 16, 3, 24], descriptor)), None);
        assert_eq!(offsets(place(&[0x1100, 16, 3, 8], descriptor)), None);
    }
}
