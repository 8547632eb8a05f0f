//! The access file, in TOML: tokens with their roles, and the reverse proxy.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use axum::http::HeaderName;
use fathom_http::Token;
use fathom_model::escape;
use fathom_session::{Distrust, open_trusted_dir, read_trusted, resolve_trusted};
use serde::Deserialize;

use super::{Access, BLANK, Caller, Named, Proxy, Role, SECRET_HEADER};

/// Bytes of the file at most, and of a file with a secret.
const MOST_BYTES: u64 = 1 << 20;
const MOST_SECRET: u64 = 4 << 10;
/// Characters of a secret at least: 64 bits as hexadecimal digits.
const LEAST_SECRET: usize = 16;
/// Tokens at most: each is compared with each request's.
const MOST_TOKENS: usize = 100;

/// Why an access file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file cannot be read, or others could have written or can read it.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason, and what to do.
        reason: String,
    },
}

impl From<Distrust> for AccessError {
    fn from(Distrust { path, reason }: Distrust) -> Self {
        Self::File { path, reason }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    token: Vec<WrittenToken>,
    proxy: Option<WrittenProxy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    role: Role,
    /// The first line is the token.
    file: PathBuf,
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenProxy {
    origin: String,
    secret_file: PathBuf,
    #[serde(default = "user_header")]
    user_header: String,
    #[serde(default = "groups_header")]
    groups_header: String,
    #[serde(default = "comma")]
    groups_separator: char,
    #[serde(default)]
    users: BTreeMap<String, Role>,
    #[serde(default)]
    groups: BTreeMap<String, Role>,
    default_role: Option<Role>,
}

fn user_header() -> String {
    "X-Forwarded-User".to_owned()
}

fn groups_header() -> String {
    "X-Forwarded-Groups".to_owned()
}

fn comma() -> char {
    ','
}

/// A file that no other user can have written, and its path. Links on the way are followed once;
/// what they lead to counts.
fn read(path: &Path, most: u64) -> Result<(String, PathBuf), Distrust> {
    let failed = |reason: String| Distrust::new(path, reason);
    let resolved = resolve_trusted(path)?;
    let named = resolved.parent().zip(resolved.file_name());
    let named = named.and_then(|(parent, name)| Some((parent, name.to_str()?)));
    let (parent, name) = named.ok_or_else(|| failed("it is not a file".to_owned()))?;
    let (dir, _) = open_trusted_dir(parent)?;
    let text = read_trusted(dir, name, &resolved, most)?;
    let text = text.ok_or_else(|| failed("it does not exist".to_owned()))?;
    Ok((text, resolved))
}

/// The secret in the first line of a file that only its owner, and at most its group, can read.
/// `entry` is where the access file names it: what it has instead of a path may be the secret itself,
/// which no message may show.
fn secret(
    path: &Path,
    entry: &str,
    wrong: &impl Fn(String) -> AccessError,
) -> Result<Token, AccessError> {
    if let Err(error) = path.metadata() {
        return Err(wrong(format!("cannot read the file of {entry}: {error}")));
    }
    let (text, resolved) = read(path, MOST_SECRET)?;
    let failed = |reason: &str| Distrust::new(path, reason);
    let found = resolved.symlink_metadata();
    let found = found.map_err(|e| failed(&e.to_string()))?;
    // The directory is trusted: this is the file that was read.
    if found.mode() & 0o007 != 0 {
        let quoted = escape::shell_words([path.as_os_str().as_bytes()]);
        let reason = format!("every user can read this secret; run `chmod o= {quoted}`");
        return Err(failed(&reason).into());
    }
    let line = text.lines().next().unwrap_or_default().trim();
    if line.len() < LEAST_SECRET {
        return Err(failed(
            "its first line is too short for a secret; `openssl rand -hex 16` makes one",
        )
        .into());
    }
    if !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed(
            "its first line has other characters than visible ASCII; `openssl rand -hex 16` makes \
             a secret",
        )
        .into());
    }
    Ok(Token::given(line.to_owned()))
}

/// The name of a header that a proxy may be asked to set; `entry` has it.
fn header(name: &str, entry: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let parsed = parsed.map_err(|_| format!("{entry} is not the name of a header"))?;
    let taken = ["host", "origin", "authorization", "cookie", SECRET_HEADER];
    match taken.contains(&parsed.as_str()) {
        true => Err(format!(
            "header {parsed} has another meaning; name another one"
        )),
        false => Ok(parsed),
    }
}

/// The origin as browsers send it: in lower case, without the port of the scheme, addresses in their
/// shortest form.
fn origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").map(|host| (host, 443));
    let host = host.or_else(|| text.strip_prefix("http://").map(|host| (host, 80)));
    if host.is_some_and(|(host, port)| is_host(host, port)) {
        return Ok(text.to_owned());
    }
    Err(
        "proxy.origin is not an origin: write the address as the browser shows it, in lower case, \
         without a path and without the port 443 of https or 80 of http, as \
         \"https://fathom.example.com\""
            .to_owned(),
    )
}

/// Whether a text is a host, and perhaps a port other than `usual`.
fn is_host(text: &str, usual: u16) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        // The colon may be one of an address of IPv6.
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| {
        let number = port.parse::<u16>();
        number.is_ok_and(|number| number != usual && number.to_string() == port)
    };
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    let is_name = match bare {
        Some(bare) => bare
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.to_string() == bare),
        None => {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            name.chars().all(|c| plain(c) || "-._".contains(c)) && name.contains(plain)
        }
    };
    is_name && port.is_none_or(is_port)
}

/// The error in the file, without the file's values: one of them may be a secret in the wrong place.
fn told(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let reason = match message.rfind("expected ") {
        _ if message.starts_with("missing field ") => message,
        Some(at) => message.get(at..).unwrap_or_default(),
        None => "it is not as expected",
    };
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {reason}", before.matches('\n').count() + 1),
        None => reason.to_owned(),
    }
}

/// Whether a name of `entry` can be one that a proxy sends.
fn check_names(
    names: &BTreeMap<String, Role>,
    entry: &str,
    separator: Option<char>,
) -> Result<(), String> {
    for name in names.keys() {
        let wrong = if name.is_empty() {
            "is empty"
        } else if name.trim_matches(BLANK) != name {
            "begins or ends with a space"
        } else if name.chars().any(char::is_control) {
            "has a control character"
        } else if separator.is_some_and(|separator| name.contains(separator)) {
            "contains groups-separator"
        } else {
            continue;
        };
        return Err(format!("a name in [{entry}] {wrong}: no request has it"));
    }
    Ok(())
}

impl Access {
    /// The tokens and the proxy of an access file. Paths in it are relative to its directory.
    ///
    /// # Errors
    /// When a file cannot be read, is not trusted, or does not contain what is expected.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let (text, resolved) = read(path, MOST_BYTES)?;
        let wrong = |reason: String| AccessError::from(Distrust::new(path, reason));
        let written: Written = toml::from_str(&text).map_err(|error| wrong(told(&error, &text)))?;
        if written.token.len() > MOST_TOKENS {
            return Err(wrong(format!("it has more than {MOST_TOKENS} tokens")));
        }
        let dir = resolved.parent().unwrap_or(Path::new("/"));
        let mut tokens: Vec<Named> = Vec::new();
        for (number, written) in (1..).zip(written.token) {
            let entry = format!("token {number}");
            let token = secret(&dir.join(&written.file), &entry, &wrong)?;
            if tokens
                .iter()
                .any(|other| other.token.is(token.text().as_bytes()))
            {
                return Err(wrong(format!(
                    "{} has the token of another file; make a token for each",
                    written.file.display()
                )));
            }
            let caller = Caller {
                role: written.role,
                name: written.name,
            };
            tokens.push(Named { token, caller });
        }
        let proxy = written.proxy;
        let proxy = proxy
            .map(|proxy| Proxy::of(proxy, dir, &wrong))
            .transpose()?;
        // A client with this token could say that it is the proxy, with any user.
        if let Some(proxy) = &proxy
            && tokens
                .iter()
                .any(|other| other.token.is(proxy.secret.text().as_bytes()))
        {
            return Err(wrong(
                "proxy.secret-file has the token of a client; make a secret for the proxy alone"
                    .to_owned(),
            ));
        }
        if tokens.is_empty() && proxy.is_none() {
            return Err(wrong(
                "it lets no client in: add [[token]] with role and file, or [proxy]".to_owned(),
            ));
        }
        Ok(Self {
            tokens,
            proxy,
            is_local: false,
        })
    }
}

impl Proxy {
    fn of(
        written: WrittenProxy,
        dir: &Path,
        wrong: &impl Fn(String) -> AccessError,
    ) -> Result<Self, AccessError> {
        let user_header = header(&written.user_header, "proxy.user-header").map_err(wrong)?;
        let groups_header = header(&written.groups_header, "proxy.groups-header").map_err(wrong)?;
        if user_header == groups_header {
            return Err(wrong(
                "proxy.user-header and proxy.groups-header are both the same header".to_owned(),
            ));
        }
        let separator = written.groups_separator;
        if separator.is_control() {
            return Err(wrong(
                "proxy.groups-separator is a control character, which headers do not have"
                    .to_owned(),
            ));
        }
        check_names(&written.users, "proxy.users", None).map_err(wrong)?;
        check_names(&written.groups, "proxy.groups", Some(separator)).map_err(wrong)?;
        if written.users.is_empty() && written.groups.is_empty() && written.default_role.is_none() {
            return Err(wrong(
                "[proxy] gives no user a role: add [proxy.groups], [proxy.users], or default-role"
                    .to_owned(),
            ));
        }
        Ok(Self {
            secret: secret(&dir.join(&written.secret_file), "proxy.secret-file", wrong)?,
            origin: origin(&written.origin).map_err(wrong)?,
            user_header,
            groups_header,
            separator,
            users: written.users,
            groups: written.groups,
            default_role: written.default_role,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        fn access(&self, text: &str) -> Result<Access, String> {
            let path = self.write("access.toml", text, 0o644);
            Access::read(&path).map_err(|error| error.to_string())
        }
    }

    const LOOK: &str = "[[token]]\nrole = \"look\"\nfile = \"look.token\"\nname = \"wall\"\n";
    const PROXY: &str = "[proxy]\norigin = \"https://fathom.example\"\nsecret-file = \"secret\"\n\
                         default-role = \"look\"\n";

    #[test]
    fn whole_files() {
        let files = Files::new();
        files.write("look.token", "0123456789abcdef\nmore\n", 0o600);
        files.write("secret", "fedcba9876543210", 0o640);
        let access = files.access(&format!("{LOOK}{PROXY}")).unwrap();
        let [wall] = access.tokens.as_slice() else {
            panic!("one token");
        };
        assert!(wall.token.is(b"0123456789abcdef"));
        let name = Some("wall".to_owned());
        assert_eq!(
            wall.caller,
            Caller {
                role: Role::Look,
                name
            }
        );
        assert!(access.is_proxy_host("FATHOM.example"));
        assert!(access.is_proxy_origin("https://fathom.example"));
        assert!(!access.is_proxy_origin("http://fathom.example"));
        assert_eq!(access.token(), None);
        // As a secret of Kubernetes is mounted.
        fs::rename(
            files.0.path().join("look.token"),
            files.0.path().join("data"),
        )
        .unwrap();
        symlink("data", files.0.path().join("look.token")).unwrap();
        assert!(files.access(LOOK).is_ok());
    }

    #[test]
    fn what_is_refused() {
        let files = Files::new();
        let good = "0123456789abcdef";
        fs::create_dir(files.0.path().join("directory")).unwrap();
        files.write("look.token", good, 0o600);
        files.write("same.token", good, 0o600);
        files.write("open.token", "0123456789abcdeF", 0o604);
        files.write("shared.token", "0123456789abcdeF", 0o620);
        files.write("short.token", "0123456789abcde\n0123456789abcdef", 0o600);
        files.write("odd.token", "0123456789 abcdef", 0o600);
        files.write("secret", "fedcba9876543210", 0o600);
        let of = |file: &str| format!("[[token]]\nrole = \"look\"\nfile = \"{file}\"\n");
        let proxied = |line: &str, other: &str| PROXY.replace(line, other);
        for (text, part) in [
            (String::new(), "lets no client in"),
            (of("missing.token"), "No such file"),
            (of("open.token"), "every user can read this secret"),
            (of("shared.token"), "other users can write it"),
            (of("short.token"), "too short"),
            (of("odd.token"), "visible ASCII"),
            (of("directory"), "regular file"),
            (
                format!("{}{}", of("look.token"), of("same.token")),
                "token of another file",
            ),
            (of("look.token").replace("look\"", "admin\""), "line 2"),
            ("[[token]]\nrole = \"look\"\n".to_owned(), "file"),
            (format!("{LOOK}secret = 1\n"), "line 5: expected one of"),
            (
                proxied("https://fathom.example", "fathom.example"),
                "proxy.origin",
            ),
            (
                proxied("https://fathom.example", "https://fathom.example/"),
                "proxy.origin",
            ),
            (
                proxied("https://fathom.example", "https://"),
                "proxy.origin",
            ),
            (
                proxied("default-role = \"look\"\n", ""),
                "gives no user a role",
            ),
            (
                format!("{PROXY}user-header = \"Cookie\"\n"),
                "another meaning",
            ),
            (
                format!("{PROXY}user-header = \"a b\"\n"),
                "not the name of a header",
            ),
            (
                format!("{PROXY}user-header = \"X-Forwarded-Groups\"\n"),
                "both",
            ),
            (
                format!("{LOOK}{}", proxied("\"secret\"", "\"look.token\"")),
                "proxy.secret-file has the token of a client",
            ),
            (
                format!("{PROXY}[proxy.groups]\n\"\" = \"look\"\n"),
                "a name in [proxy.groups] is empty",
            ),
            (
                format!("{PROXY}[proxy.users]\n\"\" = \"look\"\n"),
                "a name in [proxy.users] is empty",
            ),
            (
                format!("{PROXY}[proxy.groups]\n\"staff \" = \"look\"\n"),
                "ends with a space",
            ),
            (
                format!("{PROXY}[proxy.groups]\n\"a,b\" = \"look\"\n"),
                "contains groups-separator",
            ),
            (
                format!("{PROXY}groups-separator = \"\\n\"\n"),
                "control character",
            ),
        ] {
            let error = files
                .access(&text)
                .err()
                .unwrap_or_else(|| panic!("{text}"));
            assert!(error.contains(part), "{text}: {error}");
        }
        for other in [
            "https://fathom.example:443",
            "http://fathom.example:80",
            "https://fathom.example:08443",
            "https://fathom.example:",
            "https://:8443",
            "https://.",
            "https://[]",
            "https://[::0:1]",
            "https://Fathom.example",
        ] {
            let error = files.access(&proxied("https://fathom.example", other));
            let error = error.err().unwrap_or_else(|| panic!("{other}"));
            assert!(error.contains("proxy.origin"), "{other}: {error}");
        }
        for good in [
            "http://fathom.example:443",
            "https://fathom.example:80",
            "https://10.0.0.1:8443",
            "https://[::1]",
            "http://[fe80::1]:8080",
        ] {
            let read = files.access(&proxied("https://fathom.example", good));
            assert!(read.is_ok(), "{good}: {:?}", read.err());
        }
        let path = files.write("access.toml", LOOK, 0o666);
        let error = Access::read(&path).err().unwrap().to_string();
        assert!(error.contains("other users can write it"), "{error}");
    }

    #[test]
    fn messages_have_no_secret() {
        let files = Files::new();
        let secret = "0123456789abcdef";
        files.write("secret", "fedcba9876543210", 0o600);
        let line = format!("\"{secret}\"");
        for (text, part) in [
            (LOOK.replace("\"look.token\"", &line), "file of token 1"),
            (LOOK.replace("\"look\"", &line), "line 2: expected one of"),
            (format!("{LOOK}{secret} = 1\n"), "expected one of"),
            (format!("{LOOK}token = {line}\n"), "line 5: expected one of"),
            (format!("token = {line}\n"), "line 1: expected"),
            (format!("{secret}\n"), "line 1"),
            (
                PROXY.replace("\"secret\"", &line),
                "file of proxy.secret-file",
            ),
            (
                PROXY.replace("\"https://fathom.example\"", &line),
                "proxy.origin",
            ),
            (
                format!("{PROXY}user-header = \" {secret}\"\n"),
                "proxy.user-header",
            ),
            (
                format!("{PROXY}groups-separator = {line}\n"),
                "line 5: expected",
            ),
            (format!("{PROXY}[proxy.users]\nann = {line}\n"), "line 6"),
        ] {
            let error = files.access(&text).err();
            let error = error.unwrap_or_else(|| panic!("{text}"));
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains(secret), "{text}: {error}");
        }
        // The advice names the file.
        let path = files.write("look.token", secret, 0o604);
        let error = files.access(LOOK).err().unwrap();
        assert!(
            error.contains(&format!("`chmod o= {}`", path.display())),
            "{error}"
        );
    }
}
