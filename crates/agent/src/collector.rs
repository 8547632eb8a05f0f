//! The way to a collector: plain HTTP, or TLS.

use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{Endpoint, Otlp};

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most.
const MOST_ANSWER: u64 = 64 << 10;

/// A collector, and what each request has.
pub(crate) struct Collector {
    agent: Agent,
    endpoint: Endpoint,
    headers: HeaderMap,
}

impl Collector {
    /// The collector of a configuration at one of its addresses. Nothing is sent.
    ///
    /// # Errors
    /// A wrong header, or a file of certificates that cannot be used.
    pub fn new(config: &Otlp, endpoint: Endpoint) -> Result<Self, String> {
        let agent = match endpoint.url().starts_with("https://") {
            true => tls::agent(config, &endpoint)?,
            false => Agent::config_builder()
                .timeout_global(Some(PATIENCE))
                .build()
                .into(),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let wrong = |error: String| format!("otlp.headers {name:?}: {error}");
            let key = HeaderName::try_from(name).map_err(|e| wrong(e.to_string()))?;
            let mut value = HeaderValue::try_from(value).map_err(|e| wrong(e.to_string()))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(Self {
            agent,
            endpoint,
            headers,
        })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// Sends a message of JSON; returns the answer.
    ///
    /// # Errors
    /// When it does not arrive, or the collector refuses it.
    pub fn send(&self, message: &str) -> Result<String, ureq::Error> {
        let mut request = self.agent.post(self.url());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.header("Content-Type", "application/json");
        let mut response = request.send(message)?;
        // It has been taken, whatever is wrong with the answer.
        let answer = response.body_mut().with_config().limit(MOST_ANSWER);
        Ok(answer.read_to_string().unwrap_or_default())
    }
}

#[cfg(feature = "https")]
mod tls {
    use std::path::Path;

    use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

    use super::{Agent, Endpoint, Otlp, PATIENCE};

    /// A client that trusts the authorities of the system, or the given ones.
    pub(super) fn agent(otlp: &Otlp, _: &Endpoint) -> Result<Agent, String> {
        let roots = match &otlp.certificate_authority {
            Some(path) => RootCerts::from(certificates(path)?),
            None => RootCerts::PlatformVerifier,
        };
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = Agent::config_builder().timeout_global(Some(PATIENCE));
        Ok(config.tls_config(tls).build().into())
    }

    fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
        let failed = |why: String| {
            let path = path.display();
            format!(
                "otlp.certificate-authority {path}: {why}; give a file of certificates in PEM format"
            )
        };
        let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let mut found = Vec::new();
        for item in parse_pem(&pem) {
            if let PemItem::Certificate(one) = item.map_err(|error| failed(error.to_string()))? {
                found.push(one);
            }
        }
        match found.is_empty() {
            true => Err(failed("it has no certificate".to_owned())),
            false => Ok(found),
        }
    }
}

#[cfg(not(feature = "https"))]
mod tls {
    use super::{Agent, Endpoint, Otlp};

    pub(super) fn agent(_otlp: &Otlp, endpoint: &Endpoint) -> Result<Agent, String> {
        let endpoint = endpoint.url();
        Err(format!(
            "otlp: {endpoint:?}: this fathom was built without TLS; send to a collector on this \
             host by http://"
        ))
    }
}
