//! Redis: RESP2 and RESP3.

use fathom_model::bytes::printable;

use super::exchange::{Exchanges, Request, Value};
use super::step::{Input, Step};

/// Bytes of a line: of a length, or of a simple reply.
const MAX_LINE: usize = 512;
/// Bytes of a command's name.
const MAX_WORD: usize = 64;
/// Elements of a command or reply.
const MAX_ELEMENTS: u64 = 1 << 24;

/// After these commands replies come without being asked for, or bytes of another kind.
const LEAVING: [&str; 7] = [
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "MONITOR",
    "SYNC",
    "PSYNC",
    "REPLCONF",
];

#[derive(Debug, Default)]
pub(super) struct Redis {
    /// Arguments of the present command that are still to come.
    arguments: u64,
    /// The next one is the name of the command.
    named: bool,
    /// The one behind the name of CLIENT.
    subcommand: bool,
    /// Elements of the present reply that are still to come.
    elements: u64,
    /// It is a push, which answers no command.
    pushed: bool,
    /// The first line of the present reply was seen, but not where it ends.
    until_turn: bool,
}

/// Whether these bytes begin a command; `None` while there are too few of them.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    let inline = b"PING\r\n";
    if !bytes.is_empty() && inline.starts_with(bytes.get(..inline.len()).unwrap_or(bytes)) {
        return (bytes.len() >= inline.len()).then_some(true);
    }
    let Some(rest) = bytes.strip_prefix(b"*") else {
        return Some(false);
    };
    let Some(end) = rest.iter().position(|b| *b == b'\r') else {
        let short = rest.len() < 8 && rest.iter().all(u8::is_ascii_digit);
        return if short { None } else { Some(false) };
    };
    let (digits, rest) = rest.split_at(end);
    let number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    match rest {
        [b'\r', b'\n', b'$', ..] if number => Some(true),
        [b'\r'] | [b'\r', b'\n'] if number => None,
        _ => Some(false),
    }
}

/// The first line, and where the next one begins.
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).take(MAX_LINE).position(|w| w == b"\r\n")?;
    Some((bytes.get(..end)?, end + 2))
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Redis {
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        let Some((first, end)) = line(input.bytes) else {
            return if input.bytes.len() > MAX_LINE {
                Step::Fail
            } else {
                input.wait()
            };
        };
        if self.arguments > 0 {
            return self.argument(input, (first, end), all);
        }
        if let Some(count) = first.strip_prefix(b"*") {
            let Some(count) = number(count).filter(|n| *n <= MAX_ELEMENTS as i64) else {
                return Step::Fail;
            };
            self.arguments = count.max(0) as u64;
            self.named = false;
            return Step::Take(end as u64);
        }
        // A command in a line.
        let word = first.split(|b| *b == b' ').next().unwrap_or_default();
        if word.is_empty() {
            return Step::Take(end as u64);
        }
        self.command(word, end as u64, all)
    }

    fn argument(
        &mut self,
        input: Input<'_>,
        (first, end): (&[u8], usize),
        all: &mut Exchanges,
    ) -> Step {
        let length = first.strip_prefix(b"$").and_then(number);
        let Some(length) = length.and_then(|n| u64::try_from(n).ok()) else {
            return Step::Fail;
        };
        // Behind the bytes is the end of a line.
        let whole = length.saturating_add(end as u64 + 2);
        let word = self.named && self.subcommand;
        if !self.named || word {
            if length > MAX_WORD as u64 {
                return Step::Fail;
            }
            let Some(bytes) = input.bytes.get(end..end + length as usize) else {
                return input.wait();
            };
            self.arguments -= 1;
            if word {
                self.subcommand = false;
                return match bytes.eq_ignore_ascii_case(b"reply") {
                    // Replies may be missing.
                    true => Step::Leave,
                    false => Step::Take(whole),
                };
            }
            self.named = true;
            return self.command(bytes, whole, all);
        }
        self.arguments -= 1;
        Step::Take(whole)
    }

    fn command(&mut self, word: &[u8], taken: u64, all: &mut Exchanges) -> Step {
        let sound = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'|');
        if word.is_empty() || word.len() > MAX_WORD || !word.iter().all(sound) {
            return Step::Fail;
        }
        let name = printable(&word.to_ascii_uppercase());
        if LEAVING.contains(&name.as_str()) {
            return Step::Leave;
        }
        self.subcommand = name == "CLIENT" && self.arguments > 0;
        let attributes = vec![
            ("db.system.name", Value::Text("redis".into())),
            ("db.operation.name", Value::Text(name.clone())),
        ];
        let begun = all.begin(Request {
            name,
            attributes,
            ..Request::default()
        });
        if begun { Step::Take(taken) } else { Step::Fail }
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.until_turn {
            return Step::Rest;
        }
        let Some((first, end)) = line(input.bytes) else {
            if input.cut && self.elements > 0 && !self.pushed && all.waiting() == 1 {
                self.until_turn = true;
                return Step::Rest;
            }
            return if input.bytes.len() > MAX_LINE {
                Step::Fail
            } else {
                input.wait()
            };
        };
        let Some((kind, rest)) = first.split_first() else {
            return Step::Fail;
        };
        let begins = self.elements == 0;
        if begins {
            self.elements = 1;
            self.pushed = *kind == b'>';
        }
        let length = || number(rest).filter(|n| *n <= MAX_ELEMENTS as i64);
        let mut taken = end as u64;
        let mut inside = 0;
        // An attribute is none of the elements.
        let mut counts = 1;
        match kind {
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => {}
            b'-' => {
                if let (true, Some(first)) = (begins, all.first()) {
                    first.error = Some(error(rest));
                }
            }
            b'$' | b'=' | b'!' => {
                let Some(length) = number(rest) else {
                    return Step::Fail;
                };
                if *kind == b'!'
                    && let (true, Some(first)) = (begins, all.first())
                {
                    first.error = Some(("ERR".into(), String::new()));
                }
                if let Ok(length) = u64::try_from(length) {
                    taken = taken.saturating_add(length).saturating_add(2);
                }
            }
            b'*' | b'~' | b'>' => match length() {
                Some(length) => inside = length.max(0) as u64,
                None => return Step::Fail,
            },
            b'%' | b'|' => match length() {
                Some(length) => {
                    inside = 2 * length.max(0) as u64;
                    counts = u64::from(*kind == b'%');
                }
                None => return Step::Fail,
            },
            _ => return Step::Fail,
        }
        self.elements = self.elements.saturating_sub(counts).saturating_add(inside);
        Step::Pass(taken)
    }

    /// An element of a reply has moved.
    pub(super) fn response_passed(&mut self, all: &mut Exchanges) {
        if self.elements == 0 && !self.pushed {
            all.end();
        }
    }

    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        if self.until_turn {
            self.until_turn = false;
            self.elements = 0;
            if all.waiting() != 1 {
                return false;
            }
            all.end();
        }
        true
    }

    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}

/// An error: the word at its beginning, and its text.
fn error(text: &[u8]) -> (String, String) {
    let word = text.split(|b| *b == b' ').next().unwrap_or_default();
    let is_code = word.iter().all(|b| b.is_ascii_uppercase() || *b == b'_');
    let code = if is_code && word.len() <= MAX_WORD {
        word
    } else {
        b"ERR"
    };
    (printable(code), printable(text))
}
