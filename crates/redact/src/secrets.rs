//! Passwords and keys in texts. They go whatever the rules say.
//!
//! Patterns cannot find a secret that looks like any other word. With the default rules such a word is
//! hashed; these patterns are for texts that are kept.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// In place of a secret.
pub(crate) const GONE: &str = "***";

/// Parts of names whose values are secrets.
const SECRET: &str = "(?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|\
                      private[-_]?key|credential|authorization|cookie|session[-_]?key)";

/// Options that no password is in.
const LONG_OPTIONS: [&str; 9] = [
    "-path", "-perm", "-pid", "-pipe", "-print", "-print0", "-printf", "-prune", "-pthread",
];

/// Texts that are secrets by their form.
const FORMS: &str = r"(?x)
      \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \b[rs]k[-_](?:[a-z]+[-_])?[A-Za-z0-9_-]{16,}
    | \bAIza[A-Za-z0-9_-]{35}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?
    | (?s:-----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*)";

struct Patterns {
    /// A name whose value is a secret, alone.
    name: Regex,
    /// The same with its value, which is the rest of the word.
    with_value: Regex,
    /// The same in a longer text.
    in_text: Regex,
    url: Regex,
    scheme: Regex,
    forms: Regex,
    long: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let value = r#"(?:"[^"]*"?|'[^']*'?|[^\s"',;&}]+)"#;
    let make = || {
        Ok::<_, regex::Error>(Patterns {
            name: Regex::new(&format!(r"(?i)^--?[\w.-]*{SECRET}[\w.-]*$"))?,
            with_value: Regex::new(&format!(r"(?is)^(-*[\w.-]*{SECRET}[\w.-]*\s*[=:]\s*).+$"))?,
            in_text: Regex::new(&format!(
                r#"(?i)([\w.-]*{SECRET}[\w.-]*["']?(?:\s*[=:]\s*(?:(?:bearer|basic)\s+)?|\s+))({value})"#
            ))?,
            url: Regex::new(r#"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'"]*@"#)?,
            scheme: Regex::new(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")?,
            forms: Regex::new(FORMS)?,
            long: Regex::new(r"[A-Za-z0-9+/_=-]{32,}")?,
        })
    };
    // The patterns are constant; a test compiles them.
    make().ok()
});

/// A text without the secrets that are recognized in it.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let Some(patterns) = PATTERNS.as_ref() else {
        return GONE.into();
    };
    let mut text = Cow::Borrowed(text);
    for (pattern, by) in [
        (&patterns.in_text, "${1}***"),
        (&patterns.url, "${1}***@"),
        (&patterns.scheme, "$1 ***"),
        (&patterns.forms, GONE),
    ] {
        if let Cow::Owned(masked) = pattern.replace_all(&text, by) {
            text = masked.into();
        }
    }
    text
}

/// The same, and without long words that look random: of command lines and arguments, where no
/// names of functions are.
pub(crate) fn mask_random(text: &str) -> Cow<'_, str> {
    let masked = mask(text);
    let Some(patterns) = PATTERNS.as_ref() else {
        return GONE.into();
    };
    let random = |found: &Captures<'_>| {
        let word = found.get(0).map_or("", |word| word.as_str());
        let has = |kind: fn(&char) -> bool| word.chars().any(|c| kind(&c));
        let mixed = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
        match mixed && has(char::is_ascii_digit) {
            true => GONE.to_owned(),
            false => word.to_owned(),
        }
    };
    match patterns.long.replace_all(&masked, random) {
        Cow::Owned(text) => text.into(),
        Cow::Borrowed(_) => masked,
    }
}

/// A word of a command line without its secrets. `before` is the word before it, `program` the first.
pub(crate) fn mask_word(word: &str, before: &str, program: &str) -> String {
    let Some(patterns) = PATTERNS.as_ref() else {
        return GONE.to_owned();
    };
    let login = matches!(before, "-u" | "--user" | "--proxy-user") && word.contains(':');
    let sshpass = before == "-p" && program.ends_with("sshpass");
    if login || sshpass || patterns.name.is_match(before) && !word.starts_with("--") {
        return GONE.to_owned();
    }
    // A password right behind its option: mysql -pSECRET, curl -uNAME:SECRET.
    if word.len() > 2 && word.starts_with("-p") && !LONG_OPTIONS.contains(&word) {
        return format!("-p{GONE}");
    }
    if word.starts_with("-u") && word.contains(':') {
        return format!("-u{GONE}");
    }
    let value = patterns.with_value.replace(word, "${1}***");
    mask_random(&value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_texts() {
        assert!(PATTERNS.is_some());
        for (text, masked) in [
            ("https://me:pw@host/x", "https://***@host/x"),
            (
                "Authorization: Bearer abcdef123",
                "Authorization: Bearer ***",
            ),
            ("mysql --password=a1b2 -e x", "mysql --password=*** -e x"),
            ("DB_PASSWORD='a b' run", "DB_PASSWORD=*** run"),
            (
                r#"{"api_key": "abc", "n": 1}"#,
                r#"{"api_key": ***, "n": 1}"#,
            ),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("x ghp_abcdefghijklmnopqrstuvwxyz012345 y", "x *** y"),
            (
                "plain words --stay=as they are",
                "plain words --stay=as they are",
            ),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
        let random = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY";
        assert_eq!(mask_random(random), GONE);
        let digest = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(mask_random(digest), digest);
    }

    #[test]
    fn secrets_in_words_of_a_command() {
        for (words, masked) in [
            (&["mysql", "-pSECRET"][..], "-p***"),
            (&["x", "--password=two words"], "--password=***"),
            (&["x", "--api-token", "abc"], "***"),
            (&["curl", "-u", "me:pw"], "***"),
            (&["curl", "-ume:pw"], "-u***"),
            (&["sshpass", "-p", "pw"], "***"),
            (&["mkdir", "-p", "dir"], "dir"),
            (
                &["env", "AWS_SECRET_ACCESS_KEY=a/b"],
                "AWS_SECRET_ACCESS_KEY=***",
            ),
            (
                &["sh", "-c", "login --token abc; ls"],
                "login --token ***; ls",
            ),
            (&["x", "--user", "name"], "name"),
        ] {
            let (word, rest) = words.split_last().unwrap();
            let before = rest.last().unwrap();
            assert_eq!(mask_word(word, before, words[0]), masked, "{words:?}");
        }
    }
}
