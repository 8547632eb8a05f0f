//! The few parts of a shared library of 64 bits that are changed: names of dynamic symbols, the table
//! by which they are found (`DT_HASH`), and data.

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL: usize = 24;

/// A shared library.
pub(crate) struct Elf {
    bytes: Vec<u8>,
    /// Address, place in the file and length of each part that is loaded.
    parts: Vec<(u64, usize, usize)>,
    hash: usize,
    strings: usize,
    symbols: usize,
    count: usize,
}

impl Elf {
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let mut elf = Self {
            bytes,
            parts: Vec::new(),
            hash: 0,
            strings: 0,
            symbols: 0,
            count: 0,
        };
        let at = elf.number(32, 8)? as usize;
        let (size, count) = (elf.number(54, 2)? as usize, elf.number(56, 2)? as usize);
        let mut dynamic = 0..0;
        for at in (0..count).map(|i| at + i * size) {
            let place = elf.number(at + 8, 8)? as usize;
            let bytes = elf.number(at + 32, 8)? as usize;
            match elf.number(at, 4)? {
                PT_LOAD => elf.parts.push((elf.number(at + 16, 8)?, place, bytes)),
                PT_DYNAMIC => dynamic = place..place + bytes,
                _ => {}
            }
        }
        for at in dynamic.step_by(16) {
            let (tag, value) = (elf.number(at, 8)?, elf.number(at + 8, 8)?);
            match tag {
                DT_HASH => elf.hash = elf.place(value)?,
                DT_STRTAB => elf.strings = elf.place(value)?,
                DT_SYMTAB => elf.symbols = elf.place(value)?,
                _ => {}
            }
        }
        elf.count = elf.number(elf.hash + 4, 4)? as usize;
        Some(elf)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The dynamic symbol of this name.
    pub(crate) fn symbol(&self, name: &str) -> Option<usize> {
        (1..self.count).find(|symbol| self.name(*symbol) == Some(name.as_bytes()))
    }

    pub(crate) fn symbol_that_begins(&self, beginning: &str) -> Option<usize> {
        let begins = |name: &[u8]| name.starts_with(beginning.as_bytes());
        (1..self.count).find(|symbol| self.name(*symbol).is_some_and(begins))
    }

    /// Gives a symbol a name that is not longer than the one that it has.
    pub(crate) fn rename(&mut self, symbol: usize, name: &str) -> Option<()> {
        let room = self.name(symbol)?.len();
        let at = self.name_at(symbol)?;
        let place = self.bytes.get_mut(at..at + room)?;
        let (beginning, rest) = place.split_at_mut_checked(name.len())?;
        beginning.copy_from_slice(name.as_bytes());
        rest.fill(0);
        Some(())
    }

    /// Writes into the data that `symbol` names.
    pub(crate) fn write(&mut self, symbol: &str, at: usize, bytes: &[u8]) -> Option<()> {
        let symbol = self.symbol(symbol)?;
        let entry = self.symbols + symbol * SYMBOL;
        let size = self.number(entry + 16, 8)? as usize;
        let place = self.place(self.number(entry + 8, 8)?)?;
        if at + bytes.len() > size {
            return None;
        }
        let place = self.bytes.get_mut(place + at..place + at + bytes.len())?;
        place.copy_from_slice(bytes);
        Some(())
    }

    /// Makes the table of names list these symbols, and no others.
    pub(crate) fn export(&mut self, symbols: &[usize]) -> Option<()> {
        let buckets = self.number(self.hash, 4)? as usize;
        let first = self.hash + 8;
        let chains = first + 4 * buckets;
        self.bytes.get_mut(first..chains + 4 * self.count)?.fill(0);
        for symbol in symbols {
            let bucket = first + 4 * (hash(self.name(*symbol)?) as usize % buckets);
            let next = self.bytes.get(bucket..bucket + 4)?.to_vec();
            let chain = chains + 4 * symbol;
            self.bytes.get_mut(chain..chain + 4)?.copy_from_slice(&next);
            self.bytes
                .get_mut(bucket..bucket + 4)?
                .copy_from_slice(&(*symbol as u32).to_ne_bytes());
        }
        Some(())
    }

    fn name_at(&self, symbol: usize) -> Option<usize> {
        Some(self.strings + self.number(self.symbols + symbol * SYMBOL, 4)? as usize)
    }

    fn name(&self, symbol: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(self.name_at(symbol)?..)?;
        rest.split(|byte| *byte == 0).next()
    }

    /// Where in the file an address is.
    fn place(&self, address: u64) -> Option<usize> {
        self.parts.iter().find_map(|(start, place, bytes)| {
            let behind = address.checked_sub(*start)? as usize;
            (behind < *bytes).then_some(place + behind)
        })
    }

    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let mut number = [0; 8];
        let found = self.bytes.get(at..at + bytes)?;
        number.get_mut(..bytes)?.copy_from_slice(found);
        Some(u64::from_le_bytes(number))
    }
}

/// The hash of a name as the table has it (System V ABI).
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_the_abi() {
        // As the System V ABI and readelf have them.
        assert_eq!(hash(b""), 0);
        assert_eq!(hash(b"printf"), 0x0779_05a6);
        assert_eq!(hash(b"exit"), 0x0006_cf04);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Elf::parse(Vec::new()).is_none());
        assert!(Elf::parse(vec![0; 10]).is_none());
    }
}
