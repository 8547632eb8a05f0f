//! The text of a statement without its literals.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::bytes::printable;

/// Bytes of a statement that are read.
const MOST: usize = 2048;

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `"x"` is a name; `$1` a parameter, `$x$` begins a string.
    Postgresql,
    /// `"x"` is a string, `\` quotes the next character, `#` begins a comment.
    Mysql,
}

/// The statement with `?` for each literal and parameter, without comments, with one space between
/// words. `cut`: its end is missing.
pub fn digest(text: &[u8], dialect: Dialect, cut: bool) -> String {
    scanned(text, dialect, cut, None).0
}

/// The same, and a number of the literals; `None` if there are none.
pub fn digest_and_literals(text: &[u8], dialect: Dialect) -> (String, Option<u64>) {
    scanned(text, dialect, false, Some(Literals::default()))
}

/// Literals, one after the other.
#[derive(Default)]
struct Literals {
    hasher: DefaultHasher,
    any: bool,
}

fn scanned(
    text: &[u8],
    dialect: Dialect,
    cut: bool,
    literals: Option<Literals>,
) -> (String, Option<u64>) {
    let cut = cut || text.len() > MOST;
    let text = text.get(..MOST).unwrap_or(text);
    let mut scan = Scan {
        text,
        at: 0,
        out: Vec::with_capacity(text.len()),
        dialect,
        literals,
    };
    while let Some(byte) = scan.peek(0) {
        scan.token(byte);
    }
    let literals = scan.literals.filter(|literals| literals.any);
    let literals = literals.map(|literals| literals.hasher.finish());
    let mut out = scan.out;
    while matches!(out.last(), Some(b' ' | b';')) {
        out.pop();
    }
    let mut text = printable(&out);
    if cut {
        text.push('…');
    }
    (text, literals)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    dialect: Dialect,
    /// `None` if the caller does not ask for them.
    literals: Option<Literals>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn token(&mut self, byte: u8) {
        let mysql = self.dialect == Dialect::Mysql;
        let next = self.peek(1);
        match byte {
            b if b.is_ascii_whitespace() || b == 0 => {
                self.at += 1;
                self.space();
            }
            b'-' if next == Some(b'-') => self.line_comment(),
            b'#' if mysql => self.line_comment(),
            b'/' if next == Some(b'*') => self.block_comment(),
            b'\'' => {
                let escapes = mysql || self.escapes();
                self.string(b'\'', escapes);
            }
            b'"' if mysql => self.string(b'"', true),
            b'"' | b'`' => self.name(byte),
            b'$' if !mysql => self.dollar(),
            b'?' => {
                self.at += 1;
                self.place_holder();
            }
            b'0'..=b'9' => self.number(),
            b'.' if next.is_some_and(|b| b.is_ascii_digit()) && !self.after_word() => self.number(),
            b if is_word(b) => {
                while let Some(byte) = self.peek(0).filter(|b| is_word(*b) || *b == b'$') {
                    self.out.push(byte);
                    self.at += 1;
                }
            }
            _ => {
                self.out.push(byte);
                self.at += 1;
            }
        }
    }

    fn space(&mut self) {
        if !matches!(self.out.last(), None | Some(b' ')) {
            self.out.push(b' ');
        }
    }

    fn after_word(&self) -> bool {
        self.out
            .last()
            .is_some_and(|b| is_word(*b) || matches!(b, b'"' | b'`' | b')' | b']'))
    }

    /// Whether the letter before a string says that it has escapes; the letter goes.
    fn escapes(&mut self) -> bool {
        let [before @ .., last] = self.out.as_slice() else {
            return false;
        };
        if !matches!(last, b'e' | b'E') || before.last().is_some_and(|b| is_word(*b)) {
            return false;
        }
        self.out.pop();
        true
    }

    /// A literal that began at `from` ends here.
    fn literal(&mut self, from: usize) {
        let text = self.text.get(from..self.at).unwrap_or_default();
        if let Some(literals) = &mut self.literals {
            literals.any = true;
            text.hash(&mut literals.hasher);
        }
        self.place_holder();
    }

    /// Puts `?` for a literal or a parameter: its own sign goes, and a list of them becomes one.
    fn place_holder(&mut self) {
        while self.out.last() == Some(&b'?') {
            self.out.pop();
        }
        if let [before @ .., b'-' | b'+'] = self.out.as_slice() {
            let before = before.trim_ascii_end();
            let last = before.last().copied();
            let word: Vec<u8> = before
                .iter()
                .rev()
                .copied()
                .take_while(|b| is_word(*b))
                .collect();
            let word: Vec<u8> = word.into_iter().rev().collect();
            let keyword = [
                &b"SELECT"[..],
                b"WHERE",
                b"VALUES",
                b"AND",
                b"OR",
                b"SET",
                b"BETWEEN",
                b"LIMIT",
                b"OFFSET",
                b"BY",
                b"THEN",
                b"ELSE",
                b"WHEN",
                b"CASE",
                b"NOT",
                b"LIKE",
                b"IN",
            ]
            .iter()
            .any(|keyword| word.eq_ignore_ascii_case(keyword));
            if keyword || last.is_none_or(|b| b"(,=<>+-*/%|&^~[".contains(&b)) {
                self.out.pop();
            }
        }
        let listed = self.out.trim_ascii_end();
        if let Some(list) = listed.strip_suffix(b",") {
            let list = list.trim_ascii_end();
            if let Some(before) = list.strip_suffix(b"...") {
                // `?, ...` has this one, too.
                let length = before.len() + 3;
                self.out.truncate(length);
                return;
            }
            if list.ends_with(b"?") {
                let length = list.len();
                self.out.truncate(length);
                self.out.extend_from_slice(b", ...");
                return;
            }
        }
        self.out.push(b'?');
    }

    fn line_comment(&mut self) {
        let end = self.rest().iter().position(|b| *b == b'\n');
        self.at = end.map_or(self.text.len(), |end| self.at + end);
        self.space();
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            let rest = self.rest();
            let (step, change) = match rest {
                [b'/', b'*', ..] if depth == 0 || self.dialect == Dialect::Postgresql => (2, 1),
                [b'*', b'/', ..] => (2, -1),
                _ => (1, 0),
            };
            self.at += step;
            depth += change;
            if depth == 0 {
                break;
            }
        }
        self.space();
    }

    /// A string in quotes, to which strings right behind it belong.
    fn string(&mut self, quote: u8, escapes: bool) {
        let from = self.at;
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != Some(quote) {
                    break;
                }
                self.at += 1;
            }
        }
        self.literal(from);
    }

    /// A name in quotes, as it is.
    fn name(&mut self, quote: u8) {
        self.out.push(quote);
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.out.push(byte);
            self.at += 1;
            if byte == quote {
                break;
            }
        }
    }

    /// A parameter, or a string between `$tag$`.
    fn dollar(&mut self) {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            self.at += 1 + digits;
            self.place_holder();
            return;
        }
        let tag = rest.iter().take_while(|b| is_word(**b)).count();
        if rest.get(tag) != Some(&b'$') {
            self.out.push(b'$');
            self.at += 1;
            return;
        }
        let from = self.at;
        let tag = self
            .text
            .get(self.at..self.at + tag + 2)
            .unwrap_or_default();
        let inside = self.text.get(self.at + tag.len()..).unwrap_or_default();
        let end = inside.windows(tag.len()).position(|w| w == tag);
        self.at = match end {
            Some(end) => self.at + end + 2 * tag.len(),
            None => self.text.len(),
        };
        self.literal(from);
    }

    fn number(&mut self) {
        let from = self.at;
        while let Some(byte) = self.peek(0) {
            let sign = matches!(byte, b'+' | b'-')
                && self.at > 0
                && matches!(self.text.get(self.at - 1), Some(b'e' | b'E'));
            if !(is_word(byte) || byte == b'.' || sign) {
                break;
            }
            self.at += 1;
        }
        self.literal(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pg(text: &str) -> String {
        digest(text.as_bytes(), Dialect::Postgresql, false)
    }

    #[test]
    fn literals_and_parameters_are_alike() {
        let expected = "UPDATE t SET a = a + ? WHERE id = ?";
        for text in [
            "UPDATE t SET a = a + 1234 WHERE id = 17;",
            "UPDATE t SET a = a + -1234 WHERE id = 17;",
            "UPDATE t SET a = a + $1 WHERE id = $2;",
            "UPDATE t  SET a = a + 1e-3 /* a /* nested */ note */ WHERE id = 'it''s' -- end",
            "UPDATE t SET a = a + E'\\'' WHERE id = $tag$ x'y $tag$",
            "UPDATE t SET a = a + ? WHERE id = 0x1f",
        ] {
            assert_eq!(pg(text), expected, "{text}");
        }
        assert_eq!(
            pg("SELECT t1.c2, \"N 7\" FROM t1 LIMIT 5"),
            "SELECT t1.c2, \"N 7\" FROM t1 LIMIT ?"
        );
        assert_eq!(pg("SELECT a-1 FROM t"), "SELECT a-? FROM t");
        assert_eq!(pg("SELECT -1"), "SELECT ?");
        assert_eq!(
            pg("INSERT INTO t VALUES (1, 'a', 2)"),
            "INSERT INTO t VALUES (?, ...)"
        );
        assert_eq!(pg("SELECT 'a"), "SELECT ?");
        assert_eq!(pg(""), "");
        let mysql = |text: &str| digest(text.as_bytes(), Dialect::Mysql, false);
        assert_eq!(
            mysql("SELECT `x 1` FROM t WHERE a=\"b\\\"c\" # end"),
            "SELECT `x 1` FROM t WHERE a=?"
        );
        assert_eq!(digest(b"SELECT 'secr", Dialect::Mysql, true), "SELECT ?…");
    }

    #[test]
    fn literals_have_a_number() {
        let of = |text: &str| digest_and_literals(text.as_bytes(), Dialect::Postgresql);
        let (one, other) = (
            of("SELECT a WHERE b = 12 AND c = 'x'"),
            of("SELECT a WHERE b = 1 AND c = '2x'"),
        );
        assert_eq!(one.0, other.0);
        assert!(one.1.is_some() && one.1 != other.1);
        assert_eq!(one, of("SELECT a /* 5 */ WHERE b = 12 AND c = 'x'"));
        assert_eq!(of("SELECT a WHERE b = $1 AND c = ?").1, None);
    }

    /// No byte of a literal gets into the digest, wherever the text is cut.
    #[test]
    fn cut_texts_show_no_literals() {
        let text = b"SELECT * FROM t WHERE a = 'QQQQ' AND b = $x$QQQQ$x$ AND c = E'\\'QQQQ' AND d = 'a''QQQQ'";
        for end in 0..text.len() {
            assert!(
                !digest(&text[..end], Dialect::Postgresql, true).contains('Q'),
                "{end}"
            );
        }
    }

    #[test]
    fn any_bytes_are_digested() {
        let mut rng = fastrand::Rng::with_seed(7);
        let parts: [&[u8]; 14] = [
            b"'", b"\"", b"$", b"$a$", b"/*", b"*/", b"--", b"\n", b"\\", b"1", b"a", b", ",
            b"\xff", b"-",
        ];
        for _ in 0..20_000 {
            let text: Vec<u8> = (0..rng.usize(..24))
                .flat_map(|_| parts[rng.usize(..parts.len())].to_vec())
                .collect();
            for dialect in [Dialect::Postgresql, Dialect::Mysql] {
                digest(&text, dialect, rng.bool());
            }
        }
    }
}
