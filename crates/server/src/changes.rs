//! Detects changes of a session's files: through inotify, or by the clock if no watch is available.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use fathom_model::tables::TABLES;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// How often a session is looked at that is not watched.
const LOOK: Duration = Duration::from_millis(100);
/// Parts of all tables are written one after another, the calls' part last: changes within such a
/// short time are one change.
const SETTLE: Duration = Duration::from_millis(20);

/// Changes of a session's folders.
pub(crate) struct Changes(Option<AsyncFd<OwnedFd>>);

impl Changes {
    /// The changes of the session in `dir` from now on.
    pub fn of(dir: &Path) -> Self {
        Self(watch(dir).ok())
    }

    /// Waits until something may have changed.
    pub async fn next(&mut self) {
        let Some(watch) = &self.0 else {
            return tokio::time::sleep(LOOK).await;
        };
        if told(watch).await.is_err() {
            self.0 = None;
            return;
        }
        tokio::time::sleep(SETTLE).await;
    }
}

#[expect(
    deprecated,
    reason = "its unsafe successor asks for what OwnedFd gives: one descriptor that stays open"
)]
fn watch(dir: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    // Parts and session.json get their names when they are complete. Merged ones are removed after
    // that; the pyramid grows by data of earlier parts.
    let flags = WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
    inotify::add_watch(&watch, dir, flags)?;
    for table in TABLES {
        match inotify::add_watch(&watch, dir.join(table.name), flags) {
            // Written by a fathom that did not have the table.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    AsyncFd::new(watch)
}

/// Waits for the kernel's word, and takes all that it has to say.
async fn told(watch: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let mut ready = watch.readable().await?;
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch.get_ref(), &mut space);
    loop {
        match events.next() {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                ready.clear_ready();
                return Ok(());
            }
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn a_part_that_gets_its_name_is_told_once_and_one_that_is_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("syscalls")).unwrap();
        let part = dir.path().join("syscalls/00000000.parquet");
        let unfinished = dir.path().join("syscalls/.00000000.tmp");
        run(async {
            let mut changes = Changes::of(dir.path());
            assert!(changes.0.is_some(), "this kernel gives no watch");
            let mut soon = async |wait| tokio::time::timeout(wait, changes.next()).await.is_ok();
            fs::write(&unfinished, "x").unwrap();
            assert!(!soon(Duration::from_millis(50)).await);
            fs::rename(&unfinished, &part).unwrap();
            assert!(soon(Duration::from_secs(20)).await);
            assert!(!soon(Duration::from_millis(50)).await);
        });
    }

    #[test]
    fn what_cannot_be_watched_is_looked_at() {
        run(async {
            let mut changes = Changes::of(Path::new("/nowhere/at/all"));
            assert!(changes.0.is_none());
            changes.next().await;
        });
    }
}
