//! The addresses below `/api`, a file each.

mod cache;
mod compare;
mod devices;
mod difference;
mod errors;
mod events;
mod findings;
mod flame;
mod glance;
mod layers;
mod live;
mod machine;
mod meanwhile;
mod offsets;
mod panels;
mod path;
mod place;
mod request;
mod schema;
pub(crate) mod sessions;
mod sql;
mod states;
mod summaries;
mod threads;
mod tiles;
mod timeline;
mod top;
mod visits;
mod why;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use crate::diagnoses::Diagnoses;
use crate::error::ApiError;
use crate::job::Jobs;
use crate::library::Library;
use crate::workers::Workers;

/// State that every address needs.
pub(crate) struct App {
    pub jobs: Jobs,
    pub library: Arc<Library>,
    pub summaries: summaries::Summaries,
    pub diagnoses: Diagnoses,
    pub workers: Workers,
    /// Directory with panels that a team keeps.
    pub panels: Option<PathBuf>,
}

impl App {
    pub fn new(library: Library, panels: Option<PathBuf>) -> Self {
        let library = Arc::new(library);
        Self {
            jobs: Jobs::new(library.clone()),
            library,
            summaries: summaries::Summaries::default(),
            diagnoses: Diagnoses::default(),
            workers: Workers::default(),
            panels,
        }
    }
}

pub(crate) type Shared = Arc<App>;

/// The addresses.
pub(crate) fn routes(app: Shared) -> Router {
    let sessions = Router::new()
        .route("/", get(sessions::describe))
        .route("/live", get(live::follow))
        .route("/tiles", get(tiles::tiles))
        .route("/timeline", get(timeline::timeline))
        .route("/visits", get(visits::visits))
        .route("/states", get(states::states))
        .route("/machine", get(machine::machine))
        .route("/machine/devices", get(machine::devices))
        .route("/threads", get(threads::threads))
        .route("/top", get(top::top))
        .route("/errors", get(errors::errors))
        .route("/events", get(events::events))
        .route("/flame", get(flame::flame))
        .route("/difference", get(difference::difference))
        .route("/glance", get(glance::glance))
        .route("/requests/{rid}", get(request::request))
        .route("/requests/{rid}/meanwhile", get(meanwhile::meanwhile))
        .route("/requests/{rid}/path", get(path::path))
        .route("/offsets", get(offsets::offsets))
        .route("/layers", get(layers::layers))
        .route("/devices", get(devices::devices))
        .route("/devices/{name}", get(devices::device))
        .route("/devices/{name}/at_once", get(devices::at_once))
        .route("/cache", get(cache::cache))
        .route("/findings", get(findings::findings))
        .route("/why", get(why::story))
        .route("/sql", post(sql::sql))
        .route("/schema", get(schema::schema));
    Router::new()
        .route("/sessions", get(sessions::list))
        .nest("/sessions/{id}", sessions)
        .route("/compare", get(compare::compare))
        .route("/panels", get(panels::panels))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .with_state(app)
}

async fn unknown() -> ApiError {
    ApiError::not_found("this address", "docs/api.md lists the addresses")
}

pub(crate) struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
            Err(e) => ApiError::internal(e.to_string()).into_response(),
        }
    }
}

/// The types of answers, for the page.
#[cfg(test)]
pub(crate) mod types {
    use ts_rs::TS;

    use super::{
        cache, devices, difference, errors, events, flame, glance, layers, live, machine,
        meanwhile, offsets, panels, path, request, schema, sessions, sql, states, threads, tiles,
        timeline, top, visits,
    };

    pub(crate) fn declarations() -> Vec<String> {
        vec![
            sessions::SessionSummary::decl(),
            sessions::Span::decl(),
            sessions::TableRows::decl(),
            sessions::LayerState::decl(),
            sessions::Loss::decl(),
            sessions::Counted::decl(),
            sessions::OptionsGiven::decl(),
            sessions::Machine::decl(),
            sessions::MissingHook::decl(),
            sessions::RecordingCost::decl(),
            sessions::SessionDescription::decl(),
            live::LiveState::decl(),
            tiles::TilesSource::decl(),
            tiles::TilesMeta::decl(),
            timeline::TimelineMode::decl(),
            timeline::TimelineMeta::decl(),
            visits::VisitsMode::decl(),
            visits::VisitsMeta::decl(),
            states::StatesMode::decl(),
            states::StatesMeta::decl(),
            machine::MachineMeta::decl(),
            threads::ThreadRow::decl(),
            threads::Threads::decl(),
            top::TopMeta::decl(),
            events::EventsMeta::decl(),
            errors::ErrorsMeta::decl(),
            flame::FlameMeta::decl(),
            difference::BoxSide::decl(),
            difference::BoxShare::decl(),
            difference::BoxDimension::decl(),
            difference::LongCall::decl(),
            difference::DifferenceAnswer::decl(),
            glance::PurposeLine::decl(),
            glance::Worst::decl(),
            glance::Glance::decl(),
            request::Neighbors::decl(),
            request::Ahead::decl(),
            request::BlockRequest::decl(),
            request::RequestAnswer::decl(),
            meanwhile::Owner::decl(),
            meanwhile::MeanwhileDevice::decl(),
            meanwhile::MeanwhileThread::decl(),
            meanwhile::Meanwhile::decl(),
            path::PathKind::decl(),
            path::PathSegment::decl(),
            path::PathPart::decl(),
            path::PathRest::decl(),
            path::PathThread::decl(),
            path::PathAnswer::decl(),
            offsets::OffsetsMode::decl(),
            offsets::OffsetsMeta::decl(),
            layers::LayersMode::decl(),
            layers::LayersMeta::decl(),
            devices::DeviceUser::decl(),
            devices::Device::decl(),
            devices::DeviceMeta::decl(),
            cache::CacheMeta::decl(),
            panels::PanelFile::decl(),
            schema::RelationColumn::decl(),
            schema::Relation::decl(),
            sql::SqlRequest::decl(),
            sql::SqlMeta::decl(),
        ]
    }
}
