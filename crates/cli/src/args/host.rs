//! Hosts as ssh knows them.

use std::str::FromStr;

/// A name of `--on`, or the part of `HOST:DIR` before the colon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host(String);

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
        Ok(Self(text.to_owned()))
    }
}

impl Host {
    /// Its name without the user: of the member of a set, and of its directory.
    #[cfg(feature = "analysis")]
    pub fn name(&self) -> &str {
        self.0.rsplit('@').next().unwrap_or_default()
    }

    /// As the user wrote it.
    pub fn given(&self) -> &str {
        &self.0
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        self.0 == LOCAL
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
