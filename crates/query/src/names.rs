//! Names that fathom has taken.

use fathom_model::tables::TABLES;

use crate::paths;
use crate::views::view_names;

/// Whether a table, view, or table function of fathom has this name.
pub fn is_taken(name: &str) -> bool {
    let internal = ["unstored", paths::NAME, paths::TABLE];
    let mut all = TABLES.iter().map(|table| table.name).chain(view_names());
    all.any(|own| own.eq_ignore_ascii_case(name))
        || internal.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::is_taken;

    #[test]
    fn names_of_fathom_are_taken() {
        for name in [
            "syscalls",
            "by_file",
            "findings",
            "session",
            "unstored",
            "critical_path",
            "SYSCALLS",
        ] {
            assert!(is_taken(name), "{name}");
        }
        assert!(!is_taken("mine"));
    }
}
