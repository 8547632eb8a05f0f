//! The words of a condition.

use super::parse::ConditionError;

/// A word and where it begins, in characters from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A name or a word of the language; `quoted`: surely a name.
    Name {
        text: String,
        quoted: bool,
    },
    Number(Number),
    Text(String),
    /// An operator or a parenthesis or comma.
    Sign(&'static str),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i64),
    Fraction(f64),
}

/// Longer ones first, so that `<=` is not taken for `<`.
const SIGNS: [&str; 12] = [
    "<>", "<=", ">=", "!=", "==", "<", ">", "=", "(", ")", ",", "-",
];

pub(crate) fn split(text: &str) -> Result<Vec<Token>, ConditionError> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        let start = at;
        let kind = if c.is_whitespace() {
            at += 1;
            continue;
        } else if c == '\'' || c == '"' {
            let text = quoted(&chars, &mut at, c)?;
            match c {
                '\'' => Kind::Text(text),
                _ => Kind::Name { text, quoted: true },
            }
        } else if c.is_ascii_digit() || c == '.' {
            Kind::Number(number(&chars, &mut at)?)
        } else if c.is_alphabetic() || c == '_' {
            let word = |c: &&char| c.is_alphanumeric() || **c == '_';
            let text: String = chars[at..].iter().take_while(word).collect();
            at += text.chars().count();
            let quoted = false;
            Kind::Name { text, quoted }
        } else {
            let rest = &chars[at..];
            let sign = SIGNS.iter().find(|sign| {
                let length = sign.len();
                rest.len() >= length && sign.chars().zip(rest).all(|(a, b)| a == *b)
            });
            let Some(sign) = sign else {
                return Err(ConditionError::new(
                    start + 1,
                    format!("{c:?} has no meaning here"),
                ));
            };
            at += sign.len();
            Kind::Sign(sign)
        };
        let at = start + 1;
        words.push(Token { kind, at });
    }
    let at = chars.len() + 1;
    words.push(Token {
        kind: Kind::End,
        at,
    });
    Ok(words)
}

/// Text up to the quote that ends it; one that is doubled stands for itself.
fn quoted(chars: &[char], at: &mut usize, quote: char) -> Result<String, ConditionError> {
    let start = *at + 1;
    let mut text = String::new();
    *at += 1;
    while let Some(c) = chars.get(*at).copied() {
        *at += 1;
        if c != quote {
            text.push(c);
        } else if chars.get(*at) == Some(&quote) {
            text.push(quote);
            *at += 1;
        } else {
            return Ok(text);
        }
    }
    Err(ConditionError::new(start, format!("no {quote} ends this")))
}

fn number(chars: &[char], at: &mut usize) -> Result<Number, ConditionError> {
    let start = *at + 1;
    let mut text = String::new();
    while let Some(c) = chars.get(*at).copied() {
        let exponent = text.ends_with(['e', 'E']);
        let part = c.is_ascii_alphanumeric() || c == '.' || c == '_';
        if !part && !(exponent && (c == '-' || c == '+')) {
            break;
        }
        *at += 1;
        if c != '_' {
            text.push(c);
        }
    }
    let wrong = || ConditionError::new(start, format!("{text} is no number"));
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Number::Whole(whole));
    }
    let value: f64 = text.parse().map_err(|_| wrong())?;
    // Rust takes words for numbers that SQL does not.
    if !value.is_finite() || !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    // 50e6 is as whole as 50000000. Beyond 2^53 not every number has a double.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        return Ok(Number::Whole(value as i64));
    }
    Ok(Number::Fraction(value))
}
