//! Errors of sessions.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of sessions. Each says what happened, to what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The directory for a new session has something in it.
    #[error("{} is not empty; choose another directory, or replace the session in it with --force", .0.display())]
    Exists(PathBuf),

    /// `force` was given, but what is there is not a session.
    #[error("{}: {reason}, so it is not replaced; remove it yourself, or choose another directory", path.display())]
    NotReplaceable {
        /// The directory, or the obstacle inside it.
        path: PathBuf,
        /// Why it is not taken for a session's.
        reason: &'static str,
    },

    /// The directory, or something in it, is another user's to change.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The directory, or what is in it.
        path: PathBuf,
        /// Whose it is, and what to do.
        reason: String,
    },

    /// Another recorder writes to the directory.
    #[error("{} is being recorded by another process; stop that process first, or choose another directory", .0.display())]
    Busy(PathBuf),

    /// Rows cannot be added to the session.
    #[error("cannot add rows to {}: {reason}; `fathom repair` closes a session and repairs damage", path.display())]
    Unfit {
        /// Directory of the session.
        path: PathBuf,
        /// The obstacle.
        reason: &'static str,
    },

    /// The session has a table of this name that the user added.
    #[error("{} has a table {name} already; choose another name, or replace the table with --force", path.display())]
    OwnTableExists {
        /// Directory of the session.
        path: PathBuf,
        /// Name of the table.
        name: String,
    },

    /// The table is too large.
    #[error(
        "table {name} takes {bytes} bytes as Parquet, and at most 1 GiB is kept; import fewer rows or columns"
    )]
    LargeOwnTable {
        /// Name of the table.
        name: String,
        /// Size of its file.
        bytes: u64,
    },

    /// The path does not lead to a session.
    #[error("{} is not a session: {reason}; pass a directory written by `fathom record`", path.display())]
    NotASession {
        /// The path.
        path: PathBuf,
        /// The missing part.
        reason: &'static str,
    },

    /// There is a file where a set is to be written.
    #[error("{} exists; choose another name, or replace a set with --force", .0.display())]
    SetExists(PathBuf),

    /// The path leads to a set of sessions.
    #[error("{} is a set of sessions; this command takes one session: {members}", path.display())]
    IsASet {
        /// The file.
        path: PathBuf,
        /// Directories of its members.
        members: String,
    },

    /// A set cannot be understood.
    #[error("{} is damaged: {reason}; make the set again with fathom set", path.display())]
    DamagedSet {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },

    /// A symbolic link leads to a set.
    #[error(
        "{} is a symbolic link; pass the set that it leads to, because the sessions of a set are found \
         from the place of its file",
        .0.display()
    )]
    LinkToSet(PathBuf),

    /// A session of a set cannot be opened.
    #[error(
        "{}: member {host}: {source}; if it was moved, make the set again with fathom set",
        set.display()
    )]
    Member {
        /// The file of the set.
        set: PathBuf,
        /// Name of the member.
        host: String,
        /// The reason.
        source: Box<SessionError>,
    },

    /// A session of a set is not where it was.
    #[error("{}: member {host} is another session than {}; make the set again with fathom set", set.display(), path.display())]
    OtherMember {
        /// The file of the set.
        set: PathBuf,
        /// Name of the member.
        host: String,
        /// Directory of the session that is there now.
        path: PathBuf,
    },

    /// `session.json` cannot be understood.
    #[error("{} is damaged: {reason}; the Parquet parts in its folders can still be read by other programs", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },

    /// The session comes from a fathom with other tables.
    #[error("{} has schema version {found}, this fathom reads version {known}; read it with fathom {writer}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// Version that is read here.
        known: u32,
        /// The fathom that wrote it, as it says.
        writer: String,
    },

    /// The operating system refused.
    #[error("cannot {action} {}: {}", path.display(), reason(action, path, source))]
    Io {
        /// The failed operation: `create`, `write`, ...
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },

    /// A part could not be encoded or decoded.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The part, or the table's folder.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },

    /// A part is not as it was written.
    #[error("{}: {reason}; `fathom repair` moves it aside", path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// The defect.
        reason: String,
    },

    /// A batch does not have the columns of its table.
    #[error("batch for table {table} is malformed: {reason}; this is a defect of fathom")]
    BadBatch {
        /// The table.
        table: &'static str,
        /// The mismatch.
        reason: String,
    },

    /// The thread that writes the session has ended.
    #[error("session {} is no longer being written: {reason}", path.display())]
    Stopped {
        /// Directory of the session.
        path: PathBuf,
        /// The error that ended it.
        reason: String,
    },
}

/// Why the operating system refused: it does not say which part of a path is missing.
fn reason(action: &str, path: &Path, source: &io::Error) -> String {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match parent.filter(|parent| action == "create" && !parent.exists()) {
        Some(parent) if source.kind() == io::ErrorKind::NotFound => {
            format!("{source}: create the directory {} first", parent.display())
        }
        _ => source.to_string(),
    }
}

impl SessionError {
    /// An error of the operating system when it was asked to `action` `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| SessionError::Io {
            action,
            path,
            source,
        }
    }

    /// `path` belongs to another user.
    pub(crate) fn belongs_to(path: &Path, uid: u32) -> Self {
        SessionError::Foreign {
            path: path.to_owned(),
            reason: format!(
                "it belongs to user {uid}, who could make fathom change other files; run fathom as \
                 that user (`sudo -u '#{uid}' fathom ...`), or take it over first with `chown -R`"
            ),
        }
    }

    /// `path` may not be read by this user, as the system says in `source`.
    pub(crate) fn not_shared(path: &Path, source: io::Error) -> Self {
        use std::os::unix::fs::MetadataExt;

        match path.metadata() {
            Ok(owner) => SessionError::Foreign {
                path: path.to_owned(),
                reason: format!(
                    "{source}: it is user {}'s; run fathom as that user or as root, or record with \
                     --share",
                    owner.uid()
                ),
            },
            // Not even the directory above may be looked into.
            Err(_) => Self::io("open", path)(source),
        }
    }

    /// An error of Parquet in `path`.
    pub(crate) fn parquet(
        path: &Path,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self + use<> {
        let path = path.to_owned();
        move |source| SessionError::Parquet { path, source }
    }

    /// Whether the disk or a quota is full.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            SessionError::Io { source, .. } => is_full(source),
            SessionError::Parquet {
                source: parquet::errors::ParquetError::External(source),
                ..
            } => source.downcast_ref::<io::Error>().is_some_and(is_full),
            _ => false,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
