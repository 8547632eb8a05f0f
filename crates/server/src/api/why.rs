//! `GET /sessions/ID/why`: where the time went, in three sentences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use fathom_model::tables::{FAULTS, SYSCALLS};
use fathom_why::{Facts, Scope, Story, tell};
use serde::Deserialize;

use super::{Json, Shared};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::lock::lock;
use crate::selection::{Params, Selection, SelectionParams};
use crate::stamp::Stamp;
use crate::view::{Reader, View};

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
    let view = app.jobs.look(id.clone()).await?;
    let of = |table| view.session.rows(table);
    let lane = match params.rid {
        None if selection.is_whole() && app.facts.are_known(&view) => Lane::Quick,
        None if of(SYSCALLS.name) + of(FAULTS.name) > MANY => Lane::Long,
        _ => Lane::Slow,
    };
    let shared = app.clone();
    let query = move |reader: &Reader, _: &Stop| {
        let findings = diagnosis
            .as_ref()
            .map(|told| told.diagnosis.findings.as_slice());
        let scope = scope(reader, &selection, params.rid)?;
        let facts = shared.facts.of(reader, &scope)?;
        let meta = reader.session.meta();
        Ok(Story {
            sentences: tell(&facts, meta, &scope, findings.unwrap_or_default()),
            facts: Facts::clone(&facts),
            steps: Vec::new(),
        })
    };
    app.jobs.query(id, lane, query).await.map(Json)
}

/// Calls and page faults from which on an explanation may take minutes.
const MANY: u64 = 5_000_000;
/// Sessions whose numbers are kept.
const KEPT: usize = 16;

/// Numbers of whole sessions, by session: every call of it was read for them.
#[derive(Default)]
pub(crate) struct KnownFacts(Mutex<HashMap<String, (Stamp, Arc<Facts>)>>);

impl KnownFacts {
    /// Whether the numbers of the whole session need not be gathered.
    fn are_known(&self, view: &View) -> bool {
        let known = lock(&self.0);
        let of = known.get(&view.id).map(|(stamp, _)| stamp);
        of.is_some() && view.stamp.as_ref() == of
    }

    fn of(&self, reader: &Reader, scope: &Scope) -> Result<Arc<Facts>, ApiError> {
        let gather = || Facts::gather(reader.db(), reader.session.meta(), scope).map(Arc::new);
        if !scope.is_whole() || reader.session.is_live() {
            return Ok(gather()?);
        }
        if let Some((stamp, facts)) = lock(&self.0).get(&reader.id)
            && reader.stamp.as_ref() == Some(stamp)
        {
            return Ok(facts.clone());
        }
        let facts = gather()?;
        let stamp = Stamp::of(reader.session.dir());
        if reader.stamp.as_ref() != Some(&stamp) {
            // Some numbers may be of another state.
            return Err(ApiError::changed(&reader.id));
        }
        if facts.too_many_blocks {
            // Another time they may find more memory.
            return Ok(facts);
        }
        let mut known = lock(&self.0);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(reader.id.clone(), (stamp, facts.clone()));
        Ok(facts)
    }
}

fn scope(reader: &Reader, selection: &Selection, rid: Option<i64>) -> Result<Scope, ApiError> {
    if rid.is_some() {
        return Ok(Scope {
            request: rid,
            ..Scope::default()
        });
    }
    let window = selection.window(reader.started_at_ns(), reader.span());
    let (from_ns, until_ns) = selection.ends(window);
    let filter = selection.filter.for_calls(reader.db(), window.from)?;
    let calls = filter.sql();
    Ok(Scope {
        from_ns,
        until_ns,
        faults: calls.as_ref().and_then(|_| filter.faults_sql()),
        calls,
        ..Scope::default()
    })
}
