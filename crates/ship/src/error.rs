//! Errors of shipping.

use std::error::Error;
use std::path::{Path, PathBuf};

use fathom_diagnose::DiagnoseError;
use fathom_model::escape::text;
use fathom_redact::RedactError;
use fathom_session::SessionError;

/// Why a session was not shipped. Each says what happened, to what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The destination is none.
    #[error("{}: {reason}", text(destination))]
    Destination {
        /// As it was given.
        destination: String,
        /// The defect.
        reason: String,
    },
    /// The store refused, or could not be reached.
    #[error(
        "cannot {action} {}: {}; {}",
        text(object),
        whole(answer),
        next(object, &whole(answer))
    )]
    Store {
        /// The operation that failed.
        action: &'static str,
        /// Destination and name of the object.
        object: String,
        /// The answer of the store.
        answer: Box<object_store::Error>,
    },
    /// The session is being recorded, was not closed, or is damaged.
    #[error("{}: {reason}", path.display())]
    Unfit {
        /// Directory of the session.
        path: PathBuf,
        /// The obstacle, and what to do.
        reason: &'static str,
    },
    /// The session has changed since it was shipped.
    #[error(
        "{} has another state of session {}: it has changed since, or was shipped with other \
         options of redaction; replace it with --force",
        text(destination),
        text(session)
    )]
    Changed {
        /// Where it was shipped.
        destination: String,
        /// Id of the session.
        session: String,
    },
    /// A file cannot be read.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// Rows cannot be read or encoded.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Directory of the session.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The rules cannot read the session.
    #[error(transparent)]
    Diagnose(#[from] DiagnoseError),
    /// The session cannot be redacted.
    #[error(transparent)]
    Redact(#[from] RedactError),
}

/// An error with its causes, of which some contain the text of the next.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}

/// The advice for an `error` of the store that has `object`.
fn next(object: &str, error: &str) -> &'static str {
    let scheme = object.split_once("://").map_or("", |(scheme, _)| scheme);
    // A client without credentials asks the machine for its role.
    let asks_machine = ["169.254.169.254", "metadata.google.internal"]
        .iter()
        .any(|host| error.contains(host));
    match (scheme, error.contains("URL scheme is not allowed")) {
        ("s3", true) => "set AWS_ALLOW_HTTP=true for an endpoint without TLS",
        ("az", true) => "set AZURE_ALLOW_HTTP=true for an endpoint without TLS",
        ("s3", _) if asks_machine => {
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        }
        ("gs", _) if asks_machine => {
            "there are no credentials: set GOOGLE_SERVICE_ACCOUNT to their file"
        }
        ("az", _) if asks_machine => {
            "there are no credentials: set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
        }
        _ => "ship again to go on from there",
    }
}

impl ShipError {
    /// Whether another attempt may succeed without a change of the session or the options: the store is
    /// away.
    pub fn is_of_store(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn parquet<E>(path: &Path) -> impl FnOnce(E) -> Self
    where
        parquet::errors::ParquetError: From<E>,
    {
        let path = path.to_owned();
        move |source| Self::Parquet {
            path,
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_variable_to_set() {
        let plain = "HTTP error: builder error, after 0 retries - URL scheme is not allowed";
        let role = "Error performing PUT http://169.254.169.254/latest/api/token in 3s";
        for (object, error, part) in [
            ("s3://b/x", plain, "AWS_ALLOW_HTTP=true"),
            ("s3://b/x", role, "AWS_ACCESS_KEY_ID"),
            ("az://b/x", plain, "AZURE_ALLOW_HTTP=true"),
            ("az://b/x", role, "AZURE_STORAGE_ACCOUNT_KEY"),
            (
                "gs://b/x",
                "GET http://metadata.google.internal/x",
                "GOOGLE_SERVICE_ACCOUNT",
            ),
            ("s3://b/x", "connection refused", "ship again"),
        ] {
            let said = next(object, error);
            assert!(said.contains(part), "{object}, {error}: {said}");
        }
    }
}
