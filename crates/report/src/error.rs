//! Why there is no report.

use fathom_query::QueryError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The session could not be queried.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The session could not be diagnosed.
    #[error(transparent)]
    Diagnose(#[from] fathom_diagnose::DiagnoseError),
    /// Rules or views of the user cannot be used.
    #[error(transparent)]
    Extensions(#[from] fathom_extensions::ExtensionError),
}
