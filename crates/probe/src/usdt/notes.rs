//! The static probes in a program or library: notes of type `NT_STAPSDT` in section
//! `.note.stapsdt`.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use object::read::ReadCache;
use object::{Object as _, ObjectSection};

use crate::uprobes::Segments;

const SECTION: &str = ".note.stapsdt";
/// Of the same name in all programs; its address shows whether the program was moved since.
const BASE: &str = ".stapsdt.base";
const OWNER: &[u8] = b"stapsdt\0";
const NT_STAPSDT: u32 = 3;
/// Notes of a file that are read; the JVM has 570.
const MAX_NOTES: usize = 16384;
/// Bytes of all notes of a file.
const MAX_BYTES: u64 = 16 << 20;

/// A static probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub provider: String,
    pub name: String,
    /// Where its arguments are.
    pub arguments: String,
    /// Its place in the file, bytes.
    pub at: u64,
    /// Place of its semaphore in the file; 0: it has none.
    pub semaphore_at: u64,
}

/// The probes in `file`. A file that is no program and no library, or one of 32 bits, has none.
pub(super) fn notes(file: &File) -> Vec<Note> {
    // The file may be anything: a panic in its reader must not be ours.
    let found = catch_unwind(AssertUnwindSafe(|| read(file)));
    found.ok().flatten().unwrap_or_default()
}

fn read(file: &File) -> Option<Vec<Note>> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    if !object.is_64() || object.is_little_endian() != cfg!(target_endian = "little") {
        return None;
    }
    let section = object.section_by_name(SECTION)?;
    if section.size() > MAX_BYTES {
        return None;
    }
    let base = object.section_by_name(BASE).map(|base| base.address());
    let segments = Segments::of(&object);
    let mut rest = section.data().ok()?;
    let mut found = Vec::new();
    while let Some((description, behind)) = next(rest) {
        rest = behind;
        let Some(raw) = description.and_then(raw) else {
            continue;
        };
        // How far the program was moved since the note was written (prelink).
        let moved = base.map_or(0, |base| base.wrapping_sub(raw.base));
        let Some(at) = segments.place(raw.location.wrapping_add(moved)) else {
            continue;
        };
        let semaphore_at = match raw.semaphore {
            0 => 0,
            // Without it the program would not prepare what the probe passes.
            semaphore => match segments.place(semaphore.wrapping_add(moved)) {
                Some(at) => at,
                None => continue,
            },
        };
        found.push(Note {
            provider: raw.provider.to_owned(),
            name: raw.name.to_owned(),
            arguments: raw.arguments.to_owned(),
            at,
            semaphore_at,
        });
        if found.len() >= MAX_NOTES {
            break;
        }
    }
    Some(found)
}

/// The next note, if it is of a probe its description, and what is behind it.
fn next(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (header, rest) = bytes.split_at_checked(12)?;
    let word = |at: usize| {
        let bytes = header.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let (owner_len, len, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
    let (owner, rest) = rest.split_at_checked(owner_len.checked_next_multiple_of(4)?)?;
    let padded = len.checked_next_multiple_of(4)?.min(rest.len());
    let (description, rest) = rest.split_at_checked(padded)?;
    let is_probe = kind == NT_STAPSDT && owner.get(..owner_len) == Some(OWNER);
    Some((description.get(..len).filter(|_| is_probe), rest))
}

/// A description, taken apart.
struct Raw<'a> {
    location: u64,
    base: u64,
    semaphore: u64,
    provider: &'a str,
    name: &'a str,
    arguments: &'a str,
}

fn raw(description: &[u8]) -> Option<Raw<'_>> {
    let (addresses, texts) = description.split_at_checked(24)?;
    let [location, base, semaphore] = addresses.as_chunks::<8>().0 else {
        return None;
    };
    let mut texts = texts.split(|byte| *byte == 0).map(std::str::from_utf8);
    let mut text = || texts.next()?.ok();
    Some(Raw {
        location: u64::from_ne_bytes(*location),
        base: u64::from_ne_bytes(*base),
        semaphore: u64::from_ne_bytes(*semaphore),
        provider: text()?,
        name: text()?,
        arguments: text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(owner: &[u8], kind: u32, texts: &[u8]) -> Vec<u8> {
        let addresses = [0x1000u64, 0, 0].map(u64::to_ne_bytes).concat();
        let description = [&addresses[..], texts].concat();
        let mut bytes = Vec::new();
        for word in [owner.len() as u32, description.len() as u32, kind] {
            bytes.extend(word.to_ne_bytes());
        }
        for part in [owner, &description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn notes_of_others_are_passed_over() {
        let bytes = [
            note(b"GNU\0", 3, b"x\0y\0\0"),
            note(OWNER, 1, b"x\0y\0\0"),
            note(OWNER, NT_STAPSDT, b"app\0job__start\08@%rax -4@$1\0"),
        ]
        .concat();
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        while let Some((description, behind)) = next(rest) {
            found.extend(description.and_then(raw));
            rest = behind;
        }
        assert!(rest.is_empty());
        let [probe] = &found[..] else {
            panic!("{} probes", found.len());
        };
        assert_eq!(
            (probe.provider, probe.name, probe.arguments),
            ("app", "job__start", "8@%rax -4@$1")
        );
        assert_eq!((probe.location, probe.semaphore), (0x1000, 0));
    }

    #[test]
    fn damaged_notes_are_none() {
        let whole = note(OWNER, NT_STAPSDT, b"app\0job\0\0");
        for length in 0..whole.len() {
            if let Some((Some(description), _)) = next(&whole[..length]) {
                let _ = raw(description);
            }
        }
        assert!(next(&[0xff; 64]).is_none());
        assert!(raw(&[0; 23]).is_none());
        assert!(raw(&[0xff; 40]).is_none());
    }

    #[test]
    fn other_files_have_none() {
        for path in ["/proc/self/maps", "/proc/self/exe"] {
            assert_eq!(notes(&File::open(path).unwrap()), []);
        }
    }
}
