//! `GET /panels`: panels that a user wrote as files of SQL, and panels and queries that a team keeps.

use std::fs;
use std::path::{Path, PathBuf};

use axum::extract::State;
use axum::http::StatusCode;
use fathom_extensions::Extensions;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Json, Shared};
use crate::error::ApiError;

/// Files of the directory at most, and bytes of each.
const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 1 << 20;

/// A file with panels and queries, or the folder of the user's.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PanelFile {
    /// Its name in the directory of the team's; of the user's folder, its path.
    pub name: String,
    /// The contents: JSON as the page writes it. Null if unusable.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub content: Value,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// `GET /panels`: the user's panels, as they were when the server started, then the files of the team's
/// directory as they are now.
pub(crate) async fn panels(State(app): State<Shared>) -> Result<Json<Vec<PanelFile>>, ApiError> {
    let dir = app.panels.clone();
    let read = tokio::task::spawn_blocking(move || dir.map_or(Ok(Vec::new()), |dir| files(&dir)));
    let read = read
        .await
        .map_err(|e| ApiError::internal(e.to_string()))??;
    let own = own(&app.library.extensions).into_iter();
    Ok(Json(own.chain(read).collect()))
}

/// The panels that the user wrote, as the page writes them to a file.
fn own(extensions: &Extensions) -> Option<PanelFile> {
    let panels = extensions.panels().iter().map(|panel| {
        json!({
            "name": panel.title,
            "sql": panel.sql,
            "panel": true,
            "wide": panel.wide,
            "plot": {
                "form": panel.form,
                "x": panel.x,
                "y": panel.y,
                "series": panel.series,
                "log": false,
            },
        })
    });
    let panels: Vec<Value> = panels.collect();
    (!panels.is_empty()).then(|| PanelFile {
        name: extensions
            .dir()
            .join("panels")
            .to_string_lossy()
            .into_owned(),
        content: json!({"fathom-queries": 1, "queries": panels}),
        problem: None,
    })
}

fn files(dir: &Path) -> Result<Vec<PanelFile>, ApiError> {
    let failed = |e: std::io::Error| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot read the directory of panels: {e}"),
            dir.display().to_string(),
            "check that it exists and that you may read it",
        )
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.truncate(MOST_FILES);
    Ok(paths.iter().map(|path| file(path)).collect())
}

fn file(path: &Path) -> PanelFile {
    let read = || -> Result<Value, String> {
        let size = fs::metadata(path).map_err(|e| e.to_string())?;
        if !size.is_file() {
            return Err("it is not a file".into());
        }
        if size.len() > MOST_BYTES {
            return Err(format!("it is larger than {} KiB", MOST_BYTES >> 10));
        }
        let text = fs::read(path).map_err(|e| e.to_string())?;
        serde_json::from_slice(&text).map_err(|e| format!("it is not JSON: {e}"))
    };
    let (content, problem) = match read() {
        Ok(content) => (content, None),
        Err(problem) => (Value::Null, Some(problem)),
    };
    let name = path.file_name().unwrap_or_default();
    PanelFile {
        name: name.to_string_lossy().into_owned(),
        content,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_file_does_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json"), "{\"queries\": []}").unwrap();
        fs::write(dir.path().join("b.json"), "{").unwrap();
        fs::write(dir.path().join("c.txt"), "no panels").unwrap();
        fs::create_dir(dir.path().join("d.json")).unwrap();
        let found = files(dir.path()).unwrap();
        let names: Vec<_> = found.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a.json", "b.json", "d.json"]);
        let problems: Vec<_> = found.iter().map(|f| f.problem.is_some()).collect();
        assert_eq!(problems, [false, true, true]);
        assert!(files(&dir.path().join("none")).is_err());
    }
}
