//! Kubernetes' API: the claim of a volume.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use fathom_model::container::is_dns_name;
use serde::Deserialize;
use ureq::Agent;
use ureq::http::StatusCode;

use super::Kubernetes;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer at most; etcd takes no larger objects.
const MOST_ANSWER: u64 = 2 << 20;
/// Bytes of a token at most.
const MOST_TOKEN: u64 = 64 << 10;

/// Files that Kubernetes gives to its pods.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const POD_AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub namespace: String,
    pub name: String,
}

/// The server, and how it is asked.
pub(super) struct Api {
    agent: Agent,
    options: Kubernetes,
}

#[derive(Deserialize)]
struct Object {
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    /// Of a Status.
    #[serde(default)]
    reason: String,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    claim_ref: Option<ClaimRef>,
}

#[derive(Deserialize)]
struct ClaimRef {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

/// Whether an address of `http://` is of this machine.
fn is_here(server: &str) -> bool {
    let host = server.trim_start_matches("http://");
    let host = match host.parse::<SocketAddr>() {
        Ok(address) => return address.ip().is_loopback(),
        Err(_) => host.rsplit_once(':').map_or(host, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Api {
    /// Checks addresses and files. Nothing is sent.
    ///
    /// # Errors
    /// The address or file that cannot be used, as a message.
    pub fn new(options: &Kubernetes) -> Result<Self, String> {
        let mut options = options.clone();
        if options.server == "in-cluster" {
            let of = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
            let host = of("KUBERNETES_SERVICE_HOST");
            let port = of("KUBERNETES_SERVICE_PORT");
            options.server = server(host.as_deref(), port.as_deref())?;
            options.token.get_or_insert_with(|| POD_TOKEN.into());
            options
                .authority
                .get_or_insert_with(|| POD_AUTHORITY.into());
        }
        let server = options.server.trim_end_matches('/').to_owned();
        let is_address = |rest: &str| {
            let odd = |c: char| c.is_whitespace() || "/?#@".contains(c);
            !rest.is_empty() && !rest.contains(odd)
        };
        let tls = server.strip_prefix("https://").is_some_and(is_address);
        if !tls && !server.strip_prefix("http://").is_some_and(is_address) {
            return Err(format!(
                "--kubernetes {server:?}: give https://HOST:PORT, or in-cluster"
            ));
        }
        if !tls && options.token.is_some() && !is_here(&server) {
            return Err(format!(
                "--kubernetes {server}: a token would be sent there unencrypted; give https://"
            ));
        }
        options.server = server;
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // The token is for this server alone.
            .max_redirects(0)
            .proxy(None);
        let agent = match tls {
            true => tls::agent(config, &options)?,
            false if options.authority.is_some() || options.certificate.is_some() => {
                return Err("--kubernetes-ca and --kubernetes-certificate need https://".to_owned());
            }
            false => config.build().into(),
        };
        let api = Self { agent, options };
        api.token()?;
        Ok(api)
    }

    fn token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.options.token else {
            return Ok(None);
        };
        let text = read(path, MOST_TOKEN);
        let text = text.map_err(|why| format!("cannot read the token: {why}"))?;
        let token = text.trim();
        match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Some(format!("Bearer {token}"))),
            false => Err(format!("{} has no token", path.display())),
        }
    }

    /// The claim that a volume is bound to; `None` if there is no such volume, or no claim.
    ///
    /// # Errors
    /// When the server does not say, as a message.
    pub fn claim_of(&self, volume: &str) -> Result<Option<Claim>, String> {
        let server = &self.options.server;
        let failed = |why: String| format!("cannot ask {server} for the claims of volumes: {why}");
        let path = format!("{server}/api/v1/persistentvolumes/{volume}");
        let mut request = self.agent.get(&path).header("Accept", "application/json");
        if let Some(token) = self.token().map_err(failed)? {
            request = request.header("Authorization", token);
        }
        let mut response = request.call().map_err(|error| failed(error.to_string()))?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(MOST_ANSWER);
        let body = body
            .read_to_vec()
            .map_err(|error| failed(error.to_string()))?;
        claim(volume, status, &body).map_err(failed)
    }
}

/// The address that Kubernetes gives to its pods.
fn server(host: Option<&str>, port: Option<&str>) -> Result<String, String> {
    let host = host.ok_or(
        "--kubernetes in-cluster: KUBERNETES_SERVICE_HOST is not set; it works in a pod, elsewhere \
         give https://HOST:PORT",
    )?;
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    Ok(format!("https://{host}:{}", port.unwrap_or("443")))
}

/// The text of a file.
fn read(path: &Path, most: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_file() || found.len() > most {
        return Err(format!("{}: it is not a small file", path.display()));
    }
    fs::read_to_string(path).map_err(failed)
}

/// The claim in an answer about a volume.
fn claim(volume: &str, status: StatusCode, body: &[u8]) -> Result<Option<Claim>, String> {
    let object: Result<Object, _> = serde_json::from_slice(body);
    match (status, object) {
        (StatusCode::OK, Ok(object)) if object.kind == "PersistentVolume" => {
            if object.metadata.name != volume {
                return Err("it answered about another volume".to_owned());
            }
            let claim = object.spec.claim_ref.map(|claim| Claim {
                namespace: claim.namespace,
                name: claim.name,
            });
            match claim {
                Some(claim) if !is_dns_name(&claim.namespace) || !is_dns_name(&claim.name) => {
                    Err("the name of a claim is not a name of Kubernetes".to_owned())
                }
                claim => Ok(claim),
            }
        }
        // A proxy on the way may also say 404.
        (StatusCode::NOT_FOUND, Ok(object))
            if object.kind == "Status" && object.reason == "NotFound" =>
        {
            Ok(None)
        }
        (StatusCode::UNAUTHORIZED, _) => {
            Err("status 401: check --kubernetes-token or --kubernetes-certificate".to_owned())
        }
        (StatusCode::FORBIDDEN, _) => {
            Err("status 403: allow this client to get persistentvolumes (ClusterRole)".to_owned())
        }
        (StatusCode::OK, _) => Err("the answer is not a PersistentVolume".to_owned()),
        (status, _) => Err(format!("status {}", status.as_u16())),
    }
}

#[cfg(feature = "https")]
mod tls {
    use std::path::Path;

    use ureq::Agent;
    use ureq::config::ConfigBuilder;
    use ureq::tls::{
        Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem,
    };
    use ureq::typestate::AgentScope;

    use super::{Kubernetes, read};

    const MOST_PEM: u64 = 1 << 20;

    /// A client by TLS.
    pub(super) fn agent(
        config: ConfigBuilder<AgentScope>,
        options: &Kubernetes,
    ) -> Result<Agent, String> {
        let roots = match &options.authority {
            Some(path) => {
                let (certificates, _) = items("--kubernetes-ca", path)?;
                RootCerts::from(certificates)
            }
            None => RootCerts::PlatformVerifier,
        };
        let mut tls = TlsConfig::builder().root_certs(roots);
        if let Some(path) = &options.certificate {
            let option = "--kubernetes-certificate";
            let (certificates, key) = items(option, path)?;
            let key = key.ok_or_else(|| {
                format!(
                    "{option} {}: it has no key; give both in one file",
                    path.display()
                )
            })?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&certificates, key)));
        }
        Ok(config.tls_config(tls.build()).build().into())
    }

    type Items = (Vec<Certificate<'static>>, Option<PrivateKey<'static>>);

    fn items(option: &str, path: &Path) -> Result<Items, String> {
        let failed = |why: String| {
            let path = path.display();
            format!("{option} {path}: {why}; give a file in PEM format")
        };
        let text = read(path, MOST_PEM).map_err(failed)?;
        let (mut certificates, mut key) = (Vec::new(), None);
        for item in parse_pem(text.as_bytes()) {
            match item.map_err(|error| failed(error.to_string()))? {
                PemItem::Certificate(one) => certificates.push(one),
                PemItem::PrivateKey(one) => key = Some(one),
                _ => {}
            }
        }
        match certificates.is_empty() {
            true => Err(failed("it has no certificate".to_owned())),
            false => Ok((certificates, key)),
        }
    }
}

#[cfg(not(feature = "https"))]
mod tls {
    use ureq::Agent;
    use ureq::config::ConfigBuilder;
    use ureq::typestate::AgentScope;

    use super::Kubernetes;

    pub(super) fn agent(
        _config: ConfigBuilder<AgentScope>,
        options: &Kubernetes,
    ) -> Result<Agent, String> {
        Err(format!(
            "--kubernetes {:?}: this fathom was built without TLS",
            options.server
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: &str = r#"{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"pvc-7","uid":"x"},
        "spec":{"capacity":{"storage":"1Gi"},"claimRef":{"kind":"PersistentVolumeClaim","namespace":"shop","name":"data-db-0"}},
        "status":{"phase":"Bound"}}"#;

    #[test]
    fn answers() {
        let of = |status: u16, body: &str| {
            claim(
                "pvc-7",
                StatusCode::from_u16(status).unwrap(),
                body.as_bytes(),
            )
        };
        let expected = Claim {
            namespace: "shop".to_owned(),
            name: "data-db-0".to_owned(),
        };
        assert_eq!(of(200, VOLUME), Ok(Some(expected)));
        let unbound = r#"{"kind":"PersistentVolume","metadata":{"name":"pvc-7"},"spec":{}}"#;
        assert_eq!(of(200, unbound), Ok(None));
        let missing = r#"{"kind":"Status","status":"Failure","reason":"NotFound","code":404}"#;
        assert_eq!(of(404, missing), Ok(None));
        for (status, body, part) in [
            (200, VOLUME.replace("pvc-7", "pvc-8"), "another volume"),
            (200, VOLUME.replace("data-db-0", "../x"), "not a name"),
            (200, VOLUME.replace("data-db-0", "\\u001b[2J"), "not a name"),
            (200, VOLUME.replace("shop", ""), "not a name"),
            (200, missing.to_owned(), "not a PersistentVolume"),
            (200, "[".repeat(1 << 20), "not a PersistentVolume"),
            (200, "{\"kind\": 1}".to_owned(), "not a PersistentVolume"),
            (200, String::new(), "not a PersistentVolume"),
            (404, "<html>".to_owned(), "status 404"),
            (404, VOLUME.to_owned(), "status 404"),
            (401, String::new(), "--kubernetes-token"),
            (403, String::new(), "get persistentvolumes"),
            (302, String::new(), "status 302"),
            (500, missing.to_owned(), "status 500"),
        ] {
            let error = of(status, &body).unwrap_err();
            assert!(error.contains(part), "{status}: {error}");
        }
    }

    #[test]
    fn servers() {
        let in_cluster = server(Some("10.96.0.1"), Some("6443"));
        assert_eq!(in_cluster.unwrap(), "https://10.96.0.1:6443");
        assert_eq!(
            server(Some("fd00::1"), None).unwrap(),
            "https://[fd00::1]:443"
        );
        assert!(server(None, Some("443")).is_err());
        let with = |server: &str| {
            let server = server.to_owned();
            Api::new(&Kubernetes {
                server,
                ..Kubernetes::default()
            })
            .err()
        };
        assert_eq!(with("http://127.0.0.1:1"), None);
        assert_eq!(with("http://127.0.0.1:1/"), None);
        for wrong in [
            "",
            "127.0.0.1",
            "http://",
            "http://a/b",
            "http://a@b",
            "http://a?b",
            "ftp://a",
        ] {
            assert!(with(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_one_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = |text: &str| {
            fs::write(&path, text).unwrap();
            let options = Kubernetes {
                server: "http://127.0.0.1:1".to_owned(),
                token: Some(path.clone()),
                ..Kubernetes::default()
            };
            Api::new(&options).and_then(|api| api.token())
        };
        assert_eq!(token("abc\n").unwrap().as_deref(), Some("Bearer abc"));
        assert!(token("").is_err());
        for (server, here) in [
            ("http://127.0.0.1:8001", true),
            ("http://[::1]:8001", true),
            ("http://localhost:8001", true),
            ("http://localhost.example.com:8001", false),
            ("http://10.96.0.1:443", false),
            ("http://10.96.0.1", false),
        ] {
            assert_eq!(is_here(server), here, "{server}");
        }
        assert!(token("a b").is_err());
        assert!(token("a\r\nHost: x").is_err());
        assert!(token(&"a".repeat(1 << 17)).is_err());
    }
}
