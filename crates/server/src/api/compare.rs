//! `GET /compare`: two sessions, or groups of them, side by side.

use axum::http::StatusCode;

use crate::error::ApiError;

/// Not there yet.
pub(crate) async fn compare() -> ApiError {
    ApiError::new(
        StatusCode::NOT_IMPLEMENTED,
        "this fathom does not compare sessions",
        "compare",
        "use SQL on both sessions meanwhile",
    )
}
