//! The access file, in TOML: tokens with their roles, and the reverse proxy.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use axum::http::HeaderName;
use fathom_http::Token;
use fathom_session::{Distrust, open_trusted_dir, read_trusted};
use serde::Deserialize;

use super::{Access, Caller, Named, Proxy, Role, SECRET_HEADER};

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
    let resolved = path.canonicalize().map_err(|e| failed(e.to_string()))?;
    let named = resolved.parent().zip(resolved.file_name());
    let named = named.and_then(|(parent, name)| Some((parent, name.to_str()?)));
    let (parent, name) = named.ok_or_else(|| failed("it is not a file".to_owned()))?;
    let (dir, _) = open_trusted_dir(parent)?;
    let text = read_trusted(dir, name, &resolved, most)?;
    let text = text.ok_or_else(|| failed("it does not exist".to_owned()))?;
    Ok((text, resolved))
}

/// The secret in the first line of a file that only its owner, and at most its group, can read.
fn secret(path: &Path) -> Result<Token, AccessError> {
    let (text, resolved) = read(path, MOST_SECRET)?;
    let failed = |reason: &str| Distrust::new(path, reason);
    let found = resolved.symlink_metadata();
    let found = found.map_err(|e| failed(&e.to_string()))?;
    // The directory is trusted: this is the file that was read.
    if found.mode() & 0o007 != 0 {
        return Err(failed("every user can read this secret; run `chmod o= FILE`").into());
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

/// The name of a header that a proxy may be asked to set.
fn header(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let parsed = parsed.map_err(|_| format!("{name:?} is not the name of a header"))?;
    let taken = ["host", "origin", "authorization", "cookie", SECRET_HEADER];
    match taken.contains(&parsed.as_str()) {
        true => Err(format!(
            "header {parsed} has another meaning; name another one"
        )),
        false => Ok(parsed),
    }
}

/// The origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c);
    match host {
        Some(host) if !host.is_empty() && host.chars().all(plain) => Ok(text.to_owned()),
        _ => Err(format!(
            "proxy.origin is {text:?}: write the address in the browser in lower case, without a \
             path, as \"https://fathom.example.com\""
        )),
    }
}

impl Access {
    /// The tokens and the proxy of an access file. Paths in it are relative to its directory.
    ///
    /// # Errors
    /// When a file cannot be read, is not trusted, or does not contain what is expected.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let (text, resolved) = read(path, MOST_BYTES)?;
        let wrong = |reason: String| AccessError::from(Distrust::new(path, reason));
        let written: Written = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map(|before| before.matches('\n').count() + 1);
            wrong(match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            })
        })?;
        if written.token.len() > MOST_TOKENS {
            return Err(wrong(format!("it has more than {MOST_TOKENS} tokens")));
        }
        let dir = resolved.parent().unwrap_or(Path::new("/"));
        let mut tokens: Vec<Named> = Vec::new();
        for written in written.token {
            let token = secret(&dir.join(&written.file))?;
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
        let user_header = header(&written.user_header).map_err(wrong)?;
        let groups_header = header(&written.groups_header).map_err(wrong)?;
        if user_header == groups_header {
            return Err(wrong(format!(
                "header {user_header} cannot name both the user and the groups"
            )));
        }
        if written.users.is_empty() && written.groups.is_empty() && written.default_role.is_none() {
            return Err(wrong(
                "[proxy] gives no user a role: add [proxy.groups], [proxy.users], or default-role"
                    .to_owned(),
            ));
        }
        Ok(Self {
            secret: secret(&dir.join(&written.secret_file))?,
            origin: origin(&written.origin).map_err(wrong)?,
            user_header,
            groups_header,
            separator: written.groups_separator,
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
            (format!("{LOOK}secret = 1\n"), "unknown field"),
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
            (proxied("secret\"", "look\""), "look"),
        ] {
            let error = files
                .access(&text)
                .err()
                .unwrap_or_else(|| panic!("{text}"));
            assert!(error.contains(part), "{text}: {error}");
        }
        let path = files.write("access.toml", LOOK, 0o666);
        let error = Access::read(&path).err().unwrap().to_string();
        assert!(error.contains("other users can write it"), "{error}");
    }
}
