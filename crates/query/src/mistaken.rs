//! Names that a reader gives to columns which have another name, mostly because the name is a keyword of SQL.

/// The keyword, the column that is meant, and the word that the keyword belongs to where it is none.
const COLUMNS: [(&str, &str, &str); 3] = [
    ("offset", "file_offset", "limit"),
    ("end", "ended_at_ns", "case"),
    ("when", "ts_ns", "case"),
];

/// The keyword at which the parser stopped, or before it, and the column that is meant; `at` is a byte of `sql`.
pub(crate) fn in_place_of_a_column(sql: &str, at: usize) -> Option<(&'static str, &'static str)> {
    let (before, rest) = sql.split_at_checked(at)?;
    let last = words(before).rfind(|word| !word.is_empty());
    let here = words(rest).next();
    let count = |word: &str| {
        let all = words(before).chain(here);
        all.filter(|w| w.eq_ignore_ascii_case(word)).count()
    };
    let found = COLUMNS.iter().find(|(keyword, ..)| {
        let mut stops = last.iter().chain(&here);
        stops.any(|word| word.eq_ignore_ascii_case(keyword))
    });
    // A keyword that belongs to one before it is no column.
    let (keyword, column, _) = found.filter(|(keyword, _, opens)| count(opens) < count(keyword))?;
    Some((keyword, column))
}

/// The column that is meant by the one that a message of the database does not find.
pub(crate) fn in_message(message: &str) -> Option<&'static str> {
    let before = ["Referenced column \"", "does not have a column named \""];
    let (_, rest) = before
        .iter()
        .find_map(|before| message.split_once(before))?;
    let (name, _) = rest.split_once('"')?;
    let mut all = COLUMNS.iter();
    let (_, column, _) = all.find(|(keyword, ..)| name.eq_ignore_ascii_case(keyword))?;
    Some(column)
}

/// The words of a statement: runs of letters, digits, and `_`, empty between two other signs.
fn words(sql: &str) -> impl DoubleEndedIterator<Item = &str> {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_that_belongs_to_another_is_no_column() {
        let told = |sql: &str| in_place_of_a_column(sql, sql.len()).map(|(_, column)| column);
        assert_eq!(told("SELECT rid, end"), Some("ended_at_ns"));
        assert_eq!(told("SELECT CASE WHEN rid > 1 THEN 2 END"), None);
        assert_eq!(
            told("SELECT CASE WHEN rid > 1 THEN 2 END, end"),
            Some("ended_at_ns")
        );
        assert_eq!(told("SELECT rid FROM syscalls LIMIT 5 OFFSET"), None);
    }

    #[test]
    fn the_parser_stops_at_a_keyword_or_behind_it() {
        let told = Some(("offset", "file_offset"));
        assert_eq!(in_place_of_a_column("SELECT max(offset) FROM t", 11), told);
        assert_eq!(in_place_of_a_column("SELECT rid, OFFSET, bytes", 18), told);
        assert_eq!(
            in_place_of_a_column("SELECT é", 8),
            None,
            "inside a character"
        );
        assert_eq!(in_place_of_a_column("", 0), None);
    }

    #[test]
    fn a_column_that_is_not_found_is_named() {
        let missing = "Binder Error: Referenced column \"offset\" not found in FROM clause!";
        assert_eq!(in_message(missing), Some("file_offset"));
        let of = "Binder Error: Values list \"s\" does not have a column named \"offset\"";
        assert_eq!(in_message(of), Some("file_offset"));
        assert_eq!(in_message(&missing.replace("offset", "ofset")), None);
        assert_eq!(in_message("out of memory"), None);
    }
}
