//! `GET /fleet`: the sessions that are served, summed up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use fathom_report::{Fleet, FleetGroup, FleetKey, FleetShares};
use fathom_session::{Session, on_latest};
use serde::{Deserialize, Serialize};

use super::{Json, Shared};
use crate::error::ApiError;
use crate::folder::link_in;
use crate::job::{Lane, Stop};
use crate::library::Library;
use crate::lock::lock;
use crate::selection::Params;
use crate::stamp::Stamp;

/// Groups that are answered unless others are asked for.
const TOP: usize = 200;

/// The keys of the sums.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FleetParams {
    /// One or more of command, day, host, label:KEY, finding, tenant, volume, and device, separated by commas; of
    /// the last four it takes one, and one label.
    by: String,
    /// Groups with most time, of each day with day; 0: all. 200 if missing.
    top: Option<usize>,
}

/// Sums of sessions.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct FleetAnswer {
    /// By day, then those with most time first.
    pub groups: Vec<FleetGroup>,
    /// Notes on sessions that are left out or count twice.
    pub notes: Vec<String>,
}

/// The shares of sessions in sums, by session and by the key that divides it.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<(String, Option<&'static str>), Known>>);

type Known = (Stamp, Arc<FleetShares>);

/// `GET /fleet`, as `fathom sessions --by` has it.
pub(crate) async fn fleet(
    State(app): State<Shared>,
    Params(params): Params<FleetParams>,
) -> Result<Json<FleetAnswer>, ApiError> {
    let (by, label) = FleetKey::list(&params.by).map_err(|what| ApiError::parameter("by", what))?;
    let mut fleet = Fleet::new(&by, &label);
    let detail = fleet.detail();
    let ids = app.library.ids()?;
    lock(&app.shares.0).retain(|(id, _), _| ids.contains(id));
    for id in ids {
        let state = app.clone();
        let session = id.clone();
        // Each session has a turn of its own, so that other queries get theirs in between.
        let work = move |stop: &Stop| {
            stop.check()?;
            state.shares.of(&state.library, &session, detail)
        };
        match app.jobs.run(Lane::Slow, work).await {
            Ok(Ok(shares)) => fleet.add(&id, &shares),
            Ok(Err(error)) => fleet.leave_out(&id, &error),
            // A session that takes too long or fails is no reason to have none of the others.
            Err(error) => fleet.leave_out(&id, &error.problem.what),
        }
    }
    let (groups, notes) = fleet.finish(params.top.unwrap_or(TOP));
    Ok(Json(FleetAnswer { groups, notes }))
}

impl Shares {
    /// The share of a session; or why it cannot be read.
    fn of(
        &self,
        library: &Library,
        id: &str,
        detail: Option<FleetKey>,
    ) -> Result<Result<Arc<FleetShares>, String>, ApiError> {
        let dir = match library.dir(id) {
            Ok(dir) => dir,
            // It was removed meanwhile.
            Err(error) => return Ok(Err(error.problem.what)),
        };
        let key = (id.to_owned(), detail.map(FleetKey::name));
        let stamp = Stamp::of(&dir);
        if let Some((known, shares)) = lock(&self.0).get(&key)
            && *known == stamp
        {
            return Ok(Ok(shares.clone()));
        }
        if let Some(name) = link_in(&dir) {
            return Ok(Err(format!(
                "{name} is a symbolic link, which is not followed"
            )));
        }
        let shares = match read(&dir, detail, library) {
            Ok(shares) => Arc::new(shares),
            Err(error) => return Ok(Err(error)),
        };
        // A session without findings may have them the next time: a diagnosis changes no rows.
        if shares.is_diagnosed() || detail.is_some_and(|detail| detail != FleetKey::Finding) {
            lock(&self.0).insert(key, (stamp, shares.clone()));
        }
        Ok(Ok(shares))
    }
}

fn read(
    dir: &std::path::Path,
    detail: Option<FleetKey>,
    library: &Library,
) -> Result<FleetShares, String> {
    let mut session = Session::open(dir).map_err(|error| error.to_string())?;
    let shares = on_latest(&mut session, |session| {
        FleetShares::read(
            session,
            detail,
            &library.extensions,
            library.limits().clone(),
        )
    });
    shares.map_err(|error| error.to_string())
}
