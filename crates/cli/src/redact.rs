//! `fathom redact`, and `--redact` of the commands that write what others read.

#[cfg(feature = "analysis")]
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
#[cfg(feature = "analysis")]
use std::path::PathBuf;

#[cfg(feature = "analysis")]
use fathom_model::escape;
#[cfg(feature = "analysis")]
use fathom_redact::Scratch;
use fathom_redact::{Key, RedactError, Rules, redact};
#[cfg(feature = "analysis")]
use fathom_server::Folder;
use fathom_session::{Session, WriterOptions};
#[cfg(feature = "analysis")]
use fathom_session::{create_folder, discard};

use crate::args::RedactArgs;
#[cfg(feature = "analysis")]
use crate::args::RedactOptions;
use crate::exit::Failure;
use crate::progress::{Bar, Unit};

/// Runs `redact` and returns the exit status.
pub fn run(args: &RedactArgs) -> Result<u8, Failure> {
    let options = WriterOptions {
        force: args.force,
        share: args.share.share(),
        ..WriterOptions::default()
    };
    let (rules, key) = chosen(args.rules.as_deref(), args.key.as_deref())?;
    {
        let bar = Bar::new("redacting", Unit::Rows);
        let mut progress = |done, total| bar.set(done, total);
        redact(
            &args.session,
            &args.output,
            &rules,
            &key,
            options,
            &mut progress,
        )
        .map_err(Failure::input)?;
    }
    if let Some(left_out) = own_tables(&args.session) {
        errln!("fathom: {left_out}");
    }
    errln!(
        "fathom: redacted copy in {}; look at it before you give it away (fathom redact --help)",
        args.output.display()
    );
    Ok(0)
}

/// Says that the tables that the user added are not in the copy.
fn own_tables(session: &Path) -> Option<String> {
    let opened = Session::glance(session).ok()?;
    let names: Vec<&str> = opened
        .own_tables()
        .iter()
        .map(|own| own.name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "tables of yours are left out, because no rule says what they hold: {}; import them into \
             the copy again if it may have them",
            names.join(", ")
        )
    })
}

/// The rules and the key of hashes that options choose.
pub fn chosen(rules: Option<&Path>, key: Option<&Path>) -> Result<(Rules, Key), Failure> {
    let chosen = || {
        let rules = rules.map(Rules::read).transpose()?.unwrap_or_default();
        let key = match key {
            Some(path) => Key::read(path)?,
            None => Key::random()?,
        };
        Ok::<_, RedactError>((rules, key))
    };
    chosen().map_err(Failure::input)
}

/// With `--redact` a redacted copy of the session, which goes when it is dropped.
#[cfg(feature = "analysis")]
pub fn temporary(session: &Path, options: &RedactOptions) -> Result<Option<Scratch>, Failure> {
    if !options.redact {
        return Ok(None);
    }
    let (rules, key) = chosen(options.rules.as_deref(), options.key.as_deref())?;
    let bar = Bar::new("redacting", Unit::Rows);
    let mut progress = |done, total| bar.set(done, total);
    let parent = std::env::temp_dir();
    let defaults = WriterOptions::default();
    let made = Scratch::make(session, &parent, &rules, &key, defaults, &mut progress);
    made.map(Some).map_err(Failure::input)
}

/// Redacted copies of the sessions below a directory, which go when this is dropped.
#[cfg(feature = "analysis")]
pub struct Copies {
    folder: PathBuf,
    sessions: Vec<PathBuf>,
}

#[cfg(feature = "analysis")]
impl Copies {
    /// With `--redact` copies of all sessions in `root`, or of the one that it is, with one key. A
    /// session that cannot be copied, such as one that is being recorded, is named and left out.
    pub fn make(root: &Path, options: &RedactOptions) -> Result<Option<Self>, Failure> {
        if !options.redact {
            return Ok(None);
        }
        let failed = |what: String| {
            move |error: std::io::Error| Failure::input(anyhow::Error::new(error).context(what))
        };
        let (rules, key) = chosen(options.rules.as_deref(), options.key.as_deref())?;
        let shown = escape::text(&root.to_string_lossy()).into_owned();
        let cannot = || failed(format!("cannot open the sessions in {shown}"));
        let library = Folder::new(root).map_err(cannot())?;
        let ids = library.ids().map_err(cannot())?;
        let number = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("fathom-redacted-{number:016x}"));
        create_folder(&folder).map_err(Failure::input)?;
        let mut copies = Self {
            folder,
            sessions: Vec::new(),
        };
        for dir in ids.iter().filter_map(|id| library.dir(id)) {
            let Some(name) = dir.file_name() else {
                continue;
            };
            let mut to = copies.folder.join(name);
            // Sessions of a set lie in several directories and may have one name.
            if copies.sessions.contains(&to) {
                let mut other = std::ffi::OsString::from(format!("{}-", copies.sessions.len()));
                other.push(name);
                to = copies.folder.join(other);
            }
            let bar = Bar::new("redacting", Unit::Rows);
            let mut progress = |done, total| bar.set(done, total);
            let made = redact(
                &dir,
                &to,
                &rules,
                &key,
                WriterOptions::default(),
                &mut progress,
            );
            drop(bar);
            match made {
                Ok(()) => copies.sessions.push(to),
                Err(error) => errln!(
                    "fathom: session {} is left out: {error}",
                    escape::text(&name.to_string_lossy())
                ),
            }
        }
        if copies.sessions.is_empty() {
            return Err(Failure::input(anyhow::anyhow!(
                "no session in {shown} can be redacted; name a directory of closed sessions"
            )));
        }
        Ok(Some(copies))
    }

    /// The directory of the copies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(feature = "analysis")]
impl Drop for Copies {
    fn drop(&mut self) {
        for session in &self.sessions {
            let _ = discard(session);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}
