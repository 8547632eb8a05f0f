//! Ids of requests and threads, of which each host of a set has its own.

use std::fmt;

use anyhow::{Context, bail};
use fathom_model::escape;

/// The id of a request or thread.
#[derive(Clone, Debug)]
pub struct Id {
    /// The session of a set that has it.
    pub host: Option<String>,
    /// Its number.
    pub number: i64,
}

impl Id {
    /// The place of its session in a set with these hosts.
    pub fn member(&self, hosts: &[&str]) -> Result<usize, anyhow::Error> {
        let Some(host) = &self.host else {
            bail!("in a set, ids need a host: HOST:{}", self.number);
        };
        let known = || escape::text(&hosts.join(", ")).into_owned();
        let member = hosts.iter().position(|known| known == host);
        member.with_context(|| format!("no host {} in the set: {}", escape::text(host), known()))
    }

    /// Its number, outside of a set.
    pub fn alone(&self) -> Result<i64, anyhow::Error> {
        match &self.host {
            None => Ok(self.number),
            Some(_) => bail!("one session has no hosts: leave out the part before the colon"),
        }
    }
}

/// As the user gives it.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{}:", escape::text(host))?;
        }
        write!(f, "{}", self.number)
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self { host: None, number }
    }
}

/// Parses an id.
pub fn id(text: &str) -> Result<Id, String> {
    let (host, number) = match text.rsplit_once(':') {
        Some((host, number)) => (Some(host.to_string()), number),
        None => (None, text),
    };
    let number = number.parse().map_err(|_| "not a number".to_string())?;
    Ok(Id { host, number })
}
