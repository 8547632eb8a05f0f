//! Findings that are kept, and all that may become of them and of their session.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};

use fathom_session::{SessionWriter, WriterOptions, repair};
use fathom_testkit::meta;

use super::*;
use crate::scenario::Scenario;

/// A process that is being started has the locks of all sessions until it executes its program: to
/// others these sessions seem to be recorded still.
static STARTS: RwLock<()> = RwLock::new(());

/// Runs a program while no session is being written.
fn ran(command: &mut Command) -> bool {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    command.status().unwrap().success()
}

/// A session with something for several rules, and an odd number of nanoseconds.
fn record(dir: &Path, syncs: i64) -> SessionWriter {
    let options = WriterOptions {
        force: dir.exists(),
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, meta(), options).unwrap();
    let mut s = Scenario::new();
    let fd = s.open("/data/log\u{1b}[2J<script>", "O_WRONLY|O_CREAT");
    for i in 0..syncs {
        s.write(fd, 100 + i % 7);
        s.fsync(fd);
    }
    for _ in 0..300 {
        s.stat("/data/there");
        s.pread(fd, 100, 12288);
    }
    for batch in s.batches() {
        writer.append(batch).unwrap();
    }
    writer
}

fn close(writer: SessionWriter, calls: u64) {
    let mut meta = meta();
    meta.totals.seen = calls;
    writer.finish(meta).unwrap();
}

/// A closed session in a directory of its own, with findings that are kept.
struct Prepared {
    _temp: tempfile::TempDir,
    dir: PathBuf,
    fresh: String,
}

impl Prepared {
    fn new() -> Self {
        let _none = STARTS.read().unwrap_or_else(PoisonError::into_inner);
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("s.fathom");
        close(record(&dir, 101), 803);
        let session = Session::open(&dir).unwrap();
        assert_eq!(session.problems(), Vec::<String>::new());
        let fresh = diagnose_while(&session, &|| true).unwrap();
        assert!(!fresh.findings.is_empty(), "{fresh:#?}");
        let told = once(&session, &|| true, 0).unwrap();
        assert_eq!(text(&told.diagnosis), text(&fresh));
        let fresh = text(&fresh);
        let prepared = Prepared {
            _temp: temp,
            dir,
            fresh,
        };
        prepared.holds(&prepared.dir);
        prepared
    }

    fn file(&self) -> PathBuf {
        self.dir.join("findings.json")
    }

    /// The findings cached in `dir` are the computed ones.
    fn holds(&self, dir: &Path) {
        match recalled(dir) {
            CachedDiagnosis::Findings(diagnosis) => assert_eq!(text(&diagnosis), self.fresh),
            other => panic!("{other:?}"),
        }
    }

    /// The cache is ignored without a message, and replaced.
    fn is_made_anew(&self) {
        assert!(matches!(recalled(&self.dir), CachedDiagnosis::Nothing));
        let session = Session::open(&self.dir).unwrap();
        let told = once(&session, &|| true, 0).unwrap();
        assert_eq!(told.notice, None);
        let fresh = diagnose_while(&session, &|| true).unwrap();
        assert_eq!(text(&told.diagnosis), text(&fresh));
        let CachedDiagnosis::Findings(kept) = recalled(&self.dir) else {
            panic!("not kept again");
        };
        assert_eq!(text(&kept), text(&fresh));
    }

    /// The cache is ignored with a message; nothing else fails.
    fn is_refused(&self, what: &str) {
        let CachedDiagnosis::Unusable(why) = recalled(&self.dir) else {
            panic!("{what}");
        };
        assert!(
            why.contains("findings.json") && why.contains("looked at again"),
            "{why}"
        );
        assert!(!why.contains('\u{1b}'), "{why}");
        let session = Session::open(&self.dir).unwrap();
        let told = once(&session, &|| true, 0).unwrap();
        assert_eq!(told.notice, Some(why), "{what}");
        assert_eq!(text(&told.diagnosis), self.fresh, "{what}");
    }
}

fn recalled(dir: &Path) -> CachedDiagnosis {
    recall(&Session::open(dir).unwrap(), 0)
}

fn text(diagnosis: &Diagnosis) -> String {
    serde_json::to_string(diagnosis).unwrap()
}

fn part(dir: &Path) -> PathBuf {
    let parts = Session::open(dir).unwrap().parts("syscalls");
    parts.first().unwrap().clone()
}

/// As `cp` with these options.
fn copy(from: &Path, options: &str) -> PathBuf {
    let to = from.with_extension("copy");
    assert!(ran(Command::new("cp").arg(options).args([from, &to])));
    to
}

#[test]
fn calls_are_looked_at_once() {
    let prepared = Prepared::new();
    let session = Session::open(&prepared.dir).unwrap();
    let asked = Cell::new(0);
    let count = || {
        asked.set(asked.get() + 1);
        true
    };
    let told = once(&session, &count, 0).unwrap();
    assert_eq!(
        (text(&told.diagnosis), asked.get()),
        (prepared.fresh.clone(), 0)
    );
    fs::remove_file(prepared.file()).unwrap();
    once(&session, &count, 0).unwrap();
    assert!(asked.get() > 0);
    // The file contains the JSON output.
    let kept: serde_json::Value =
        serde_json::from_slice(&fs::read(prepared.file()).unwrap()).unwrap();
    let printed: serde_json::Value = serde_json::from_str(&prepared.fresh).unwrap();
    for (name, value) in printed.as_object().unwrap() {
        assert_eq!(&kept[name], value, "{name}");
    }
    // Nothing else is left.
    assert!(!prepared.dir.join("findings.json.tmp").exists());
    assert_eq!(
        Session::open(&prepared.dir).unwrap().problems(),
        Vec::<String>::new()
    );
}

#[test]
fn small_sessions_stay_as_they_were_recorded() {
    let prepared = Prepared::new();
    let session = Session::open(&prepared.dir).unwrap();
    assert!(matches!(cached(&session), CachedDiagnosis::Nothing));
    fs::remove_file(prepared.file()).unwrap();
    diagnose_once(&session, &|| true).unwrap();
    assert!(!prepared.file().exists());
}

#[test]
fn a_part_of_a_diagnosis_is_not_kept() {
    let prepared = Prepared::new();
    fs::remove_file(prepared.file()).unwrap();
    let session = Session::open(&prepared.dir).unwrap();
    once(&session, &|| false, 0).unwrap();
    assert!(!prepared.file().exists());
}

#[test]
fn a_session_that_is_recorded_has_none() {
    let prepared = Prepared::new();
    let before = fs::read(prepared.file()).unwrap();
    // Another recording in the same place.
    let writer = record(&prepared.dir, 7);
    fs::write(prepared.file(), &before).unwrap();
    let session = Session::open(&prepared.dir).unwrap();
    assert!(session.is_live() && matches!(recall(&session, 0), CachedDiagnosis::Nothing));
    once(&session, &|| true, 0).unwrap();
    assert_eq!(fs::read(prepared.file()).unwrap(), before);
    close(writer, 615);
    // One that was opened meanwhile is not the one that it has become; its parts may be merged.
    let _ = once(&session, &|| true, 0);
    assert_eq!(fs::read(prepared.file()).unwrap(), before);
    prepared.is_made_anew();
}

#[test]
fn another_state_of_the_session_is_another_one() {
    let prepared = Prepared::new();
    // CacheFile in place, with as many bytes.
    let part = part(&prepared.dir);
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, bytes).unwrap();
    prepared.is_made_anew();

    let meta = prepared.dir.join("session.json");
    let said = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, said.replacen("\"lost\": 0", "\"lost\": 5", 1)).unwrap();
    prepared.is_made_anew();

    // Damaged, then repaired.
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() - 9;
    bytes[middle] ^= 0x55;
    fs::write(&part, bytes).unwrap();
    prepared.is_made_anew();
    repair(&prepared.dir, true).unwrap();
    prepared.is_made_anew();

    // Without a table.
    fs::remove_dir_all(prepared.dir.join("files")).unwrap();
    prepared.is_made_anew();
}

#[test]
fn what_changes_meanwhile_is_not_kept() {
    let prepared = Prepared::new();
    fs::remove_file(prepared.file()).unwrap();
    let session = Session::open(&prepared.dir).unwrap();
    let part = part(&prepared.dir);
    let touch = || {
        let bytes = fs::read(&part).unwrap();
        fs::write(&part, bytes).unwrap();
        true
    };
    once(&session, &touch, 0).unwrap();
    assert!(!prepared.file().exists());
}

#[test]
fn another_fathom_looks_itself() {
    let prepared = Prepared::new();
    let json = fs::read_to_string(prepared.file()).unwrap();
    let (version, rules) = FATHOM.split_once(' ').unwrap();
    assert_eq!(rules.len(), 16);
    for other in [
        format!("{version}.1 {rules}"),
        format!("{version} 0{}", &rules[1..]),
    ] {
        if other == FATHOM {
            continue;
        }
        fs::write(prepared.file(), json.replacen(FATHOM, &other, 1)).unwrap();
        prepared.is_made_anew();
    }
    // The state that a killed recorder with --diagnose leaves.
    fs::write(prepared.file(), &prepared.fresh).unwrap();
    prepared.is_made_anew();
}

#[test]
fn copies_have_them_or_work_without() {
    let prepared = Prepared::new();
    prepared.holds(&copy(&prepared.dir, "-a"));
    let dir = prepared.dir.with_extension("copy");
    fs::remove_dir_all(&dir).unwrap();
    // All times of change are others.
    copy(&prepared.dir, "-r");
    assert!(matches!(recalled(&dir), CachedDiagnosis::Nothing));
    let told = once(&Session::open(&dir).unwrap(), &|| true, 0).unwrap();
    assert_eq!(text(&told.diagnosis), prepared.fresh);
}

#[test]
fn where_nothing_can_be_written_nothing_fails() {
    let prepared = Prepared::new();
    fs::remove_file(prepared.file()).unwrap();
    // In the way of the file that is prepared.
    fs::create_dir_all(prepared.dir.join("findings.json.tmp/x")).unwrap();
    let session = Session::open(&prepared.dir).unwrap();
    let told = once(&session, &|| true, 0).unwrap();
    assert_eq!(
        (text(&told.diagnosis), told.notice),
        (prepared.fresh.clone(), None)
    );
    assert!(!prepared.file().exists());
}

#[test]
fn links_lead_nowhere() {
    let prepared = Prepared::new();
    let victim = prepared.dir.with_extension("victim");
    fs::write(&victim, "untouched").unwrap();
    fs::remove_file(prepared.file()).unwrap();
    symlink(&victim, prepared.file()).unwrap();
    symlink(&victim, prepared.dir.join("findings.json.tmp")).unwrap();
    prepared.is_refused("a link");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    prepared.holds(&prepared.dir);
}

#[test]
fn what_is_damaged_is_refused_with_a_word() {
    let prepared = Prepared::new();
    let whole = fs::read(prepared.file()).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(prepared.file(), bytes).unwrap();
        prepared.is_refused(what);
        prepared.holds(&prepared.dir);
    };
    refused(b"", "empty");
    refused(b"\x1b[2J\xff", "no JSON");
    refused(b"[1, 2]", "no findings");
    refused(&vec![b'['; 1 << 20], "deep");
    refused(&whole[..whole.len() / 2], "half");
    // A member of what it was made of is none.
    let said = String::from_utf8(whole.clone()).unwrap();
    refused(
        said.replacen("\"numbers\":[", "\"numbers\":[\"x\",", 1)
            .as_bytes(),
        "numbers",
    );
    let changed = |from: &str, to: &str| {
        assert!(said.contains(from), "{from}");
        refused(said.replacen(from, to, 1).as_bytes(), from);
    };
    changed("\"numbers\":[", "\"numbers\":[7,");
    changed("\"rule\":\"", "\"rule\":\"x");
    changed("\"title\":\"", "\"title\":\"All is well. ");
    changed("\"findings\":[", "\"findings\":7,\"x\":[");
    changed("\"span_ns\":", "\"span_ns\":-");
    // Each place in turn: nothing is taken that was not written.
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(prepared.file(), &bytes).unwrap();
        match recalled(&prepared.dir) {
            CachedDiagnosis::Nothing | CachedDiagnosis::Unusable(_) => {}
            // Texts of the rule are not read.
            CachedDiagnosis::Findings(kept) => assert_eq!(text(&kept), prepared.fresh, "byte {at}"),
        }
    }
}

#[test]
fn what_is_no_file_is_refused_with_a_word() {
    let prepared = Prepared::new();
    fs::write(prepared.file(), vec![b' '; (32 << 20) + 1]).unwrap();
    prepared.is_refused("large");
    fs::remove_file(prepared.file()).unwrap();
    // Reading a pipe would wait for a writer.
    assert!(ran(Command::new("mkfifo").arg(prepared.file())));
    prepared.is_refused("a pipe");
    fs::remove_file(prepared.file()).unwrap();
    fs::create_dir_all(prepared.file().join("x")).unwrap();
    prepared.is_refused("a folder");
    prepared.is_refused("a folder, still");
}

#[test]
fn numbers_that_cannot_be_are_neither_kept_nor_read() {
    let prepared = Prepared::new();
    let session = Session::open(&prepared.dir).unwrap();
    let state = state(&session, 0).unwrap();
    let fresh = diagnose_while(&session, &|| true).unwrap();
    let broken: [fn(&mut Diagnosis); 4] = [
        |d| d.findings[0].cost_ns = Some(i64::MAX),
        |d| d.span_ns = -1,
        |d| {
            d.more = vec![More {
                rule: "redundant-read",
                findings: usize::MAX,
            }]
        },
        |d| d.findings = vec![d.findings[0].clone(); 100_000],
    ];
    for change in broken {
        let mut diagnosis = fresh.clone();
        change(&mut diagnosis);
        fs::remove_file(prepared.file()).ok();
        keep(&session, state, &diagnosis, 0);
        assert!(!prepared.file().exists());
        // Another program may write it.
        let evidence = diagnosis.findings.iter().flat_map(|f| &f.evidence);
        let made_of = MadeOf {
            fathom: FATHOM.to_owned(),
            session: hex(state),
            hash: hash_of(&diagnosis).unwrap(),
            numbers: evidence.map(|e| e.value.to_bits()).collect(),
        };
        let diagnosis = &diagnosis;
        let written = serde_json::to_vec(&CacheFile { made_of, diagnosis }).unwrap();
        fs::write(prepared.file(), written).unwrap();
        assert!(matches!(
            recalled(&prepared.dir),
            CachedDiagnosis::Unusable(_)
        ));
    }
}

#[test]
fn numbers_come_back_to_the_last_bit() {
    let prepared = Prepared::new();
    let session = Session::open(&prepared.dir).unwrap();
    let mut diagnosis = diagnose_while(&session, &|| true).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for finding in &mut diagnosis.findings {
        finding.evidence = (0..200)
            .map(|_| Evidence {
                name: "share".into(),
                value: random.f64() * 10f64.powi(random.i32(-9..9)),
            })
            .collect();
    }
    keep(&session, state(&session, 0).unwrap(), &diagnosis, 0);
    let CachedDiagnosis::Findings(kept) = recalled(&prepared.dir) else {
        panic!("not kept");
    };
    assert_eq!(text(&kept), text(&diagnosis));
}
