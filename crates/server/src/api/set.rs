//! `GET /set`: the hosts of a set, how their clocks are related, and the messages between them.

use axum::extract::State;
use fathom_set::Summary;

use super::{Json, Shared};
use crate::error::ApiError;
use crate::job::{Lane, Stop};

/// `GET /set`, as `fathom set --format json` has it; null when no set is served.
pub(crate) async fn set(State(app): State<Shared>) -> Result<Json<Option<Summary>>, ApiError> {
    let library = app.library.clone();
    let work = move |_: &Stop| {
        let Some(mut set) = library.set()? else {
            return Ok(None);
        };
        Ok(Some(Summary::of(&mut set)?))
    };
    app.jobs.run(Lane::Slow, work).await.map(Json)
}
