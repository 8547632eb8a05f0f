//! `GET /sessions/ID/why`: where the time went, in three sentences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use fathom_why::{Facts, Gathering, Scope, Story, tell};
use serde::Deserialize;

use super::{Json, Shared};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::library::Stamp;
use crate::lock::lock;
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
    let (scope, facts) = facts(&app, &id, selection, params.rid).await?;
    let query = move |reader: &Reader, _: &Stop| {
        let findings = diagnosis
            .as_ref()
            .map(|told| told.diagnosis.findings.as_slice());
        let meta = reader.session.meta();
        Ok(Story {
            sentences: tell(&facts, meta, &scope, findings.unwrap_or_default()),
            facts: Facts::clone(&facts),
            steps: Vec::new(),
        })
    };
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

/// Numbers of whole sessions whose requests take many statements, by session.
#[derive(Default)]
pub(crate) struct KnownFacts(Mutex<HashMap<String, (Stamp, Arc<Facts>)>>);

/// What is known so far.
enum Progress {
    /// The state of the session, and whether damaged rows are left out.
    Under(Gathering, bool),
    Over(Scope, Arc<Facts>),
}

/// The numbers of a story. A large session is read by many statements, each in its own turn, so that other queries come
/// in between.
async fn facts(
    app: &Shared,
    id: &str,
    selection: Selection,
    rid: Option<i64>,
) -> Result<(Scope, Arc<Facts>), ApiError> {
    let progress = Arc::new(Mutex::new(None));
    loop {
        let (app_in, own, selection) = (app.clone(), progress.clone(), selection.clone());
        let name = id.to_string();
        let step = move |reader: &Reader, _: &Stop| {
            let mut progress = lock(&own);
            let damaged = reader.session.is_damaged();
            let gathering = match progress.as_mut() {
                // Another state of the session: its parts are others.
                Some(Progress::Under(gathering, before)) if *before == damaged => gathering,
                _ => {
                    let scope = scope(reader, &selection, rid);
                    if scope.is_whole()
                        && let Some(facts) = app_in.facts.of(&app_in, &name)
                    {
                        *progress = Some(Progress::Over(scope, facts));
                        return Ok(true);
                    }
                    let begun = Gathering::start(reader.db(), &scope)?;
                    let begun = progress.insert(Progress::Under(begun, damaged));
                    match begun {
                        Progress::Under(gathering, _) => gathering,
                        Progress::Over(..) => return Ok(false),
                    }
                }
            };
            let many = gathering.portions().0 > 1;
            if many && gathering.step(reader.db())? {
                return Ok(false);
            }
            let scope = gathering.scope().clone();
            let facts = Arc::new(gathering.facts(reader.db(), reader.session.meta())?);
            if many && scope.is_whole() && !reader.session.is_live() {
                app_in.facts.keep(&app_in, &name, &facts);
            }
            *progress = Some(Progress::Over(scope, facts));
            Ok(true)
        };
        let over = app.jobs.query(id.to_string(), Lane::Slow, step).await?;
        if over && let Some(Progress::Over(scope, facts)) = lock(&progress).take() {
            return Ok((scope, facts));
        }
    }
}

impl KnownFacts {
    fn of(&self, app: &Shared, id: &str) -> Option<Arc<Facts>> {
        let stamp = Stamp::of(&app.library.dir(id).ok()?);
        let known = lock(&self.0);
        let (of, facts) = known.get(id)?;
        (*of == stamp).then(|| facts.clone())
    }

    fn keep(&self, app: &Shared, id: &str, facts: &Arc<Facts>) {
        let Ok(dir) = app.library.dir(id) else {
            return;
        };
        lock(&self.0).insert(id.to_string(), (Stamp::of(&dir), facts.clone()));
    }
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
