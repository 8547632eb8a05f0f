//! The addresses below `/api`, a file each.

mod cache;
mod compare;
mod devices;
mod difference;
mod errors;
mod events;
mod findings;
mod flame;
mod fleet;
mod glance;
mod layers;
mod live;
mod machine;
mod meanwhile;
mod offsets;
mod panels;
mod path;
mod place;
pub(crate) mod questions;
mod request;
mod schema;
pub(crate) mod sessions;
mod set;
mod sql;
mod states;
mod summaries;
mod threads;
mod tiles;
mod timeline;
mod top;
mod visits;
mod why;

pub use schema::rows_of;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
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
    pub shares: fleet::Shares,
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
            shares: fleet::Shares::default(),
            diagnoses: Diagnoses::default(),
            workers: Workers::default(),
            panels,
        }
    }
}

pub(crate) type Shared = Arc<App>;

/// An address below `/api`.
pub(crate) struct Address {
    /// `get` or `post`.
    #[cfg(test)]
    pub method: &'static str,
    /// With names in braces where a part is the caller's.
    pub path: &'static str,
    /// Its handler.
    answers: fn() -> MethodRouter<Shared>,
}

macro_rules! addresses {
    ($($method:ident $path:literal $handler:path,)*) => {
        &[$(Address {
            #[cfg(test)]
            method: stringify!($method),
            path: $path,
            answers: || $method($handler),
        }),*]
    };
}

/// All addresses, except `POST /share`, which asks these. Module `openapi` describes each.
#[rustfmt::skip]
pub(crate) const ADDRESSES: &[Address] = addresses![
    get "/sessions" sessions::list,
    get "/sessions/{id}" sessions::describe,
    get "/sessions/{id}/live" live::follow,
    get "/sessions/{id}/tiles" tiles::tiles,
    get "/sessions/{id}/timeline" timeline::timeline,
    get "/sessions/{id}/visits" visits::visits,
    get "/sessions/{id}/states" states::states,
    get "/sessions/{id}/machine" machine::machine,
    get "/sessions/{id}/machine/devices" machine::devices,
    get "/sessions/{id}/threads" threads::threads,
    get "/sessions/{id}/top" top::top,
    get "/sessions/{id}/errors" errors::errors,
    get "/sessions/{id}/events" events::events,
    get "/sessions/{id}/flame" flame::flame,
    get "/sessions/{id}/difference" difference::difference,
    get "/sessions/{id}/glance" glance::glance,
    get "/sessions/{id}/requests/{rid}" request::request,
    get "/sessions/{id}/requests/{rid}/meanwhile" meanwhile::meanwhile,
    get "/sessions/{id}/requests/{rid}/path" path::path,
    get "/sessions/{id}/offsets" offsets::offsets,
    get "/sessions/{id}/layers" layers::layers,
    get "/sessions/{id}/devices" devices::devices,
    get "/sessions/{id}/devices/{name}" devices::device,
    get "/sessions/{id}/devices/{name}/at_once" devices::at_once,
    get "/sessions/{id}/cache" cache::cache,
    get "/sessions/{id}/findings" findings::findings,
    get "/sessions/{id}/why" why::story,
    get "/sessions/{id}/questions/{question}" questions::question,
    post "/sessions/{id}/sql" sql::sql,
    get "/sessions/{id}/schema" schema::schema,
    get "/compare" compare::compare,
    get "/fleet" fleet::fleet,
    get "/set" set::set,
    get "/panels" panels::panels,
];

/// The routes of all addresses.
pub(crate) fn routes(app: Shared) -> Router {
    let add =
        |router: Router<Shared>, address: &Address| router.route(address.path, (address.answers)());
    ADDRESSES
        .iter()
        .fold(Router::new(), add)
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .with_state(app)
}

async fn unknown() -> ApiError {
    ApiError::not_found(
        "this address",
        "docs/reference/openapi.json lists the addresses",
    )
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
        cache, devices, difference, errors, events, flame, fleet, glance, layers, live, machine,
        meanwhile, offsets, panels, path, request, schema, sessions, sql, states, threads, tiles,
        timeline, top, visits,
    };

    /// Types of answers and of bodies, for the description of the interface.
    pub(crate) mod metas {
        pub(crate) use super::super::{
            cache::CacheMeta,
            devices::{Device, DeviceMeta},
            difference::DifferenceAnswer,
            errors::ErrorsMeta,
            events::EventsMeta,
            flame::FlameMeta,
            fleet::FleetAnswer,
            glance::Glance,
            layers::LayersMeta,
            live::LiveState,
            machine::MachineMeta,
            meanwhile::Meanwhile,
            offsets::OffsetsMeta,
            panels::PanelFile,
            path::PathAnswer,
            request::RequestAnswer,
            schema::Relation,
            sql::{SqlMeta, SqlRequest},
            states::StatesMeta,
            threads::Threads,
            tiles::TilesMeta,
            timeline::TimelineMeta,
            top::TopMeta,
            visits::VisitsMeta,
        };
    }

    /// Types of parameters.
    pub(crate) mod params {
        pub(crate) use super::super::{
            compare::Sides, devices::DeviceParams, difference::BoxParams, events::EventsParams,
            fleet::FleetParams, layers::LayersParams, offsets::OffsetsParams,
            questions::QuestionParams, states::StatesParams, threads::ThreadsParams,
            tiles::TilesParams, timeline::TimelineParams, top::TopParams, visits::VisitsParams,
            why::WhyParams,
        };
    }

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
            fathom_report::FleetGroup::decl(),
            fleet::FleetAnswer::decl(),
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
            path::Woken::decl(),
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
