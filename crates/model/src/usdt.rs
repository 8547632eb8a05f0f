//! Static probes of programs (USDT) that begin and end spans: the rows of `bpf/usdt.def`, and the
//! pairs in `--usdt`.

use std::sync::LazyLock;

use thiserror::Error;

/// The arguments of a probe that are read, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The address.
    pub argument: u8,
    /// The length; `None`: the text ends with NUL.
    pub length: Option<u8>,
    /// Its meaning.
    pub kind: TextKind,
}

/// The meaning of a text. Parts of it may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Names the span as it is.
    Name,
    /// Names the span up to its query string.
    Url,
    /// A statement in SQL, whose digest names the span.
    Sql,
}

impl TextKind {
    const ALL: [Self; 3] = [Self::Name, Self::Url, Self::Sql];

    /// Its name in the table and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "text",
            Self::Url => "url",
            Self::Sql => "sql",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A kind of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanKind {
    /// The word of `--usdt` that asks for it.
    pub asked: String,
    /// Name of the provider, as notes in programs have it.
    pub provider: String,
    /// Its own name.
    pub name: String,
    /// The text that names each span; `None`: each has the name of the kind.
    pub text: Option<Text>,
    /// Name of the probe that begins a span.
    pub begin: String,
    /// Names of the probes that end it.
    pub ends: Vec<String>,
}

impl SpanKind {
    /// Whether the other one is between the same probes.
    fn is_same(&self, other: &Self) -> bool {
        let Self {
            provider,
            text,
            begin,
            ends,
            ..
        } = self;
        (provider, text, begin, ends) == (&other.provider, &other.text, &other.begin, &other.ends)
    }
}

/// All kinds of the table.
pub static KINDS: LazyLock<Vec<SpanKind>> = LazyLock::new(|| {
    let rows = include_str!("../../../bpf/usdt.def").lines();
    rows.filter_map(kind).collect()
});

/// The providers of the table, in its order.
pub fn providers() -> Vec<&'static str> {
    let mut providers: Vec<&str> = Vec::new();
    for kind in KINDS.iter() {
        if !providers.contains(&kind.provider.as_str()) {
            providers.push(&kind.provider);
        }
    }
    providers
}

fn kind(line: &str) -> Option<SpanKind> {
    let row = line.split('#').next().unwrap_or_default();
    let mut words = row.split_whitespace().map(str::to_owned);
    let provider = words.next()?;
    Some(SpanKind {
        asked: provider.clone(),
        provider,
        name: words.next()?,
        text: match words.next()?.split_once(':') {
            Some((kind, arguments)) => Some(text(arguments, TextKind::named(kind)?)?),
            None => None,
        },
        begin: words.next()?,
        ends: words.next()?.split(',').map(str::to_owned).collect(),
    })
}

/// `1`, or `1:2` with the length.
fn text(arguments: &str, kind: TextKind) -> Option<Text> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=12).contains(n));
    let (argument, length) = match arguments.split_once(':') {
        Some((argument, length)) => (argument, Some(number(length)?)),
        None => (arguments, None),
    };
    Some(Text {
        argument: number(argument)?,
        length,
        kind,
    })
}

/// Why a list of probes is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UsdtError {
    /// A provider that the table does not have, without probes.
    #[error(
        "--usdt: '{0}' is no known provider: use {list}, or PROVIDER:BEGIN/END with the names of \
         two probes, as `readelf -n PROGRAM` lists them",
        list = providers().join(", ")
    )]
    Provider(String),
    /// A kind of spans that the table does not have.
    #[error(
        "--usdt: {provider} has no spans called '{name}': use {list}, or PROVIDER:BEGIN/END with \
         the names of two probes",
        list = names(provider).join(", ")
    )]
    Kind {
        /// The provider.
        provider: String,
        /// The name.
        name: String,
    },
    /// An empty name, or an argument that is no number from 1 to 12.
    #[error(
        "--usdt: {0}: write PROVIDER:BEGIN/END, and behind it @N or @N:LENGTH if argument N of \
         the first probe is a text that names the span (at most 12)"
    )]
    Form(String),
}

fn names(provider: &str) -> Vec<&'static str> {
    let of = KINDS.iter().filter(|kind| kind.provider == provider);
    of.map(|kind| kind.name.as_str()).collect()
}

/// Reads a list of providers (`postgresql`), of kinds of spans (`postgresql:query`), and of pairs of
/// probes (`app:request__start/request__done@1`). `all` stands for all kinds of the table.
///
/// # Errors
/// [`UsdtError`].
pub fn parse<S: AsRef<str>>(list: &[S]) -> Result<Vec<SpanKind>, UsdtError> {
    let mut wanted: Vec<SpanKind> = Vec::new();
    for word in list.iter().map(|word| word.as_ref().trim()) {
        let kinds: Vec<SpanKind> = match word.split_once(':') {
            None => {
                let named = |kind: &&SpanKind| word == "all" || kind.provider == word;
                let kinds: Vec<SpanKind> = KINDS.iter().filter(named).cloned().collect();
                if kinds.is_empty() {
                    return Err(UsdtError::Provider(word.to_owned()));
                }
                kinds
            }
            Some((provider, pair)) if pair.contains('/') => {
                let pair = pair_of(provider, pair);
                vec![pair.ok_or_else(|| UsdtError::Form(word.to_owned()))?]
            }
            Some((provider, name)) => {
                if !providers().contains(&provider) {
                    return Err(UsdtError::Provider(provider.to_owned()));
                }
                let mut kinds = KINDS.iter();
                let kind = kinds.find(|kind| kind.provider == provider && kind.name == name);
                vec![kind.cloned().ok_or_else(|| UsdtError::Kind {
                    provider: provider.to_owned(),
                    name: name.to_owned(),
                })?]
            }
        };
        for kind in kinds {
            let known = wanted.iter().any(|known| known.is_same(&kind));
            if !known {
                let asked = word.to_owned();
                wanted.push(SpanKind { asked, ..kind });
            }
        }
    }
    Ok(wanted)
}

/// The kind of spans between probes that the user names.
fn pair_of(provider: &str, pair: &str) -> Option<SpanKind> {
    let (probes, text) = match pair.split_once('@') {
        Some((probes, arguments)) => (probes, Some(text(arguments, TextKind::Name)?)),
        None => (pair, None),
    };
    // DTrace writes hyphens.
    let mut probes = probes.split('/').map(|probe| probe.replace('-', "__"));
    let begin = probes.next()?;
    let ends: Vec<String> = probes.collect();
    let is_empty = |name: &String| name.is_empty();
    if provider.is_empty() || is_empty(&begin) || ends.is_empty() || ends.iter().any(is_empty) {
        return None;
    }
    const BEGINNINGS: [&str; 4] = ["__start", "__begin", "__entry", "__startup"];
    let short = BEGINNINGS.iter().find_map(|end| begin.strip_suffix(end));
    Some(SpanKind {
        asked: format!("{provider}:{pair}"),
        provider: provider.to_owned(),
        name: short.unwrap_or(&begin).replace("__", "-"),
        text,
        begin,
        ends,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_kind() {
        let rows = include_str!("../../../bpf/usdt.def").lines();
        let rows = rows.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        assert_eq!(KINDS.len(), rows.count());
        assert_eq!(
            providers(),
            ["postgresql", "php", "python", "hotspot"],
            "help and documents name them"
        );
        let kind = |provider: &str, name: &str| {
            let of = |kind: &&SpanKind| kind.provider == provider && kind.name == name;
            KINDS.iter().find(of).unwrap()
        };
        let query = kind("postgresql", "query");
        assert!(query.text.is_some_and(|text| text.kind == TextKind::Sql));
        assert_eq!(kind("postgresql", "transaction").ends.len(), 2);
        let operation = kind("hotspot", "vm-operation").text.unwrap();
        assert_eq!((operation.argument, operation.length), (1, Some(2)));
    }

    #[test]
    fn lists() {
        let all = parse(&["all"]).unwrap();
        assert_eq!(all.len(), KINDS.len());
        assert!(all.iter().all(|kind| kind.asked == "all"));
        assert_eq!(parse(&["python", "python:gc"]).unwrap().len(), 2);
        let own = parse(&["app:job-start/job-done/job__failed@3"]).unwrap();
        assert_eq!(
            own,
            [SpanKind {
                asked: "app:job-start/job-done/job__failed@3".into(),
                provider: "app".into(),
                name: "job".into(),
                text: Some(Text {
                    argument: 3,
                    length: None,
                    kind: TextKind::Name
                }),
                begin: "job__start".into(),
                ends: vec!["job__done".into(), "job__failed".into()],
            }]
        );
        let refused = |word: &str| parse(&[word]).unwrap_err().to_string();
        assert!(refused("pg").contains("use postgresql, php"));
        assert!(refused("pg:query").contains("use postgresql, php"));
        assert!(refused("python:gcc").contains("use gc, import"));
        for form in [
            "app:/",
            "app:a/",
            ":a/b",
            "app:a/b@0",
            "app:a/b@x",
            "app:a/b@1:99",
        ] {
            assert!(refused(form).contains("PROVIDER:BEGIN/END"), "{form}");
        }
    }
}
