//! The client of a request, and its role.
//!
//! A server without an access file has one random token with role `query`. An access file
//! names tokens with a role each, and the reverse proxy whose identities count. A proxy proves itself
//! by a secret in a header: other programs reach the address too, and could send the same names.

mod file;

use std::collections::BTreeMap;
use std::io;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use fathom_http::Token;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

pub use file::AccessError;

/// The header in which a reverse proxy sends its secret.
pub(crate) const SECRET_HEADER: &str = "fathom-proxy-secret";
/// The longest name of a user, bytes.
const MOST_NAME: usize = 256;

/// The permissions of a client; each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See what the page shows of sessions.
    Look,
    /// Send SQL.
    Query,
    /// Save and stop recordings in progress.
    Record,
}

impl Role {
    /// Its name in files, answers, and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Query => "query",
            Self::Record => "record",
        }
    }
}

/// The client of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub role: Role,
    /// The user whom the proxy names, or the name of the token.
    pub name: Option<String>,
}

/// Which clients may do what.
#[derive(Clone)]
pub struct Access {
    tokens: Vec<Named>,
    proxy: Option<Proxy>,
    /// Whether the only token is the one of this start, which the printed address has.
    pub(crate) is_local: bool,
}

#[derive(Clone)]
struct Named {
    token: Token,
    caller: Caller,
}

/// A reverse proxy that has signed its users in.
#[derive(Clone)]
struct Proxy {
    secret: Token,
    /// The header `Origin` of browsers that use the proxy: its scheme and host.
    origin: String,
    user_header: HeaderName,
    groups_header: HeaderName,
    separator: char,
    users: BTreeMap<String, Role>,
    groups: BTreeMap<String, Role>,
    default_role: Option<Role>,
}

/// The only header of a name; an error if there are several.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, ApiError> {
    let mut given = headers.get_all(name).iter();
    match (given.next(), given.next()) {
        (given, None) => Ok(given),
        _ => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "this header is there more than once",
            format!("header {name}"),
            "send it once; a proxy must replace the headers of its clients",
        )),
    }
}

/// Characters that may surround a value in a header. Other spaces belong to names.
const BLANK: [char; 2] = [' ', '\t'];

/// A header as text without characters that mean something to a terminal.
fn text(value: &HeaderValue) -> Option<&str> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

impl Access {
    /// A random token that may see everything. It is shown on screens and in links, so what changes a
    /// recording takes an access file.
    ///
    /// # Errors
    /// When the kernel has no random numbers.
    pub fn local() -> io::Result<Self> {
        let caller = Caller {
            role: Role::Query,
            name: None,
        };
        let token = Token::random()?;
        Ok(Self {
            tokens: vec![Named { token, caller }],
            proxy: None,
            is_local: true,
        })
    }

    /// The token of the printed address; none if a file names the tokens.
    pub(crate) fn token(&self) -> Option<&str> {
        let first = self.tokens.first().filter(|_| self.is_local)?;
        Some(first.token.text())
    }

    /// The origin of the proxy, and its host.
    fn origin(&self) -> Option<(&str, &str)> {
        let origin = self.proxy.as_ref()?.origin.as_str();
        Some((origin, origin.split_once("://")?.1))
    }

    /// Whether clients come by a proxy.
    pub(crate) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }

    /// Whether a header `Host` names the proxy.
    pub(crate) fn is_proxy_host(&self, host: &str) -> bool {
        self.origin()
            .is_some_and(|(_, own)| own.eq_ignore_ascii_case(host))
    }

    /// Whether a header `Origin` is the proxy's.
    pub(crate) fn is_proxy_origin(&self, origin: &str) -> bool {
        self.origin().is_some_and(|(own, _)| own == origin)
    }

    /// The client that sends these headers.
    ///
    /// # Errors
    /// 401 without a token or a proxy's secret; 403 for a user of the proxy who has no role, and for
    /// a request that another site makes the browser of such a user send.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        if let Some(proxy) = &self.proxy
            && let Some(secret) = single(headers, &HeaderName::from_static(SECRET_HEADER))?
        {
            if !proxy.secret.is(secret.as_bytes()) {
                return Err(ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    "the secret of the proxy is wrong",
                    format!("header {SECRET_HEADER}"),
                    "give the proxy the secret in `secret-file` of the access file",
                ));
            }
            return proxy.caller(headers);
        }
        let given = single(headers, &header::AUTHORIZATION)?;
        let given = given.map(HeaderValue::as_bytes).unwrap_or_default();
        let mut found: Option<&Caller> = None;
        // All are compared, whichever fits.
        for named in &self.tokens {
            if named.token.is_in(given) {
                found = Some(&named.caller);
            }
        }
        found.cloned().ok_or_else(|| {
            let next = match self.is_local {
                true => {
                    "open the address that fathom printed: it ends with the token, which is a \
                     new one each time fathom starts"
                }
                false => "send a token of the access file, or sign in at the proxy",
            };
            ApiError::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong",
                "header Authorization",
                next,
            )
        })
    }
}

impl Proxy {
    /// The user of a request with the secret.
    fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        // The proxy knows its users by cookies, which browsers also send with requests of other
        // sites.
        let site = HeaderName::from_static("sec-fetch-site");
        if let Some(site) = single(headers, &site)?
            && !["same-origin", "none"].contains(&site.to_str().unwrap_or_default())
        {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "other sites may not ask",
                "header Sec-Fetch-Site",
                "open the address of the proxy",
            ));
        }
        let nameless = || {
            ApiError::new(
                StatusCode::UNAUTHORIZED,
                "the proxy names no user",
                format!("header {}", self.user_header),
                "sign in at the proxy, and see that it sends this header",
            )
        };
        let name = single(headers, &self.user_header)?.and_then(text);
        let name = name
            .filter(|name| !name.trim_matches(BLANK).is_empty() && name.len() <= MOST_NAME)
            .ok_or_else(nameless)?;
        let groups = match single(headers, &self.groups_header)? {
            None => "",
            Some(groups) => text(groups).ok_or_else(nameless)?,
        };
        let groups = groups.split(self.separator);
        let groups = groups.map(|group| group.trim_matches(BLANK));
        let own = self.users.get(name).copied();
        let role = groups
            .filter_map(|group| self.groups.get(group).copied())
            .chain(own)
            .chain(self.default_role)
            .max();
        let role = role.ok_or_else(|| {
            ApiError::new(
                StatusCode::FORBIDDEN,
                "this user has no role here",
                name,
                "add the user or a group of the user to the access file, and start fathom again",
            )
        })?;
        Ok(Caller {
            role,
            name: Some(name.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    fn named(token: &str, role: Role) -> Named {
        let name = Some(format!("of {}", role.name()));
        Named {
            token: Token::given(token.to_owned()),
            caller: Caller { role, name },
        }
    }

    fn access() -> Access {
        let roles = |all: &[(&str, Role)]| {
            let all = all.iter().map(|(name, role)| ((*name).to_owned(), *role));
            all.collect::<BTreeMap<_, _>>()
        };
        Access {
            tokens: vec![
                named("look-look-look-look", Role::Look),
                named("query-query-query", Role::Query),
            ],
            proxy: Some(Proxy {
                secret: Token::given("secret-secret-secret".to_owned()),
                origin: "https://fathom.example".to_owned(),
                user_header: HeaderName::from_static("x-forwarded-user"),
                groups_header: HeaderName::from_static("x-forwarded-groups"),
                separator: ',',
                users: roles(&[("ann", Role::Record)]),
                groups: roles(&[("staff", Role::Look), ("storage", Role::Query)]),
                default_role: None,
            }),
            is_local: false,
        }
    }

    /// The role, or the status of the refusal.
    fn asks(access: &Access, all: &[(&str, &str)]) -> Result<Role, u16> {
        let caller = access.caller(&headers(all));
        caller
            .map(|caller| caller.role)
            .map_err(|e| e.status.as_u16())
    }

    const SECRET: (&str, &str) = ("fathom-proxy-secret", "secret-secret-secret");

    #[test]
    fn tokens_have_roles() {
        let access = access();
        let with = |token: &str| asks(&access, &[("authorization", token)]);
        assert_eq!(with("Bearer look-look-look-look"), Ok(Role::Look));
        assert_eq!(with("Bearer query-query-query"), Ok(Role::Query));
        for wrong in [
            "",
            "Bearer ",
            "Bearer look",
            "look-look-look-look",
            "Bearer secret-secret-secret",
        ] {
            assert_eq!(with(wrong), Err(401), "{wrong}");
        }
        let both = [
            ("authorization", "Bearer look-look-look-look"),
            ("authorization", "Bearer query-query-query"),
        ];
        assert_eq!(asks(&access, &both), Err(401));
        assert_eq!(asks(&access, &[]), Err(401));
    }

    #[test]
    fn the_proxy_names_users_and_groups() {
        let access = access();
        let with = |more: &[(&str, &str)]| asks(&access, &[&[SECRET], more].concat());
        let user = ("x-forwarded-user", "bob");
        assert_eq!(with(&[("x-forwarded-user", "ann")]), Ok(Role::Record));
        assert_eq!(with(&[user]), Err(403));
        let in_groups = |groups| with(&[user, ("x-forwarded-groups", groups)]);
        assert_eq!(in_groups("staff"), Ok(Role::Look));
        assert_eq!(in_groups("staff, storage ,other"), Ok(Role::Query));
        // Names are compared whole and exactly.
        for other in ["Staff", "staffs", "staff storage", "", ",", "staff;storage"] {
            assert_eq!(in_groups(other), Err(403), "{other}");
        }
        for other in ["Ann", "ann\u{a0}", "\u{a0}ann", "\u{2003}ann"] {
            assert_eq!(with(&[("x-forwarded-user", other)]), Err(403), "{other}");
        }
        for other in ["staff\u{a0}", "staff,\u{2003}storage\u{2003}"] {
            let role = if other.contains(',') {
                Ok(Role::Look)
            } else {
                Err(403)
            };
            assert_eq!(in_groups(other), role, "{other}");
        }
        // U+0085 is a control character.
        assert_eq!(with(&[("x-forwarded-user", "ann\u{85}")]), Err(401));
        // No user, no answer.
        for nameless in ["", " ", "\u{1}"] {
            if let Ok(value) = HeaderValue::from_bytes(nameless.as_bytes()) {
                let value = value.to_str().unwrap_or_default();
                assert_eq!(with(&[("x-forwarded-user", value)]), Err(401));
            }
        }
        let long = "a".repeat(MOST_NAME + 1);
        assert_eq!(with(&[("x-forwarded-user", &long)]), Err(401));
        assert_eq!(with(&[("x-forwarded-groups", "storage")]), Err(401));
        let mut open = access.clone();
        if let Some(proxy) = &mut open.proxy {
            proxy.default_role = Some(Role::Look);
        }
        assert_eq!(asks(&open, &[SECRET, user]), Ok(Role::Look));
        let storage = ("x-forwarded-groups", "storage");
        assert_eq!(asks(&open, &[SECRET, user, storage]), Ok(Role::Query));
    }

    #[test]
    fn names_without_the_secret_are_not_heard() {
        let access = access();
        let ann = ("x-forwarded-user", "ann");
        assert_eq!(asks(&access, &[ann]), Err(401));
        for wrong in [
            "",
            "secret",
            "secret-secret-secreT",
            "Bearer secret-secret-secret",
        ] {
            let wrong = (SECRET.0, wrong);
            assert_eq!(asks(&access, &[wrong, ann]), Err(401));
            // Nor does a token help who tries.
            let token = ("authorization", "Bearer look-look-look-look");
            assert_eq!(asks(&access, &[wrong, ann, token]), Err(401));
        }
        assert_eq!(asks(&access, &[SECRET, SECRET, ann]), Err(401));
        assert_eq!(asks(&access, &[SECRET, ann, ann]), Err(401));
        let bob = ("x-forwarded-user", "bob");
        assert_eq!(asks(&access, &[SECRET, bob, ann]), Err(401));
        let groups = ("x-forwarded-groups", "storage");
        assert_eq!(asks(&access, &[SECRET, bob, groups, groups]), Err(401));
        // A token has its own role, whatever else is sent.
        let token = ("authorization", "Bearer look-look-look-look");
        assert_eq!(asks(&access, &[token, ann, groups]), Ok(Role::Look));
        // Without a proxy in the file the headers mean nothing.
        let alone = Access {
            proxy: None,
            ..access
        };
        assert_eq!(asks(&alone, &[SECRET, ann]), Err(401));
        assert_eq!(asks(&alone, &[SECRET, ann, token]), Ok(Role::Look));
    }

    #[test]
    fn other_sites_do_not_use_who_is_signed_in() {
        let access = access();
        let ann = ("x-forwarded-user", "ann");
        let from = |site| asks(&access, &[SECRET, ann, ("sec-fetch-site", site)]);
        assert_eq!(from("same-origin"), Ok(Role::Record));
        assert_eq!(from("none"), Ok(Role::Record));
        assert_eq!(from("cross-site"), Err(403));
        assert_eq!(from("same-site"), Err(403));
        assert_eq!(from(""), Err(403));
    }

    #[test]
    fn roles_are_in_order() {
        assert!(Role::Look < Role::Query && Role::Query < Role::Record);
    }
}
