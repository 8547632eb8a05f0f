//! Errors as the page gets them: what happened, to what, what to do next.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fathom_query::QueryError;
use fathom_session::SessionError;
use serde::Serialize;

/// The error in the body of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Problem {
    /// The event.
    pub what: String,
    /// To what.
    pub subject: String,
    /// The next step.
    pub next: String,
}

/// The body of an answer that is an error.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct ErrorAnswer {
    /// The error.
    pub error: Problem,
}

#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub status: StatusCode,
    pub problem: Problem,
    /// Whether the session may have changed under the query, so that another try on
    /// its new state may do.
    pub stale: bool,
}

impl ApiError {
    pub fn new(
        status: StatusCode,
        what: impl Into<String>,
        subject: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            status,
            problem: Problem {
                what: what.into(),
                subject: subject.into(),
                next: next.into(),
            },
            stale: false,
        }
    }

    /// A parameter that makes no sense.
    pub fn parameter(name: &str, what: impl Into<String>) -> Self {
        let next = "docs/reference/openapi.json describes the parameter";
        Self::new(StatusCode::BAD_REQUEST, what, name, next)
    }

    pub fn not_found(subject: impl Into<String>, next: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found", subject, next)
    }

    /// A defect of the server's.
    pub fn internal(what: impl Into<String>) -> Self {
        let next = "this is a defect of fathom: please report it";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what, "the server", next)
    }

    /// The query was stopped because no client waits for it any more.
    pub fn cancelled() -> Self {
        let next = "ask again";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the query was stopped",
            "the request",
            next,
        )
    }

    /// A session that cannot be opened.
    pub fn session(id: &str, error: &SessionError) -> Self {
        let status = match error {
            SessionError::NotASession { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut error = Self::new(
            status,
            error.to_string(),
            id,
            "`fathom repair` repairs as much as possible",
        );
        error.stale = true;
        error
    }

    /// The session has changed while it was read.
    pub fn changed(id: &str) -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the session has changed while it was read",
            id,
            "try again",
        );
        error.stale = true;
        error
    }

    /// A failure of SQL that a user has written.
    pub fn of_user_sql(error: QueryError) -> Self {
        let wrong = matches!(
            error,
            QueryError::NotASelect(_)
                | QueryError::Function(_)
                | QueryError::Sql(_)
                | QueryError::CriticalPath(_)
        );
        let memory = matches!(error, QueryError::Memory { .. } | QueryError::Died { .. });
        let mut error = Self::from(error);
        if wrong && !error.stale {
            error.status = StatusCode::UNPROCESSABLE_ENTITY;
            error.problem.next = "correct the statement; the schema is next to the editor".into();
        }
        if memory {
            error.status = StatusCode::UNPROCESSABLE_ENTITY;
            error.problem.next = "narrow the statement down, or give the server more memory \
                                  (fathom ui --memory)"
                .into();
        }
        error
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let what = error.to_string();
        // A part that was merged into another since.
        let stale = error.may_be_stale();
        let (status, next) = match error {
            QueryError::Interrupted => return Self::cancelled(),
            QueryError::TimeLimit(_) => (
                StatusCode::REQUEST_TIMEOUT,
                "choose a shorter window or a narrower filter",
            ),
            QueryError::Memory { .. } => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "choose a shorter window, or give the server more memory (--memory)",
            ),
            QueryError::Table { .. } => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "`fathom repair` repairs as much as possible",
            ),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "try again"),
        };
        let mut error = Self::new(status, what, "the query", next);
        error.stale = stale;
        error
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorAnswer {
            error: self.problem,
        };
        // Texts cannot fail to become JSON.
        let text = serde_json::to_string(&body).unwrap_or_default();
        let json = [(header::CONTENT_TYPE, "application/json")];
        (self.status, json, text).into_response()
    }
}
