//! `GET /access`: what the client may do.

use axum::Extension;
use axum::extract::State;
use serde::Serialize;

use super::{Json, Shared};
use crate::access::{Caller, Role};

/// The client of the request.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct AccessAnswer {
    /// Its role.
    pub role: Role,
    /// The user whom the reverse proxy names, or the name of the token; null if it has none.
    pub name: Option<String>,
    /// Whether recordings in progress can be saved by this client.
    pub saves: bool,
    /// Whether the recording that this server shows can be stopped by this client.
    pub stops: bool,
}

/// `GET /access`.
pub(crate) async fn access(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Json<AccessAnswer> {
    let may = caller.role >= Role::Record;
    let recordings = app.recordings.as_ref().filter(|_| may);
    Json(AccessAnswer {
        role: caller.role,
        name: caller.name,
        saves: recordings.is_some(),
        stops: recordings.is_some_and(|recordings| recordings.can_stop()),
    })
}
