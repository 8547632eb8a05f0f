//! Protocols of applications whose requests can be recorded as spans.

/// A protocol of requests and responses on a stream socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http,
    /// The frontend/backend protocol of PostgreSQL, version 3.
    Postgresql,
    /// RESP2 and RESP3.
    Redis,
    /// The client/server protocol of MySQL and MariaDB.
    Mysql,
    /// FastCGI 1.0, such as between a web server and PHP-FPM.
    Fastcgi,
    /// The wire protocol of MongoDB.
    Mongodb,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Http,
        Self::Postgresql,
        Self::Redis,
        Self::Mysql,
        Self::Fastcgi,
        Self::Mongodb,
    ];

    /// The name in options and in `session.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Postgresql => "postgresql",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
            Self::Fastcgi => "fastcgi",
            Self::Mongodb => "mongodb",
        }
    }
}

/// A set of protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols(u8);

/// A word of `--spans` that names no protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolsError(String);

impl std::fmt::Display for ProtocolsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        write!(
            f,
            "no protocol named '{}'; choose from all, {names}",
            self.0
        )
    }
}

impl std::error::Error for ProtocolsError {}

impl Protocols {
    /// Every protocol.
    pub fn all() -> Self {
        Protocol::ALL.into_iter().fold(Self::default(), Self::with)
    }

    /// Parses names, also several in a word, separated by commas; `all` stands for every protocol.
    ///
    /// # Errors
    /// A word that names no protocol.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, ProtocolsError> {
        let mut protocols = Self::default();
        for word in words.iter().flat_map(|words| words.as_ref().split(',')) {
            let word = word.trim();
            if word == "all" {
                protocols = Self::all();
                continue;
            }
            let named = Protocol::ALL.into_iter().find(|p| p.name() == word);
            protocols = protocols.with(named.ok_or_else(|| ProtocolsError(word.to_owned()))?);
        }
        Ok(protocols)
    }

    /// This set and `protocol`.
    #[must_use]
    pub fn with(self, protocol: Protocol) -> Self {
        Self(self.0 | 1 << protocol as u8)
    }

    /// Whether the set contains `protocol`.
    pub fn has(self, protocol: Protocol) -> bool {
        self.0 & 1 << protocol as u8 != 0
    }

    /// Whether the set contains no protocol.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Names of the protocols in the set.
    pub fn names(self) -> Vec<&'static str> {
        let within = Protocol::ALL.into_iter().filter(|p| self.has(*p));
        within.map(Protocol::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_protocols() {
        let parsed = Protocols::parse(&["http,redis", "mysql"]).unwrap();
        assert_eq!(parsed.names(), ["http", "redis", "mysql"]);
        assert!(parsed.has(Protocol::Http) && !parsed.has(Protocol::Postgresql));
        assert_eq!(Protocols::parse(&["all"]).unwrap(), Protocols::all());
        assert_eq!(Protocols::all().names().len(), Protocol::ALL.len());
        assert!(Protocols::parse::<&str>(&[]).unwrap().is_empty());
        let error = Protocols::parse(&["smtp"]).unwrap_err().to_string();
        assert!(
            error.contains("'smtp'") && error.contains("postgresql"),
            "{error}"
        );
    }
}
