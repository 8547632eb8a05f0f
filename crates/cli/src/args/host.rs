//! Hosts as ssh knows them.

use std::str::FromStr;

/// A name of `--on`, or the part of `HOST:DIR` before the colon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    given: String,
    port: Option<u16>,
}

/// The name of this machine in `--on`.
const LOCAL: &str = "local";

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // ssh takes a leading - for an option. The name is also one of a directory.
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-@:%".contains(c);
        let host = text.rsplit('@').next().unwrap_or_default();
        if text.starts_with('-') || host.is_empty() || host.starts_with(['-', '.']) {
            return Err("not the name of a host".to_owned());
        }
        if !text.chars().all(fits) {
            return Err("a host may consist of letters, digits, and . _ - @ : %".to_owned());
        }
        Ok(Self {
            given: text.to_owned(),
            port: None,
        })
    }
}

impl Host {
    /// `[USER@]HOST[:PORT]` of an address `ssh://`; a host with colons is in brackets.
    pub fn of_address(text: &str) -> Result<Self, String> {
        let (user, place) = match text.rsplit_once('@') {
            Some((user, place)) => (format!("{user}@"), place),
            None => (String::new(), text),
        };
        let in_brackets = place
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let (name, port) = match in_brackets {
            Some((name, "")) => (name, None),
            Some((name, rest)) => (name, rest.strip_prefix(':').or(Some(rest))),
            None => match place.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (place, None),
            },
        };
        let mut host: Self = format!("{user}{name}").parse()?;
        if let Some(port) = port {
            let number = port.parse().ok().filter(|number| *number > 0);
            host.port = Some(number.ok_or_else(|| format!("{port} is not a port"))?);
        }
        Ok(host)
    }

    /// The port of ssh, if it was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Its name without the user: of the member of a set, and of its directory.
    #[cfg(feature = "analysis")]
    pub fn name(&self) -> &str {
        self.given.rsplit('@').next().unwrap_or_default()
    }

    /// As the user wrote it.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        self.given == LOCAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_neither_options_nor_paths() {
        for good in ["web", "root@db-1.example", "fe80::1%eth0", "a_b"] {
            assert_eq!(good.parse::<Host>().unwrap().given(), good);
        }
        for bad in [
            "-oProxyCommand=x",
            "",
            "root@",
            "root@-x",
            "a b",
            "a/b",
            "..",
            "x\x1b[2J",
            "a\n",
            "$(x)",
            "a;b",
            "r\u{f6}\u{df}e",
        ] {
            assert!(bad.parse::<Host>().is_err(), "{bad:?}");
        }
    }
}
