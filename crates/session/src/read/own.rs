//! Tables that the user added to a session, which may be anything.

use std::io::ErrorKind;

use fathom_model::meta::OwnTable;
use rustix::fs::FileType;

use crate::disk::dir::Dir;
use crate::format::checksum::{Wrong, check_file};
use crate::format::footer::Check;
use crate::format::layout::{OWN_FOLDER, is_own_name, own_file};

/// A table that the user added and that is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Name of the table.
    pub name: String,
    /// Its file, below the directory of the session.
    pub file: String,
    /// Rows.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
    /// The imported file, as it was given; empty if it is not known.
    pub source: String,
}

/// The table of the session in `folder`, or why it cannot be used.
pub(crate) fn examine(
    folder: &Dir,
    name: &str,
    table: &OwnTable,
    check: Check,
) -> Result<Own, String> {
    let digits = u64::from_str_radix(&table.xxh64, 16).ok();
    let xxh64 = digits.filter(|_| is_own_name(name));
    let xxh64 = xxh64.ok_or("session.json names no file that fathom writes")?;
    let file = own_file(name, xxh64);
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => "its file is missing".to_owned(),
        _ => format!("its file cannot be read: {e}"),
    };
    if folder.kind(OWN_FOLDER).map_err(failed)? != Some(FileType::Directory) {
        return Err("its folder is missing".to_owned());
    }
    let dir = folder.dir(OWN_FOLDER).map_err(failed)?;
    let opened = dir.open_file(&file).map_err(failed)?;
    let bytes = opened.metadata().map_err(failed)?.len();
    let whole = match check {
        Check::Footer => Ok(()),
        Check::Whole => check_file(&opened, xxh64),
    };
    match whole {
        Ok(()) if bytes == table.bytes => Ok(Own {
            name: name.to_owned(),
            file: format!("{OWN_FOLDER}/{file}"),
            rows: table.rows,
            bytes,
            source: table.source.clone(),
        }),
        Ok(()) | Err(Wrong::Changed) => Err("its file is damaged".to_owned()),
        Err(Wrong::Unreadable(e)) => Err(failed(e)),
    }
}
