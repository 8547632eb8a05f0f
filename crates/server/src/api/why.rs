//! `GET /sessions/ID/why`: where the time went, in three sentences.

use axum::extract::{Path, State};
use fathom_why::{Scope, Story, why};
use serde::Deserialize;

use super::{Json, Shared};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Parameters besides the window and the filter.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WhyParams {
    /// Explain this request alone.
    rid: Option<i64>,
    /// With 1: waits for the diagnosis and uses its advice.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    findings: Option<u8>,
}

/// `GET /sessions/ID/why`.
pub(crate) async fn story(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<WhyParams>,
) -> Result<Json<Story>, ApiError> {
    let selection = selection.parse()?;
    let diagnosis = match params.findings.unwrap_or(0) {
        0 => None,
        _ => Some(app.diagnoses.of(&app.library, &id).await?),
    };
    let query = move |reader: &Reader, _: &Stop| {
        let findings = diagnosis
            .as_ref()
            .map(|told| told.diagnosis.findings.as_slice());
        let scope = scope(reader, &selection, params.rid);
        let meta = reader.session.meta();
        Ok(why(
            reader.db(),
            meta,
            &scope,
            findings.unwrap_or_default(),
        )?)
    };
    app.jobs.query(id, Lane::Slow, query).await.map(Json)
}

fn scope(reader: &Reader, selection: &Selection, rid: Option<i64>) -> Scope {
    if rid.is_some() {
        return Scope {
            request: rid,
            ..Scope::default()
        };
    }
    let window = selection.window(reader.started_at_ns(), reader.span());
    let (from_ns, until_ns) = selection.ends(window);
    let calls = selection.filter.for_calls(window.from).sql();
    Scope {
        from_ns,
        until_ns,
        faults: match calls {
            Some(_) => selection.filter.for_faults(window.from),
            None => None,
        },
        calls,
        ..Scope::default()
    }
}
