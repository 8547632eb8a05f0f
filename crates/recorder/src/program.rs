//! The files that a command will execute, as far as its arguments name them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of a script's first line that the kernel reads: BINPRM_BUF_SIZE in
/// include/uapi/linux/binfmts.h.
const FIRST_LINE: u64 = 256;

/// The command's program; if that is a script its interpreter, also one that env(1) looks for.
pub(crate) fn files<S: AsRef<OsStr>>(argv: &[S]) -> Vec<PathBuf> {
    let Some(program) = argv.first().and_then(|name| found(name.as_ref())) else {
        return Vec::new();
    };
    let interpreters = interpreters(&program);
    let mut files = vec![program];
    files.extend(interpreters.iter().filter_map(|name| found(name)));
    files
}

/// Where a program is: a path as it is, a name by `PATH`, as execvp(3) does.
fn found(name: &OsStr) -> Option<PathBuf> {
    let path = match name.as_bytes().contains(&b'/') {
        true => PathBuf::from(name),
        false => {
            let list = std::env::var_os("PATH")?;
            let mut paths = std::env::split_paths(&list).map(|directory| directory.join(name));
            paths.find(|path| path.is_file())?
        }
    };
    path.canonicalize().ok()
}

/// The words of a script's first line: the interpreter, and if that is env(1), what it executes.
fn interpreters(program: &Path) -> Vec<Box<OsStr>> {
    let mut line = Vec::new();
    // A pipe or a device would be read from, or would wait.
    let file = program
        .is_file()
        .then(|| File::open(program).ok())
        .flatten();
    let read = file.map(|file| file.take(FIRST_LINE).read_to_end(&mut line));
    let Some((Some(Ok(_)), line)) = Some((read, line.strip_prefix(b"#!"))) else {
        return Vec::new();
    };
    let line = line.and_then(|line| line.split(|byte| *byte == b'\n').next());
    let words = line.unwrap_or_default().split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else {
        return Vec::new();
    };
    let mut all = vec![Box::from(OsStr::from_bytes(interpreter))];
    if interpreter.ends_with(b"/env") {
        let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
        all.extend(
            words
                .find(is_program)
                .map(|word| Box::from(OsStr::from_bytes(word))),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_interpreters() {
        let sh = Path::new("/bin/sh").canonicalize().unwrap();
        let only = std::slice::from_ref(&sh);
        assert_eq!(files(&["sh", "-c", "true"]), only);
        assert_eq!(files(&["/bin/sh"]), only);
        assert!(files(&["/no/such/program"]).is_empty());
        assert!(files::<&str>(&[]).is_empty());
        let scratch = tempfile::tempdir().unwrap();
        let script = scratch.path().join("script");
        let scripts = [
            "#!/bin/sh -e\n",
            "#! /usr/bin/env -S A=1 sh\ntrue",
            "#!",
            "#!\n",
            "\0",
        ];
        for (text, interpreted) in scripts.into_iter().zip([true, true, false, false, false]) {
            std::fs::write(&script, text).unwrap();
            let found = files(&[&script]);
            assert_eq!(found.first(), script.canonicalize().ok().as_ref());
            assert_eq!(found.contains(&sh), interpreted, "{text}");
        }
    }
}
