//! Making text that a traced program controls safe to show, quoting it for
//! shells, and fitting it into columns.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether a terminal or a viewer may act on `c` rather than show it: control
/// characters (escape sequences start with one, C1 ones are sequences by
/// themselves), marks that reorder text, and line separators.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

/// `text` on one line, with unsafe characters written as `\n`, `\t`, `\r`,
/// `\xHH` or `\u{H}`.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(escaped(text, |_| false))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for bytes; bytes that are not UTF-8 are written as `\xHH`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&text(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The same for text of several lines, whose newlines stay.
pub fn lines(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

fn escaped(text: &str, keep: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if keep(c) || !is_unsafe(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
        }
    }
    out
}

/// `words` as one would type them in a shell, safe to show: a word with unsafe characters or with
/// bytes that are not UTF-8 is written as `$'...'`. Crate shlex quotes `a=b` and `@x`, leaves
/// control characters as they are, and refuses NUL.
pub fn shell_words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> String {
    let mut out = String::new();
    for (i, word) in words.into_iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        shell_word(word.as_ref(), &mut out);
    }
    out
}

fn shell_word(word: &[u8], out: &mut String) {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => out.push_str(text),
        Ok(text) if !text.chars().any(is_unsafe) => {
            out.push('\'');
            out.push_str(&text.replace('\'', "'\\''"));
            out.push('\'');
        }
        _ => {
            out.push_str("$'");
            for chunk in word.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '\n' => out.push_str("\\n"),
                        '\t' => out.push_str("\\t"),
                        '\r' => out.push_str("\\r"),
                        '\'' => out.push_str("\\'"),
                        '\\' => out.push_str("\\\\"),
                        c if is_unsafe(c) => {
                            let _ = write!(out, "\\u{:04x}", u32::from(c));
                        }
                        c => out.push(c),
                    }
                }
                for byte in chunk.invalid() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
        }
    }
}

/// `text` in at most `width` columns: the middle gives way, since paths differ
/// at both ends.
pub fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let Some(room) = width.checked_sub(1) else {
        return String::new();
    };
    let tail_room = room / 2;
    let head = take(text.chars(), room - tail_room);
    let mut tail: Vec<char> = take(text.chars().rev(), tail_room);
    tail.reverse();
    head.into_iter().chain(['…']).chain(tail).collect()
}

/// A sentence in at most `lines` lines of `width` characters. It is cut at the end, which says less
/// than the beginning.
pub fn wrap_in(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut wrapped = wrap(text, width);
    if wrapped.len() <= lines {
        return wrapped;
    }
    wrapped.truncate(lines);
    if let Some(last) = wrapped.last_mut() {
        let room = width.saturating_sub(2);
        while last.chars().count() > room {
            let Some(at) = last.rfind(' ') else {
                *last = shorten(last, room);
                break;
            };
            last.truncate(at);
        }
        last.push_str(" …");
    }
    wrapped
}

/// Breaks `text` between words into lines of at most `width` characters, where words allow it.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

fn take(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_written_out() {
        assert_eq!(text("a\u{1b}[2Jb"), "a\\x1b[2Jb");
        assert_eq!(text("a\nb\tc\rd"), "a\\nb\\tc\\rd");
        assert_eq!(text("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(text("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(text("\u{7f}"), "\\x7f");
        assert_eq!(text("größe/日本"), "größe/日本");
        assert_eq!(text("\\xff"), "\\xff");
        assert_eq!(lines("a\n\u{7}"), "a\n\\x07");
        assert_eq!(bytes(b"a\xff\x1b/gr\xc3\xb6"), "a\\xff\\x1b/gr\u{f6}");
    }

    #[test]
    fn words_survive_a_shell() {
        for (words, typed) in [
            (
                vec!["ls", "-l", "/tmp/gr\u{f6}\u{df}e"],
                "ls -l /tmp/gr\u{f6}\u{df}e",
            ),
            (
                vec!["sh", "-c", "echo 'a' $b", ""],
                r"sh -c 'echo '\''a'\'' $b' ''",
            ),
            (
                vec!["a", "\x1b[31m", "b\u{202e}"],
                r"a $'\u001b[31m' $'b\u202e'",
            ),
        ] {
            assert_eq!(shell_words(words), typed);
        }
        assert_eq!(shell_words([b"x\ny'\xff"]), r"$'x\ny\'\xff'");
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
    }

    #[test]
    fn the_end_of_a_sentence_gives_way() {
        assert_eq!(wrap_in("one two three", 7, 2), ["one two", "three"]);
        assert_eq!(wrap_in("one two three", 7, 1), ["one …"]);
        assert_eq!(wrap_in("one two three", 9, 1), ["one two …"]);
        assert_eq!(wrap_in("unbreakable words", 4, 1), ["u… …"]);
        assert_eq!(wrap_in("one two", 1, 1), [" …"]);
    }

    #[test]
    fn the_middle_gives_way() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefgh", 6), "abc…gh");
        assert_eq!(shorten("日本語日本語", 7), "日…語");
        assert_eq!(shorten("abc", 1), "…");
        assert_eq!(shorten("abc", 0), "");
    }
}
