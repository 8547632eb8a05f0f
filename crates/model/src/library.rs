//! Functions of libraries whose calls can be recorded (`bpf/library.def`).

use std::sync::LazyLock;

use crate::abi::LIBRARY_ARGS;

const ARGS: usize = LIBRARY_ARGS as usize;

/// Names of an enumeration's variants in the table, and numbers that stand for them in records.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn named(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The one that has this number in a record.
            pub fn numbered(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }
        }
    };
}

named! {
    /// The return value of a function.
    Returns {
        /// Any number.
        Value "value",
        /// Nothing.
        Nothing "nothing",
        /// Bytes moved; negative: it failed.
        Bytes "bytes",
        /// The same in 32 bits.
        Bytes32 "bytes32",
        /// Items moved.
        Items "items",
        /// 0 in 32 bits; anything else: it failed.
        Zero "zero",
        /// A number; negative: it failed.
        Count "count",
        /// The same in 32 bits.
        Count32 "count32",
        /// 1 in 32 bits; anything else: it failed.
        One "one",
        /// An address; null: it failed.
        Pointer "pointer",
        /// A FILE; null: it failed.
        Stream "stream",
        /// A descriptor; negative: it failed.
        Fd "fd",
    }
}

impl Returns {
    /// The number that a register holds; of those with 32 bits the upper half means nothing.
    pub fn number(self, register: i64) -> Option<i64> {
        match self {
            Self::Nothing => None,
            Self::Bytes32 | Self::Zero | Self::Count32 | Self::One | Self::Fd => {
                Some(i64::from(register as i32))
            }
            _ => Some(register),
        }
    }

    /// Whether the number says that the call failed.
    pub fn is_failure(self, number: i64) -> bool {
        match self {
            Self::Value | Self::Nothing | Self::Items => false,
            Self::Bytes | Self::Bytes32 | Self::Count | Self::Count32 | Self::Fd => number < 0,
            Self::Zero => number != 0,
            Self::One => number != 1,
            Self::Pointer | Self::Stream => number == 0,
        }
    }
}

named! {
    /// The meaning of an argument.
    Role {
        /// Not of interest.
        Other "-",
        /// Path or name of a file.
        Path "path",
        /// FILE.
        Stream "stream",
        /// Descriptor.
        Fd "fd",
        /// Position in the file.
        Offset "offset",
        /// Bytes asked for; with a number of items: bytes of one.
        Size "size",
        /// The same in 32 bits.
        Size32 "size32",
        /// Items asked for.
        Items "items",
        /// The same in 32 bits.
        Items32 "items32",
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Beginning of the name of the library's file.
    pub library: String,
    /// Class, as `--library` takes it.
    pub class: String,
    /// Its symbol.
    pub name: String,
    /// Its return value.
    pub returns: Returns,
    /// Its arguments.
    pub roles: [Role; ARGS],
    /// Whether registers pass all of them.
    pub in_registers: bool,
}

impl Function {
    /// One that the table does not have, of which nothing is known but its name.
    pub fn unknown(library: &str, name: &str) -> Self {
        Self {
            library: library.to_owned(),
            class: "other".to_owned(),
            name: name.to_owned(),
            returns: Returns::Value,
            roles: [Role::Other; ARGS],
            in_registers: false,
        }
    }

    /// The place of the argument with this role.
    pub fn place(&self, role: Role) -> Option<usize> {
        self.roles.iter().position(|of| *of == role)
    }
}

/// All functions of the table.
pub static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let mut libraries = ("", "");
    let rows = include_str!("../../../bpf/library.def").lines();
    let functions = rows.filter_map(|line| functions(line, &mut libraries));
    functions.flatten().collect()
});

/// The classes of the table, in its order.
pub fn classes() -> Vec<&'static str> {
    let mut classes: Vec<&str> = Vec::new();
    for function in FUNCTIONS.iter() {
        if !classes.contains(&function.class.as_str()) {
            classes.push(&function.class);
        }
    }
    classes
}

/// The functions of a line of the table, one for each library that may have it; `libraries` are
/// the names of these and their class.
fn functions<'a>(line: &'a str, libraries: &mut (&'a str, &'a str)) -> Option<Vec<Function>> {
    let mut words = line
        .split('#')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let name = words.next()?;
    if name == "library" {
        *libraries = (words.next()?, words.next()?);
        return None;
    }
    let returns = Returns::named(words.next()?)?;
    let mut roles = [Role::Other; ARGS];
    let mut in_registers = true;
    for (number, word) in words.enumerate() {
        match (word, roles.get_mut(number)) {
            ("...", _) => in_registers = false,
            (_, Some(place)) => *place = Role::named(word)?,
            (_, None) => return None,
        }
    }
    let of = |library: &str| Function {
        library: library.to_owned(),
        class: libraries.1.to_owned(),
        name: name.to_owned(),
        returns,
        roles,
        in_registers,
    };
    Some(libraries.0.split(',').map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_function() {
        let text = include_str!("../../../bpf/library.def");
        let mut libraries = 0;
        let mut rows = 0;
        for line in text.lines().filter_map(|line| line.split('#').next()) {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                ["library", names, _] => libraries = names.split(',').count(),
                _ => rows += libraries,
            }
        }
        assert_eq!(FUNCTIONS.len(), rows);
        let fread = FUNCTIONS.iter().find(|f| f.name == "fread").unwrap();
        assert_eq!(
            (fread.library.as_str(), fread.class.as_str()),
            ("libc", "stdio")
        );
        assert_eq!(fread.returns, Returns::Items);
        assert_eq!(fread.place(Role::Stream), Some(3));
        assert!(fread.in_registers);
        let fprintf = FUNCTIONS.iter().find(|f| f.name == "fprintf").unwrap();
        assert!(!fprintf.in_registers && fprintf.place(Role::Stream) == Some(0));
        assert!(classes().starts_with(&["stdio", "pthread", "mpi-io"]));
    }

    #[test]
    fn functions_are_listed_once_in_their_library() {
        for (at, function) in FUNCTIONS.iter().enumerate() {
            let same = |f: &&Function| (&f.library, &f.name) == (&function.library, &function.name);
            assert_eq!(FUNCTIONS.iter().filter(same).count(), 1, "{function:?}");
            assert!(at < crate::abi::MAX_FUNCTIONS as usize);
        }
    }

    #[test]
    fn upper_halves_mean_nothing() {
        let failed = 0xffff_ffff_i64;
        assert_eq!(Returns::Zero.number(failed), Some(-1));
        assert!(Returns::Count32.is_failure(-1));
        assert_eq!(Returns::Items.number(failed), Some(failed));
        assert_eq!(Returns::Nothing.number(7), None);
        assert!(Returns::Stream.is_failure(0) && !Returns::Value.is_failure(0));
    }

    #[test]
    fn numbers_stand_for_roles() {
        assert_eq!(Role::numbered(Role::Items32 as u8), Some(Role::Items32));
        assert_eq!(Returns::numbered(Returns::Fd as u8), Some(Returns::Fd));
        assert_eq!(Role::numbered(99), None);
    }
}
