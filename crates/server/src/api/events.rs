//! `GET /sessions/ID/events`: rows of the calls, a page of them at a time.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fathom_model::tables::{ColumnType, SYSCALLS, Stored};
use fathom_query::escape::sql_name;
use serde::{Deserialize, Serialize};

use super::{Shared, place};
use crate::access::{Caller, Role};
use crate::calls::Calls;
use crate::columns::{ArrowAnswer, collect, encode};
use crate::error::ApiError;
use crate::job::Lane;
use crate::selection::{Params, Selection, SelectionParams};
use crate::tables::{column_sql, columns_sql, may_see};
use crate::view::Reader;

/// Rows of an answer at most.
const MOST: u64 = 10_000;
/// Rows that may be skipped when they are not in order of time: all of them must be
/// held to be sorted.
const MOST_SKIPPED: u64 = 1_000_000;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventsParams {
    /// A column of table `syscalls`, with `-` before it for descending order; `ts_ns` by default. Not
    /// `content`; `hash` takes role `query`.
    sort: Option<String>,
    /// Rows to skip; at most a million when sorted by another column than `ts_ns`.
    offset: Option<u64>,
    /// Rows of the answer; 200 by default, at most 10,000.
    limit: Option<u64>,
    /// Columns of the answer, separated by commas; all by default. `content` is never among them, `hash`
    /// only for role `query`.
    columns: Option<String>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct EventsMeta {
    /// Rows that match.
    pub total: f64,
    /// Rows before the first of the answer.
    pub offset: u64,
}

/// The request.
struct Page {
    sort: &'static str,
    descending: bool,
    offset: u64,
    limit: u64,
    columns: Option<Vec<String>>,
    role: Role,
}

impl EventsParams {
    fn parse(&self, role: Role) -> Result<Page, ApiError> {
        let known = |name: &str| SYSCALLS.columns.iter().find(|c| c.name == name);
        let sort = self.sort.as_deref().unwrap_or("ts_ns");
        let (name, descending) = match sort.strip_prefix('-') {
            Some(name) => (name, true),
            None => (sort, false),
        };
        let column = known(name)
            .ok_or_else(|| ApiError::parameter("sort", "it is no column of table syscalls"))?;
        if column.ty == ColumnType::Blob || column.stored == Stored::Hidden {
            return Err(ApiError::parameter(
                "sort",
                "rows cannot be sorted by this column",
            ));
        }
        if !may_see(role, column) {
            let what = "your role does not allow to sort by this column";
            let next = format!(
                "sort by another one, or ask the operator of this server for role {}",
                Role::Query.name()
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, what, "sort", next));
        }
        let columns = match self.columns.as_deref() {
            None | Some("") => None,
            Some(list) => Some(list.split(',').map(str::to_string).collect::<Vec<_>>()),
        };
        for name in columns.iter().flatten() {
            if known(name).is_none() {
                let what = format!("{name} is no column of table syscalls");
                return Err(ApiError::parameter("columns", what));
            }
        }
        Ok(Page {
            sort: column.name,
            descending,
            offset: self.offset.unwrap_or(0),
            limit: self.limit.unwrap_or(200).min(MOST),
            columns,
            role,
        })
    }
}

/// `GET /sessions/ID/events`.
pub(crate) async fn events(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<EventsParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let page = params.parse(caller.role)?;
    if page.sort != "ts_ns" && page.offset > MOST_SKIPPED {
        let what = format!("rows not in order of time end at {MOST_SKIPPED}");
        return Err(ApiError::parameter("offset", what));
    }
    let query = move |reader: &Reader, _: &crate::job::Stop| answer(reader, &selection, &page);
    app.jobs.query(id, Lane::Quick, query).await
}

fn answer(reader: &Reader, selection: &Selection, page: &Page) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let mut window = selection.window(start, reader.span());
    let mut offset = page.offset;
    let mut total = None;
    if page.sort == "ts_ns" {
        let place = place::find(
            reader,
            selection,
            window,
            page.descending,
            offset,
            page.limit,
        )?;
        (window, offset, total) = (place.window, place.offset, Some(place.total));
    }
    let calls = Calls::of(reader, selection, window)?;
    let total = match total {
        Some(total) => total,
        None => place::count(reader, &calls)?,
    };
    let columns = match &page.columns {
        None => columns_sql(&SYSCALLS, start, page.role),
        Some(names) => {
            let columns: Vec<String> = names
                .iter()
                .filter_map(|name| column_sql(&SYSCALLS, name, start, page.role))
                .collect();
            columns.join(", ")
        }
    };
    if columns.is_empty() {
        let what = "none of these columns is sent to your role";
        return Err(ApiError::parameter("columns", what));
    }
    let direction = if page.descending { "DESC" } else { "ASC" };
    let order = format!(
        "{} {direction} NULLS LAST, rid {direction}",
        sql_name(page.sort)
    );
    let limit = format!("LIMIT {} OFFSET {offset}", page.limit);
    // In the brackets columns have their own names, so that what is sorted by is the column
    // and not what is made of it.
    let rows = match page.sort {
        "ts_ns" => {
            format!("SELECT {columns} FROM (SELECT * FROM {calls} ORDER BY {order} {limit})")
        }
        // First which rows, then all of their columns: sorting moves whole rows.
        _ => format!(
            "WITH chosen AS MATERIALIZED (SELECT rid, ts_ns AS at FROM {calls} \
             ORDER BY {order} {limit}) \
             SELECT {columns} FROM (SELECT * FROM {source} AS c SEMI JOIN chosen \
             ON c.rid = chosen.rid AND c.ts_ns = chosen.at ORDER BY {order} LIMIT {most})",
            source = calls.source,
            most = page.limit,
        ),
    };
    let rows = collect(reader.db().run(&rows)?)?;
    let meta = EventsMeta {
        total,
        offset: page.offset,
    };
    encode(&rows, &meta)
}
