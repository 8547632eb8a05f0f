//! Command lines, word by word.

use fathom_model::escape::shell_words;

use crate::rules::Action;
use crate::secrets::{self, GONE};
use crate::text::Redactor;

/// Longest name of an option with one dash that is no value: `-rf`.
const CLUSTER: usize = 3;
/// Longest name of an option with two.
const OPTION: usize = 30;
/// Digits of a number that stays: of a port, a size, a count.
const NUMBER: usize = 7;

/// The words of a command without the passwords, tokens, and keys that are recognized in them; all
/// else stays.
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let program = words.first().map_or("", String::as_str);
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let words = words.iter().zip(before);
    words
        .map(|(word, before)| secrets::mask_word(word, before, program))
        .collect()
}

/// The same for a line that is quoted for a shell, as [`shell_words`] does; `None` if it stays as it is.
pub fn line_without_secrets(line: &str) -> Option<String> {
    let before = words(line);
    let after = without_secrets(&before);
    (after != before).then(|| shell_words(after))
}

impl Redactor {
    /// A command line that is quoted for a shell, as [`shell_words`] does.
    pub(crate) fn command_line(&self, line: &str) -> String {
        shell_words(self.command(&words(line)))
    }

    /// The words of a command.
    pub(crate) fn command(&self, words: &[String]) -> Vec<String> {
        let masked = without_secrets(words);
        match self.rules.command {
            Action::Hash => masked.iter().map(|word| self.word(word)).collect(),
            Action::Keep | Action::Drop => masked,
        }
    }

    /// A word of which names of options and numbers stay.
    fn word(&self, word: &str) -> String {
        let plain = |name: &str| {
            name.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if let Some((name, value)) = word.split_once('=') {
            let option = name.starts_with("--") && name.len() <= OPTION && plain(name);
            let variable = name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
            if option || variable && !name.is_empty() {
                return format!("{name}={}", self.value(value));
            }
        }
        if word.starts_with("--") && word.len() <= OPTION && plain(word) {
            return word.to_owned();
        }
        match word.strip_prefix('-') {
            Some(_) if word.len() <= CLUSTER && plain(word) => word.to_owned(),
            Some(rest) => match rest.char_indices().nth(1) {
                Some((at, _)) if rest.get(..at).is_some_and(plain) => {
                    let (option, value) = rest.split_at(at);
                    format!("-{option}{}", self.value(value))
                }
                _ => format!("-{}", self.value(rest)),
            },
            None => self.value(word),
        }
    }

    fn value(&self, value: &str) -> String {
        let digits = value.trim_end_matches(|c: char| "kKmMgGTsbB%".contains(c));
        let number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if value.len() <= NUMBER && number {
            return value.to_owned();
        }
        // A script, or what is no path for another reason.
        let path = |c: char| c.is_alphanumeric() || "/._-+@:~*".contains(c);
        match value.chars().all(path) {
            true => self.path(value),
            false => match value.contains(GONE) && value.len() == GONE.len() {
                true => value.to_owned(),
                false => self.key.word(value),
            },
        }
    }
}

/// The words that [`shell_words`] quoted.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    while chars.peek().is_some() {
        let mut word = String::new();
        while let Some(c) = chars.next_if(|c| *c != ' ') {
            match c {
                '$' if chars.next_if_eq(&'\'').is_some() => escaped(&mut chars, &mut word),
                '\'' => word.extend(chars.by_ref().take_while(|c| *c != '\'')),
                '\\' => word.extend(chars.next()),
                c => word.push(c),
            }
        }
        words.push(word);
        chars.next();
    }
    words
}

/// Reads the text behind `$'`. Numbers of characters stay as they are: the word is hashed, or quoted again.
fn escaped(chars: &mut impl Iterator<Item = char>, word: &mut String) {
    while let Some(c) = chars.next().filter(|c| *c != '\'') {
        match c {
            '\\' => match chars.next() {
                Some('n') => word.push('\n'),
                Some('t') => word.push('\t'),
                Some('r') => word.push('\r'),
                Some(c @ ('\'' | '\\')) => word.push(c),
                Some(c) => word.extend(['\\', c]),
                None => {}
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Key, Rules};

    #[test]
    fn words_come_back() {
        for line in [
            vec!["a", "b c", "it's", "", "x=y"],
            vec!["tab\there", "new\nline", "back\\slash'n"],
        ] {
            assert_eq!(words(&shell_words(line.clone())), line);
        }
    }

    #[test]
    fn options_stay_and_values_are_hashed() {
        let mut redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        redactor.programs.insert("tool".to_owned());
        let word = |text: &str| redactor.key.word(text);
        let line = "/usr/bin/tool --threads=4 -o /srv/x.db -n 100 -b64K --name alice -Dalice \
                    'SELECT 1' --password=p -ppw KEY=v https://me:pw@host/";
        let expected = [
            "/usr/bin/tool --threads=4 -o".to_owned(),
            format!(
                "/srv/{}.db -n 100 -b64K --name {}",
                word("x"),
                word("alice")
            ),
            format!("-D{} {}", word("alice"), word("SELECT 1")),
            format!("'--password=***' '-p***' KEY={}", word("v")),
            format!("https://{}/", word("***@host")),
        ]
        .join(" ");
        assert_eq!(redactor.command_line(line), expected);
        redactor.rules.command = Action::Keep;
        let line = "mysql -ppw --host=db1 'sh -c x'";
        let kept = "mysql '-p***' --host=db1 'sh -c x'";
        assert_eq!(redactor.command_line(line), kept);
        assert_eq!(line_without_secrets(line).as_deref(), Some(kept));
        assert_eq!(line_without_secrets("cat 'a b' --key-size=4"), None);
    }
}
