//! `fathom import --table`: a file of the user's becomes a table of a session.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use fathom_model::{escape, units};
use fathom_query::{Converted, Limits, TableFormat, convert, is_taken, is_word};
use fathom_session::{OwnAddition, is_own_name, open_regular};

use crate::exit::Failure;

/// Adds the rows of the file to a session, as table `name`, and returns the exit status.
pub fn import(files: &[PathBuf], session: &Path, name: &str, force: bool) -> Result<u8, Failure> {
    let made = table(files, session, name, force).map_err(Failure::input)?;
    errln!(
        "fathom: {} rows added to {} as table {name}",
        units::count(i64::try_from(made.rows).unwrap_or(i64::MAX)),
        escape::text(&session.to_string_lossy())
    );
    for (column, sql_type) in &made.columns {
        errln!("    {} {}", escape::text(column), escape::text(sql_type));
    }
    Ok(0)
}

fn table(files: &[PathBuf], session: &Path, name: &str, force: bool) -> anyhow::Result<Converted> {
    let [file] = files else {
        bail!("--table takes one file; join the files first");
    };
    check_name(name)?;
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    let format = TableFormat::of_ending(&ending).with_context(|| {
        format!(
            "cannot import {}: the ending of its name must say its format, one of {}",
            file.display(),
            TableFormat::ENDINGS
        )
    })?;
    // Another user's pipe of such a name would never end, so only a regular file is opened.
    let from = open_regular(file).with_context(|| format!("cannot open {}", file.display()))?;
    let addition = OwnAddition::begin(session, name, force)?;
    let made = convert(format, &from, addition.file(), &Limits::default())
        .map_err(|error| anyhow!("cannot import {}: {error}", file.display()))?;
    addition.finish(made.rows, file)?;
    Ok(made)
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let shown = escape::text(name);
    if !is_own_name(name) {
        bail!(
            "table {shown} cannot be added: a name has at most 63 lowercase letters, digits, and _, and \
             starts with no digit; choose another name"
        );
    }
    if is_taken(name) {
        bail!("fathom has a table or view {shown} of its own; choose another name");
    }
    if !is_word(name)? {
        bail!("{shown} is a word of SQL; choose another name");
    }
    Ok(())
}
