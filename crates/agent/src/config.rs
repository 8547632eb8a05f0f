//! The file of the agent, in TOML: which recording, which metrics, which sessions stay.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs::File, io};

use fathom_diagnose::Severity;
use fathom_model::units;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::labels::Label;

/// The longest file, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Most slow requests of a save that are logs: each is explained by a process of its own.
const MOST_SLOW_REQUESTS: u16 = 20;

/// The contents of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Options of `fathom record` by their long names.
    #[serde(default)]
    pub record: toml::Table,
    /// The address that serves metrics, and their labels.
    #[serde(default)]
    pub metrics: Metrics,
    /// The sessions on disk.
    #[serde(default)]
    pub sessions: Sessions,
    /// A collector that gets the metrics.
    pub otlp: Option<Otlp>,
    /// An object store or a directory that gets the sessions.
    pub ship: Option<Ship>,
}

/// Table `[metrics]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Metrics {
    /// Address of `/metrics` and `/health`.
    pub listen: SocketAddr,
    /// File whose first line a client of `/metrics` must send as bearer token.
    pub token_file: Option<PathBuf>,
    /// Labels of the metrics of calls.
    pub by: Vec<Label>,
    /// Combinations of their values that have metrics of their own.
    pub label_sets: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9464)),
            token_file: None,
            by: vec![
                Label::Command,
                Label::Unit,
                Label::Container,
                Label::FileSystem,
            ],
            label_sets: 500,
        }
    }
}

/// Table `[sessions]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sessions {
    /// Directory of the ring and of what was saved from it.
    pub directory: PathBuf,
    /// Sessions that stay there, without the ring that is being recorded.
    pub keep: usize,
    /// Save when a rule finds a problem of at least this severity.
    pub save_on: Option<Severity>,
    /// Time between two such saves at least.
    #[serde(deserialize_with = "time")]
    pub pause: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("/var/lib/fathom"),
            keep: 20,
            save_on: None,
            pause: Duration::from_secs(600),
        }
    }
}

/// Table `[otlp]`: metrics and logs to a collector, as JSON over HTTP.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Otlp {
    /// Where metrics go: `https://HOST/v1/metrics`, or `http://HOST:PORT/v1/metrics`.
    pub endpoint: Option<Endpoint>,
    /// Where logs go: `https://HOST/v1/logs`, or `http://HOST:PORT/v1/logs`.
    pub logs: Option<Endpoint>,
    /// Whether findings are logs; by default they are if `logs` is given.
    pub findings: Option<bool>,
    /// Slow requests of each save by `save-when` that are logs; by default none.
    pub slow_requests: Option<u16>,
    /// Logs without secrets; by default as `[ship]` has it, with its rules and key.
    pub redact: Option<bool>,
    /// With `redact`: file of rules.
    pub rules: Option<PathBuf>,
    /// With `redact`: file with the key of hashes.
    pub key: Option<PathBuf>,
    /// File with the certificates (PEM) of the authorities that are trusted instead of the system's.
    pub certificate_authority: Option<PathBuf>,
    /// Headers of each request, such as `Authorization`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Time between two of them.
    #[serde(default = "ten_seconds", deserialize_with = "time")]
    pub interval: Duration,
    /// Attributes of the resource.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// Table `[ship]`: closed sessions, as `fathom ship` uploads them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ship {
    /// `s3://BUCKET/PREFIX` or another destination of `fathom ship`.
    pub to: String,
    /// Without secrets, as redacted copies.
    #[serde(default)]
    pub redact: bool,
    /// With `redact`: file of rules.
    pub rules: Option<PathBuf>,
    /// With `redact`: file with the key of hashes.
    pub key: Option<PathBuf>,
    /// Whether the rules run over each session, for table `findings`; by default they do.
    pub findings: Option<bool>,
}

impl Otlp {
    fn check(&self, record: &toml::Table) -> Result<(), String> {
        if self.endpoint.is_none() && self.logs.is_none() {
            return Err("otlp: name endpoint for metrics, logs for findings, or both".into());
        }
        let needs_logs = [
            ("findings", self.findings.is_some()),
            ("slow-requests", self.slow_requests.is_some()),
            ("redact", self.redact.is_some()),
        ];
        if let (None, Some((name, _))) = (&self.logs, needs_logs.iter().find(|(_, is)| *is)) {
            return Err(format!("otlp.{name} goes with otlp.logs, an address"));
        }
        if self.redact != Some(true) && (self.rules.is_some() || self.key.is_some()) {
            return Err("otlp.rules and otlp.key go with redact = true".into());
        }
        let slow = self.slow_requests.unwrap_or_default();
        if slow > MOST_SLOW_REQUESTS {
            return Err(format!("otlp.slow-requests: {MOST_SLOW_REQUESTS} at most"));
        }
        if slow > 0 && !record.contains_key("save-when") {
            return Err(
                "otlp.slow-requests goes with save-when in [record], which says what is slow"
                    .into(),
            );
        }
        Ok(())
    }
}

/// Files of a redaction, as `fathom redact` takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redaction {
    /// File of rules.
    pub rules: Option<PathBuf>,
    /// File with the key of hashes.
    pub key: Option<PathBuf>,
}

impl Redaction {
    /// Its options on a command line.
    pub fn arguments(&self) -> Vec<OsString> {
        let rules = self
            .rules
            .iter()
            .map(|path| option("--rules", path.as_os_str()));
        let key = self
            .key
            .iter()
            .map(|path| option("--key", path.as_os_str()));
        rules.chain(key).collect()
    }
}

fn option(name: &str, value: &OsStr) -> OsString {
    let mut argument = OsString::from(name);
    argument.push("=");
    argument.push(value);
    argument
}

impl Ship {
    fn redaction(&self) -> Option<Redaction> {
        self.redact.then(|| Redaction {
            rules: self.rules.clone(),
            key: self.key.clone(),
        })
    }

    /// Arguments of the process that ships, without the session.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["ship", "--quiet"].map(OsString::from).into();
        arguments.push(option("--to", self.to.as_ref()));
        if let Some(redaction) = self.redaction() {
            arguments.extend(redaction.arguments());
            arguments.push("--redact".into());
        }
        if self.findings == Some(false) {
            arguments.push("--no-findings".into());
        }
        arguments
    }
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let time = units::parse_time(&text).map_err(D::Error::custom)?;
    match time.is_zero() {
        true => Err(D::Error::custom("a time is longer than 0")),
        false => Ok(time),
    }
}

/// An address of a collector.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Endpoint(String);

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rest = text.strip_prefix("http://");
        let rest = rest
            .or_else(|| text.strip_prefix("https://"))
            .ok_or_else(|| format!("{text:?}: it must begin with https:// or http://"))?;
        match rest.is_empty() || rest.starts_with('/') || rest.contains(char::is_whitespace) {
            true => Err(format!("{text:?}: not an address")),
            false => Ok(Self(text)),
        }
    }
}

impl Endpoint {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.0
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could make the agent, which is root, do what they like.
    #[error("{} {what}; it must belong to you or to root, and only its owner may write it", path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: &'static str,
    },
    /// It is not what is expected.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// With the line.
        message: String,
    },
}

impl Config {
    /// Reads a file that no other user can have written.
    ///
    /// # Errors
    /// All [`ConfigError`]s.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let refused = |what| ConfigError::Unsafe {
            path: path.to_owned(),
            what,
        };
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(refused("is not a file"));
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
            return Err(refused("belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(refused("can be written by other users"));
        }
        let mut text = String::new();
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(failed)?;
        Self::parse(&text).map_err(|message| ConfigError::Syntax {
            path: path.to_owned(),
            message,
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or(text);
                before.matches('\n').count() + 1
            });
            match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            }
        })?;
        if config.metrics.label_sets == 0 {
            return Err("metrics.label-sets: there must be one at least".into());
        }
        if let Some(otlp) = &config.otlp {
            otlp.check(&config.record)?;
        }
        if let Some(ship) = &config.ship {
            if ship.to.is_empty() {
                return Err("ship.to: name a destination".into());
            }
            if !ship.redact && (ship.rules.is_some() || ship.key.is_some()) {
                return Err("ship.rules and ship.key go with redact = true".into());
            }
        }
        Ok(config)
    }

    /// The redaction of logs.
    pub(crate) fn redaction_of_logs(&self) -> Option<Redaction> {
        let otlp = self.otlp.as_ref()?;
        match otlp.redact {
            None => self.ship.as_ref()?.redaction(),
            Some(redact) => redact.then(|| Redaction {
                rules: otlp.rules.clone(),
                key: otlp.key.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_needs_to_be_said() {
        let config = Config::parse("").unwrap();
        assert_eq!(config.metrics, Metrics::default());
        assert_eq!(config.sessions, Sessions::default());
        assert!(config.otlp.is_none() && config.record.is_empty());
    }

    #[test]
    fn addresses() {
        for good in [
            "http://localhost:4318/v1/metrics",
            "http://[::1]:4318",
            "https://collector.example/v1/metrics",
        ] {
            assert_eq!(Endpoint::try_from(good.to_owned()).unwrap().0, good);
        }
        for bad in [
            "localhost:4318",
            "http://",
            "https:///v1",
            "http://a b/",
            "ftp://a",
        ] {
            assert!(Endpoint::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn everything_can_be_said() {
        let config = Config::parse(
            "[record]\nkeep = ['5m', '1GiB']\nbudget = '3%'\n\
             [metrics]\nlisten = '[::1]:1'\nby = ['command', 'pod', 'device']\nlabel-sets = 7\n\
             [sessions]\ndirectory = '/x'\nkeep = 3\nsave-on = 'medium'\npause = '90s'\n\
             [otlp]\nendpoint = 'http://[::1]:4318/v1/metrics'\ninterval = '5s'\n\
             attributes = { site = 'b' }\ncertificate-authority = '/c'\n\
             headers = { Authorization = 'Bearer x' }\n\
             [ship]\nto = 's3://b/p'\nredact = true\nkey = '/k'\n",
        )
        .unwrap();
        assert_eq!(config.record.len(), 2);
        assert_eq!(
            config.metrics.by,
            [Label::Command, Label::Pod, Label::Device]
        );
        assert_eq!(config.sessions.save_on, Some(Severity::Medium));
        assert_eq!(config.sessions.pause, Duration::from_secs(90));
        assert_eq!(config.otlp.unwrap().interval, Duration::from_secs(5));
        let arguments = ["ship", "--quiet", "--to=s3://b/p", "--key=/k", "--redact"];
        assert_eq!(config.ship.unwrap().arguments(), arguments);
        let config = Config::parse("[ship]\nto = '/x'\nfindings = false\n").unwrap();
        let arguments = ["ship", "--quiet", "--to=/x", "--no-findings"];
        assert_eq!(config.ship.unwrap().arguments(), arguments);
    }

    #[test]
    fn logs_are_redacted_as_sessions_are_unless_otherwise_said() {
        let redaction = |otlp: &str| {
            let text = format!("[otlp]\nlogs = 'http://a'\n{otlp}");
            let ship = "[ship]\nto = '/x'\nredact = true\nkey = '/k'\n";
            let of = |text: &str| Config::parse(text).unwrap().redaction_of_logs();
            (of(&text), of(&format!("{text}{ship}")))
        };
        let with = |key: &str| {
            Some(Redaction {
                key: Some(key.into()),
                ..Redaction::default()
            })
        };
        assert_eq!(redaction(""), (None, with("/k")));
        assert_eq!(redaction("redact = false\n"), (None, None));
        let own = redaction("redact = true\nkey = '/own'\n");
        assert_eq!(own, (with("/own"), with("/own")));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, parts) in [
            ("[metrics]\nlisten = 'x'\n", &["line 2"][..]),
            ("[metrics]\nby = ['color']\n", &["line 2", "color"]),
            ("[sessions]\nkepp = 1\n", &["line 2", "kepp"]),
            ("[sessions]\npause = '0s'\n", &["longer than 0"]),
            ("\n[recrod]\n", &["line 2", "recrod"]),
            ("[metrics]\nlabel-sets = 0\n", &["label-sets"]),
            ("[otlp]\nendpoint = 'ftp://a'\n", &["line 2", "https://"]),
            ("[otlp]\nlogs = 'ftp://a'\n", &["line 2", "https://"]),
            ("[otlp]\n", &["endpoint", "logs"]),
            (
                "[otlp]\nendpoint = 'http://a'\nfindings = true\n",
                &["otlp.logs"],
            ),
            (
                "[otlp]\nlogs = 'http://a'\nslow-requests = 3\n",
                &["save-when"],
            ),
            ("[otlp]\nlogs = 'http://a'\nslow-requests = 21\n", &["20"]),
            (
                "[otlp]\nlogs = 'http://a'\nkey = '/k'\n",
                &["redact = true"],
            ),
            ("[ship]\n", &["line 1", "to"]),
            ("[ship]\nto = ''\n", &["ship.to"]),
            ("[ship]\nto = '/x'\nkey = '/k'\n", &["redact = true"]),
        ] {
            let message = Config::parse(text).unwrap_err();
            for part in parts {
                assert!(message.contains(part), "{text:?}: {message}");
            }
        }
    }
}
