//! `GET /sessions/ID/schema`: what SQL can ask for.

use axum::extract::{Path, State};
use fathom_query::{UserView, is_taken};
use fathom_session::Session;
use serde::Serialize;

use super::{Json, Shared};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::view::Reader;

/// A table or view.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Relation {
    pub name: String,
    /// Whether it is made of others.
    pub view: bool,
    /// The meaning of a row.
    pub doc: String,
    /// Rows; null for a view.
    pub rows: Option<u64>,
    pub columns: Vec<RelationColumn>,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct RelationColumn {
    pub name: String,
    /// Type in SQL; empty for a view that the user wrote.
    pub sql_type: String,
    /// Whether it may be null; of views that is not known.
    pub nullable: Option<bool>,
    /// The meaning of the column.
    pub doc: String,
}

/// `GET /sessions/ID/schema`.
pub(crate) async fn schema(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Vec<Relation>>, ApiError> {
    let state = app.clone();
    let query = move |reader: &Reader, _: &Stop| {
        let mut relations = fathom_query::relations(reader.db())?;
        let views = state.library.extensions.views();
        relations.extend(views.iter().map(UserView::relation));
        Ok(relations.into_iter().map(|r| relation(reader, r)).collect())
    };
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

fn relation(reader: &Reader, relation: fathom_query::Relation) -> Relation {
    let columns = relation.columns.into_iter().map(|c| RelationColumn {
        name: c.name,
        sql_type: c.sql_type,
        nullable: c.nullable,
        doc: c.doc,
    });
    Relation {
        rows: (!relation.view).then(|| rows_of(&reader.session, &relation.name)),
        name: relation.name,
        view: relation.view,
        doc: relation.doc,
        columns: columns.collect(),
    }
}

/// Rows of a table of fathom's or of the user's.
pub fn rows_of(session: &Session, table: &str) -> u64 {
    let own = session.own_tables().iter().find(|own| own.name == table);
    match own.filter(|own| !is_taken(&own.name)) {
        Some(own) => own.rows,
        None => session.rows(table),
    }
}
