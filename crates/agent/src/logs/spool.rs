//! Logs on disk until the collector has them: a file each, so that a restart neither loses nor
//! repeats one.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fathom_session::{NewFile, create_folder, open_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::Record;

/// Logs that wait at most; beyond them the oldest goes.
const MOST: usize = 2000;
/// Bytes of a file at most: a log has less.
const MAX_BYTES: u64 = 256 << 10;
/// How the names of logs end.
const SUFFIX: &str = ".log.json";

/// A directory of logs.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    /// Names of the files, the oldest first.
    waiting: Vec<String>,
}

impl Spool {
    /// Makes the directory; what is in one that is there waits.
    ///
    /// # Errors
    /// When another user can write in it, or it cannot be read.
    pub fn open(dir: &Path) -> io::Result<Self> {
        create_folder(dir).map_err(io::Error::other)?;
        let mut spool = Self {
            dir: dir.to_owned(),
            waiting: Vec::new(),
        };
        spool.waiting = spool.names(SUFFIX)?;
        Ok(spool)
    }

    /// Names of files that end so, sorted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self, suffix: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.dir)?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(suffix))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps a log; one with the same id is replaced. Returns how many found no room.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, record: &Record) -> io::Result<usize> {
        // Times have 19 digits, so names are in order of time.
        let name = format!("{:020}-{}{SUFFIX}", record.at_ns, record.id);
        self.put(&name, &record.value)?;
        if let Err(place) = self.waiting.binary_search(&name) {
            self.waiting.insert(place, name);
        }
        let surplus = self.waiting.len().saturating_sub(MOST);
        self.remove(surplus);
        Ok(surplus)
    }

    /// The oldest logs, `most` at most. One that cannot be read goes, and is counted.
    pub fn oldest(&mut self, most: usize) -> (Vec<serde_json::Value>, usize) {
        let mut found = Vec::new();
        let mut unreadable = 0;
        while found.len() < most
            && let Some(name) = self.waiting.get(found.len()).cloned()
        {
            match self.get(&name) {
                Some(value) => found.push(value),
                None => {
                    self.forget(&name);
                    self.waiting.remove(found.len());
                    unreadable += 1;
                }
            }
        }
        (found, unreadable)
    }

    /// The oldest `count` go.
    pub fn remove(&mut self, count: usize) {
        for name in self.waiting.drain(..count.min(self.waiting.len())) {
            fs::remove_file(self.dir.join(name)).ok();
        }
    }

    /// Removes a file that [`Spool::put`] wrote.
    pub fn forget(&self, name: &str) {
        fs::remove_file(self.dir.join(name)).ok();
    }

    /// Writes a file as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let (new, mut file) = NewFile::begin(&self.dir.join(name))?;
        file.write_all(&serde_json::to_vec(value)?)?;
        new.finish()
    }

    /// Reads a file that [`Spool::put`] wrote.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let mut bytes = Vec::new();
        let file = open_regular(&self.dir.join(name)).ok()?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(at_ns: i64, id: &str) -> Record {
        Record {
            at_ns,
            id: id.to_owned(),
            value: json!({ "id": id }),
        }
    }

    fn ids(spool: &mut Spool, most: usize) -> Vec<String> {
        let (found, unreadable) = spool.oldest(most);
        assert_eq!(unreadable, 0);
        let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
        found.iter().map(id).collect()
    }

    #[test]
    fn logs_wait_over_a_restart_and_one_of_the_same_id_once() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("logs");
        let mut spool = Spool::open(&dir).unwrap();
        for (at, id) in [(20, "b"), (10, "a"), (20, "b"), (100, "c")] {
            assert_eq!(spool.add(&record(at, id)).unwrap(), 0);
        }
        assert_eq!(ids(&mut spool, 2), ["a", "b"]);
        spool.remove(1);
        let mut spool = Spool::open(&dir).unwrap();
        assert_eq!(
            (spool.len(), ids(&mut spool, 9)),
            (2, vec!["b".into(), "c".into()])
        );
        assert!(Spool::open(&dir.join("no/such")).is_err());
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let scratch = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(scratch.path()).unwrap();
        let dropped: usize = (0..MOST as i64 + 3)
            .map(|at| spool.add(&record(at, &at.to_string())).unwrap())
            .sum();
        assert_eq!((dropped, spool.len()), (3, MOST));
        assert_eq!(ids(&mut spool, 1), ["3"]);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), MOST);
    }

    #[test]
    fn damaged_ones_go() {
        let scratch = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(scratch.path()).unwrap();
        spool.add(&record(1, "a")).unwrap();
        spool.add(&record(2, "b")).unwrap();
        let first = fs::read_dir(scratch.path())
            .unwrap()
            .map(|e| e.unwrap().path())
            .min();
        fs::write(first.unwrap(), "{\"id\"").unwrap();
        let (found, unreadable) = spool.oldest(9);
        assert_eq!((found, unreadable), (vec![json!({ "id": "b" })], 1));
        assert_eq!(spool.len(), 1);
    }
}
