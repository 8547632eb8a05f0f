//! The files of a recording by preload, in private directories: the object, which the command may
//! read, and the memory that it shares with the recorder, which the command's user may write, too.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_model::abi::{POOL_HEADER_BYTES, POOL_PROCESSES, PROCESS_BYTES};
use fathom_preload::Stub;

use crate::preload_error::PreloadError;

/// Where the memory may be: on other file systems it would be written to a device.
const OF_MEMORY: [&str; 3] = ["/dev/shm", "/run", "/tmp"];
/// Where the object may be, if programs can be executed there.
const OF_PROGRAMS: [&str; 5] = ["/dev/shm", "/run", "/tmp", "/var/tmp", "/var/lib"];
const POOL: &str = "pool";
const OBJECT: &str = "fathom-preload.so";
const TMPFS_MAGIC: i64 = 0x0102_1994;
/// Memory that must be free: a process that finds none for a page is ended.
const ROOM: u64 = 256 << 20;

/// A directory that no other user writes to, and its name.
struct Private {
    path: PathBuf,
    directory: OwnedFd,
}

/// The files; they are removed when this is dropped.
pub struct PreloadFiles {
    memory: Private,
    programs: Private,
    pool: File,
    /// Processes go on that may execute programs with the object in their environment.
    stays: AtomicBool,
}

impl PreloadFiles {
    /// Makes them for the programs of user `uid`, or of this process's user.
    pub(super) fn new(stubs: &[Stub], uid: Option<u32>) -> Result<Self, PreloadError> {
        let memory = Private::below(
            &OF_MEMORY,
            is_memory,
            "that is kept in memory (tmpfs) with 256 MiB free",
        )?;
        let programs = Private::below(&OF_PROGRAMS, executes, "where programs can be executed")?;
        let pool = memory.file(POOL, 0o600)?;
        let files = Self {
            memory,
            programs,
            pool,
            stays: AtomicBool::new(false),
        };
        files
            .pool
            .set_len(pool_bytes())
            .map_err(files.memory.failed())?;
        if let Some(uid) = uid {
            std::os::unix::fs::fchown(&files.pool, Some(uid), None)
                .map_err(files.memory.failed())?;
        }
        let object = fathom_preload::object(stubs, &files.memory.path.join(POOL))?;
        let mut file = files.programs.file(OBJECT, 0o444)?;
        file.write_all(&object).map_err(files.programs.failed())?;
        Ok(files)
    }

    /// The object, for LD_PRELOAD.
    pub fn object(&self) -> PathBuf {
        self.programs.path.join(OBJECT)
    }

    /// Processes go on when this is dropped: without the object the dynamic linker would complain in
    /// programs that they execute.
    pub fn leave_object(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Whether there is memory for what the processes write next.
    pub(super) fn has_room(&self) -> bool {
        is_memory(&self.memory.path).unwrap_or(false)
    }

    /// Reads all of `bytes` from the shared memory. It is read as a file: a process that cuts it
    /// off ends no recorder.
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.pool.read_exact_at(bytes, at).ok()
    }

    pub(super) fn read_number(&self, at: u64) -> Option<u64> {
        let mut number = [0; 8];
        self.read(at, &mut number)?;
        Some(u64::from_ne_bytes(number))
    }

    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Option<()> {
        self.pool.write_all_at(bytes, at).ok()
    }

    /// Frees memory, which reads as zeros then.
    pub(super) fn forget(&self, at: u64, bytes: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: numbers, and a descriptor that is open.
        unsafe { libc::fallocate(self.pool.as_raw_fd(), mode, at as i64, bytes as i64) };
    }
}

/// Bytes of the shared memory, of which those take room that are used.
fn pool_bytes() -> u64 {
    u64::from(POOL_HEADER_BYTES) + u64::from(POOL_PROCESSES) * u64::from(PROCESS_BYTES)
}

impl Drop for PreloadFiles {
    fn drop(&mut self) {
        self.memory.remove(POOL);
        self.memory.remove_directory();
        if !self.stays.load(Ordering::Relaxed) {
            self.programs.remove(OBJECT);
            self.programs.remove_directory();
        }
    }
}

impl Private {
    /// Makes one below the first of `parents` whose file system fits.
    fn below(
        parents: &[&str],
        fits: impl Fn(&Path) -> io::Result<bool>,
        what: &'static str,
    ) -> Result<Self, PreloadError> {
        let mut fitting = parents.iter().map(Path::new);
        let parent = fitting.find(|path| fits(path).unwrap_or(false));
        let list = || parents.join(", ");
        let parent = parent.ok_or_else(|| PreloadError::NoDirectory { what, list: list() })?;
        Self::make(parent).map_err(|source| PreloadError::Directory {
            path: parent.to_owned(),
            source,
        })
    }

    fn make(parent: &Path) -> io::Result<Self> {
        let mut random = [0; 8];
        // SAFETY: an array and its length.
        if unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) } != 8 {
            return Err(io::Error::last_os_error());
        }
        let name = format!("fathom-{:016x}", u64::from_ne_bytes(random));
        let path = parent.join(name);
        let text = c_text(path.as_os_str())?;
        // SAFETY: terminated strings; the descriptor is new, or -1.
        let directory = unsafe {
            if libc::mkdir(text.as_ptr(), 0o711) < 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let directory = libc::open(text.as_ptr(), flags);
            if directory < 0 {
                return Err(io::Error::last_os_error());
            }
            let directory = OwnedFd::from_raw_fd(directory);
            // Whatever the umask is, programs of other users find the files.
            libc::fchmod(directory.as_raw_fd(), 0o711);
            directory
        };
        Ok(Self { path, directory })
    }

    /// A new file.
    fn file(&self, name: &str, mode: u32) -> Result<File, PreloadError> {
        let open = || {
            let text = c_text(OsStr::new(name))?;
            let flags =
                libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
            // SAFETY: a terminated string; the descriptor is new, or -1.
            unsafe {
                let file = libc::openat(self.directory.as_raw_fd(), text.as_ptr(), flags, mode);
                if file < 0 {
                    return Err(io::Error::last_os_error());
                }
                let file = File::from_raw_fd(file);
                libc::fchmod(file.as_raw_fd(), mode);
                Ok(file)
            }
        };
        open().map_err(self.failed())
    }

    fn failed(&self) -> impl Fn(io::Error) -> PreloadError {
        let path = self.path.clone();
        move |source| PreloadError::Directory {
            path: path.clone(),
            source,
        }
    }

    fn remove(&self, name: &str) {
        if let Ok(text) = c_text(OsStr::new(name)) {
            // SAFETY: a terminated string.
            unsafe { libc::unlinkat(self.directory.as_raw_fd(), text.as_ptr(), 0) };
        }
    }

    fn remove_directory(&self) {
        std::fs::remove_dir(&self.path).ok();
    }
}

fn c_text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Whether files on the file system are kept in memory, of which there is enough.
fn is_memory(path: &Path) -> io::Result<bool> {
    let text = c_text(path.as_os_str())?;
    // SAFETY: all zeros are a value of this struct; a terminated string, and room for the result.
    unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        match libc::statfs(text.as_ptr(), &mut stat) {
            0 => Ok(stat.f_type as i64 == TMPFS_MAGIC
                && (stat.f_bavail as u64).saturating_mul(stat.f_bsize as u64) >= ROOM),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether programs on the file system can be executed.
fn executes(path: &Path) -> io::Result<bool> {
    let text = c_text(path.as_os_str())?;
    // SAFETY: all zeros are a value of this struct; a terminated string, and room for the result.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(text.as_ptr(), &mut stat) {
            0 => Ok(stat.f_flag & libc::ST_NOEXEC == 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_with_their_owner() {
        let files = match PreloadFiles::new(&[], None) {
            Err(PreloadError::Object(fathom_preload::PreloadError::Processor)) => return,
            files => files.unwrap(),
        };
        let (object, pool) = (files.object(), files.memory.path.join(POOL));
        assert!(std::fs::read(&object).unwrap().starts_with(b"\x7fELF"));
        assert_eq!(std::fs::metadata(&pool).unwrap().len(), pool_bytes());
        files.write(100, &7u64.to_ne_bytes()).unwrap();
        assert_eq!(files.read_number(100), Some(7));
        files.forget(0, 4096);
        assert_eq!(files.read_number(100), Some(0));
        assert_eq!(files.read_number(pool_bytes()), None);
        drop(files);
        assert!(!object.exists() && !object.parent().unwrap().exists());
        assert!(!pool.exists() && !pool.parent().unwrap().exists());
    }
}
