//! Connections by TLS, with a certificate and its key from files.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::serve::serve_by;

/// A certificate with its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a certificate or a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has nothing of the kind.
    #[error("cannot read the {what} in {}: {source}; give a file in PEM format", path.display())]
    File {
        /// certificate or key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    #[error(
        "the certificate in {} and the key in {} cannot be used: {source}; give a certificate and \
         its own key",
        certificate.display(), key.display()
    )]
    Pair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
}

impl Tls {
    /// The certificate, with the ones between it and an authority, and its key from files in PEM
    /// format.
    ///
    /// # Errors
    /// When a file cannot be read, and when the two do not belong together.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::File { what, path, source }
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(failed("certificate", certificate))?;
        if chain.is_empty() {
            return Err(failed("certificate", certificate)(pem::Error::NoItemsFound));
        }
        let own = PrivateKeyDer::from_pem_file(key).map_err(failed("key", key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, own));
        let config = config.map_err(|source| TlsError::Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        })?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// As [`crate::serve`], by TLS. The first request, the handshake included, has as much time as there.
pub async fn serve_tls(listener: TcpListener, routes: Router, tls: Option<Tls>) {
    match tls {
        None => serve_by(listener, routes, |stream| ready(Ok(stream))).await,
        Some(Tls(acceptor)) => {
            serve_by(listener, routes, move |stream| acceptor.accept(stream)).await
        }
    }
}
