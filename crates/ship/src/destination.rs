//! Where sessions are shipped to.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fathom_session::create_folder;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use crate::error::ShipError;
use crate::layout;

/// Objects up to this size are sent by one request, others in pieces of it, bytes. S3 asks for 5 MiB at
/// least, and for 10,000 pieces at most.
const PIECE: usize = 16 << 20;

/// A place for sessions.
#[derive(Clone, Debug)]
pub struct Destination {
    given: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Of a destination in the file system.
    directory: Option<PathBuf>,
    piece: usize,
}

impl Destination {
    /// Opens `s3://BUCKET/PREFIX`, `gs://`, `az://CONTAINER/PREFIX`, `file:///DIRECTORY`, or a directory,
    /// which is made if it is not there. Credentials and endpoints of stores come from the environment.
    /// A request that fails is repeated for `patience`.
    ///
    /// # Errors
    /// [`ShipError::Destination`]; the errors of [`create_folder`].
    pub fn open(given: &str, patience: Duration) -> Result<Self, ShipError> {
        let wrong = |reason: String| ShipError::Destination {
            destination: given.to_owned(),
            reason,
        };
        let failed = |error: object_store::Error| wrong(error.to_string());
        let Some((scheme, rest)) = given.split_once("://") else {
            return Self::directory(given, FilePath::new(given));
        };
        let retry = RetryConfig {
            retry_timeout: patience,
            // Time is the limit.
            max_retries: usize::MAX,
            ..RetryConfig::default()
        };
        if scheme == "file" {
            return match rest.starts_with('/') && !rest.contains('%') {
                true => Self::directory(given, FilePath::new(rest)),
                false => Err(wrong(
                    "write file:///DIRECTORY without percent signs, or the directory itself".into(),
                )),
            };
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if bucket.is_empty() || !bucket.chars().all(plain) {
            return Err(wrong(format!("write {scheme}://BUCKET/PREFIX")));
        }
        let prefix = Path::parse(prefix).map_err(|error| wrong(error.to_string()))?;
        // reqwest would panic without one. One that another part of the program has chosen stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store: Arc<dyn ObjectStore> = match scheme {
            "s3" => {
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                Arc::new(builder.with_retry(retry).build().map_err(failed)?)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                Arc::new(builder.with_retry(retry).build().map_err(failed)?)
            }
            "az" => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                Arc::new(builder.with_retry(retry).build().map_err(failed)?)
            }
            _ => {
                return Err(wrong(
                    "not a destination; write s3://, gs://, az://, file:///, or a directory".into(),
                ));
            }
        };
        Ok(Self {
            given: given.to_owned(),
            store,
            prefix,
            directory: None,
            piece: PIECE,
        })
    }

    fn directory(given: &str, path: &FilePath) -> Result<Self, ShipError> {
        let wrong = |error: object_store::Error| ShipError::Destination {
            destination: given.to_owned(),
            reason: error.to_string(),
        };
        create_folder(path)?;
        let path = path.canonicalize().map_err(ShipError::io("open", path))?;
        let store = LocalFileSystem::new_with_prefix(&path).map_err(wrong)?;
        Ok(Self {
            given: given.to_owned(),
            // A marker must not outlive the objects that it names.
            store: Arc::new(store.with_fsync(true)),
            prefix: Path::default(),
            directory: Some(path),
            piece: PIECE,
        })
    }

    /// A destination in a store, for tests.
    #[cfg(test)]
    pub(crate) fn of(store: Arc<dyn ObjectStore>, prefix: &str, piece: usize) -> Self {
        Self {
            given: "memory:".to_owned(),
            store,
            prefix: Path::from(prefix),
            directory: None,
            piece,
        }
    }

    /// As it was given.
    pub fn given(&self) -> &str {
        &self.given
    }

    pub(crate) fn piece(&self) -> usize {
        self.piece
    }

    pub(crate) fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    /// The path of an object.
    pub(crate) fn path(&self, relative: &str) -> Result<Path, ShipError> {
        layout::below(&self.prefix, relative).map_err(|error| ShipError::Destination {
            destination: self.given.clone(),
            reason: error.to_string(),
        })
    }

    pub(crate) fn failed(
        &self,
        action: &'static str,
        object: &Path,
    ) -> impl FnOnce(object_store::Error) -> ShipError + use<> {
        let inside = object.as_ref();
        let prefix = self.prefix.as_ref();
        let inside = inside.strip_prefix(prefix).unwrap_or(inside);
        let given = self.given.trim_end_matches('/');
        let object = format!("{given}/{}", inside.trim_start_matches('/'));
        move |source| ShipError::Store {
            action,
            object,
            answer: Box::new(source),
        }
    }

    /// Removes what a program that was killed had begun to write into a directory of the destination.
    /// Stores have no such files.
    pub(crate) fn clear_begun(&self, relative: &str) -> Result<(), ShipError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let directory = directory.join(relative);
        let entries = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(ShipError::io("read", &directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(ShipError::io("read", &directory))?;
            // The names of object_store: NAME#NUMBER.
            let name = entry.file_name();
            let begun = name.to_str().and_then(|name| name.rsplit_once('#'));
            let ours = begun.is_some_and(|(name, number)| {
                let known = layout::is_part_name(name) || name == layout::MARKER;
                known && number.bytes().all(|byte| byte.is_ascii_digit())
            });
            if ours {
                std::fs::remove_file(entry.path())
                    .map_err(ShipError::io("remove", &entry.path()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_destination_is_refused() {
        let patience = Duration::from_secs(1);
        let refused = |given: &str| Destination::open(given, patience).unwrap_err().to_string();
        for (given, part) in [
            ("ftp://host/x", "not a destination"),
            ("s3://", "s3://BUCKET/PREFIX"),
            ("gs:///prefix", "gs://BUCKET/PREFIX"),
            ("s3://me:secret@bucket/x", "s3://BUCKET/PREFIX"),
            ("s3://bucket/a//b", "empty"),
            ("s3://bucket/../b", ".."),
            ("file://host/x", "file:///DIRECTORY"),
            ("/nowhere/at/all", "/nowhere/at/all"),
        ] {
            let said = refused(given);
            assert!(said.contains(part), "{given}: {said}");
        }
    }

    #[test]
    fn directories_are_private_and_not_shared() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("lake");
        let given = format!("file://{}", path.display());
        let opened = Destination::open(&given, Duration::ZERO).unwrap();
        assert_eq!(opened.given(), given);
        let mode = |path: &FilePath| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        symlink(&path, parent.path().join("link")).unwrap();
        let refused = |path: PathBuf| {
            let refused = Destination::open(&path.display().to_string(), Duration::ZERO);
            refused.unwrap_err().to_string()
        };
        assert!(refused(parent.path().join("link")).contains("symbolic link"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused(path).contains("other users can write"));
    }

    #[test]
    fn what_was_begun_goes_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let lake = parent.path().join("lake").display().to_string();
        let lake = Destination::open(&lake, Duration::ZERO).unwrap();
        lake.clear_begun("syscalls/none").unwrap();
        let dir = parent.path().join("lake/syscalls/x");
        std::fs::create_dir_all(&dir).unwrap();
        let stay = [
            "part-00000000.00ff.parquet",
            "own#1",
            "part-x.parquet#1",
            "session.json#a",
        ];
        for name in stay
            .iter()
            .chain(&["part-00000000.00ff.parquet#1", "session.json#12"])
        {
            std::fs::write(dir.join(name), "").unwrap();
        }
        lake.clear_begun("syscalls/x").unwrap();
        let names = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        let mut stay = stay.map(String::from);
        stay.sort();
        assert_eq!(names, stay);
    }
}
