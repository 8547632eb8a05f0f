//! Where things lie, and tests that cannot run here.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The build's output directory, `target/release` as a rule.
pub fn build_dir() -> PathBuf {
    let test = std::env::current_exe().expect("path of the test binary");
    let deps = test.parent().expect("directory of the test binary");
    deps.parent().expect("output directory").to_path_buf()
}

/// The program under test: `FATHOM_BIN`, else the one that was built with the
/// tests.
pub fn fathom() -> PathBuf {
    let path = std::env::var_os("FATHOM_BIN").map_or(build_dir().join("fathom"), PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build --release -p fathom-cli`",
        path.display()
    );
    path
}

/// Whether the tests may load programs into the kernel.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Rules about what else the machine does: other tests take processors and the device.
pub const RULES_OF_THE_MACHINE: [&str; 2] = ["cpu-starvation", "noisy-neighbor"];

/// Notes that the running test cannot run here and why: on standard error, and
/// in the file that `FATHOM_SKIP_LOG` names.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {reason}\n", thread.name().unwrap_or("?"));
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FATHOM_SKIP_LOG") {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .expect("FATHOM_SKIP_LOG");
        file.write_all(line.as_bytes()).expect("FATHOM_SKIP_LOG");
    }
}

/// Returns from a test that needs root when it has not got it.
#[macro_export]
macro_rules! need_root {
    () => {
        if !$crate::is_root() {
            $crate::skip("needs root to load programs into the kernel");
            return;
        }
    };
}

/// Returns from a test when one of the named programs is not installed.
#[macro_export]
macro_rules! need_program {
    ($($program:expr),+) => {
        for program in [$($program),+] {
            if !$crate::environment::installed(program) {
                $crate::skip(&format!("{program} is not installed"));
                return;
            }
        }
    };
}

/// Whether a program is on the path.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs a command to its end; it must succeed. Returns its standard output.
pub fn must_run<I, S>(program: impl AsRef<OsStr>, args: I) -> Vec<u8>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let program = program.as_ref();
    let output = Command::new(program)
        .args(args)
        // As what is recorded runs without it, too.
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    assert!(
        output.status.success(),
        "{} failed ({}):\n{}{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Directories of one test, removed with it: `work` for the traced program,
/// `truth` for its logs, and room for sessions.
pub struct Scratch {
    root: TempDir,
}

impl Scratch {
    /// Fresh directories that every user may enter and write.
    pub fn new() -> Scratch {
        let root = tempfile::Builder::new()
            .prefix("fathom-test-")
            .tempdir()
            .expect("directory");
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).expect("permissions");
        for name in ["work", "truth"] {
            let dir = root.path().join(name);
            fs::create_dir(&dir).expect("directory");
            fs::set_permissions(&dir, Permissions::from_mode(0o777)).expect("permissions");
        }
        Scratch { root }
    }

    /// Everything of the test lies below.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Where the traced program works.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Where its logs go.
    pub fn truth(&self) -> PathBuf {
        self.root().join("truth")
    }

    /// Where a session goes.
    pub fn session(&self, name: &str) -> PathBuf {
        self.root().join(format!("{name}.fathom"))
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}
