//! The addresses below `/api`, a file each.

mod access;
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
mod recordings;
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

pub use recordings::{RecordingError, Recordings};
pub use schema::rows_of;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::access::Role;
use crate::auth;
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
    pub facts: why::KnownFacts,
    pub workers: Workers,
    /// Directory with panels that a team keeps.
    pub panels: Option<PathBuf>,
    /// Saves and stops recordings.
    pub recordings: Option<Arc<dyn Recordings>>,
    /// A save is at work.
    pub saving: Arc<Semaphore>,
}

impl App {
    pub fn new(
        library: Library,
        panels: Option<PathBuf>,
        recordings: Option<Arc<dyn Recordings>>,
    ) -> Self {
        let library = Arc::new(library);
        Self {
            jobs: Jobs::new(library.clone()),
            library,
            summaries: summaries::Summaries::default(),
            shares: fleet::Shares::default(),
            diagnoses: Diagnoses::default(),
            facts: why::KnownFacts::default(),
            workers: Workers::default(),
            panels,
            recordings,
            saving: Arc::new(Semaphore::new(1)),
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
    /// The least role of its clients.
    pub role: Role,
    /// Its handler.
    answers: fn() -> MethodRouter<Shared>,
}

macro_rules! addresses {
    ($($method:ident $path:literal $role:ident $handler:path,)*) => {
        &[$(Address {
            #[cfg(test)]
            method: stringify!($method),
            path: $path,
            role: Role::$role,
            answers: || $method($handler),
        }),*]
    };
}

/// All addresses and the roles that they need, except `POST /share`, which asks these. Module `openapi`
/// describes each, and docs/explanation/page-security.md describes the roles.
#[rustfmt::skip]
pub(crate) const ADDRESSES: &[Address] = addresses![
    get "/access" Look access::access,
    get "/sessions" Look sessions::list,
    get "/sessions/{id}" Look sessions::describe,
    get "/sessions/{id}/live" Look live::follow,
    get "/sessions/{id}/tiles" Look tiles::tiles,
    get "/sessions/{id}/timeline" Look timeline::timeline,
    get "/sessions/{id}/visits" Look visits::visits,
    get "/sessions/{id}/states" Look states::states,
    get "/sessions/{id}/machine" Look machine::machine,
    get "/sessions/{id}/machine/devices" Look machine::devices,
    get "/sessions/{id}/threads" Look threads::threads,
    get "/sessions/{id}/top" Look top::top,
    get "/sessions/{id}/errors" Look errors::errors,
    get "/sessions/{id}/events" Look events::events,
    get "/sessions/{id}/flame" Look flame::flame,
    get "/sessions/{id}/difference" Look difference::difference,
    get "/sessions/{id}/glance" Look glance::glance,
    get "/sessions/{id}/requests/{rid}" Look request::request,
    get "/sessions/{id}/requests/{rid}/meanwhile" Look meanwhile::meanwhile,
    get "/sessions/{id}/requests/{rid}/path" Look path::path,
    get "/sessions/{id}/offsets" Look offsets::offsets,
    get "/sessions/{id}/layers" Look layers::layers,
    get "/sessions/{id}/devices" Look devices::devices,
    get "/sessions/{id}/devices/{name}" Look devices::device,
    get "/sessions/{id}/devices/{name}/at_once" Look devices::at_once,
    get "/sessions/{id}/cache" Look cache::cache,
    get "/sessions/{id}/findings" Look findings::findings,
    get "/sessions/{id}/why" Look why::story,
    get "/sessions/{id}/questions/{question}" Look questions::question,
    post "/sessions/{id}/sql" Query sql::sql,
    get "/sessions/{id}/schema" Look schema::schema,
    get "/compare" Look compare::compare,
    get "/fleet" Look fleet::fleet,
    get "/set" Look set::set,
    get "/panels" Query panels::panels,
    post "/sessions/{id}/save" Record recordings::save,
    post "/sessions/{id}/stop" Record recordings::stop,
];

/// The routes of all addresses.
pub(crate) fn routes(app: Shared) -> Router {
    let add = |router: Router<Shared>, address: &Address| {
        let guard = from_fn_with_state(address.role, auth::require);
        router.route(address.path, (address.answers)().route_layer(guard))
    };
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
        Role, access, cache, devices, difference, errors, events, flame, fleet, glance, layers,
        live, machine, meanwhile, offsets, panels, path, recordings, request, schema, sessions,
        sql, states, threads, tiles, timeline, top, visits,
    };

    /// Types of answers and of bodies, for the description of the interface.
    pub(crate) mod metas {
        pub(crate) use super::super::{
            access::AccessAnswer,
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
            recordings::{SavedAnswer, StoppedAnswer},
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
            questions::QuestionParams, sessions::DescribeParams, states::StatesParams,
            threads::ThreadsParams, tiles::TilesParams, timeline::TimelineParams, top::TopParams,
            visits::VisitsParams, why::WhyParams,
        };
    }

    pub(crate) fn declarations() -> Vec<String> {
        vec![
            Role::decl(),
            access::AccessAnswer::decl(),
            recordings::SavedAnswer::decl(),
            recordings::StoppedAnswer::decl(),
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
