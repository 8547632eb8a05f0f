//! Access control: the right host, no other site, a known client, its role; and the security headers of
//! answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::{Access, Caller, Role};
use crate::error::ApiError;
use fathom_http::Client;

/// The expected properties of a request.
pub(crate) struct Auth {
    pub access: Access,
    pub address: SocketAddr,
    pub host_name: String,
    /// Whether clients come by TLS.
    pub tls: bool,
}

/// No script, style or picture but the server's own, no frame around it. The scripts inside of the page are allowed one by
/// one, by their hashes.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'self'; script-src 'self'{}; style-src 'self'; \
         img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; \
         object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        crate::page::scripts()
    );
    // Hashes and names are ASCII.
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

impl Auth {
    /// Whether `host`, a header `Host`, names this server. A page of another site
    /// whose name was made to point here (DNS rebinding) sends its own. By TLS it cannot: the
    /// certificate is not for its name.
    fn knows_host(&self, host: &str) -> bool {
        if self.tls || self.access.is_proxy_host(host) {
            return true;
        }
        let (name, port) = match host.rsplit_once(':') {
            // The colon may be one of an address of IPv6.
            Some((name, port)) if !port.contains(']') => (name, port),
            _ => (host, "80"),
        };
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        if !digits || port.parse() != Ok(self.address.port()) {
            return false;
        }
        let local = ["127.0.0.1", "localhost", "[::1]"];
        let ip = self.address.ip();
        if ip.is_loopback() && local.contains(&name) {
            return true;
        }
        let bare = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(name);
        let named = bare.parse::<IpAddr>();
        if ip.is_unspecified() {
            // Any address of this machine, which knows all of them: a numeric address is not a name
            // that another site could have registered.
            return local.contains(&name)
                || named.is_ok()
                || (!self.host_name.is_empty() && name.eq_ignore_ascii_case(&self.host_name));
        }
        named == Ok(ip)
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let headers = request.headers();
        let refuse = |what: &str, subject: &str| {
            let next = match self.access.has_proxy() {
                true => {
                    "open the address that fathom printed; behind a proxy, `origin` of the access \
                     file must be the address in the browser"
                }
                false => "open the address that fathom printed",
            };
            ApiError::new(StatusCode::FORBIDDEN, what, subject, next)
        };
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) if self.knows_host(host) => host,
            _ => return Err(refuse("this host is not served", "header Host")),
        };
        // By the name of the proxy only the proxy's own address leads here.
        let own = (!self.access.is_proxy_host(host)).then(|| {
            let scheme = if self.tls { "https" } else { "http" };
            format!("{scheme}://{host}")
        });
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if own.as_deref() != Some(origin) && !self.access.is_proxy_origin(origin) {
                return Err(refuse("other sites may not ask", "header Origin"));
            }
        }
        Ok(())
    }
}

/// Notes who asks.
pub(crate) async fn identify(
    State(guard): State<Arc<Auth>>,
    mut request: Request,
    next: Next,
) -> Response {
    match guard.access.caller(request.headers()) {
        Ok(caller) => {
            if let Some(client) = request.extensions().get::<Arc<Client>>() {
                client.trust();
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Lets requests of clients through that have `role`, and no others.
pub(crate) async fn require(State(role): State<Role>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    match caller.map(|caller| caller.role) {
        Some(own) if own >= role => next.run(request).await,
        own => {
            let own = own.map_or("none", Role::name);
            let subject = format!("{} {}", request.method(), request.uri().path());
            let next = format!(
                "ask the operator of this server for role {}; your role is {own}",
                role.name()
            );
            let what = "your role does not allow this";
            ApiError::new(StatusCode::FORBIDDEN, what, subject, next).into_response()
        }
    }
}

/// Checks a request before anything else sees it, and adds headers to every answer.
pub(crate) async fn check(
    State(guard): State<Arc<Auth>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match guard.check(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Auth {
        Auth {
            access: Access::local().unwrap(),
            address: address.parse().unwrap(),
            host_name: "box".into(),
            tls: false,
        }
    }

    #[test]
    fn hosts() {
        let local = guard("127.0.0.1:7070");
        for host in ["127.0.0.1:7070", "localhost:7070", "[::1]:7070"] {
            assert!(local.knows_host(host), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:7071",
            "127.0.0.1:07070x",
            "127.0.0.1:+7070",
            "evil.example:7070",
            "localhost.evil.example:7070",
            "127.0.0.1.evil.example:7070",
            "box:7070",
            "[::1]",
            "",
            ":7070",
            "127.0.0.2:7070",
        ] {
            assert!(!local.knows_host(host), "{host}");
        }
        let all = guard("0.0.0.0:7070");
        for host in [
            "10.1.2.3:7070",
            "localhost:7070",
            "BOX:7070",
            "[fe80::1]:7070",
        ] {
            assert!(all.knows_host(host), "{host}");
        }
        assert!(!all.knows_host("evil.example:7070"));
        let one = guard("10.1.2.3:80");
        assert!(one.knows_host("10.1.2.3"));
        assert!(!one.knows_host("10.1.2.4"));
        assert!(!one.knows_host("localhost:80"));
    }

    #[test]
    fn names_are_those_of_the_certificate() {
        let guard = Auth {
            tls: true,
            ..guard("10.1.2.3:443")
        };
        let ask = |origin: &str| {
            let request = Request::builder().uri("/").header("host", "fathom.example");
            let request = request.header("origin", origin);
            let request = request.body(axum::body::Body::empty()).unwrap();
            guard.check(&request).is_ok()
        };
        assert!(ask("https://fathom.example"));
        assert!(!ask("http://fathom.example"));
        assert!(!ask("https://evil.example"));
    }

    #[test]
    fn requests() {
        let guard = guard("127.0.0.1:7070");
        let ask = |path: &str, headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(axum::body::Body::empty()).unwrap();
            let checked = match path {
                "/" => guard.check(&request),
                _ => guard
                    .check(&request)
                    .and_then(|()| guard.access.caller(request.headers()).map(drop)),
            };
            checked.err().map(|e| e.status.as_u16())
        };
        let host = ("host", "127.0.0.1:7070");
        let token = format!("Bearer {}", guard.access.token().unwrap());
        let token = ("authorization", token.as_str());
        assert_eq!(ask("/", &[host]), None);
        assert_eq!(ask("/", &[]), Some(403));
        assert_eq!(ask("/", &[host, host]), Some(403));
        assert_eq!(ask("/", &[("host", "evil.example:7070")]), Some(403));
        assert_eq!(ask("/api/sessions", &[host]), Some(401));
        assert_eq!(ask("/api/sessions", &[host, token]), None);
        assert_eq!(ask("/api/sessions", &[host, token, token]), Some(401));
        for (origin, expected) in [
            ("http://127.0.0.1:7070", None),
            ("http://localhost:7070", Some(403)),
            ("https://127.0.0.1:7070", Some(403)),
            ("http://evil.example", Some(403)),
            ("null", Some(403)),
        ] {
            let got = ask("/api/sessions", &[host, token, ("origin", origin)]);
            assert_eq!(got, expected, "{origin}");
        }
    }
}
