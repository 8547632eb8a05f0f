//! Where functions are in their files.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use object::read::ReadCache;
use object::{Object as _, ObjectSection, ObjectSymbol, SymbolKind};

use crate::uprobes::Segments;

/// Instructions without effect with which functions begin, which are skipped: the kernel steps
/// over `endbr64` by a trap, and turns a breakpoint in a long `nop` into a call.
#[cfg(target_arch = "x86_64")]
const WITHOUT_EFFECT: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0x0f, 0x1f, 0x44, 0x00, 0x00]];
#[cfg(not(target_arch = "x86_64"))]
const WITHOUT_EFFECT: [&[u8]; 0] = [];

/// The bytes in `file` at which the functions of these names begin. A file that is no program and
/// no library, or one of 32 bits, has none.
pub(crate) fn places(file: &File, names: &[&str]) -> HashMap<String, Vec<u64>> {
    // The file may be anything: a panic in its reader must not be ours.
    let found = catch_unwind(AssertUnwindSafe(|| read(file, names)));
    found.ok().flatten().unwrap_or_default()
}

fn read(file: &File, names: &[&str]) -> Option<HashMap<String, Vec<u64>>> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok().filter(|o| o.is_64())?;
    let segments = Segments::of(&object);
    let mut found: HashMap<String, Vec<u64>> = HashMap::new();
    for symbol in object.dynamic_symbols().chain(object.symbols()) {
        // A function that chooses another one when the library is loaded (STT_GNU_IFUNC) is none.
        if !symbol.is_definition() || symbol.kind() != SymbolKind::Text {
            continue;
        }
        let Ok(name) = symbol.name() else {
            continue;
        };
        let name = name.split('@').next().unwrap_or(name);
        if !names.contains(&name) {
            continue;
        }
        let address = symbol.address();
        let Some(place) = segments.place(address) else {
            continue;
        };
        let skipped = symbol
            .section_index()
            .and_then(|index| object.section_by_index(index).ok())
            .and_then(|section| section.data_range(address, 16).ok().flatten())
            .map_or(0, without_effect);
        let place = place.saturating_add(skipped);
        let places = found.entry(name.to_owned()).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Some(found)
}

/// Bytes of instructions without effect at the beginning of `code`.
fn without_effect(code: &[u8]) -> u64 {
    let mut rest = code;
    while let Some(behind) = WITHOUT_EFFECT.iter().find_map(|i| rest.strip_prefix(*i)) {
        rest = behind;
    }
    (code.len() - rest.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_program() {
        let own = File::open("/proc/self/exe").unwrap();
        // No library and no program.
        let text = File::open("/proc/self/maps").unwrap();
        assert!(places(&text, &["main"]).is_empty());
        let found = places(&own, &["main", "no_such_function"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found["main"].len(), 1);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn beginnings_without_effect() {
        let endbr64 = [0xf3, 0x0f, 0x1e, 0xfa];
        let nop = [0x0f, 0x1f, 0x44, 0x00, 0x00];
        let push = [0x41, 0x57];
        assert_eq!(without_effect(&[&endbr64[..], &nop, &push].concat()), 9);
        assert_eq!(without_effect(&push), 0);
        assert_eq!(without_effect(&[]), 0);
    }
}
