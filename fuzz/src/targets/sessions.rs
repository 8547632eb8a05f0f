//! Sessions whose files are damaged: every command still answers, or says what is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use fathom_model::tables::TABLES;
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_report::Report;
use fathom_session::{Session, repair};
use fathom_tests::environment::fathom;
use tempfile::TempDir;

use super::Target;
use crate::{corpus, mutate};

/// Sessions, and what they answer while they are whole.
pub struct Sessions {
    seeds: Vec<(PathBuf, Vec<Answer>)>,
    /// The latest, damaged.
    scratch: TempDir,
}

/// Rows of a table and a sum over all of their values; `None` when it cannot be read.
type Answer = Option<String>;

impl Sessions {
    /// Reads the sessions of a corpus.
    pub fn new(dir: &Path) -> Self {
        let seeds = corpus::files(dir, "sessions").into_iter().map(|path| {
            let session = Session::open(&path).expect("a session");
            let answers = answers(&session).expect("answers of a whole session");
            assert!(answers.iter().all(Option::is_some), "{}", path.display());
            (path, answers)
        });
        Self {
            seeds: seeds.collect(),
            scratch: super::scratch(),
        }
    }

    fn session(&self) -> PathBuf {
        self.scratch.path().join("s.fathom")
    }
}

impl Target for Sessions {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        let dir = self.session();
        let _ = fs::remove_dir_all(&dir);
        let (seed, whole) = mutate::one(rng, &self.seeds);
        let files = copy(seed, &dir);
        for _ in 0..rng.usize(1..=3) {
            let (file, other) = (mutate::one(rng, &files), mutate::one(rng, &files));
            damage(rng, file, other);
        }
        let named = examine(&dir, whole)?;
        if rng.u8(..8) == 0 {
            commands(&dir)?;
        }
        match repair(&dir, true) {
            Ok(_) => {
                let again = repair(&dir, true).map_err(|e| format!("repaired, then: {e}"))?;
                if !again.found.is_empty() {
                    return Err(format!("a second repair finds more: {:?}", again.found));
                }
                // What is lost for good is still named; all that is left can be read.
                let session = Session::open(&dir).map_err(|e| format!("repaired, then: {e}"))?;
                let answers = answers(&session).map_err(|e| format!("repaired, then: {e}"))?;
                if let Some(at) = answers.iter().position(Option::is_none) {
                    return Err(format!(
                        "repaired, but table {} can't be read",
                        TABLES[at].name
                    ));
                }
                Ok(())
            }
            // It says why not; what reads well needs no repair.
            Err(_) if named => Ok(()),
            Err(e) => Err(format!("reads well, but cannot be repaired: {e}")),
        }
    }

    fn keep(&mut self, path: &Path) {
        let _ = fs::remove_dir_all(path);
        copy(&self.session(), path);
    }
}

/// Copies a session; returns its files.
fn copy(from: &Path, to: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(to).expect("a directory");
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(from) else {
        return files;
    };
    let mut entries: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        let name = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            files.extend(copy(&entry, &name));
        } else {
            fs::copy(&entry, &name).expect("a file");
            files.push(name);
        }
    }
    files
}

fn damage(rng: &mut Rng, file: &Path, other: &Path) {
    // Gone by an earlier damage.
    let Ok(mut bytes) = fs::read(file) else {
        return;
    };
    match rng.u8(..12) {
        0 => fs::remove_file(file).expect("a file"),
        1 => fs::write(file, fs::read(other).unwrap_or_default()).expect("a file"),
        2 => fs::write(file, b"").expect("a file"),
        // The end, where Parquet has its metadata.
        3 | 4 => {
            let at = bytes.len() - rng.usize(..=bytes.len().min(512));
            let mut tail = bytes.split_off(at);
            mutate::bytes(rng, &mut tail, b"", 4);
            bytes.extend(tail);
            fs::write(file, bytes).expect("a file");
        }
        _ => {
            mutate::bytes(rng, &mut bytes, b"PAR1", 3);
            fs::write(file, bytes).expect("a file");
        }
    }
}

/// Reads everything. True when something was said to be wrong.
fn examine(dir: &Path, whole: &[Answer]) -> Result<bool, String> {
    let Ok(session) = Session::open(dir) else {
        return Ok(true);
    };
    let Ok(now) = answers(&session) else {
        return Ok(true);
    };
    let mut named = !session.problems().is_empty();
    for (table, (now, whole)) in TABLES.iter().zip(now.iter().zip(whole)) {
        match now {
            None => named = true,
            Some(now) if Some(now) != whole.as_ref() && !named => {
                return Err(format!(
                    "table {} answers otherwise without a word",
                    table.name
                ));
            }
            Some(_) => {}
        }
    }
    let report = Db::open(&session, limits())
        .map_err(|e| e.to_string())
        .and_then(|db| Report::build(&db, &session).map_err(|e| e.to_string()));
    if let (Err(e), false) = (report, named) {
        return Err(format!(
            "the tables can be read, but there is no report: {e}"
        ));
    }
    // An error names what is wrong.
    named |= fathom_diagnose::diagnose_once(&session, &|| true).is_err();
    Ok(named)
}

fn limits() -> Limits {
    Limits {
        memory_bytes: 512 << 20,
        ..Limits::default()
    }
}

fn answers(session: &Session) -> Result<Vec<Answer>, String> {
    let db = Db::open(session, limits()).map_err(|e| e.to_string())?;
    Ok(TABLES.iter().map(|table| answer(&db, table.name)).collect())
}

fn answer(db: &Db, table: &str) -> Answer {
    let sql = format!("SELECT count(*) AS n, bit_xor(hash(t)) AS h FROM {table} AS t");
    let rows = db.query(&sql).ok()?;
    let mut text = Vec::new();
    output::write(rows, Format::Csv, &Options::default(), &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// The program answers with a status that it documents, and says why it cannot.
fn commands(dir: &Path) -> Result<(), String> {
    let commands: [&[&str]; 6] = [
        &["report", "SESSION"],
        &["diagnose", "SESSION", "--format", "json"],
        &["query", "SESSION", "FROM by_file"],
        &["zoom", "SESSION", "--by", "layer"],
        &["export", "SESSION", "--format", "strace"],
        &["repair", "SESSION", "--dry-run"],
    ];
    for command in commands {
        let args = command.iter().map(|word| match *word {
            "SESSION" => dir.as_os_str(),
            word => word.as_ref(),
        });
        let output = Command::new(fathom())
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .expect("fathom");
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code();
        if !matches!(status, Some(0..=2)) || said.contains("panicked") {
            return Err(format!("{command:?} ends with {}: {said}", output.status));
        }
        if status == Some(2) && said.trim().is_empty() {
            return Err(format!("{command:?} fails without a word"));
        }
    }
    Ok(())
}
