//! Names in a column that is too narrow for them.

use fathom_model::escape::shorten;
use ratatui::text::Line;

/// `name` in at most `width` columns. Of a path the directories give way, in their middle: files of one directory differ
/// in their names.
pub(crate) fn shorten_name(name: &str, width: usize) -> String {
    let file = name.starts_with('/').then(|| name.rfind('/')).flatten();
    let Some((directories, file)) = file.and_then(|at| name.split_at_checked(at)) else {
        return shorten(name, width);
    };
    match width.checked_sub(Line::from(file).width()) {
        Some(room @ 1..) => shorten(directories, room) + file,
        _ => shorten(name, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_stays_whole() {
        let path = "/var/lib/postgresql/16/main/base/16384/pg_internal.init.2619";
        assert_eq!(shorten_name(path, 60), path);
        assert_eq!(
            shorten_name(path, 40),
            "/var/lib/…se/16384/pg_internal.init.2619"
        );
        assert_eq!(shorten_name(path, 23), "…/pg_internal.init.2619");
        assert_eq!(shorten_name(path, 10), "/var/…2619");
        assert_eq!(shorten_name("/日本語/日本語", 12), "/…語/日本語");
        assert_eq!(shorten_name("kworker/u8:2-flush", 9), "kwor…lush");
        assert_eq!(shorten_name("/a", 0), "");
    }
}
