//! Words of TSDL, the language of the metadata.

/// Most words of a metadata text.
const MAX_WORDS: usize = 8 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Name(String),
    Number(i128),
    Text(Vec<u8>),
    /// `:=`, `...`, `->`, or one character.
    Sign(&'static str),
}

const SIGNS: [&str; 21] = [
    ":=", "...", "->", "{", "}", "(", ")", "[", "]", "<", ">", ";", ",", ":", "=", ".", "*", "+",
    "-", "/", "|",
];

/// The words of `text`, or the defect and its line.
pub(super) fn words(text: &[u8]) -> Result<Vec<Word>, String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        if out.len() >= MAX_WORDS {
            return Err("it has too many words".into());
        }
        if byte.is_ascii_whitespace() || byte == 0 {
            at += 1;
        } else if rest.starts_with(b"//") {
            at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let inside = rest.get(2..).unwrap_or_default();
            let end = inside.windows(2).position(|pair| pair == b"*/");
            at += 4 + end.ok_or_else(|| failure(text, at, "a comment without an end"))?;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let end = rest
                .iter()
                .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')
                .unwrap_or(rest.len());
            let name = rest.get(..end).unwrap_or_default();
            out.push(Word::Name(String::from_utf8_lossy(name).into_owned()));
            at += end;
        } else if byte.is_ascii_digit() {
            let end = rest
                .iter()
                .position(|b| !b.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            let word = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
            let number = number(&word).ok_or_else(|| failure(text, at, "a number"))?;
            out.push(Word::Number(number));
            at += end;
        } else if byte == b'"' || byte == b'\'' {
            let (value, length) =
                quoted(rest, byte).ok_or_else(|| failure(text, at, "a text without an end"))?;
            out.push(match (byte, value.as_slice()) {
                (b'\'', [one]) => Word::Number(i128::from(*one)),
                _ => Word::Text(value),
            });
            at += length;
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(s.as_bytes())) {
            out.push(Word::Sign(sign));
            at += sign.len();
        } else {
            return Err(failure(text, at, "an unknown character"));
        }
    }
    Ok(out)
}

fn failure(text: &[u8], at: usize, what: &str) -> String {
    let before = text.get(..at).unwrap_or_default();
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    format!("line {line}: {what}")
}

fn number(word: &str) -> Option<i128> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let parsed = if let Some(digits) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16)
    } else if word.len() > 1 && word.starts_with('0') {
        u64::from_str_radix(word, 8)
    } else {
        word.parse()
    };
    parsed.ok().map(i128::from)
}

/// A text in quotes and its length with them.
fn quoted(text: &[u8], quote: u8) -> Option<(Vec<u8>, usize)> {
    let mut out = Vec::new();
    let mut at = 1;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        if byte == quote {
            return Some((out, at));
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escape = *text.get(at)?;
        at += 1;
        let digits = |from: usize, radix: u32, most: usize| {
            let rest = text.get(from..).unwrap_or_default();
            let count = rest
                .iter()
                .take(most)
                .take_while(|b| char::from(**b).is_digit(radix))
                .count();
            let word = std::str::from_utf8(rest.get(..count)?).ok()?;
            Some((u32::from_str_radix(word, radix).ok()? as u8, count))
        };
        out.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'x' => {
                let (value, count) = digits(at, 16, 2)?;
                at += count;
                value
            }
            b'0'..=b'7' => {
                let (value, count) = digits(at - 1, 8, 3)?;
                at += count - 1;
                value
            }
            other => other,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds() {
        let text = b"/* CTF 1.8 */ a_1 := 0x1F; // end\n\"q\\\"\\012\\x41\" 010 'a' x ... 12ULL";
        let name = |n: &str| Word::Name(n.into());
        assert_eq!(
            words(text).unwrap(),
            [
                name("a_1"),
                Word::Sign(":="),
                Word::Number(31),
                Word::Sign(";"),
                Word::Text(b"q\"\nA".to_vec()),
                Word::Number(8),
                Word::Number(97),
                name("x"),
                Word::Sign("..."),
                Word::Number(12),
            ]
        );
        for bad in ["/* x", "\"a", "9x", "\u{1}", "\"\\x"] {
            assert!(words(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
